"""The algorithms, usable without the pipeline."""
