"""What a collection would bring, before anybody is asked: forecasts from public rows alone, how small an error would be found,
and how many people or which epsilon a wanted result needs.

Nothing here reads a private row. Which public rows there are, and how a plan is shown, is told elsewhere.
"""
