"""A program that reads a run's page and works out its figures anew, from what the run's steps wrote.

`reading` takes a page apart, and `artifacts` gathers what the steps wrote. `statements` checks all that a page states: sentences
itself, with what `figures` works out; then `verdicts`, `tables`, `charts` and the drawn `report`.
Nothing here calls `tasks.page`: a page is checked against models, totals, protocols and scores.
"""
