"""The page a person opens after a run: its facts, its sentences, its pictures and its template.

Nothing here reads an artifact or knows of Prefect: `facts.Facts` is the whole input, and `render.render`
makes the output.
"""
