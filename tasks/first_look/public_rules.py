"""Propose rules that say who is public in a file: the earliest rows, one group of several, those who agreed, or chance."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from schemas.dataset import FEW_CLASSES
from storage.raw.recognition.findings import sql_name
from storage.sql import literal, quote, scratch_cursor
from tasks.first_look.values import Column, FirstLook

SHARE, FEWEST = 0.1, 150
"""Of the rows that are public, and rows at least, while that is no more than half of them."""
CHOSEN_OF = (2, 20)
"""Different values of a column that may tell who is public."""
MOST = 3
"""Rules of a kind that are listed."""
LARGEST = 0.5
"""Share of the rows that one group has, at most."""
_CONSENT = re.compile(
    r"consent|agree|permission|opt.?in\b|publi[cs]|shar(?:e|ing)|einwilligung|zustimm|einverst|accord|consentimiento|acepto",
    re.IGNORECASE,
)
"""A name that may stand above answers to whether one's row may be seen."""
_GROUP = re.compile(
    r"source|site|company|firm|hospital|clinic|school|branch|store|cent(?:er|re)|region|country|state|wave|panel|cohort"
    r"|quelle|standort|filiale|klinik|krankenhaus|schule|kohorte|welle|bundesland|gruppe"
    r"|cohorte|vague|soci[ée]t[ée]|entreprise|agence|clinique|h[ôo]pital|[ée]cole|pays(?![a-z])|groupe"
    r"|fuente|empresa|sucursal|cl[íi]nica|escuela|pa[íi]s(?![a-z])|grupo|ola(?![a-z])",
    re.IGNORECASE,
)
YES = re.compile(
    r"yes|y|true|t|1|open|public|agreed|agree|consented|given|granted|accepted|opt(?:ed)?[ _-]?in|ja|j|wahr|erteilt|oui|o|vrai"
    r"|accordé|s[ií]|acepto",
    re.IGNORECASE,
)
RANDOM = "read in the clear. They are like all others, so reports can correct only what the public model gets wrong for everybody"


@dataclass(frozen=True, kw_only=True)
class PublicProposal:
    """A rule of who is public, and why it might be. `is_open`: whether they would have to agree, which nobody knows here."""

    rule: str
    why: str
    is_open: bool = False


def propose_rules(look: FirstLook) -> tuple[PublicProposal, ...]:
    """Return rules that could tell who is public, the one to begin with first, and chance last unless it is that."""
    columns, texts, target, n_rows = look.columns, look.texts, look.target, look.sample.n_rows
    share = max(SHARE, min(LARGEST, round(FEWEST / texts.height, 2)))
    random = PublicProposal(rule=f"random {share}", why=RANDOM)
    features = [column for column in columns if column.name != target]
    numeric = next(c for c in columns if c.name == target)
    is_number = numeric.type in ("integer", "number") and numeric.n_values > FEW_CLASSES
    times = [rule for c in features if (rule := _earliest(c, texts, target, share, n_rows)) is not None]
    groups = [
        (_differ(texts, c.name, target, is_number=is_number), rule)
        for c, rule in _groups(features, texts, target)
    ]
    groups.sort(key=lambda pair: -pair[0])
    # No feature may be made of the time by which a predicate divides the rows, so it is not what one begins with.
    split = [*(rule for rule in times if rule.rule.startswith("first ")), *(rule for _, rule in groups)][
        :MOST
    ]
    others = [rule for rule in times if rule not in split][:MOST]
    others += [rule for column in features if (rule := _agreed(column, texts))][:MOST]
    return (*split, *others, random) if split else (random, *others)


