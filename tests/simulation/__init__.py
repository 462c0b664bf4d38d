"""Runs of several processes and machines over a simulated disk or bucket, in an order and with faults that a seed decides."""
