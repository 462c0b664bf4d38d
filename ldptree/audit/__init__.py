"""Audit the epsilon that a mechanism claims, exactly (`exact`) or by samples (`empirical`)."""
