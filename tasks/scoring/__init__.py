"""How a simulation scores what was learned, on rows held back. Nothing of it is a release."""
