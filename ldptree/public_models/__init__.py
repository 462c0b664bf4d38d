"""Models fitted on public rows, which private reports correct."""
