"""Audits: is the epsilon that a mechanism claims true? `exact` enumerates, `empirical` samples."""
