"""Gradient descent on private reports, with PSGD and the PrivUnitG reports that it takes its steps by."""
