"""Digest the code that a score comes from, as other code gives another score.

Of a learner that is all that draws and splits rows, all of `ldptree` but its baselines, and the learner's own modules with what
they import of baselines, rivals and learners. So a new one of these leaves the scores of the others as they are.
"""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from ldptree_benchmark.learners import list_modules

LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")
"""That draw rows, or learn."""
DRAWING = ("cell.py", "rows.py", "masks.py", "laws/*.py")
"""Of this package what comes before any learner."""
OWN = ("ldptree.baselines.", "ldptree_benchmark.rivals.", "ldptree_benchmark.learners.")
"""Packages whose modules are those of single learners."""


@cache
def digest_code(learner: str) -> str:
    """Of a learner's scores."""
    digest = hashlib.sha256(repr([(name, version(name)) for name in LIBRARIES]).encode())
    for path in (*_common(), *_own(list_modules(learner))):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:32]


@cache
def _common() -> list[Path]:
    library, benchmark = (Path(str(files(name))) for name in ("ldptree", "ldptree_benchmark"))
    return [
        *(path for path in sorted(library.rglob("*.py")) if library / "baselines" not in path.parents),
        *sorted(path for pattern in DRAWING for path in benchmark.glob(pattern)),
    ]


def _own(modules: frozenset[str]) -> list[Path]:
    """The files of these modules and of what they import of the packages of single learners."""
    waiting, paths = [*modules], dict[str, Path]()
    while waiting:
        module = waiting.pop()
        if module in paths or not module.startswith(OWN):
            continue
        top, *parts = module.split(".")
        path = Path(str(files(top))).joinpath(*parts).with_suffix(".py")
        if not path.is_file():
            continue  # a package: its registry says nothing of how a learner learns
        paths[module] = path
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ImportFrom) and node.module:
                waiting += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return [paths[module] for module in sorted(paths)]
