"""answer: each holder's report to one question of several rounds, a shard at a time. Runs with the holders; only reports leave.

As in `perturb`, a shard's answers are written once, read back ever after, and never drawn again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ldptree.coins import Words
from schemas.families import FeaturesConfig
from schemas.manifest import Manifest
from storage.digests import Hasher
from storage.store import Draft
from tasks.artifacts import digest_unmarked, read_encoding, read_question, read_shown, table_of_reports
from tasks.data.show import Label, read_rows
from tasks.once import mark_of, written_once
from tasks.step import FIRST, NotInKey, step


@step(
    "answer",
    version="1",
    home="holders",
    order=7,
    says="answers to a question, one of each holder who was asked",
)
def answer(
    draft: Draft,
    *,
    question: Manifest,
    encoding: Manifest,
    shown: Manifest,
    shard: Manifest,
    start: int,
    round_number: int,
    features: FeaturesConfig,
    label: Mapping[str, Any],
    noise_seed: int | None,
    alike: NotInKey = FIRST,
) -> Mapping[str, Any]:
    """Write one shard's reports (part "reports", in the curator's zone), of those in it whom the question asks.

    `start`: position in `shown` of the shard's first holder. `label`: how a label is read (`tasks.data.show.Label`).
    `alike`: as in `perturb`.
    """
    store = draft.store
    asked = read_question(store, question)
    everybody = asked.respondents(read_shown(store, shown))
    mine = everybody[(everybody >= start) & (everybody < start + shard.rows)]

    def drawn() -> pa.Table:
        read, _ = read_encoding(store, encoding)
        (path,) = store.files(shard)
        rows = read_rows(path, read, features, Label(**label))
        words = (
            Words.system()
            if noise_seed is None
            else _seeded(noise_seed, digest_unmarked(store, question), round_number, path, alike.value)
        )
        at = mine - start
        reports = asked.randomize(rows.points[at], rows.labels[at], rows.protects[at], words)
        return table_of_reports(mine, reports)

    received = written_once(
        draft,
        question=question,
        asked=question.digest,
        round_number=round_number,
        drawn=None if noise_seed is None else [noise_seed],
        identity=store.hasher("holders").of_value([shard.digest, start, shown.digest]),
        metadata={
            "protocol": question.digest,
            "round": str(round_number),
            "holders": str(mine.size),
            **mark_of(noise_seed),
        },
        table=drawn,
    )
    draft.refer("reports", received)
    return {"n_reports": int(mine.size), "seeded": noise_seed is not None}


def _seeded(noise_seed: int, question: str, round_number: int, shard: Path, alike: int) -> Words:
    """Words of a shard's own, as in `perturb`."""
    entropy = [noise_seed, int(question, 16), round_number, int(Hasher().of_file(shard), 16)]
    return Words.seeded(np.random.SeedSequence([*entropy, alike] if alike else entropy))
