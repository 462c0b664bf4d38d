"""Score a simulation by what only it can know, on held-back private rows, with baselines, redraws and duplicates.

Nothing of this step is a release. Models grown on private rows are scored and forgotten. The scoring is in `tasks.scoring`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ldptree.coins import Words
from ldptree.errors import DataError
from ldptree.families.tree_fit import SECOND_QUERY
from ldptree.models import Model
from ldptree.protocol.protocol import Protocol
from schemas.manifest import Manifest, StoredTranscript
from schemas.tables import EvaluateConfig
from storage.digests import Hasher
from storage.store import Draft
from tasks.artifacts import read_model, read_scaled, write_scores
from tasks.learning import Asking, LearningInRounds, LearningOfTotals, read_learning
from tasks.scoring.corrections import score_correction
from tasks.scoring.held_back import Rows, Trial, duplicates, read_rows
from tasks.scoring.in_rounds import read_complete, score_rounds
from tasks.scoring.trees import score_classes, score_regression
from tasks.step import step


@step("evaluate", version="11", home="simulation", says="scores on private rows kept aside")
def evaluate(
    draft: Draft,
    *,
    transcript: StoredTranscript,
    asking: Asking,
    reading: Mapping[str, Any],
    model: Manifest,
    train: Manifest,
    test: Manifest,
    evaluation: EvaluateConfig,
    noise_seed: int | None,
) -> Mapping[str, Any]:
    """Write `scores.json`: ours, every baseline, the redraws and the count of duplicates ("scores")."""
    store, seed = draft.store, asking.seed
    learning, learned = read_learning(store, transcript, asking, reading=reading), read_model(store, model)
    # Shards are named under the holders' key: in the order of what they hold, every work folder draws the same rows.
    shards = sorted(store.files(train), key=Hasher().of_file)
    if isinstance(learning, LearningOfTotals):
        protocol = learning.transcript[-1].protocol
        held_back = read_rows(store.files(test), protocol, at_most=evaluation.test_rows, seed=seed)
        _check_known("no held-back row has a declared label", held_back)
        scored = _score_totals(learning, learned, shards, held_back, evaluation, seed, noise_seed)
    else:
        assert isinstance(learning, LearningInRounds)
        held_back = read_complete(
            store.files(test), learning.encoding, asking.target, at_most=evaluation.test_rows, seed=seed
        )
        _check_known("no held-back row has a label", held_back)
        public = read_scaled(store, transcript.scaled)
        scored = score_rounds(
            learned, learning.encoding, asking.target, public, shards, held_back, evaluation, seed
        )
    content = scored | {
        "duplicates": duplicates(shards, store.files(test)),
        "n_test": held_back.labels.size,
        "n_test_all": test.rows,
    }
    write_scores(draft, content)
    return {"n_test": content["n_test"]}


def _check_known(fault: str, held_back: Rows) -> None:
    """Raises DataError where no row can be scored."""
    if not held_back.is_known.any():
        raise DataError(
            f"{fault}: nothing can be scored. Raise dataset.test_fraction, or set evaluate = false."
        )


def _score_totals(
    learning: LearningOfTotals,
    learned: Model,
    shards: Sequence[Path],
    held_back: Rows,
    evaluation: EvaluateConfig,
    seed: int,
    noise_seed: int | None,
) -> dict[str, Any]:
    """Return the scores of a corrected public model, a number or classes, whose reports were added up."""
    last, family = learning.transcript[-1], learning.family
    evidence: Any = last.published.evidence
    how: dict[str, Any] = getattr(family, "fit_arguments", {})
    trial = partial(
        Trial,
        protocol=last.protocol,
        learned=learned,
        evidence=evidence,
        public_rows=(learning.rows.X, learning.rows.y),
        shards=shards,
        evaluation=evaluation,
        seed=seed,
        words=partial(_words, noise_seed, last.protocol),
    )
    if last.protocol.base is not None:
        return score_correction(trial(how=how), held_back)
    if last.protocol.numeric:
        return score_regression(trial(how=how), held_back)
    public_prune = how["prune"] if isinstance(how["prune"], str) else "none"
    how = (SECOND_QUERY if len(learning.transcript) > 1 else how) | {"inflation": evidence.inflation}
    return score_classes(trial(how=how), held_back, public_prune=public_prune)


def _words(noise_seed: int | None, protocol: Protocol, number: int) -> Words:
    if noise_seed is None:
        return Words.system()
    # 0 where perturb has a round: never the noise of a report
    return Words.seeded(np.random.SeedSequence([noise_seed, int(protocol.digest_unmarked, 16), 0, number]))
