"""Look at a file, say what was seen, and write a configuration that runs as it is (`ldptree init`)."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from flows.command.streams import print_json, say
from ldptree.errors import ConfigError
from schemas.config import load
from schemas.dataset import parse_public_rule
from storage.raw.formats.contents import file_kind
from storage.raw.raw_files import DELIMITER_NAMES
from storage.sql import list_columns
from tasks.first_look.proposal import REPEATED, Proposal, propose, write_toml
from tasks.first_look.rehearsal import adjust_proposal
from tasks.first_look.values import Column, look

LISTED, CLASSES_LISTED = 30, 5
SECONDS = 3
"""Between two words about how far a long read is."""
PACKED = {"workbook": "a workbook", "zip": "a zip"}


def init(
    data: Path,
    *,
    target: str,
    public: str | None,
    sheet: str | None = None,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Look at a file and write its configuration. Raises LdptreeError."""
    name = _name_of(out or data)
    to = out or Path(f"{name}.toml")
    if to.exists() and not force:
        raise ConfigError(
            f"{to}: is there already. Write over it with --force, or name another file with --out."
        )
    seen = look(data, target=target, public=public, sheet=sheet, tell=SlowRead())
    rule = None if public is None else _rule_from(public, to.parent)
    proposal = propose(seen, _path_from(data, to.parent), name=name, public=rule)
    adjust_proposal(proposal)
    text = write_toml(proposal)
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
        print_json(_as_json(proposal, to))
        return
    for line in describe(proposal, public):
        print(line)
    print(f"\n{to}: written. Look at it, then: ldptree run {to}")


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


def _rule_from(public: str, folder: Path) -> str:
    """Return a public rule for a configuration in `folder`. The path of a file becomes relative to that folder."""
    path = parse_public_rule(public, "--public").path
    return public if path is None else _path_from(Path(path), folder)


@dataclass
class SlowRead:
    """Say every few seconds how many rows were read."""

    last: float = field(default_factory=time.monotonic)

    def __call__(self, n_rows: int) -> None:
        """Say it where that is due."""
        if (now := time.monotonic()) - self.last > SECONDS:
            self.last = now
            say(f"read {n_rows:,} rows")


def describe(proposal: Proposal, public: str | None) -> list[str]:
    """Describe what was seen, in lines."""
    seen, rule = proposal.look, proposal.public
    layout = seen.named.layout
    part = "all" if seen.sample.is_whole else "some from all over,"
    lines = [f"looked at  {part} {seen.n_rows:,} rows" + (f" for which {public}" if public else "")]
    if public is None:
        lines.append(
            "           private rows too, which only a trial on data that you own may do. With --public RULE"
        )
        lines.append("           it looks at public rows alone")
    apart = proposal.columns_apart
    for column in apart:
        label = ", the target" if column.name == seen.target else ""
        lines.append(
            f"missing?   {column.name}{label}: {column.tell_apart(seen.n_rows)}, unlike all other values"
        )
    if apart:
        lines.append(
            '           They count as values, until you take the "#" off the line "missing" of the configuration'
        )
    if layout is not None:
        delimiter = DELIMITER_NAMES.get(layout.delimiter, layout.delimiter)
        header = "a header" if layout.has_header else "no header"
        header += (
            f" below {layout.skip} line{'s' * (layout.skip > 1)}"
            if layout.skip and layout.has_header and not layout.columns
            else ""
        )
        form = f"{layout.encoding or 'utf-8'}, {delimiter} between fields"
        lines.append(f"written    {PACKED.get(file_kind(seen.named.file.path), form)}, {header}")
    left_out = "; rows without one are left out" if proposal.where else ""
    lines.append(f"target     {proposal.target}: a {proposal.label}{_classes(proposal)}{left_out}")
    if proposal.counts is not None:
        lines.append('        or label = "number", where it counts something')
    lines.append(f"public     {rule[0]}   ({rule[1]})")
    if proposal.unseen:
        lines.append(f"           {proposal.tell_unseen}")
    lines += [
        f"        or {proposed.rule}   ({proposed.why})"
        for proposed in proposal.publics
        if proposed.rule != rule[0]
    ]
    if proposal.holders:
        lines.append(
            f"people     each row is one person. Columns that repeat: {list_columns(proposal.holders)}. Where one of them"
        )
        lines.append("           names a person or device with several rows, write it as dataset.holder")
    lines += [
        f"weights?   {name} looks like a survey weight: then write it as dataset.weight"
        for name in proposal.weights
    ]
    shown = [column for column in seen.columns if _note(proposal, column)]
    lines += [
        f"{_use(proposal, column):<10} {column.name}: {_note(proposal, column)}" for column in shown[:LISTED]
    ]
    if len(shown) > LISTED:
        lines.append(f"           and {len(shown) - LISTED} columns more, all in --json")
    if proposal.puts_aside:
        lines.append(
            'bad rows   public ones that cannot be read are put aside; private ones report "outside"'
        )
    if seen.n_duplicates:
        lines.append(f"duplicates {seen.n_duplicates:,} of the rows looked at repeat an earlier row:")
        lines.append(f"           {REPEATED}")
    return lines


