"""Turn noisy totals into estimates by weighting, discrepancy and pruning, and choose depths before any report."""
