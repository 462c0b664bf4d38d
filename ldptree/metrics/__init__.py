"""Metrics of predictions, of classes and of numbers, with their intervals."""
