"""A configuration for a file that was looked at (`first_look`), as TOML that runs as it is, with a reason for each choice."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from storage.raw.recognition.findings import Finding, Reading, sql_name
from tasks.data.first_look import Column, FirstLook

MOST_LINES = 40
SHARE = 0.1
"""Of the rows that a trial takes for public where nothing says which are."""
FEWEST = 150
"""Rows that are public so, at least, while that is no more than half of them."""
WIDTH = 110

Choose = Callable[[str, Sequence[str]], int]
"""Which of some answers a question has, by its place."""


def choose_first(question: str, answers: Sequence[str]) -> int:
    """The first one, which is what the file says beside it."""
    return 0


@dataclass
class Proposal:
    """What a configuration will say.

    Attributes:
        look: what it is told from.
        path: of the file, as the configuration names it.
        public: the rule, and why.
        derive: new columns: the raw one, name, expression, and what is said beside it.
        drop: columns to leave out, and why.
        holder: a column that may name a person, of whom several rows are.
    """

    look: FirstLook
    path: str
    public: tuple[str, str]
    derive: list[tuple[str, str, str, str]] = field(default_factory=list)
    drop: dict[str, str] = field(default_factory=dict)
    holder: str = ""


def propose(
    look: FirstLook, path: str, *, target: str, public: str | None, choose: Choose = choose_first
) -> Proposal:
    """Decide what a configuration says; `choose` answers what the values do not tell."""
    proposal = Proposal(look=look, path=path, public=_choose_public(look, public, choose))
    for column in look.columns:
        is_target = column.name == target
        if column.note:
            answers = ("leave it out", "keep it")
            if not column.note.startswith("gives") or choose(f"{column.name}: {column.note}", answers) == 0:
                proposal.drop[column.name] = column.note
        elif (finding := column.finding) is None or finding.is_code:
            continue
        elif finding.readings:
            reading = _choose_reading(finding, choose)
            names = reading.derive[:1] if is_target else reading.derive
            several = len(finding.readings) > 1
            why = finding.sentence + (f"; here {reading.label}" if several else "")
            proposal.derive += [(column.name, name, text, why) for name, text in names]
            if column.is_declared_text:
                proposal.drop[column.name] = f"{finding.sentence}; read below"
        elif not is_target:
            proposal.drop[column.name] = finding.sentence
    people = [one.name for one in look.columns if one.name != target and _may_be_person(one, look)]
    proposal.holder = people[0] if people else ""
    return proposal


def _choose_public(look: FirstLook, public: str | None, choose: Choose) -> tuple[str, str]:
    if public is not None:
        return public, "as you said"
    share = max(SHARE, min(0.5, round(FEWEST / look.n_rows, 2))) if look.is_whole else SHARE
    random = (f"random {share}", "a trial: these rows are read in the clear. Name those that may be")
    offered = [(one.rule, one.why) for one in look.publics]
    best = [pair for pair, one in zip(offered, look.publics, strict=True) if one.is_consent][:1]
    answers = [*best, random, *(pair for pair in offered if pair not in best)]
    place = choose("Which rows may everybody see?", [f"{rule}   ({why})" for rule, why in answers])
    return answers[place]


def _choose_reading(finding: Finding, choose: Choose) -> Reading:
    if len(finding.readings) == 1:
        return finding.readings[0]
    return finding.readings[
        choose(f"{finding.column}: {finding.sentence}", [one.label for one in finding.readings])
    ]


def _may_be_person(column: Column, look: FirstLook) -> bool:
    """Whether an identifier comes several times, as a person does."""
    is_named_so = (
        re.search(r"id$|person|user|customer|patient|member", column.name, re.IGNORECASE) is not None
    )
    return is_named_so and look.n_rows / 50 < column.n_values < 0.95 * look.n_rows


def write_toml(proposal: Proposal, *, name: str, target: str, epsilon: float = 1.0) -> str:
    """The configuration, at most `MOST_LINES` lines. Columns to be read that find no room are left out, and counted."""
    derived, left = list(proposal.derive), dict(proposal.drop)
    fixed = _fixed_lines(proposal, name, target, epsilon)
    needed = {proposal.look.target} & {one[1] for one in derived}
    while len(text := [*fixed, *_drop_lines(left), *_derive_lines(derived)]) > MOST_LINES - 3:
        place = next((i for i in range(len(derived) - 1, -1, -1) if derived[i][1] not in needed), None)
        if place is None:
            break
        column = derived.pop(place)[0]
        if all(one[0] != column for one in derived):
            left[column] = "numbers or dates to be read, for which there was no room"
    tail = [
        "",
        "[privacy]",
        f"epsilon = {epsilon}                          # what a report may tell: 1 leaves much doubt, 8 hardly any",
    ]
    return "\n".join([*text, *tail]) + "\n"


def _fixed_lines(proposal: Proposal, name: str, target: str, epsilon: float) -> list[str]:
    look = proposal.look
    rule, why = proposal.public
    seen = "all" if look.is_whole else "the first"
    lines = [
        f"# Written by `ldptree init` from {seen} {look.n_rows:,} rows. Try it: ldptree run {name}.toml",
        f"name = {_text(name)}",
        "",
        "[dataset]",
        f"name = {_text(name)}",
        f"path = {_text(proposal.path)}",
        f"target = {_text(look.target if look.target != target else target)}",
        f"label = {_text(look.label)}",
    ]
    if look.label == "class" and len(look.classes) == 2:
        rare = look.classes[1]
        kind = look.column(target).type
        value = rare if kind == "integer" else rare.lower() if kind == "boolean" else _text(rare)
        lines.append(f"positive = {value}".ljust(38) + " # the class whose chance is scored: the rarer one")
    lines.append(f"public = {_text(rule)}".ljust(38) + f" # {why}")
    others = [one for one in look.publics if one.rule != rule]
    lines += [f"# public = {_text(one.rule)}".ljust(38) + f" # or: {one.why}" for one in others]
    if look.column(target).n_missing or look.column(target).is_declared_text:
        read = next((text for raw, _, text, _ in proposal.derive if raw == target), None)
        label = sql_name(target) if read is None else f"TRY({read})"
        lines.append(f"where = {_text(f'{label} IS NOT NULL')}".ljust(38) + " # rows that have a label")
    declared = [column.name for column in look.columns if column.is_declared_text and not column.note]
    if declared:
        texts = ", ".join(f"{_key(name)} = {_text('text')}" for name in declared)
        lines.append(f"types = {{ {texts} }}")
    if not look.has_header:
        names = [column.name for column in look.columns]
        lines.append(f"columns = {json.dumps(names)}")
    if proposal.holder:
        lines.append(
            f"# holder = {_text(proposal.holder)}".ljust(38)
            + " # where this names a person of whom several rows are"
        )
    if look.n_duplicates > look.n_rows / 100:
        lines.append(f"# {look.n_duplicates:,} of the rows looked at stand there twice")
    return lines


def _drop_lines(drop: dict[str, str]) -> list[str]:
    """`drop`, a line a column while there are few, with why."""
    if not drop:
        return []
    if len(drop) <= 8:
        lines = [f"    {_text(column)},".ljust(38) + f" # {_short(why)}" for column, why in drop.items()]
        return ["drop = [", *lines, "]"]
    found, line = (
        [f"# left out: {_short('; '.join(sorted({_kind_of(why) for why in drop.values()})))}", "drop = ["],
        "   ",
    )
    for column in drop:
        word = f" {_text(column)},"
        if len(line) + len(word) > WIDTH:
            found.append(line)
            line = "   "
        line += word
    return [*found, line, "]"]


def _kind_of(why: str) -> str:
    return why.partition(":")[0].partition(",")[0]


def _derive_lines(derive: Sequence[tuple[str, str, str, str]]) -> list[str]:
    if not derive:
        return []
    lines, before = (
        [
            "",
            "[dataset.derive]                       # columns that must be read first are left out themselves",
        ],
        "",
    )
    for _, name, text, why in derive:
        beside = "" if why == before else f"   # {_short(why)}"
        before = why
        lines.append(f"{_key(name)} = {_text(text)}{beside}")
    return lines


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 90 else line[:87] + "..."


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _text(text: str) -> str:
    written = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in written)
