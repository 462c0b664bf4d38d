"""Models fitted on public rows, which private reports correct."""

BASES = ("blend", "forest", "boosting", "tree")
WEIGHTED_BASES = ("forest", "boosting")
"""Those that can be fitted to rows of different weights."""
AUTO_BASE = "blend"
"""The public model that is fitted unless one is named."""
