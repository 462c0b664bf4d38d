"""A program that reads a run's page and works out every number on it anew, from what the run's steps wrote.

`reading` takes a page apart, `rules` matches what it says with what is so, `artifacts` gathers what the steps of a run wrote.
What is so of each kind of page is in `every_page`, `scores`, `classes`, `numbers`, `corrections` and `rounds`. Nothing here
calls `tasks.page`: a page is checked against models, totals, protocols and scores.
"""
