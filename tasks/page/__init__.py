"""The page of a run: its data (`data`), what is said of it (`summary`, `findings`, `privacy`, `captions`), and how it looks.

One page for every family: a model describes itself (`ldptree.models.description`), and nothing here knows which one it is.
"""
