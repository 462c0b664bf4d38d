"""One round of reports: charged, collected, added up; and LPCT's second one. What the steps do is in `tasks`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prefect import unmapped

from flows import calls
from flows.asked import check_reported
from flows.budget import Spent, charge, keep_answers
from flows.campaign import Terms
from flows.shards import progress_shown
from schemas.manifest import Manifest, Record
from storage.store import Store
from tasks.aggregate import aggregate
from tasks.perturb import perturb
from tasks.terminate import terminate


@dataclass(frozen=True)
class Collected:
    """What one round, or two, left: the protocol of the last, its totals, and everything asked."""

    protocol: Manifest
    totals: Record
    spent: Spent
    asked: Sequence[Manifest]
    records: Sequence[Record]

    @property
    def number(self) -> int:
        """Of the last round."""
        return len(self.asked)


def collect(
    store: Store,
    terms: Terms,
    raw: Manifest,
    held: Record,
    published: Record,
    protocol: Manifest,
    number: int = 1,
) -> Collected:
    """Charge everybody whom the protocol asks, have each report once, and add the reports up."""
    spent = charge(store, **calls.charge(terms, raw, protocol, held, published))
    asked = calls.shards(store, terms, held)
    shards = [one["shard"] for one in asked]
    with progress_shown(len(shards)):
        call = calls.perturb(terms, protocol, held, published, number)
        reports = perturb.map(
            store, **calls.mapped(asked), **{key: unmapped(value) for key, value in call.items()}
        ).result()
    check_reported(shards, reports)
    written = {shard.files[0].name: report["reports"] for shard, report in zip(shards, reports, strict=True)}
    keep_answers(store, terms.config, held, protocol, terms.form(held, published), written)
    totals = aggregate(store, **calls.aggregate(terms, protocol, reports, number))
    return Collected(protocol, totals, spent, (protocol,), (*reports, totals))


def ask_again(
    store: Store, terms: Terms, raw: Manifest, held: Record, scaled: Record, first: Collected
) -> Collected:
    """LPCT's Algorithm 2 may end with a second query; every other run with what it has."""
    if not terms.config.model.may_ask_again:
        return first
    decided = terminate(store, **calls.terminate(terms, first.protocol, first.totals, scaled))
    if not decided.facts["is_terminated"]:
        return Collected(first.protocol, first.totals, first.spent, first.asked, (*first.records, decided))
    second = collect(store, terms, raw, held, decided, decided["protocol"], number=2)
    return Collected(
        second.protocol,
        second.totals,
        second.spent,
        (*first.asked, second.protocol),
        (*first.records, decided, *second.records),
    )
