"""`ldptree init`: look at a file, say what was seen, and write a configuration that runs as it is."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer

from ldptree.errors import ConfigError
from schemas.config import load
from storage.raw.raw_files import DELIMITER_NAMES
from tasks.data.first_look import Column, FirstLook, look
from tasks.data.proposal import choose_first, propose, write_toml

MOST_CONVERTED = 200 << 20
"""Bytes of a text in another encoding that are written anew as UTF-8: what takes a second or two."""
LISTED = 30


def init(
    data: Path, *, target: str, public: str | None, out: Path | None, force: bool, ask: bool, as_json: bool
) -> None:
    """Look at a file and write its configuration. Raises LdptreeError."""
    if ask and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ConfigError(
            "--ask: this is no terminal. Leave it out: what it would ask is in the file as comments."
        )
    name = _name_of(out or data)
    to = out or Path(f"{name}.toml")
    if to.exists() and not force:
        raise ConfigError(
            f"{to}: is there already. Write over it with --force, or name another file with --out."
        )
    with TemporaryDirectory(prefix="ldptree-init-") as folder:
        seen = look(data, Path(folder), target=target, public=public)
    read_from = _in_utf_8(data, seen.encoding, to.parent, force=force)
    proposal = propose(
        seen,
        _path_from(read_from, to.parent),
        target=seen.raw_target,
        public=public,
        choose=_ask if ask else choose_first,
    )
    text = write_toml(proposal, name=name, target=seen.raw_target)
    aside = to.with_name(f".{to.name}.{os.getpid()}")
    try:
        aside.write_text(text, encoding="utf-8")
        load(aside)
        aside.replace(to)
    except OSError as fault:
        raise ConfigError(
            f"{to}: cannot be written ({fault.strerror}). Name another file with --out."
        ) from None
    finally:
        aside.unlink(missing_ok=True)
    if as_json:
        from flows.command.streams import print_json

        print_json(_as_json(seen, proposal.public, to))
        return
    for line in _lines(seen, proposal.public, read_from, public):
        typer.echo(line)
    typer.echo(f"\n{to}: written. Look at it, then: ldptree run {to}")


def _name_of(path: Path) -> str:
    """A run's name from a file's."""
    stem = path.name.partition(".")[0]
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "-" for c in stem).strip("-_")
    return kept[:64] or "data"


def _path_from(path: Path, folder: Path) -> str:
    """A path as a configuration in `folder` names it."""
    try:
        return str(path.absolute().relative_to(folder.absolute()))
    except ValueError:
        return str(path.absolute())


def _in_utf_8(data: Path, encoding: str, folder: Path, *, force: bool) -> Path:
    """The file, or a copy of it in UTF-8 beside the configuration."""
    if encoding in ("", "utf-8"):
        return data
    to = folder / f"{data.name.partition('.')[0]}.utf-8.csv"
    known = {"windows-1252": "cp1252"}.get(encoding, encoding)
    if data.stat().st_size > MOST_CONVERTED or data.suffix == ".gz":
        raise ConfigError(
            f"{data.name}: is {encoding} text, and runs read UTF-8. Convert it first: iconv -f {known} -t utf-8 {data} > {to}"
        )
    if to.exists() and not force:
        raise ConfigError(
            f"{to}: is there already, and {data.name} ({encoding}) would be written there as UTF-8. Use --force."
        )
    with data.open("rb") as source, to.open("w", encoding="utf-8", newline="") as sink:
        to.chmod(0o600)
        reader = codecs.getreader(known)(source, "replace")
        while block := reader.read(1 << 20):
            sink.write(block)
    return to


def _ask(question: str, answers: Sequence[str]) -> int:
    typer.echo(question, err=True)
    for number, answer in enumerate(answers, 1):
        typer.echo(f"  {number}  {answer}", err=True)
    found: int = typer.prompt("which", default=1, type=int, err=True)
    return min(max(found, 1), len(answers)) - 1


def _lines(seen: FirstLook, rule: tuple[str, str], read_from: Path, public: str | None) -> list[str]:
    """What was seen, in lines."""
    n = f"{seen.n_rows:,} rows"
    seen_of = "all" if seen.is_whole else "the first"
    lines = [f"looked at  {seen_of} {n}" + (f" for which {public}" if public else "")]
    if public is None:
        lines.append(
            "           private ones too: that is for a trial on data you own. With --public RULE it looks at"
        )
        lines.append("           public rows alone")
    if seen.encoding:
        delimiter = DELIMITER_NAMES.get(seen.delimiter, repr(seen.delimiter))
        header = "a header" if seen.has_header else "no header"
        lines.append(f"written    {seen.encoding}, {delimiter} between fields, {header}")
        if seen.encoding != "utf-8":
            lines.append(f"           runs read UTF-8: {read_from} is a copy of it")
    counted = f" of {len(seen.classes)} classes" if seen.label == "class" else ""
    lines.append(f"target     {seen.target}: a {seen.label}{counted}")
    lines.append(f"public     {rule[0]}   ({rule[1]})")
    shown = [column for column in seen.columns if (column.note or column.finding)]
    lines += [f"{_kind(column):<10} {column.name}: {_why(column)}" for column in shown[:LISTED]]
    if len(shown) > LISTED:
        lines.append(f"           and {len(shown) - LISTED} columns more")
    if seen.n_duplicates:
        lines.append(f"duplicates {seen.n_duplicates:,} of the rows looked at stand there twice")
    return lines


def _kind(column: Column) -> str:
    if column.note or column.finding is None:
        return "left out"
    return "read" if column.finding.readings else "codes" if column.finding.is_code else "left out"


def _why(column: Column) -> str:
    if column.note:
        return column.note
    assert column.finding is not None
    readings = column.finding.readings
    either = (
        f" ({' or '.join(one.label for one in readings)}: taken as the first)" if len(readings) > 1 else ""
    )
    return column.finding.sentence + either


def _as_json(seen: FirstLook, rule: tuple[str, str], to: Path) -> dict[str, Any]:
    return {
        "config": str(to),
        "encoding": seen.encoding or None,
        "delimiter": seen.delimiter or None,
        "header": seen.has_header,
        "rows_looked_at": seen.n_rows,
        "all_rows": seen.is_whole,
        "duplicates": seen.n_duplicates,
        "target": seen.target,
        "label": seen.label,
        "public": rule[0],
        "public_proposals": [{"rule": one.rule, "why": one.why} for one in seen.publics],
        "columns": {
            column.name: {"type": column.type, "missing": column.n_missing, "note": _note(column)}
            for column in seen.columns
        },
    }


def _note(column: Column) -> str:
    return column.note or (column.finding.sentence if column.finding else "")
