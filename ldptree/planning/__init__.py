"""Forecast a collection from public rows alone, with its gain, the smallest error it would find, and the people or
epsilon that a wanted result needs.

Nothing here reads a private row. Which public rows there are, and how a plan is shown, is told elsewhere.
"""
