"""Decide what the configuration of a file will say, from its `values`, and write it as TOML with reasons.

What only a trial can tell is decided in `rehearsal`.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from ldptree.errors import DataError
from ldptree.plain_text import make_visible, put_on_one_line
from schemas.catalogue import catalogue
from schemas.config import parse
from schemas.dataset import MOST_CLASSES, ColumnType, DatasetSpec, Scalar, parse_public_rule
from storage.raw.recognition.findings import (
    FEW,
    Finding,
    Reading,
    new_name,
    sql_name,
    toml_key,
    toml_text,
    unused_name,
)
from storage.sql import check_predicate, list_columns, literal
from tasks.first_look.column import Column
from tasks.first_look.values import FirstLook

LONGEST_WHY = 180
"""Characters of a reason, long enough for a column with two ways to read it."""
EPSILON = 1.0
MOST_ROWS_EACH, REPEAT, MOST_HOLDERS = 50, 0.9, 5
"""Rows of a value on average, the share of rows whose value comes again, and columns that are listed."""
REPEATED = "scores may look too good, as a model has seen copies of what it is tried on"

Choose = Callable[[str, Sequence[str]], int]
"""Which of some answers a question has, by its place."""


def choose_first(question: str, answers: Sequence[str]) -> int:
    """The first one, which is what the file says beside it."""
    return 0


@dataclass(frozen=True)
class Derived:
    """A new column, with the raw column that it is read from, the SQL expression, and the reason."""

    raw: str
    expression: str
    why: str


@dataclass
class Proposal:
    """What a configuration will say.

    Attributes:
        look: what it is told from.
        name: of the run.
        path: of the file, as the configuration names it.
        public: the rule, and why.
        target: the column to learn: the raw one, or the one that is derived from it.
        label: what it is; "" before that is told.
        positive: the class whose chance is scored.
        shares: of each class among the rows looked at, the largest first.
        where: which rows have a label; "" where all have.
        derive: new columns, by name.
        others: of a raw column that may be read in several ways, the other ones.
        drop: columns to leave out, and why.
        types: columns that are declared.
        telling: columns that tell the target too well to be true, and the sentence; None before that is judged.
        missing: values that mean "missing", by column, as the person said.
        holders: columns of which one may name a person or a device of whom several rows are.
        puts_aside: whether rows that cannot be read are put aside.
    """

    look: FirstLook
    name: str
    path: str
    public: tuple[str, str]
    target: str
    label: str = ""
    positive: str | int | bool | None = None
    shares: dict[str, float] = field(default_factory=dict)
    where: str = ""
    derive: dict[str, Derived] = field(default_factory=dict)
    others: dict[str, list[Reading]] = field(default_factory=dict)
    drop: dict[str, str] = field(default_factory=dict)
    types: dict[str, ColumnType] = field(default_factory=dict)
    telling: dict[str, str] | None = None
    missing: dict[str, tuple[Scalar, ...]] = field(default_factory=dict)
    holders: list[str] = field(default_factory=list)
    puts_aside: bool = False

    def leave_out(self, name: str, why: str) -> None:
        """Leave out a column of the file, or one that is derived; and the raw one where nothing is derived from it any more."""
        if name not in self.derive:
            self.drop[name] = why
            return
        raw = self.derive.pop(name).raw
        others = {other: derived for other, derived in self.derive.items() if derived.raw == raw}
        if not others:
            self.drop[raw] = why
        self.derive |= {
            other: replace(derived, why=f"{derived.why}; {name} left out: {why}")
            for other, derived in others.items()
        }

    def read_as_ticked(self, name: str, mark: str) -> str:
        """Read a raw column, which holds one value, the `mark`, or nothing, as whether it is there; the new column's name."""
        taken = (*(column.name for column in self.look.columns), *self.derive)
        new, why = unused_name(new_name(name, "given"), taken), f"ticked ({mark}) or left blank"
        self.derive[new] = Derived(name, f"{sql_name(name)} IS NOT NULL", why)
        self.drop[name] = "read below"
        return new

    @property
    def left_out(self) -> set[str]:
        """The columns of which nothing is used, not even by one that is derived."""
        return {*self.drop} - {derived.raw for derived in self.derive.values()}

    @property
    def columns_apart(self) -> list[Column]:
        """The columns with values that may stand for "missing", the target first, but for those that are left out."""
        columns = [
            column for column in self.look.columns if column.apart and column.name not in self.left_out
        ]
        return sorted(columns, key=lambda column: column.name != self.look.target)

    @property
    def rule_columns(self) -> tuple[str, ...]:
        """The raw columns that tell who is public; no feature is made of them."""
        predicate = parse_public_rule(self.public[0]).predicate
        return check_predicate(predicate, self.look.file.columns) if predicate else ()

    def spec(self) -> DatasetSpec:
        """The data set as a run reads it from the text. Raises ConfigError."""
        return parse(tomllib.loads(write_toml(self))).dataset


