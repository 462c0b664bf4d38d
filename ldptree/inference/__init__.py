"""From noisy totals to estimates: weighting, discrepancy, pruning; and depths, chosen before any report."""
