"""Try a proposal before it is written. Its text is read as a run reads it, and the sample is typed as ingest would.

What ingest and scale would refuse is mended in the proposal, or said; what only typed rows tell is told here: what the label is,
and which columns are constant or tell it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ldptree.errors import ConfigError, DataError
from schemas.dataset import FEW_CLASSES, MOST_CLASSES, DatasetSpec
from storage.raw import raw_files
from storage.raw.public_rows import booleans
from storage.raw.recognition.findings import means_missing, sql_name, tell_value
from storage.raw.typed_rows import BAD, FAULT_COLUMN, NAMELESS, PUBLIC, SELECTED
from storage.sql import list_columns, literal
from tasks.data.ingest_plan import IngestPlan, RowRules
from tasks.data.leaks import telling_columns
from tasks.data.scale import classes_of, encoding_of
from tasks.first_look.proposal import Proposal
from tasks.first_look.public_rules import YES
from tasks.first_look.values import FirstLook, rows_by

if TYPE_CHECKING:
    import polars as pl

ROUNDS = 12
"""Most times that a proposal is tried, as one correction may reveal the next fault."""
LARGEST_SHARE = 0.5
"""Of rows that are public by chance."""
NEARLY = 0.01
"""A column is nearly empty where fewer of its values are there."""
FEWEST_VALUES = 3
MOST_FAULTS = 0.01
"""Share of the rows. A column that makes more of them bad is left out."""
MOST_REJECTED = 0.05
"""Share of the lines. If more of them have too few or too many fields, something else is wrong with the file."""


@dataclass(frozen=True, kw_only=True)
class TypedRows:
    """The sample as ingest would type it.

    Attributes:
        rows: those that may be looked at, with the columns that are kept or derived.
        is_public: of each, whether the rule makes it public.
        features: the columns that a tree could split on.
        faults: of the rows, those that cannot be used, by the column of the first fault.
    """

    rows: pl.DataFrame
    is_public: pl.Series
    features: tuple[str, ...]
    faults: Counter[str]


def adjust_proposal(proposal: Proposal) -> None:
    """Mend the proposal until a run takes it.

    Raises:
        DataError: nothing can be learned from the file with this target or this rule.
        ConfigError: as a run would.
    """
    for _ in range(ROUNDS):
        spec = proposal.spec()
        _check_features(proposal, spec.features((*proposal.look.file.columns, *spec.derive)), {})
        typed = type_rows(proposal.look, spec, is_number=proposal.label == "number")
        if not _is_corrected(proposal, typed):
            break
    _name_leaks(proposal, typed)
    public = typed.rows.filter(typed.is_public).to_arrow()
    encoding_of(public, typed.features, spec)
    if proposal.label == "class":
        classes_of(public.column(spec.target), spec)
        seen = {str(label) for label in typed.rows.filter(typed.is_public)[spec.target].unique()}
        proposal.unseen = [label for label in proposal.shares if label not in seen]


def type_rows(look: FirstLook, spec: DatasetSpec, *, is_number: bool) -> TypedRows:
    """The rows of a look as ingest would type them. Raises DataError and ConfigError as ingest."""
    import polars as pl

    file = replace(look.file, missing=spec.missing, timezone=spec.timezone)
    there = {*file.columns, *spec.derive}  # no list was sampled
    spec = spec.model_copy(update={"drop": tuple(name for name in spec.drop if name in there)})
    rule = rows_by(spec.public)
    plan = IngestPlan.of(RowRules(dataset=spec, seed=rule.seed), [file], rule.n_mixed, numeric=is_number)
    frames: list[pl.DataFrame] = []
    masks: list[pl.Series] = []
    faults: Counter[str] = Counter()
    first = 0
    with raw_files.connect([file]) as connection:
        size = raw_files.batch_rows(len(file.columns))
        for batch in raw_files.stream(connection, plan.query.rows(file), file, size):
            rows = look.sample.numbers[first : first + batch.num_rows]
            first += batch.num_rows
            chosen = booleans(batch.column(SELECTED), missing=True)
            is_public = np.ones(len(rows), bool) if look.public else rule.among(0, batch, rows)
            frames.append(pl.DataFrame(batch).filter(pl.Series(chosen)))
            masks.append(pl.Series(is_public[chosen]))
    table = pl.concat(frames)
    if table[BAD].any():
        with raw_files.connect([file]) as connection:
            query = plan.query.faults(file)
            for batch in raw_files.stream(connection, query, file, size):
                chosen = booleans(batch.column(SELECTED), missing=True)
                faults.update(pl.DataFrame(batch).filter(pl.Series(chosen))[FAULT_COLUMN])
    return TypedRows(
        rows=table.drop(PUBLIC, SELECTED, BAD, NAMELESS),
        is_public=pl.concat(masks),
        features=plan.spec.features([column.name for column in plan.query.kept], plan.rule_columns),
        faults=faults,
    )


def _is_corrected(proposal: Proposal, typed: TypedRows) -> bool:
    """Make the first correction needed, and return whether there was one."""
    return (
        (not proposal.label and _decide_label(proposal, typed))
        or _put_faults_aside(proposal, typed)
        or _leave_out_constants(proposal, typed)
        or _make_public_enough(proposal, typed)
    )


def _decide_label(proposal: Proposal, typed: TypedRows) -> bool:
    """Tell whether the label is a class or a number, which rows have one, and which class is scored; whether rows must be typed
    anew for it.
    """
    import polars as pl

    look, column = proposal.look, typed.rows[proposal.target]
    name, held = f'{look.source}: the target "{look.target}"', column.drop_nulls()
    counts = held.value_counts().sort("count", column.name, descending=[True, False])
    values = counts[column.name].to_list()
    if unknown := _unknown_labels(values, look.target):
        counts = counts.filter(~pl.col(column.name).is_in(unknown))
        held, values = held.filter(~held.is_in(unknown)), counts[column.name].to_list()
    public = typed.rows.filter(typed.is_public)
    if len(values) == 1 and _is_ticked(proposal, proposal.target, column, public):
        proposal.target = proposal.read_as_ticked(proposal.target, tell_value(values[0]))
        return True
    if len(values) < 2:
        other = ", or another --public" if look.public else ""
        raise DataError(
            f"{name} has {'one value' if values else 'no value'} in the {len(column):,} rows looked at: there is nothing "
            f"to learn. Name another --target{other}."
        )
    is_whole = column.dtype.is_integer() or not (column.dtype.is_numeric() and (held % 1 != 0).any())
    if column.dtype.is_numeric() and (
        len(values) > FEW_CLASSES or not is_whole or proposal.target != look.target
    ):
        proposal.label = "number"
    elif len(values) > MOST_CLASSES or (len(values) > FEW_CLASSES and 2 * len(values) > len(held)):
        raise DataError(
            f"{name} has {len(values):,} different texts in {len(column):,} rows: too many to be classes. Name another --target."
        )
    else:
        proposal.label = "class"
        proposal.shares = {str(value): n / len(held) for value, n in counts.iter_rows()}
        if column.dtype.is_numeric() and len(values) > 2 and min(values) >= 0:
            proposal.counts = (int(min(values)), int(max(values)))
    read = proposal.derive.get(proposal.target)
    known = f"TRY({read.expression})" if read else sql_name(look.target)
    # A row for which the condition is NULL would count as asked, and have no label.
    may_lack = column.null_count() or unknown or look.column(look.target).apart
    if may_lack and not proposal.where:
        others = f" AND {known} NOT IN ({', '.join(map(literal, unknown))})" if unknown else ""
        proposal.where = f"{known} IS NOT NULL{others}"
    if proposal.label == "class" and len(values) == 2:
        yes = [value for value in values if YES.fullmatch(str(value))]
        chosen = yes[0] if len(yes) == 1 else values[1]
        proposal.positive = int(chosen) if column.dtype.is_numeric() else chosen
    return proposal.label == "number" or bool(proposal.where)


def _unknown_labels(values: Sequence[object], target: str) -> list[str]:
    """Texts of a label that say that it is not known, or are its name in a header that stands again between rows, where two or
    more labels are left without them.
    """
    unknown = [
        value
        for value in values
        if isinstance(value, str) and (value == target or (means_missing(value) and value.lower() != "x"))
    ]
    return unknown if len(values) - len(unknown) > 1 else []


def _put_faults_aside(proposal: Proposal, typed: TypedRows) -> bool:
    """Rows that cannot be read are put aside; columns with many of them are left out."""
    n_faults, n_rows = typed.faults.total(), typed.rows.height
    sample = proposal.look.sample
    rejected = sample.n_rejected / (sample.n_rows + sample.n_rejected)
    if proposal.look.public is None and rejected > MOST_REJECTED:  # else they may be private ones
        raise DataError(
            f"{proposal.look.source}: of the lines looked at, {rejected:.0%} have another number of fields than "
            f"its header, which has {len(proposal.look.file.columns)}. Write the file anew, with as many fields in each line."
        )
    column, count = typed.faults.most_common(1)[0] if typed.faults else ("", 0)
    if n_faults > MOST_FAULTS * n_rows and column and column != proposal.target:
        proposal.leave_out(column, f"{count / n_rows:.0%} of its values cannot be read")
        return True
    if (n_faults or rejected) and not proposal.puts_aside:
        proposal.puts_aside = True
        return True
    return False


def _leave_out_constants(proposal: Proposal, typed: TypedRows) -> bool:
    """Leave out columns that never change; a box that is ticked or left blank is read as ticked or not."""
    constant, marked = {}, {}
    public = typed.rows.filter(typed.is_public)
    for name in typed.features:
        column = typed.rows[name]
        n_there = column.count()
        if n_there == 0:
            constant[name] = "empty"
        elif n_there < max(FEWEST_VALUES, NEARLY * len(column)):
            constant[name] = f"nearly empty: {n_there} of {len(column):,} values are there"
        elif (held := column.drop_nulls()).n_unique() < 2:
            if _is_ticked(proposal, name, column, public):
                marked[name] = tell_value(held[0])
            else:
                constant[name] = "one value"
        elif public.height and not public[name].count():
            constant[name] = "missing in every public row"
    for name, why in constant.items():
        proposal.leave_out(name, why)
    for name, mark in marked.items():
        proposal.read_as_ticked(name, mark)
    _check_features(proposal, typed.features, constant)
    return bool(constant or marked)


def _is_ticked(proposal: Proposal, name: str, column: pl.Series, public: pl.DataFrame) -> bool:
    """Whether a raw column with one value is there in some rows and blank in others, of the public ones too."""
    there = [column.count() / len(column), public[name].count() / max(public.height, 1)]
    return name not in proposal.derive and all(NEARLY <= share <= 1 - NEARLY for share in there)


def _name_leaks(proposal: Proposal, typed: TypedRows) -> None:
    """Name the columns that tell the target too well to be true. They stay, unless the person leaves them out."""
    target, is_number = proposal.target, proposal.label == "number"
    alone, together = telling_columns(typed.rows.to_arrow(), typed.features, target, is_number=is_number)
    listed = list_columns(together)
    proposal.telling = dict.fromkeys(
        alone, f"by itself it predicts {proposal.look.target} almost perfectly"
    ) | dict.fromkeys(together, f"together {listed} predict {proposal.look.target} almost perfectly")


def _check_features(proposal: Proposal, features: Sequence[str], left_out: dict[str, str]) -> None:
    """Raises DataError where no column is left to learn from."""
    if not set(features) - set(left_out):
        left = list((proposal.drop | left_out).items())[:10]
        reasons = "; ".join(f"{name}: {why}" for name, why in left) or "It has no other than the label"
        raise DataError(
            f"{proposal.look.source}: no column is left to learn from. {reasons}. Name another --target."
        )


def _make_public_enough(proposal: Proposal, typed: TypedRows) -> bool:
    """More rows are public by chance where they would have one label. Raises DataError by another rule."""
    look, labels = proposal.look, typed.rows.filter(typed.is_public)[proposal.target].drop_nulls()
    rule, why = proposal.public
    private = typed.is_public.not_().sum()
    if look.public is None and not private:
        raise ConfigError(
            f"{look.source}: by the rule {rule} every row is public, and nobody is left to ask."
        )
    if labels.n_unique() > 1:
        return False
    parsed = rows_by(rule).rule
    if parsed.fraction is not None and look.public is None and parsed.fraction < LARGEST_SHARE:
        proposal.public = (f"random {LARGEST_SHARE}", why)
        return True
    value = f"a single value ({labels[0]!r})" if len(labels) else "no value"
    raise DataError(
        f'{look.source}: the target "{look.target}" has {value} in the rows for which {rule}. Nothing can be learned '
        "from them: name another --public."
    )
