"""What is done with a work folder between runs: what is in it and why, its list of runs, and what no run needs any more."""
