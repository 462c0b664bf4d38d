"""The page of a run, made of its data (`data`), its texts (`summary`, `findings`, `privacy`, `captions`), and its look.

One page for every family: a model describes itself (`ldptree.models.description`), and nothing here knows which one it is.
"""
