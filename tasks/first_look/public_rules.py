"""Propose rules that say who is public in a file, such as those who consented, or one group of several."""

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
    r"\b(?:consent|opt ?in\b|agreed?\b|permission|publish(?!e)|(?:gdpr|rgpd|lgpd|dsgvo|hipaa)\b|release form\b"
    r"|may we (?:use|share)\b|data ?sharing\b|accord\b|consens(?!us)|toestem|akkoord|samty[ck]k)"
    r"|(?<!nicht)einwillig|zustimm|einverst"
    r"|^(?:is )?(?:public|publique|p[úu]blico|pubblico|öffentlich|open|shared?|sharing)(?: (?:use|data|ok|record|row))?$",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"(?:no|non|not|never|without|only|out|nicht|keine?|ohne|nur|pas|sans|sin|sem|n[ãa]o|senza|solo|niet|geen|zonder|nie|brak|ikke"
    r"|inte|uten|utan)|(?:declin|refus|reject|revo[ck]|withdr|withh|deni|deny|deneg|negad|negat|missing|expir|laps|lack|pending"
    r"|verweiger|abgelehn|widerruf|zur[üu]ck|fehl|retir|manqu|rechaz|recus|rifiut|ritir|ingetrok|geweiger|cofn|nekt|tilbake"
    r"|ask|request|requir|need|sent|offer).*",
    re.IGNORECASE,
)
"""Words beside which consent was not given, not for everything, or only asked for."""
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
    r"|authori[sz]ed(?: under .*)?|ja|j|wahr|erteilt|oui|o|vrai|accordé|s[ií]|sim|acepto"
    r"|(?:(?:yes, ?)?i (?:agree|consent|am happy for)\b|(?:ja, ?)?ich (?:stimme|willige)\b|(?:oui, ?)?j'accepte\b)"
    r"(?!.*\b(?:not|no|only|but|except|unless|nicht|nur|aber|pas|seulement|sauf)\b).*",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class PublicProposal:
    """A rule of who is public, and why it might be."""

    rule: str
    why: str
    is_consent: bool


def propose_rules(columns: Sequence[Column], texts: pl.DataFrame, target: str) -> tuple[PublicProposal, ...]:
    """Return rules that could tell who is public, the likeliest first. `texts` are raw values of the sample."""
    proposals: list[tuple[int, PublicProposal]] = []
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
        if _names_consent(column.name) and (yes := [v for v in values if YES.fullmatch(v)]):
            share = shares[values.index(yes[0])]
            rule = _equal(column, yes[0], is_folded=is_folded)
            why = f"{share:.0%} of the rows say so, and are read in the clear: did they agree to that?"
            proposals.append((0, PublicProposal(rule=rule, why=why, is_consent=0.005 < share < 0.95)))
        elif values and _GROUP.search(column.name):
            place = min(range(len(shares)), key=lambda i: abs(shares[i] - 0.1))
            rule = _equal(column, values[place], is_folded=is_folded)
            why = f"one of {column.n_values}, {shares[place]:.0%} of the rows"
            proposals.append((1, PublicProposal(rule=rule, why=why, is_consent=False)))
    return tuple(proposed for _, proposed in sorted(proposals, key=lambda pair: pair[0])[:MOST_RULES])


def _names_consent(name: str) -> bool:
    """Whether a column is called after consent, and not after its refusal, its limits or the question."""
    words = re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-zß-ÿ])(?=[A-Z])", " ", name))
    return _CONSENT.search(" ".join(words)) is not None and not any(map(_REFUSAL.fullmatch, words))


def _equal(column: Column, text: str, *, is_folded: bool) -> str:
    if is_folded:
        return f"lower(trim({sql_name(column.name)})) = {literal(text)}"
    value = text if column.type in ("integer", "number") else literal(text)
    return f"{sql_name(column.name)} = {text.lower() if column.type == 'boolean' else value}"
