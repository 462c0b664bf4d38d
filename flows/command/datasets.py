"""List, fetch and make data sets (`ldptree datasets`). The catalogue itself is in `schemas.catalogue`."""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import Any

from ldptree.errors import ConfigError
from schemas.catalogue import FOLDER, SourceFile, catalogue, sources
from schemas.named_files import make_folder, shown_path, written_whole
from storage.downloads import download, is_stated, pack


def list_all() -> list[tuple[str, ...]]:
    """Return a head and a row for each data set. A row has its name, its label, the rows, features and copies that its
    entry states, whether its files are here, and its title.
    """
    rows: list[tuple[str, ...]] = [("name", "label", "rows", "features", "copies", "files", "title")]
    for name, table in catalogue().items():
        source = sources().get(name)
        counts = (
            f"{source.rows:,}" if source and source.rows else "",
            f"{source.features:,}" if source and source.features else "",
            f"{source.copies:.0%}" if source and source.copies is not None else "",
        )
        label = "class" if "classes" in table else "number"
        rows.append((name, label, *counts, _state(name), table.get("title", "")))
    return rows


def _state(name: str) -> str:
    """Say whether a run finds the files."""
    if catalogue()[name].get("simulated"):
        return "simulated"
    states = {_condition(file, stated) for file, stated in sources()[name].files.items()}
    if states == {"found"}:
        return "here"
    if "another file" in states:
        return "another file"
    return (
        "to be fetched" if all(stated.url for stated in sources()[name].files.values()) else "to be brought"
    )


def _condition(file: str, stated: SourceFile) -> str:
    """Return "found", "missing" or "another file" (not as stated) for a file below LDPTREE_DATA."""
    home = os.environ.get("LDPTREE_DATA")
    path = Path(home) / file if home else None
    if path is None or not path.is_file():
        return "missing"
    return "found" if is_stated(path, stated.sha256, is_gzipped=stated.gzipped) else "another file"


def show(name: str) -> str:
    """A data set's specification as TOML, and which of its files are found. Raises ConfigError."""
    table = _known(name)
    lines = [(FOLDER / f"{name}.toml").read_text(encoding="utf-8").rstrip()]
    if table.get("simulated"):
        lines.append(
            f"\n# simulated: `ldptree datasets make {name} --rows N --out FILE.csv`, or a run makes it by itself"
        )
        return "\n".join(lines)
    home = os.environ.get("LDPTREE_DATA")
    lines.append(f"\n# LDPTREE_DATA is {home or 'not set: set it to the folder that has these files'}")
    for file, stated in sources()[name].files.items():
        lines.append(f"# {_condition(file, stated):12} {file}")
    if _state(name) == "to be fetched":
        lines.append(f"# `ldptree datasets fetch {name}` fetches what is missing")
    elif _state(name) == "to be brought":
        lines.append(
            f"# bring them from {sources()[name].page}, or run with dataset.path = FILE of the same columns"
        )
    return "\n".join(lines)


def fetch(name: str, to: Path | None) -> list[str]:
    """Fetch the files of a data set that are not in the folder of data sets yet; a line for each.

    Raises ConfigError: unknown, simulated, nowhere to put it, or nobody offers its files; DownloadError.
    """
    if _known(name).get("simulated"):
        raise ConfigError(f"{name}: simulated data are made, not fetched: ldptree datasets make {name}")
    home = to or (Path(os.environ["LDPTREE_DATA"]) if os.environ.get("LDPTREE_DATA") else None)
    if home is None:
        raise ConfigError(
            "fetch: where should the files go? Set LDPTREE_DATA to the folder of data sets, or add --to FOLDER"
        )
    source, lines = sources()[name], []
    if brought := [file for file, stated in source.files.items() if not stated.url]:
        raise ConfigError(
            f"{name}: {', '.join(brought)} cannot be fetched as it is. Bring it from {source.page} into {shown_path(home)}."
        )
    for file, stated in source.files.items():
        path = home / file
        if path.is_file() and is_stated(path, stated.sha256, is_gzipped=stated.gzipped):
            lines.append(f"{shown_path(path)}: stands")
            continue
        if path.exists():
            raise ConfigError(
                f"{shown_path(path)}: another file than the catalogue states (its sha256 differs). Move it away first."
            )
        try:
            make_folder(path.parent)
        except OSError as fault:
            raise ConfigError(
                f"{shown_path(path.parent)}: cannot be made ({os.strerror(fault.errno or 0)})."
            ) from None
        assert stated.bytes is not None  # a file with an address has both; a test of the catalogue says so
        assert stated.sha256 is not None
        plain = path.with_suffix("") if stated.gzipped else path
        download(stated.url, plain, size=stated.bytes, sha256=stated.sha256)
        if stated.gzipped:
            pack(plain, path)
        lines.append(f"{shown_path(path)}: {stated.bytes:,} bytes; licence: {source.licence}")
    return lines


def make(name: str, *, rows: int, out: Path, seed: int) -> None:
    """Write a simulated data set as raw CSV, whole or not at all. Raises ConfigError."""
    from tasks.data.source import write_trips

    if not _known(name).get("simulated"):
        raise ConfigError(
            f"{name}: real data cannot be made. `ldptree datasets show {name}` says where they belong."
        )
    if rows < 1:
        raise ConfigError(f"--rows {rows}: must be at least 1")
    try:
        make_folder(out.parent)
    except OSError as fault:
        reason = os.strerror(fault.errno or 0)
        raise ConfigError(f"--out {shown_path(out)}: cannot be written ({reason}).") from None
    with written_whole(out, "--out") as aside:
        write_trips(aside, rows=rows, seed=seed)


def _known(name: str) -> dict[str, Any]:
    known = catalogue()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        raise ConfigError(
            f"{name}: not in the catalogue ({', '.join(known)}).{f' Did you mean {near[0]}?' if near else ''}"
        )
    return known[name]