def _classes(proposal: Proposal) -> str:
    """The classes of the target and their shares; "" of a number. A code that means missing would be one of them."""
    until = [round(100 * share) for share in accumulate(proposal.shares.values(), initial=0.0)]
    # Differences of rounded sums add up to 100, as rounded shares may not.
    shares = [
        f"{label} {end - start}%"
        for label, (start, end) in zip(proposal.shares, pairwise(until), strict=True)
    ]
    more = len(shares) - CLASSES_LISTED
    listed = ", ".join(shares[:CLASSES_LISTED]) + (f" and {more} more" if more > 0 else "")
    return f": {listed}" if shares else ""


def _use(proposal: Proposal, column: Column) -> str:
    """What becomes of a column in a word."""
    if any(derived.raw == column.name for derived in proposal.derive.values()):
        return "read"
    if column.name in proposal.drop:
        return "left out"
    return "tells" if column.name in proposal.telling else "category"


def _note(proposal: Proposal, column: Column) -> str:
    """What is the matter with a column, and whether it tells the target; "" where nothing is."""
    made = {name for name, derived in proposal.derive.items() if derived.raw == column.name}
    leaks = [why for name, why in proposal.telling.items() if name in {column.name, *made}]
    notes = [_matter(proposal, column), *leaks[:1]]
    return "; ".join(filter(None, dict.fromkeys(notes)))


def _matter(proposal: Proposal, column: Column) -> str:
    """What is the matter with a column; "" where nothing is."""
    why = [derived.why for derived in proposal.derive.values() if derived.raw == column.name]
    if why or column.finding is None or column.name in proposal.drop:
        return why[0] if why else proposal.drop.get(column.name, "")
    return "" if column.name in proposal.rule_columns else column.finding.sentence


def _as_json(proposal: Proposal, to: Path) -> dict[str, Any]:
    seen = proposal.look
    layout = seen.named.layout
    return {
        "config": str(to),
        "path": proposal.path,
        "encoding": (layout.encoding or "utf-8") if layout else None,
        "delimiter": layout.delimiter if layout else None,
        "keys": seen.named.keys,
        "header": seen.named.has_header,
        "rows_looked_at": seen.n_rows,
        "all_rows": seen.sample.is_whole,
        "duplicates": seen.n_duplicates,
        "target": proposal.target,
        "label": proposal.label,
        "public": proposal.public[0],
        "labels_without_public_rows": proposal.unseen,
        "public_proposals": [{"rule": proposed.rule, "why": proposed.why} for proposed in proposal.publics],
        "holder_proposals": proposal.holders,
        "weight_proposals": proposal.weights,
        "columns": {
            column.name: {
                "type": column.type,
                "missing": column.n_missing,
                "perhaps_missing": {str(value): n for value, n in column.apart.items()},
                "note": _note(proposal, column),
            }
            for column in seen.columns
        },
    }
