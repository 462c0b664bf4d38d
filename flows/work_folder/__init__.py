"""Explain the contents of work folders, list their runs, and remove what no run needs any more."""
