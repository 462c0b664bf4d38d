"""Decide what the configuration of a file will say, from its `values`, and write it as TOML with reasons.

What only a trial can tell is decided in `rehearsal`.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from ldptree.errors import DataError
from ldptree.plain_text import make_visible, put_on_one_line
from schemas.catalogue import catalogue
from schemas.config import parse
from schemas.dataset import MOST_CLASSES, ColumnType, DatasetSpec, parse_public_rule
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
from storage.raw.recognition.odd_texts import SPELLINGS, fold_text, folded_sql
from storage.sql import check_predicate, list_columns, literal
from tasks.first_look.public_rules import PublicProposal, propose_rules
from tasks.first_look.values import Column, FirstLook

LONGEST_WHY = 180
"""Characters of a reason, long enough for a column with two ways to read it."""
EPSILON = 1.0
_WEIGHT = re.compile(r"w(?:ei)?gh?t|^wt|wt$|gewicht|pond[eé]r|(?:^|_)(?:poids|peso)(?:_|$)", re.IGNORECASE)
"""The name of a survey weight, and of what a body weighs: their mean is not 1, and their name often this word alone."""
_WORD_ALONE = re.compile(
    r"(?:body|birth)?[ _]?(?:weight|gewicht|poids|peso)(?:[ _(]?(?:kg|lbs?|g)\)?)?", re.IGNORECASE
)
MOST_ROWS_EACH, REPEAT, MOST_HOLDERS = 50, 0.9, 5
"""Rows of a value on average, the share of rows whose value comes again, and columns that are listed."""
REPEATED = "scores may look too good, as a model has seen copies of what it is tried on"


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
        publics: rules that could tell who is public; none where one was given.
        target: the column to learn: the raw one, or the one that is derived from it.
        label: what it is; "" before that is told.
        positive: the class whose chance is scored.
        shares: of each class among the rows looked at, the largest first.
        unseen: of them, those that no public row has.
        where: which rows have a label; "" where all have.
        derive: new columns, by name.
        others: of a raw column that may be read in several ways, the other ones.
        drop: columns to leave out, and why.
        types: columns that are declared.
        telling: columns that tell the target too well to be true, and the sentence.
        holders: columns of which one may name a person or a device of whom several rows are.
        weights: columns that look like survey weights.
        counts: the least and the largest of labels that are classes and may be counts; None of others.
        puts_aside: whether rows that cannot be read are put aside.
    """

    look: FirstLook
    name: str
    path: str
    public: tuple[str, str]
    publics: Sequence[PublicProposal]
    target: str
    label: str = ""
    positive: str | int | bool | None = None
    shares: dict[str, float] = field(default_factory=dict)
    unseen: list[str] = field(default_factory=list)
    where: str = ""
    derive: dict[str, Derived] = field(default_factory=dict)
    others: dict[str, list[Reading]] = field(default_factory=dict)
    drop: dict[str, str] = field(default_factory=dict)
    types: dict[str, ColumnType] = field(default_factory=dict)
    telling: dict[str, str] = field(default_factory=dict)
    holders: list[str] = field(default_factory=list)
    weights: list[str] = field(default_factory=list)
    counts: tuple[int, int] | None = None
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

    @property
    def tell_unseen(self) -> str:
        """The classes that no public row has, with their shares; "" where there are none."""
        listed = list_columns([f"{label} ({self.shares[label]:.0%})" for label in self.unseen])
        return f"no public row has {listed}: a public model never predicts it" if listed else ""

    def spec(self) -> DatasetSpec:
        """The data set as a run reads it from the text. Raises ConfigError."""
        return parse(tomllib.loads(write_toml(self))).dataset


def propose(look: FirstLook, path: str, *, name: str, public: str | None) -> Proposal:
    """Decide what a configuration says. `public` is the rule as it names it.

    Raises DataError where the target cannot be read.
    """
    publics = () if look.public else propose_rules(look)
    proposal = Proposal(
        look=look,
        name=name,
        path=path,
        public=(public, "as you said") if public is not None else (publics[0].rule, publics[0].why),
        publics=publics,
        target=look.target,
        puts_aside=not look.is_whole,
    )
    rule_columns = proposal.rule_columns
    for column in look.columns:
        finding, is_target = column.finding, column.name == look.target
        if column.n_values and look.file.family(column.name) == "text":
            proposal.types[column.name] = column.declared_type(is_feature=not is_target)
        if is_target and column.type == "text" and _join_classes(proposal, finding):
            continue
        if column.name in rule_columns or finding is None or finding.is_code:
            continue
        if finding.readings:
            reading = finding.readings[0]
            if is_target:
                reading = _of_target(look, column, reading)
                proposal.target = reading.derive[0][0]
            others = finding.readings[1:]
            why = finding.sentence + (f"; here {reading.label}" if others else "")
            proposal.others[column.name] = list(others)
            for new, text in reading.derive:
                proposal.derive[new] = Derived(column.name, text, why)
            proposal.drop[column.name] = "read below"
        elif not is_target:
            proposal.drop[column.name] = finding.sentence
        elif finding.is_mixed:
            raise DataError(
                f'{look.source}: the target "{look.target}" holds {finding.sentence}, or name another --target.'
            )
    proposal.holders = _repeating_columns(look)
    proposal.weights = [column.name for column in look.columns if _looks_like_weight(look, column)]
    return proposal


