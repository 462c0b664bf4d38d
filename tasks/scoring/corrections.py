"""Score a corrected public model, the public model and rivals, overall and by cell. No score is a release.

The learning and scoring themselves are in `ldptree`; which rows are scored is in `evaluate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.coins import Words
from ldptree.families.corrections import ResidualEstimates, correct, estimate_residuals
from ldptree.mechanisms import Mechanism
from ldptree.metrics.classes import compare_shares
from ldptree.metrics.numbers import bins_of, compare_numbers
from ldptree.models.corrected import add_clipped, shares_of
from ldptree.simulate.redraws import KnownResiduals
from tasks import progress
from tasks.scoring.held_back import Rows, Trial, answer_all

Floats = NDArray[np.float64]
FEWEST = 10
"""Fewest held-back rows of a cell of which anything is said, as fewer would show single rows."""


def score_correction(trial: Trial, held_back: Rows) -> dict[str, Any]:
    """Scores of both models and every rival on the held-back rows, those of redraws, and both models' in each cell."""
    rows = (
        held_back
        if trial.classes
        else Rows(held_back.raw[held_back.is_known], held_back.labels[held_back.is_known])
    )
    parts = trial.learned.predict_parts(rows.raw)
    public, ours, cells = parts.public, parts.corrected, parts.cells
    in_cells = trial.learned.corrections.correction[cells]
    beside = np.where((cells >= 0)[:, None], parts.correction - in_cells, 0.0)
    progress.advance(0.1)
    holders = KnownResiduals(trial.protocol, *trial.gather_known())
    progress.advance(0.4)
    exact = _exactly(trial, holders)
    answers: dict[str, Floats] = {
        "ours": ours,
        "public_only": public,
        "no_noise": _correct(trial, exact, public, cells, beside),
    }
    rivals = dict(answer_all(trial.rivals(rows.raw), 0.4))

    def score_again(mechanism: Mechanism, words: Words) -> float:
        seen = estimate_residuals(trial.evidence.plan, holders.drawn_again(words, mechanism))
        return _chief(trial, rows.labels, _correct(trial, seen, public, cells, beside))

    return {
        "kind": "correction",
        "label": "class" if trial.classes else "number",
        "scores": compare_shares(
            rows.labels, {key: parts.shares(answer) for key, answer in answers.items()} | rivals
        )
        if trial.classes
        else compare_numbers(rows.labels, {key: answer[:, 0] for key, answer in answers.items()} | rivals),
        **trial.redraw(score_again),
        "bins": [] if trial.classes else bins_of(rows.labels, ours[:, 0]),
        "cells": [
            _in_cell(trial, rows.labels[cells == cell], public[cells == cell], ours[cells == cell])
            for cell in range(trial.protocol.n_cells)
        ],
    }


def _exactly(trial: Trial, holders: KnownResiduals) -> list[ResidualEstimates]:
    """The true mean residual of each output, over everybody who has one."""
    is_in = holders.usable
    residuals = holders.residuals[is_in].astype(np.float64)
    return [
        ResidualEstimates.exact(trial.evidence.plan, holders.cells[is_in], column) for column in residuals.T
    ]


def _correct(
    trial: Trial,
    seen: Sequence[ResidualEstimates],
    public: Floats,
    cells: NDArray[np.int32],
    beside: Floats,
) -> Floats:
    """The public model's answers, corrected by what these observations of its outputs say, and `beside` it by stumps, [n, M]."""
    corrections = correct(trial.evidence.plan, seen)
    added = np.where((cells >= 0)[:, None], corrections.correction[cells], corrections.mean) + beside
    return add_clipped(public, added) if trial.classes else public + added


def _chief(trial: Trial, labels: NDArray[Any], answer: Floats) -> float:
    """Accuracy, or the mean squared error."""
    if trial.classes:
        return float(np.mean(shares_of(answer).argmax(axis=1) == labels))
    return float(np.mean((answer[:, 0] - labels) ** 2))


def _in_cell(trial: Trial, labels: NDArray[Any], public: Floats, ours: Floats) -> dict[str, Any] | None:
    if labels.size < FEWEST:
        return None
    return {
        "n": labels.size,
        "public": _chief(trial, labels, public),
        "ours": _chief(trial, labels, ours),
    }
