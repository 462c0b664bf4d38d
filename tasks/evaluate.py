"""evaluate: what only a simulation can know: scores on held-back private rows, baselines, the spread over redraws of the
noise, duplicates.

Nothing of this step is a release. Models grown on private rows are scored and forgotten. The learning and scoring
themselves are in `ldptree`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.baselines import BASELINES, select_baselines
from ldptree.coins import Words
from ldptree.errors import DataError
from ldptree.families.fit_classes import SECOND_QUERY, fit_model
from ldptree.metrics.classes import score
from ldptree.metrics.intervals import accuracy_interval, paired_lead
from ldptree.models.tree import ClassTree
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.totals import Totals
from schemas.manifest import Manifest, StoredTranscript
from schemas.tables import EvaluateConfig
from storage.digests import Hasher
from storage.store import Draft
from tasks import progress, score_corrections
from tasks.artifacts import read_model, write_scores
from tasks.held_back import Rows, at_most, duplicates, read_rows, some_private
from tasks.learning import Asking, LearningOfTotals, read_learning
from tasks.perturb import values_of
from tasks.score_corrections import Mended
from tasks.score_numbers import Question, scored
from tasks.step import step


@step("evaluate", version="6", home="simulation", order=15, says="scores on held-back private rows")
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
) -> None:
    """Write `scores.json`: ours, every baseline, the redraws and the count of duplicates ("scores")."""
    store, seed = draft.store, asking.seed
    learning = read_learning(store, transcript, asking, reading=reading)
    assert isinstance(learning, LearningOfTotals)
    family: Any = learning.family
    last = learning.transcript[-1]
    published, evidence = last.protocol, last.published.evidence
    learned = read_model(store, model)
    held_back = at_most(evaluation.test_rows, read_rows(store.files(test), published), seed)
    if not held_back.is_known.any():
        raise DataError(
            "no held-back row has a declared label: nothing can be scored. Raise dataset.test_fraction, or set evaluate = false."
        )
    # Shards are named under the holders' key: in the order of what they hold, every work folder draws the same rows.
    shards = sorted(store.files(train), key=Hasher().of_file)
    if published.base is not None:
        mended = Mended(
            protocol=published,
            learned=learned,
            public=evidence,
            public_rows=(learning.rows.X, learning.rows.y),
            shards=shards,
            evaluation=evaluation,
            seed=seed,
            words=partial(_words, noise_seed, published),
        )
        found = score_corrections.scored(mended, held_back)
    elif published.numeric:
        question = Question(
            protocol=published,
            learned=learned,
            public=evidence,
            public_rows=(learning.rows.X, learning.rows.y),
            shards=shards,
            how=family.reading,
            evaluation=evaluation,
            seed=seed,
            words=partial(_words, noise_seed, published),
        )
        found = scored(question, held_back)
    else:
        how = SECOND_QUERY if len(learning.transcript) > 1 else family.reading
        how = how | {"inflation": evidence.inflation}
        rivals_prune = reading["prune"] if isinstance(family.prune, str) else "none"
        found = _scored(
            published,
            learned,
            held_back,
            (learning.rows.X, learning.rows.y),
            evidence.counts,
            shards,
            how,
            rivals_prune,
            evaluation,
            seed,
            noise_seed,
        )
    content = found | {
        "duplicates": duplicates(shards, store.files(test)),
        "n_test": held_back.labels.size,
        "n_test_all": test.rows,
    }
    write_scores(draft, content)


def _scored(
    published: Protocol,
    learned: ClassTree,
    held_back: Rows,
    public_rows: tuple[NDArray[np.float32], NDArray[Any]],
    public: NDArray[np.int64],
    shards: Sequence[Path],
    how: dict[str, Any],
    public_prune: str,
    evaluation: EvaluateConfig,
    seed: int,
    noise_seed: int | None,
) -> dict[str, Any]:
    """Scores of ours and every rival on the held-back rows, and the redraws' accuracies."""
    exact = _exact_counts(shards, published)
    progress.advance(0.2)

    def fitted(totals: Totals) -> ClassTree:
        return fit_model(published, totals, public, **how)

    counts = exact[:-1].reshape(-1, len(published.classes))
    true = Totals.exact(counts, mechanism=published.mechanism, depth=published.partition.max_depth)
    positive = _positive(published)
    ours = learned.predict_proba(held_back.raw)
    is_right = {"ours": _is_right(ours, held_back.labels)}
    found: dict[str, dict[str, Any]] = {"ours": score(held_back.labels, ours, positive=positive).to_json()}
    rivals = {
        "public_only": lambda: fit_model(
            published, true, public, **how | {"lam": np.inf, "prune": public_prune}
        ).predict_proba(held_back.raw),
        "no_noise": lambda: fit_model(published, true, public, **how).predict_proba(held_back.raw),
        **_baselines(published, held_back, public_rows, shards, evaluation, seed),
    }
    with ThreadPoolExecutor(2) as pool:
        # The last take longest: begun first, they do not end alone.
        answers = {key: pool.submit(rivals[key]) for key in reversed(rivals)}
        for done, key in enumerate(rivals):
            answer = answers[key]
            is_right[key] = _is_right(answer.result(), held_back.labels)
            found[key] = score(held_back.labels, answer.result(), positive=positive).to_json()
            progress.advance(0.2 + 0.7 * (done + 1) / len(rivals))
    for key, right in is_right.items():
        found[key]["interval"] = accuracy_interval(int(right.sum()), right.size)
        if key != "ours":
            found[key]["lead"] = paired_lead(is_right["ours"], right)
    nodes = learned.nodes(held_back.raw)
    spread = [
        _redraw(fitted, published, exact, nodes, held_back.labels, _words(noise_seed, published, number))
        for number in range(evaluation.redraws)
    ]
    return {"scores": found, "redraws": spread}