def _join_classes(proposal: Proposal, finding: Finding | None) -> bool:
    """Read class names that are one but for their spelling as the commonest of them; whether there are any."""
    name = proposal.look.target
    counts = proposal.look.texts[name].drop_nulls().value_counts(sort=True).rows()[:MOST_CLASSES]
    spellings: dict[str, list[str]] = {}
    for text, _ in counts:
        spellings.setdefault(fold_text(text), []).append(text)
    joined = {folded: texts for folded, texts in spellings.items() if len(texts) > 1}
    is_read = finding is not None and any(reading.order for reading in finding.readings)
    if is_read or not joined:
        return False
    whens = " ".join(f"WHEN {literal(folded)} THEN {literal(texts[0])}" for folded, texts in joined.items())
    listed = ", ".join(f"{text!r} is {kept!r}" for kept, *texts in joined.values() for text in texts)
    taken = (*(column.name for column in proposal.look.columns), *proposal.derive)
    proposal.target = unused_name(new_name(name, "joined"), taken)
    expression = f"CASE {folded_sql(sql_name(name))} {whens} ELSE {sql_name(name)} END"
    proposal.derive[proposal.target] = Derived(name, expression, f"{SPELLINGS}: {listed}")
    proposal.drop[name] = "read below"
    return True


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


def _looks_like_weight(look: FirstLook, column: Column) -> bool:
    """Return whether numbers above 0 have the name of weights, and the mean 1 or a name that says more than that word."""
    if (
        column.type not in ("integer", "number")
        or column.name == look.target
        or not _WEIGHT.search(column.name)
    ):
        return False
    numbers = look.texts[column.name].drop_nulls().cast(float, strict=False)
    least, mean = numbers.min(), numbers.mean()
    if not isinstance(least, float) or not isinstance(mean, float) or least <= 0 or column.n_values <= FEW:
        return False
    return abs(mean - 1) < 0.1 or not _WORD_ALONE.fullmatch(column.name)


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
    if proposal.counts is not None:
        low, high = proposal.counts
        lines += [
            "",
            '# [model]                               # with label = "number": predictions stay within the range',
            '# estimator = "correction"',
            f"# label_range = [{low}, {high}]",
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
        both = 'or "number", where it counts something: see [model] below'
        label = f"label = {toml_text(proposal.label)}"
        lines.append(label if proposal.counts is None else _beside(label, both))
    finding = look.column(look.target).finding
    if proposal.label == "number" and finding is not None and finding.unit:
        lines.append(f"unit = {toml_text(finding.unit)}")
    if proposal.positive is not None:
        positive = json.dumps(proposal.positive, ensure_ascii=False)
        lines.append(_beside(f"positive = {positive}", "the class whose chance is scored"))
    lines.append(_beside(f"public = {toml_text(rule)}", why))
    if proposal.unseen:
        lines.append(f"# {put_on_one_line(proposal.tell_unseen)}")
    others = [other for other in proposal.publics if other.rule != rule]
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
    for name in proposal.weights:
        lines.append(
            f"# {put_on_one_line(name)} looks like a survey weight. Then it is no feature, and the public model uses it:"
        )
        lines.append(
            _beside(
                f"# weight = {toml_text(name)}", 'with model.estimator = "correction", model.base = "forest"'
            )
        )
    if look.n_duplicates > look.n_rows / 100:
        lines.append(f"# {look.n_duplicates:,} of the rows looked at repeat an earlier row: {REPEATED}")
    return lines


def _telling(proposal: Proposal) -> dict[str, list[str]]:
    """Why columns are named that tell the target and are not left out, with the columns."""
    names: dict[str, list[str]] = {}
    for name, why in proposal.telling.items():
        if name not in proposal.drop:
            names.setdefault(why, []).append(name)
    return names


def _missing_lines(proposal: Proposal) -> list[str]:
    """Return as comments what may be missing besides."""
    look, columns = proposal.look, proposal.columns_apart
    if not columns:
        return []
    held = (
        f"{toml_key(column.name)} = [{', '.join(toml_text(v) if isinstance(v, str) else str(v) for v in column.apart)}]"
        for column in columns
    )
    return [
        '# Repeated, and unlike all other values of their columns. Do they mean "missing"?',
        *(
            f"#   {put_on_one_line(column.name)}: {column.tell_apart(look.n_rows)}"
            + (", a label like any other unless you say so" if column.name == look.target else "")
            for column in columns
        ),
        f"# missing = {{ {', '.join(held)} }}",
    ]


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