def _earliest(
    column: Column, texts: pl.DataFrame, target: str, share: float, n_rows: int
) -> PublicProposal | None:
    """The rows before a day, or the first ones of a file that is in the order of time; None where there is no one time."""
    readings = column.finding.readings if column.finding is not None else ()
    if len(readings) != 1 or not readings[0].order.startswith("epoch("):
        return None
    point, name = readings[0].order.removeprefix("epoch(").removesuffix(")"), quote(column.name)
    with scratch_cursor() as cursor:
        given = f"SELECT unnest(?::VARCHAR[]) AS {name}"
        query = f"SELECT CAST(epoch(TRY({point})) AS DOUBLE), CAST(CAST(TRY({point}) AS DATE) AS VARCHAR) FROM ({given})"
        rows = cursor.execute(query, [texts[column.name].to_list()]).fetchall()
    times = texts.select(target).with_columns(
        time=pl.Series([time for time, _ in rows], dtype=pl.Float64),
        day=pl.Series([day for _, day in rows], dtype=pl.String),
    )
    known = times.drop_nulls()
    if known.height < LARGEST * texts.height:
        return None
    if known.height == texts.height and known["time"].is_sorted():
        first, rule = known.head(int(share * known.height)), f"first {int(share * n_rows)}"
    else:
        day = known.sort("time")["day"][int(share * known.height)]
        first, rule = known.filter(pl.col("day") < day), f"{point} < CAST({literal(day)} AS TIMESTAMP)"
    if first[target].n_unique() < 2 or first.height < share * known.height / 2:
        return None
    why = f"the earliest {first.height / texts.height:.0%} of the rows by {column.name}: later people may differ from them"
    return PublicProposal(rule=rule, why=why)


def _groups(
    columns: Sequence[Column], texts: pl.DataFrame, target: str
) -> list[tuple[Column, PublicProposal]]:
    """Of each column that names groups the one whose size is nearest to what is sought."""
    groups = []
    for column in columns:
        is_group = _GROUP.search(column.name) and not _CONSENT.search(column.name)
        if not is_group or not CHOSEN_OF[0] <= column.n_values <= CHOSEN_OF[1]:
            continue
        folded = _fold(column, texts)
        counts = (
            texts.select(target, value=folded)
            .drop_nulls()
            .group_by("value")
            .agg(pl.len(), pl.col(target).n_unique())
        )
        counts = counts.filter((pl.col(target) > 1) & (pl.col("len") <= LARGEST * texts.height))
        if not counts.height:
            continue
        sought = max(FEWEST, SHARE * texts.height)
        value, n, _ = counts.sort((pl.col("len") / sought).log().abs(), "value").row(0)
        why = f"one of {column.n_values}, {n / texts.height:.0%} of the rows: people elsewhere may differ from them"
        groups.append((column, PublicProposal(rule=_equal(column, value, folded), why=why)))
    return groups


def _differ(texts: pl.DataFrame, group: str, target: str, *, is_number: bool) -> float:
    """Return the share of the labels' variance that lies between groups."""
    rows = texts.select(group, target).drop_nulls()
    label = pl.col(target).cast(pl.Float64, strict=False)
    labels = rows.select(label) if is_number else rows.select(target).to_dummies()
    names = labels.columns
    within = labels.with_columns(group=rows[group]).select(
        (pl.col(names) - pl.col(names).mean().over("group")).pow(2).sum()
    )
    whole = labels.select((pl.all() - pl.all().mean()).pow(2).sum())
    return float(1 - sum(within.row(0)) / max(sum(whole.row(0)), 1e-12))


def _agreed(column: Column, texts: pl.DataFrame) -> PublicProposal | None:
    """Those who say yes in a column that may be about consent; whether it is, only a person knows."""
    if not _CONSENT.search(column.name) or not 2 <= column.n_values <= CHOSEN_OF[1]:
        return None
    folded = _fold(column, texts)
    held = texts.select(value=folded)["value"].drop_nulls()
    yes = [value for value in held.unique(maintain_order=True) if YES.fullmatch(value)]
    if not yes:
        return None
    share = (held == yes[0]).sum() / texts.height
    why = f"{share:.0%} of the rows say so, and would be read in the clear: did they agree to that?"
    return PublicProposal(rule=_equal(column, yes[0], folded), why=why, is_open=True)


def _fold(column: Column, texts: pl.DataFrame) -> pl.Expr:
    """The values; without capital letters where they differ in these alone, or a rule would miss some of them."""
    value = pl.col(column.name)
    folded = value.str.strip_chars().str.to_lowercase()
    return folded if texts.select(folded.n_unique() < value.n_unique()).item() else value


def _equal(column: Column, text: str, folded: pl.Expr) -> str:
    if not folded.meta.eq(pl.col(column.name)):
        return f"lower(trim({sql_name(column.name)})) = {literal(text)}"
    value = text if column.type in ("integer", "number") else literal(text)
    return f"{sql_name(column.name)} = {text.lower() if column.type == 'boolean' else value}"
