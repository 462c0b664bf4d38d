"""Models fitted on public rows, which private reports correct."""

BASES = ("blend", "forest", "boosting", "tree")
AUTO_BASE = "blend"
"""The public model that is fitted unless one is named."""
