"""Recognise formats that a run cannot read directly, and write them as CSV into a file without a name."""