def propose(
    look: FirstLook, path: str, *, name: str, public: str | None, choose: Choose = choose_first
) -> Proposal:
    """Decide what a configuration says. `choose` answers open questions, `public` is the rule as it names it.

    Raises DataError where the target cannot be read.
    """
    proposal = Proposal(
        look=look,
        name=name,
        path=path,
        public=_choose_public(look, public, choose),
        target=look.target,
        puts_aside=not look.is_whole,
    )
    rule_columns = proposal.rule_columns
    for column in sorted(look.columns, key=lambda column: column.name != look.target):
        question = f"{column.name}: {column.tell_apart(look.n_rows)} far from all other values. Missing?"
        if column.apart and choose(question, ("no, a value as any other", "yes, missing")) == 1:
            proposal.missing[column.name] = tuple(column.apart)
    for column in look.columns:
        finding, is_target = column.finding, column.name == look.target
        if column.n_values and look.file.family(column.name) == "text":
            proposal.types[column.name] = column.declared_type(is_feature=not is_target)
        if column.name in rule_columns or finding is None or finding.is_code:
            continue
        if finding.readings:
            reading = _choose_reading(finding, choose)
            if is_target:
                reading = _of_target(look, column, reading)
                proposal.target = reading.derive[0][0]
            others = [other for other in finding.readings if other.label != reading.label]
            why = finding.sentence + (f"; here {reading.label}" if others else "")
            proposal.others[column.name] = others
            for new, text in reading.derive:
                proposal.derive[new] = Derived(column.name, text, why)
            proposal.drop[column.name] = "read below"
        elif not is_target:
            proposal.drop[column.name] = finding.sentence
        elif finding.is_mixed:
            raise DataError(
                f'{look.source}: the target "{look.target}" holds {finding.sentence}, or name another --target.'
            )
    if (
        proposal.target == look.target
        and next(c for c in look.columns if c.name == look.target).type == "text"
    ):
        _join_classes(proposal)
    proposal.holders = _repeating_columns(look)
    return proposal


def _join_classes(proposal: Proposal) -> None:
    """Read class names that differ only in blanks, capital letters or a final stop as the commonest of them."""
    name = proposal.look.target
    counts = proposal.look.texts[name].drop_nulls().value_counts(sort=True).rows()
    commonest: dict[str, str] = {}
    joined: dict[str, str] = {}
    for text, _ in counts[:MOST_CLASSES]:
        key = "".join(text.casefold().rstrip(". ").split())
        if (kept := commonest.setdefault(key, text)) != text:
            joined[text] = kept
    if not joined:
        return
    whens = " ".join(f"WHEN {literal(text)} THEN {literal(kept)}" for text, kept in joined.items())
    listed = ", ".join(f"{text!r} is {kept!r}" for text, kept in joined.items())
    taken = (*(column.name for column in proposal.look.columns), *proposal.derive)
    proposal.target = unused_name(new_name(name, "joined"), taken)
    why = f"class names that differ in blanks, capitals or a final stop: {listed}"
    proposal.derive[proposal.target] = Derived(
        name, f"CASE {sql_name(name)} {whens} ELSE {sql_name(name)} END", why
    )
    proposal.drop[name] = "read below"


