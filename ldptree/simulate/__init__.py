"""Simulated trips, and totals of holders that a simulation draws."""
