"""Choosing among candidate models by the reports of holders who never train: LPDT D.2, and better for the same epsilon."""
