"""Configurations, data sets and manifests, and their checks."""
