"""The data sets that come with the program, one TOML file each in `schemas/datasets`, and how a run's [dataset] table names one.

No data are here: files are found in the folder that LDPTREE_DATA names (paths written `data:...`), simulated sets are
made by a run.
"""

from __future__ import annotations

import difflib
import tomllib
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from ldptree.errors import ConfigError
from schemas.rules import parse_public_rule

FOLDER = Path(__file__).parent / "datasets"
DATA = "data:"
OF_THE_LABEL = ("positive", "classes")
"""What an entry says of its own target, and of no other that a run may choose."""


@cache
def catalogue() -> dict[str, dict[str, Any]]:
    """Every data set of the catalogue, by name, as plain tables."""
    return {path.stem: tomllib.loads(path.read_text()) for path in sorted(FOLDER.glob("*.toml"))}


def with_catalogue(table: dict[str, Any], folder: Path | None) -> dict[str, Any]:
    """A run's [dataset] table laid over the catalogue's entry it names; without `path`, the name must be there. Raises
    ConfigError.

    A name of the catalogue with a `path` of one's own is another file of the same columns. Relative paths of one's own
    files are taken from `folder`, where the configuration lies.
    """
    name = table.get("name")
    known = catalogue()
    entry = known[name] if isinstance(name, str) and name in known else {}
    if "path" not in table and not entry:
        near = difflib.get_close_matches(str(name), known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"the catalogue has: {', '.join(known)}"
        raise ConfigError(
            f"dataset.name: {name!r} is not in the catalogue ({hint}). For a file of your own give dataset.path."
        )
    if table.get("target", entry.get("target")) != entry.get("target"):
        entry = {key: value for key, value in entry.items() if key not in OF_THE_LABEL}
    return entry | (table if folder is None else with_paths_from(folder, table))


def with_paths_from(folder: Path, table: dict[str, Any]) -> dict[str, Any]:
    """A [dataset] table with the relative paths of one's own files, wherever it names any, taken from `folder`."""

    def placed(path: Any) -> Any:
        if not isinstance(path, str) or path.startswith(DATA):
            return path
        return str(folder / path)  # an absolute path stays

    located = dict(table)
    if "path" in table:
        located["path"] = [
            placed(p) for p in (table["path"] if isinstance(table["path"], list) else [table["path"]])
        ]
    if "expect" in table:
        located["expect"] = placed(table["expect"])
    # A rule that cannot be parsed is told of where the whole configuration is checked.
    with suppress(ConfigError):
        if isinstance(table.get("public"), str) and (path := parse_public_rule(table["public"]).path):
            located["public"] = placed(path)
    return located
