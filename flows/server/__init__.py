"""Prefect's server of a run or of a work folder, the pages beside it, steps as its tasks, and the log and artifacts of a run."""
