"""The algorithms, usable without the pipeline."""

__version__ = "0.1.0"
