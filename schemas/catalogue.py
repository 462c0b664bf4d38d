"""The data sets that come with the program, one TOML file each in `schemas/datasets`, and how a run's [dataset] table names one.

No data are here: files are found in the folder that LDPTREE_DATA names (paths written `data:...`), simulated sets are
made by a run.
"""

from __future__ import annotations

import difflib
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from ldptree.errors import ConfigError

FOLDER = Path(__file__).parent / "datasets"
DATA = "data:"


@cache
def catalogue() -> dict[str, dict[str, Any]]:
    """Every data set of the catalogue, by name, as plain tables."""
    return {path.stem: tomllib.loads(path.read_text()) for path in sorted(FOLDER.glob("*.toml"))}


def with_catalogue(table: dict[str, Any], folder: Path | None) -> dict[str, Any]:
    """A run's [dataset] table laid over the catalogue's entry it names; without `path`, the name must be there. Raises
    ConfigError.

    A name of the catalogue with a `path` of one's own is another file of the same columns. Relative paths of one's own files are taken from `folder`, where the configuration lies.
    """
    name = table.get("name")
    known = catalogue()
    if "path" not in table:
        if not isinstance(name, str) or name not in known:
            near = difflib.get_close_matches(str(name), known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"the catalogue has: {', '.join(known)}"
            raise ConfigError(
                f"dataset.name: {name!r} is not in the catalogue ({hint}). For a file of your own give dataset.path."
            )
        return known[name] | table
    paths = table["path"] if isinstance(table["path"], list) else [table["path"]]
    if folder is not None:
        paths = [
            str(folder / p)
            if isinstance(p, str) and not p.startswith(DATA) and not Path(p).is_absolute()
            else p
            for p in paths
        ]
    return (known[name] if isinstance(name, str) and name in known else {}) | table | {"path": paths}
