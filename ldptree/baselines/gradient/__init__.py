"""Gradient descent on private reports: PSGD, and the PrivUnitG reports that it takes its steps by."""
