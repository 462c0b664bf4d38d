"""Score a simulation on held-back rows. Nothing of it is a release."""