def _exact_counts(shards: Sequence[Path], protocol: Protocol) -> NDArray[np.int64]:
    def count(path: Path) -> NDArray[np.int64]:
        values = values_of(path, protocol)
        return np.bincount(values, minlength=protocol.k).astype(np.int64)

    with ThreadPoolExecutor(2) as pool:
        total: NDArray[np.int64] = np.sum(list(pool.map(count, shards)), axis=0)
    return total


def _redraw(
    fitted: Callable[[Totals], ClassTree],
    protocol: Protocol,
    exact: NDArray[np.int64],
    nodes: NDArray[np.int32],
    labels: NDArray[np.int64],
    words: Words,
) -> float:
    """Accuracy of the model that another draw of the same holders' noise would have given."""
    raw = protocol.mechanism.sample_totals(exact, words.generator())
    totals = Totals.from_raw(
        raw,
        mechanism=protocol.mechanism,
        n_private=int(exact.sum()),
        depth=protocol.partition.max_depth,
    )
    return float((fitted(totals).decision[nodes] == labels).mean())


def _words(noise_seed: int | None, protocol: Protocol, number: int) -> Words:
    if noise_seed is None:
        return Words.system()
    # 0 where perturb has a round: never the noise of a report
    return Words.seeded(np.random.SeedSequence([noise_seed, int(protocol.digest_unmarked, 16), 0, number]))


def _baselines(
    protocol: Protocol,
    held_back: Rows,
    public_rows: tuple[NDArray[np.float32], NDArray[Any]],
    shards: Sequence[Path],
    evaluation: EvaluateConfig,
    seed: int,
) -> dict[str, Callable[[], NDArray[np.float64]]]:
    public_X, public_y = public_rows
    test_X = protocol.encoding.encode(held_back.raw)
    caps = {"public": evaluation.public_rows, "private": evaluation.private_rows}

    def fit(key: str) -> NDArray[np.float64]:
        baseline = BASELINES[key]
        X, y = public_X, public_y
        if baseline.reads == "private":
            X, y = some_private(shards, protocol, caps["private"], seed)
        return baseline.fit_predict(
            X, y, test_X, n_classes=len(protocol.classes), max_rows=caps[baseline.reads], seed=seed
        )

    return {key: partial(fit, key) for key in select_baselines(len(protocol.classes))}


def _is_right(probabilities: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.asarray(probabilities.argmax(axis=1) == labels)


def _positive(protocol: Protocol) -> int:
    names = [str(value) for value in protocol.classes]
    return names.index(str(protocol.positive)) if protocol.positive is not None else 1
