"""The people who answer a run's questions, as the pipeline knows them, whoever they are."""
