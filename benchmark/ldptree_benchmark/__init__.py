"""The benchmark, in cells of one learner on one data set at one epsilon in one repetition. Its user owns all rows."""

__version__ = "0.1.0"
