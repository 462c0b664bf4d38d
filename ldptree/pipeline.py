"""Find the pipeline for the library, in a distribution of its own, `ldptree-pipeline`."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def find_pipeline(needs: str, instead: str = "") -> Any:
    """The module of what the pipeline does in Python.

    Args:
        needs: what was asked for.
        instead: what can be done without it.

    Raises:
        ImportError: it is not installed.
    """
    from importlib.metadata import entry_points  # slow to import

    for entry in entry_points(group="ldptree.pipeline", name="run"):
        return import_module(entry.module)
    raise ImportError(
        f"{needs} needs the pipeline, which is not installed: pip install ldptree-pipeline{instead}"
    )
