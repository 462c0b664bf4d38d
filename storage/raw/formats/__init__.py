"""Formats that are not read as they stand: what a file is, and each of the others written as CSV into a file without a name."""