def _of_target(look: FirstLook, column: Column, reading: Reading) -> Reading:
    """The reading of the target as one column. Raises DataError where it is a date."""
    if len(reading.derive) == 1 and not _PART_OF_DATE.search(reading.derive[0][0]):
        return reading
    assert column.finding is not None
    raise DataError(
        f'{look.source}: the target "{look.target}" holds {column.finding.sentence}: no class and no number. '
        "Name another --target."
    )


_PART_OF_DATE = re.compile(r"_(year|month|weekday|hour)(_[0-9]+)?$")


def _choose_public(look: FirstLook, public: str | None, choose: Choose) -> tuple[str, str]:
    if public is not None:
        return public, "as you said"
    answers = [(proposed.rule, proposed.why) for proposed in look.publics]
    place = choose("Which rows may everybody see?", [f"{rule}   ({why})" for rule, why in answers])
    return answers[place]


def _choose_reading(finding: Finding, choose: Choose) -> Reading:
    if len(finding.readings) == 1:
        return finding.readings[0]
    return finding.readings[
        choose(f"{finding.column}: {finding.sentence}", [reading.label for reading in finding.readings])
    ]


def _repeating_columns(look: FirstLook) -> list[str]:
    """Return columns of texts or whole numbers that may name who has several rows: many values, and most of them repeat."""
    repeating = []
    for column in look.columns:
        is_name = column.finding is None or column.finding.is_code or not column.finding.readings
        is_many = max(FEW, look.n_rows / MOST_ROWS_EACH) < column.n_values <= look.n_rows / 2
        if column.name != look.target and is_name and is_many and column.type in ("integer", "text"):
            counts = look.texts[column.name].drop_nulls().value_counts()["count"]
            if (counts > 1).any() and int(counts.filter(counts > 1).sum()) >= REPEAT * int(counts.sum()):
                repeating.append(column)
    repeating.sort(key=lambda column: column.n_values, reverse=True)
    return [column.name for column in repeating[:MOST_HOLDERS]]


def write_toml(proposal: Proposal) -> str:
    """The configuration, with other ways to read its columns as comments."""
    lines = [
        *_fixed_lines(proposal),
        *_drop_lines(proposal.drop),
        *_derive_lines(proposal.derive, proposal.others),
        "",
        "[privacy]",
        f"epsilon = {EPSILON}                          # what a report may tell: 1 leaves much doubt, 8 hardly any",
    ]
    return "\n".join(lines) + "\n"


def _fixed_lines(proposal: Proposal) -> list[str]:
    look, name = proposal.look, proposal.name
    rule, why = proposal.public
    seen = "all" if look.sample.is_whole else "some"
    rows = f"{look.n_rows:,} rows" if look.public is None else f"{look.n_rows:,} public rows"
    lines = [
        f"# Written by `ldptree init` from {seen} {rows}. Try it: ldptree run {name}.toml",
        f"name = {toml_text(name)}",
        "",
        "[dataset]",
        f"name = {toml_text(f'{name} file' if name in catalogue() else name)}",
        f"path = {toml_text(proposal.path)}",
    ]
    lines += [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in look.named.keys.items()]
    lines.append(f"target = {toml_text(proposal.target)}")
    if proposal.label:
        lines.append(f"label = {toml_text(proposal.label)}")
    finding = look.column(look.target).finding
    if proposal.label == "number" and finding is not None and finding.unit:
        lines.append(f"unit = {toml_text(finding.unit)}")
    if proposal.positive is not None:
        positive = json.dumps(proposal.positive, ensure_ascii=False)
        lines.append(_beside(f"positive = {positive}", "the class whose chance is scored"))
    lines.append(_beside(f"public = {toml_text(rule)}", why))
    others = [other for other in look.publics if other.rule != rule]
    lines += [_beside(f"# public = {toml_text(other.rule)}", f"or: {other.why}") for other in others]
    if proposal.where:
        lines.append(_beside(f"where = {toml_text(proposal.where)}", "rows that have a label"))
    if proposal.puts_aside:
        aside = 'public rows that cannot be read are put aside; private ones report "outside"'
        lines.append(_beside('on_bad_rows = "quarantine"', aside))
    used = {name: kind for name, kind in proposal.types.items() if name not in proposal.left_out}
    if used:
        types = ", ".join(f"{toml_key(column)} = {toml_text(kind)}" for column, kind in used.items())
        lines.append(f"types = {{ {types} }}")
    lines += _missing_lines(proposal)
    for why, names in _telling(proposal).items():
        lines.append(f"# {list_columns(names)}: {why}.")
        lines.append("# If that is known only afterwards, add it to drop.")
    if proposal.holders:
        lines.append("# These repeat. Does one of them name a person or device of whom several rows are?")
        lines += [
            _beside(f"# holder = {toml_text(name)}", "then take it out of drop")
            if name in proposal.drop
            else f"# holder = {toml_text(name)}"
            for name in proposal.holders
        ]
    if look.n_duplicates > look.n_rows / 100:
        lines.append(f"# {look.n_duplicates:,} of the rows looked at repeat an earlier row: {REPEATED}")
    return lines


