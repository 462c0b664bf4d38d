"""A program that reads a run's page and works out its figures anew, from what the run's steps wrote.

`reading` takes a page apart, `artifacts` gathers what the steps wrote, `statements` has what every sentence and table states.
Nothing here calls `tasks.page`: a page is checked against models, totals, protocols and scores.
"""
