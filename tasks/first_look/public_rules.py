"""Rules of who is public that a file suggests: somebody consented, or one group of several."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from storage.raw.recognition.findings import sql_name
from storage.sql import literal

if TYPE_CHECKING:
    from tasks.first_look.column import Column

CHOSEN_OF = (2, 20)
"""Different values of a column that may tell who is public."""
_CONSENT = re.compile(
    r"consent|opt[ _-]?in(?![a-z])|(?<![a-z])agreed?(?![a-z])|volunteer|permission"
    r"|^(?:is[ _-]?)?(?:public|publique|p[úu]blico|pubblico|öffentlich|open|shared?)(?:[ _-]?(?:use|data|ok|record|row))?$"
    r"|publish(?!e)|einwillig|zustimm|einverst|accord|consens|toestem|akkoord|samty[ck]k",
    re.IGNORECASE,
)
_GROUP = re.compile(
    r"source|site|company|firm|vendor|provider|hospital|clinic|school|branch|store|centre|center|region|country|state|dataset|wave"
    r"|panel|cohort|sample(?![a-z])|quelle|herkunft|standort|filiale|klinik|krankenhaus|schule|gruppe|kohorte|welle|bundesland"
    r"|groupe|cohorte|vague|soci[ée]t[ée]|entreprise|agence|succursale|clinique|h[ôo]pital|[ée]cole|pays(?![a-z])"
    r"|grupo|fuente|empresa|sucursal|cl[íi]nica|escuela|pa[íi]s(?![a-z])|gruppo|fonte|azienda|filiale|ospedale|scuola|paese"
    r"|bron(?![a-z])|bedrijf|vestiging|ziekenhuis|groep|golf(?![a-z])|kilde|gruppe|sykehus|skola|skole|sjukhus|grupp(?![a-z])",
    re.IGNORECASE,
)
MOST_RULES = 3
YES = re.compile(
    r"yes|y|true|t|1|open|public|agreed|agree|consented|(?:consent )?(?:given|granted)|accepted|opt(?:ed)?[ _-]?in"
    r"|ja|j|wahr|erteilt|oui|o|vrai|accordé|s[ií]|sim|acepto"
    r"|(?:yes, ?)?i (?:agree|consent)\b.*|(?:ja, ?)?ich (?:stimme|willige)(?!.*\bnicht\b).*|(?:oui, ?)?j'accepte\b.*",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class PublicProposal:
    """A rule of who is public, and why it might be."""

    rule: str
    why: str
    is_consent: bool


def propose_rules(columns: Sequence[Column], texts: pl.DataFrame, target: str) -> tuple[PublicProposal, ...]:
    """Rules that could tell who is public, the likeliest first. `texts`: raw values of all rows that were looked at."""
    found: list[tuple[int, PublicProposal]] = []
    low, high = CHOSEN_OF
    for column in columns:
        if column.name == target or not low <= column.n_values <= high:
            continue
        values_and_labels = texts.select(value=column.name, label=target).drop_nulls()
        folded = pl.col("value").str.strip_chars().str.to_lowercase()
        is_folded = values_and_labels.select(folded.n_unique() < pl.col("value").n_unique()).item()
        if is_folded:  # the values differ in capital letters alone, or the rule would miss some of them
            values_and_labels = values_and_labels.with_columns(folded)
        elif column.finding is not None:
            continue
        counts = values_and_labels.group_by("value").agg(pl.len(), labels=pl.col("label").n_unique())
        counts = counts.filter(pl.col("labels") > 1).sort("len", "value", descending=[True, False])
        values, shares = counts["value"].to_list(), (counts["len"] / texts.height).to_list()
        if _CONSENT.search(column.name) and (yes := [v for v in values if YES.fullmatch(v)]):
            share = shares[values.index(yes[0])]
            rule = _equal(column, yes[0], is_folded=is_folded)
            why = f"{share:.0%} of the rows say so, and are read in the clear: did they agree to that?"
            found.append((0, PublicProposal(rule=rule, why=why, is_consent=0.005 < share < 0.95)))
        elif values and _GROUP.search(column.name):
            place = min(range(len(shares)), key=lambda i: abs(shares[i] - 0.1))
            rule = _equal(column, values[place], is_folded=is_folded)
            why = f"one of {column.n_values}, {shares[place]:.0%} of the rows"
            found.append((1, PublicProposal(rule=rule, why=why, is_consent=False)))
    return tuple(one for _, one in sorted(found, key=lambda pair: pair[0])[:MOST_RULES])


def _equal(column: Column, text: str, *, is_folded: bool) -> str:
    if is_folded:
        return f"lower(trim({sql_name(column.name)})) = {literal(text)}"
    value = text if column.type in ("integer", "number") else literal(text)
    return f"{sql_name(column.name)} = {text.lower() if column.type == 'boolean' else value}"
