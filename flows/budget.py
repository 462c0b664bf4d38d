"""What a run's questions cost whom: charged whole, before any holder answers, or refused. How spends add up is in
`ldptree.ledger`, where they are kept in `storage.ledgers`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ldptree.ledger import Charge, Ledger, Names, Rows
from schemas.config import RunConfig
from schemas.manifest import Manifest, Record
from storage.ledgers import Account
from storage.store import Store
from tasks.checkpoint import kept_in_zone
from tasks.scale import read_protocol


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What the curator learns of the ledger: never who.

    largest    the largest spend of any holder, over everything asked in this account.
    questions  on how many questions that was spent.
    cap        the smallest lifetime cap ever stated; None where none was.
    """

    largest: float
    questions: int
    cap: float | None


def charge(
    store: Store, config: RunConfig, raw: Manifest, held: Record, protocol: Manifest, form: str
) -> Spent:
    """Charge every holder whom a run asks, or nobody. The same run again costs nothing more. Raises BudgetError."""
    return _spent(_account(store, config).charge, store, config, raw, held, protocol, form)


def foresee(
    store: Store, config: RunConfig, raw: Manifest, held: Record, protocol: Manifest | None, form: str
) -> Spent:
    """What `charge` would return. Writes nothing. Raises as it does. A protocol not known yet (None) is taken for a new one."""
    return _spent(_account(store, config).foresee, store, config, raw, held, protocol, form)


def _spent(
    spend: Callable[[Sequence[Charge], float | None, Sequence[Charge]], Ledger],
    store: Store,
    config: RunConfig,
    raw: Manifest,
    held: Record,
    protocol: Manifest | None,
    form: str,
) -> Spent:
    with kept_in_zone(store, "ledger", "holders"):
        asked = charges(store, config, raw, held, protocol, form)
        return _told(spend(asked, config.privacy.lifetime_epsilon, _rest(config, asked)))


def charges(
    store: Store, config: RunConfig, raw: Manifest, held: Record, protocol: Manifest | None, form: str
) -> list[Charge]:
    """What a run spends: in each raw file with somebody to ask, the file's rows, and the holders whom a column names.

    Rows are charged whole, held-back and public ones between them too, and whoever names the holders: so the same file asked
    first by rows and then by names is known again.
    """
    published = read_protocol(store, protocol) if protocol else None
    digest = published.digest if published else "not known yet,"
    rounds = published.rounds if published else (1,)
    title = config.campaign.name or config.name
    names = {entry.digest: entry.name for entry in reversed(raw.files)}
    shards = {entry.name: entry.digest for entry in held["train"].files}
    drawn = None if config.simulation.noise_seed is None else [config.simulation.noise_seed, form]
    asked = json.loads(store.file(held["answers"], "files.json").read_bytes())
    found = []
    for source, file in asked.items():
        # What makes perturb give the report that stands: of a campaign's shard its name, else what it holds.
        known_by = sorted(
            file["shards"] if config.campaign.name else [shards[name] for name in file["shards"]]
        )
        reports = store.hasher("holders").of_value([drawn, known_by])[:16]
        start, stop = file["rows"]
        who: list[Rows | Names] = [Rows(source=source, start=start, stop=stop)]
        if config.dataset.holder != "row":
            who.append(Names(np.load(store.file(held["answers"], f"{source}.npy"))))
        found += [
            Charge(
                question=f"{digest} round {number} reports {reports}",
                epsilon=(published or config.privacy).epsilon / len(rounds),
                who=holders,
                about=f"{title} (protocol {digest[:8]}, round {number})" if published else title,
                where=names.get(source, ""),
            )
            for number in rounds
            for holders in who
        ]
    return found


def _rest(config: RunConfig, asked: Sequence[Charge]) -> list[Charge]:
    """What a run that asks in rounds has left for a later one after its first: it is refused before any of them."""
    return [
        replace(charge, question=f"after {charge.question}", epsilon=config.privacy.epsilon - charge.epsilon)
        for charge in asked
        if " round 1 " in charge.question and charge.epsilon < config.privacy.epsilon
    ]


def _told(ledger: Ledger) -> Spent:
    largest = ledger.largest_spend()
    return Spent(largest=largest.epsilon, questions=len(largest.on), cap=ledger.cap)


def _account(store: Store, config: RunConfig) -> Account:
    return Account(store, config.simulation.noise_seed)
