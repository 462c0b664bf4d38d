"""A planned run, with its steps, their size, their times, and the epsilon it would spend."""
