"""What an epsilon and a depth may be, in a configuration, an estimator and an audit alike."""

MIN_EPSILON = 1e-6
"""Below, reports tell nothing."""
MAX_EPSILON = 64.0
MAX_DEPTH = 62
