"""The Prefect server of a run or of a work folder: started, found again, watched, tidied; and steps as its tasks."""
