"""Score classes by accuracy, for ours, rivals and redraws. No score is a release.

The learning and scoring themselves are in `ldptree`; which rows are scored is in `evaluate`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.coins import Words
from ldptree.families.tree_fit import decide_nodes, fit_model
from ldptree.mechanisms import Mechanism
from ldptree.metrics.classes import accuracy_interval, paired_lead, score
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.totals import Totals
from tasks import progress
from tasks.scoring.held_back import Rows, Trial, answer_all


def score_trial(trial: Trial, held_back: Rows, *, public_prune: str) -> dict[str, Any]:
    """Return scores of ours and rivals on held-back rows, and of redraws. `public_prune` uses public rows alone."""
    published, learned, how = trial.protocol, trial.learned, trial.how
    public = trial.evidence.counts
    exact: NDArray[np.int64] = np.sum([counts for (counts,) in trial.known()], axis=0)
    progress.advance(0.2)

    counts = exact[:-1].reshape(-1, len(published.classes))
    true = Totals.exact(counts, mechanism=published.mechanism, depth=published.partition.max_depth)
    positive = _positive(published)
    ours = learned.predict_proba(held_back.raw)
    is_right = {"ours": _is_right(ours, held_back.labels)}
    scores: dict[str, dict[str, Any]] = {"ours": score(held_back.labels, ours, positive=positive).to_json()}
    rivals = {
        "public_only": lambda: fit_model(
            published, true, public, **how | {"lam": np.inf, "prune": public_prune}
        ).predict_proba(held_back.raw),
        "no_noise": lambda: fit_model(published, true, public, **how).predict_proba(held_back.raw),
        **trial.rivals(held_back.raw),
    }
    for done, (key, shares) in enumerate(answer_all(rivals), start=1):
        is_right[key] = _is_right(shares, held_back.labels)
        scores[key] = score(held_back.labels, shares, positive=positive).to_json()
        progress.advance(0.2 + 0.7 * done / len(rivals))
    for key, right in is_right.items():
        scores[key]["interval"] = accuracy_interval(int(right.sum()), right.size)
        if key != "ours":
            scores[key]["lead"] = paired_lead(is_right["ours"], right)
    nodes = learned.nodes(held_back.raw)

    def score_again(mechanism: Mechanism, words: Words) -> float:
        totals = _draw_again(published, mechanism, exact, words)
        return float((decide_nodes(published, totals, public, **how)[nodes] == held_back.labels).mean())

    return {"scores": scores, **trial.redraw(score_again)}


def _draw_again(protocol: Protocol, mechanism: Mechanism, exact: NDArray[np.int64], words: Words) -> Totals:
    """The totals that another draw of the same holders' noise would have given."""
    return Totals.from_raw(
        mechanism.sample_totals(exact, words.generator()),
        mechanism=mechanism,
        n_private=int(exact.sum()),
        depth=protocol.partition.max_depth,
    )


def _is_right(probabilities: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.asarray(probabilities.argmax(axis=1) == labels)


def _positive(protocol: Protocol) -> int:
    names = [str(value) for value in protocol.classes]
    return names.index(str(protocol.positive)) if protocol.positive is not None else 1
