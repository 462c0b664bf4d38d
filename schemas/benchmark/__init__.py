"""What suites of the benchmark may say: which methods on which data sets, and what is claimed."""
