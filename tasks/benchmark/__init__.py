"""The benchmark: one cell is one learner on one data set at one epsilon in one repetition. Whoever runs it owns all rows."""
