"""Complete a configuration's plain tables before they are checked, with the packaged data set that [dataset] names (a
TOML file in `schemas/datasets`), and KEY=VALUE at the prompt.

No data are here: files are found in the folder that LDPTREE_DATA names (paths written `data:...`), simulated sets are
made by a run.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field

from ldptree.errors import ConfigError
from schemas.dataset import parse_public_rule
from schemas.named_files import BUCKETS
from schemas.tables import Table

FOLDER = Path(__file__).parent / "datasets"
DATA = "data:"
OF_THE_LABEL = ("positive", "classes")
"""What an entry says of its own target, and of no other that a run may choose."""


class SourceFile(Table):
    """A file as it was when the entry was written; one that nobody had then has neither size nor digest."""

    bytes: int | None = Field(default=None, ge=0)
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    url: str = ""
    """Where exactly these bytes can be fetched; "" where they have to be brought."""
    gzipped: bool = False
    """True if the file is kept gzipped. Size and digest are those of the unpacked content."""


class Source(Table):
    """The origin of a data set."""

    page: str
    """Of the publisher."""
    licence: str
    paper: str
    """What the papers count, and what was found instead."""
    rows: int | None = Field(default=None, ge=1)
    """Public and private rows that are read, as found; None where nobody had the files."""
    public: int | None = Field(default=None, ge=1)
    """Of them public ones, where no coins draw them."""
    features: int | None = Field(default=None, ge=1)
    """Columns of numbers that a benchmark makes of them, a category being as many as it has levels."""
    copies: float | None = Field(default=None, ge=0.0, le=1.0)
    """Share of a fifth of private rows with an exact copy among the others, which a model may just remember."""
    decides: str = ""
    """The feature that decides the label nearly alone; "" where none does."""
    files: dict[str, SourceFile]
    """By their paths in the folder that LDPTREE_DATA names."""


@cache
def catalogue() -> dict[str, dict[str, Any]]:
    """Return every data set of the catalogue by name, as plain tables for a run's [dataset] table."""
    return {
        name: {key: value for key, value in table.items() if key != "source"}
        for name, table in _entries().items()
    }


@cache
def sources() -> dict[str, Source]:
    """Return the origin of each data set's files; simulated ones have none."""
    return {
        name: Source.model_validate(table["source"])
        for name, table in _entries().items()
        if "source" in table
    }


@cache
def _entries() -> dict[str, dict[str, Any]]:
    return {
        path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.toml"))
    }


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
        if not isinstance(path, str) or path.startswith((DATA, *BUCKETS)):
            return path
        if path.startswith(tuple(scheme.rstrip("/") for scheme in BUCKETS)):
            raise ConfigError(
                f"dataset: {path}: no address of a bucket that is known. Write s3://bucket/rows.csv (gs://, az://)."
            )
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


def apply_assignments(raw: dict[str, Any], assignments: Sequence[str]) -> None:
    """Change nested dicts in place, one assignment after the other. A value is TOML, or a word that is meant as text.

    KEY= takes the key away, with all that is below it; an empty text is KEY="".

    Raises:
        ConfigError: no assignment, below a key that is no table, or there is no such key to be taken away.
    """
    for assignment in assignments:
        _apply(raw, assignment)


def add_remedy(fault: str, key: str, raw: dict[str, Any], assignments: Sequence[str]) -> str:
    """Add to the fault of a key how to remove the key from the file, if it should be left out."""
    keys = key.split(".")
    is_typed = any(_key_of(assignment)[: len(keys)] == keys for assignment in assignments)
    if is_typed or "leave it out" not in fault.lower() or not _has(raw, keys):
        return fault
    return f"{fault} (--set {key}= removes it)"


def _apply(raw: dict[str, Any], assignment: str) -> None:
    keys, (_, equals, value) = _key_of(assignment), assignment.partition("=")
    if not equals or not all(keys):
        raise ConfigError(f"--set {assignment}: write KEY=VALUE, as in --set privacy.epsilon=2")
    is_taken = not value.strip()
    if is_taken and not _has(raw, keys):
        raise ConfigError(
            f"--set {assignment}: the configuration has no such key to take away; an empty text is "
            f"--set '{'.'.join(keys)}=\"\"'"
        )
    table = raw
    for part in keys[:-1]:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise ConfigError(f"--set {assignment}: {part} is a value, not a table")
    if is_taken:
        del table[keys[-1]]
    else:
        table[keys[-1]] = _read(value)


def _key_of(assignment: str) -> list[str]:
    return assignment.partition("=")[0].strip().split(".")


def _read(value: str) -> Any:
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):
        return value.strip()  # an unquoted word is meant as text


def _has(raw: Any, keys: Sequence[str]) -> bool:
    for key in keys:
        if not isinstance(raw, dict) or key not in raw:
            return False
        raw = raw[key]
    return True