def _telling(proposal: Proposal) -> dict[str, list[str]]:
    """Why columns are named that tell the target and are not left out, with the columns."""
    names: dict[str, list[str]] = {}
    for name, why in (proposal.telling or {}).items():
        if name not in proposal.drop:
            names.setdefault(why, []).append(name)
    return names


def _missing_lines(proposal: Proposal) -> list[str]:
    """Return `missing` as the person chose it, and as a comment what may be missing besides."""
    look = proposal.look
    lines = [_missing_line(proposal.missing)] if proposal.missing else []
    columns = [column for column in proposal.columns_apart if column.name not in proposal.missing]
    if columns:
        lines.append('# Repeated, and far from all other values of their columns. Do they mean "missing"?')
        lines += [
            f"#   {put_on_one_line(column.name)}: {column.tell_apart(look.n_rows)}"
            + (", a label like any other unless you say so" if column.name == look.target else "")
            for column in columns
        ]
        lines.append(
            f"# {_missing_line(proposal.missing | {column.name: tuple(column.apart) for column in columns})}"
        )
    return lines


def _missing_line(missing: Mapping[str, Sequence[Scalar]]) -> str:
    held = (
        f"{toml_key(name)} = [{', '.join(toml_text(v) if isinstance(v, str) else str(v) for v in values)}]"
        for name, values in missing.items()
    )
    return f"missing = {{ {', '.join(held)} }}"


def _beside(line: str, comment: str) -> str:
    return f"{line:<38} # {put_on_one_line(comment)}"


def _drop_lines(drop: Mapping[str, str]) -> list[str]:
    """`drop`, a line for each reason with the columns that have it."""
    columns: dict[str, list[str]] = {}
    for column, why in drop.items():
        columns.setdefault(_short(why), []).append(toml_text(column))
    lines = [_beside(f"    {', '.join(names)},", why) for why, names in columns.items()]
    return ["drop = [", *lines, "]"] if lines else []


def _derive_lines(derive: Mapping[str, Derived], others: Mapping[str, Sequence[Reading]]) -> list[str]:
    """Return `[dataset.derive]`, with reasons beside columns and other readings as comments below them."""
    if not derive:
        return []
    head = "[dataset.derive]"
    lines, before = ["", head], ""
    for raw, made in groupby(derive.items(), key=lambda pair: pair[1].raw):
        for name, derived in made:
            beside = "" if derived.why == before else f"   # {_short(derived.why)}"
            before = derived.why
            lines.append(f"{toml_key(name)} = {toml_text(derived.expression)}{beside}")
        for other in others.get(raw, ()):
            lines.append(f"# or, if {other.label}:")
            lines += [f"# {line}" for line in other.toml_lines()]
    return lines


def _short(text: str) -> str:
    line = " ".join(make_visible(text).split())
    return line if len(line) <= LONGEST_WHY else line[: LONGEST_WHY - 3] + "..."
