"""Artifacts, raw files, ledgers and reports on disk. What the files mean is for the layers above."""
