"""Open raw files as they come, type their values, put faults aside, and separate public rows from private ones."""
