"""Score a tree of classes by accuracy and of numbers by squared error, with rivals and redraws. No score is a release.

The learning and scoring themselves are in `ldptree`; which rows are scored is in `evaluate`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.coins import Words
from ldptree.families.tree_fit import decide_nodes, fit_model, fit_regression
from ldptree.mechanisms import Mechanism
from ldptree.metrics.classes import compare_shares
from ldptree.metrics.numbers import bins_of, compare_numbers, score_numbers
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.totals import Totals
from ldptree.simulate.redraws import KnownHolders
from tasks import progress
from tasks.scoring.held_back import Rows, Trial, answer_all


def score_classes(trial: Trial, held_back: Rows, *, public_prune: str) -> dict[str, Any]:
    """Return scores of ours and rivals on held-back rows, and of redraws. `public_prune` uses public rows alone."""
    published, learned, how = trial.protocol, trial.learned, trial.how
    public, labels, raw = trial.evidence.counts, held_back.labels, held_back.raw
    exact: NDArray[np.int64] = np.sum([counts for (counts,) in trial.known()], axis=0)
    progress.advance(0.2)
    counts = exact[:-1].reshape(-1, len(published.classes))
    true = Totals.exact(counts, mechanism=published.mechanism, depth=published.partition.max_depth)

    def exactly(**other: Any) -> NDArray[np.float64]:
        return fit_model(published, true, public, **how | other).predict_proba(raw)

    rivals = {
        "public_only": lambda: exactly(lam=np.inf, prune=public_prune),
        "no_noise": exactly,
        **trial.rivals(raw),
    }
    answers = {"ours": learned.predict_proba(raw), **dict(answer_all(rivals, 0.2))}
    nodes = learned.nodes(raw)

    def score_again(mechanism: Mechanism, words: Words) -> float:
        totals = _draw_again(published, mechanism, exact, words)
        return float((decide_nodes(published, totals, public, **how)[nodes] == labels).mean())

    scores = compare_shares(labels, answers, positive=_positive(published))
    return {"scores": scores, **trial.redraw(score_again)}


def score_regression(trial: Trial, held_back: Rows) -> dict[str, Any]:
    """Scores of ours and every rival on the held-back rows, the redraws' errors, and predicted against true in bins."""
    labels, raw = held_back.labels[held_back.is_known], held_back.raw[held_back.is_known]
    protocol, ours = trial.protocol, trial.learned.predict(raw)
    holders = KnownHolders(protocol, *trial.gather_known())
    progress.advance(0.2)
    depth = protocol.partition.max_depth
    true = Totals.exact_numbers(*holders.sums(), mechanism=protocol.mechanism, depth=depth)

    def exactly(**other: Any) -> NDArray[np.float64]:
        return fit_regression(protocol, true, trial.evidence, **trial.how | other).predict(raw)

    rivals = {"public_only": lambda: exactly(lam=np.inf), "no_noise": exactly, **trial.rivals(raw)}
    scores = compare_numbers(labels, {"ours": ours, **dict(answer_all(rivals, 0.2))})
    nodes = trial.learned.nodes(raw)

    def score_again(mechanism: Mechanism, words: Words) -> float:
        totals = holders.drawn_again(words, mechanism=mechanism)
        model = fit_regression(protocol, totals, trial.evidence, **trial.how)
        return score_numbers(labels, model.estimate[:, 0][nodes]).mse

    return {
        "kind": "regression",
        "scores": scores,
        "bins": bins_of(labels, ours),
        **trial.redraw(score_again),
    }


def _draw_again(protocol: Protocol, mechanism: Mechanism, exact: NDArray[np.int64], words: Words) -> Totals:
    """The totals that another draw of the same holders' noise would have given."""
    return Totals.from_raw(
        mechanism.sample_totals(exact, words.generator()),
        mechanism=mechanism,
        n_private=int(exact.sum()),
        depth=protocol.partition.max_depth,
    )


def _positive(protocol: Protocol) -> int:
    names = [str(value) for value in protocol.classes]
    return names.index(str(protocol.positive)) if protocol.positive is not None else 1
