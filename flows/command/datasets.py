"""What `ldptree datasets` says and makes. The catalogue itself is in `schemas.catalogue`."""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import Any

from ldptree.errors import ConfigError
from schemas.catalogue import DATA, FOLDER, catalogue
from schemas.named_files import make_folder, shown_path, written_whole


def show(name: str) -> str:
    """A data set's specification as TOML, and which of its files are found. Raises ConfigError."""
    table = _known(name)
    lines = [(FOLDER / f"{name}.toml").read_text().rstrip()]
    if table.get("simulated"):
        lines.append(
            f"\n# simulated: `ldptree datasets make {name} --rows N --out FILE.csv`, or a run makes it by itself"
        )
        return "\n".join(lines)
    home = os.environ.get("LDPTREE_DATA")
    lines.append(f"\n# LDPTREE_DATA is {home or 'not set: set it to the folder that has these files'}")
    for path in table["path"]:
        file = path.removeprefix(DATA)
        found = home is not None and (Path(home) / file).is_file()
        lines.append(f"# {'found  ' if found else 'missing'} {file}")
    return "\n".join(lines)


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
