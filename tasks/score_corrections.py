"""What evaluate does where a public model is mended: both models and their rivals, overall and in each cell. Nothing of it is a
release.

The learning and scoring themselves are in `ldptree`; which rows are scored is in `evaluate`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.baselines import BASELINES, select_baselines
from ldptree.coins import Words
from ldptree.families.correction_plan import PublicSummary
from ldptree.families.corrections import ResidualEstimates, correct, estimate_residuals
from ldptree.metrics.classes import score
from ldptree.metrics.intervals import accuracy_interval, paired_lead
from ldptree.metrics.numbers import bins_of, mse_interval, paired_mse_lead, score_numbers
from ldptree.models.corrected import CorrectedModel, add_clipped, shares_of
from ldptree.protocol.protocol import Protocol
from ldptree.simulate.redraws import KnownResiduals
from schemas.tables import EvaluateConfig
from tasks import progress
from tasks.held_back import Rows, known_residuals, some_private

Floats = NDArray[np.float64]
FEWEST = 10
"""Held-back rows of a cell, below which nothing is said of them: it would show some."""


@dataclass(frozen=True, kw_only=True)
class Mended:
    """What was asked and learned, and everything it is scored with."""

    protocol: Protocol
    learned: CorrectedModel
    public: PublicSummary
    public_rows: tuple[NDArray[np.float32], NDArray[Any]]
    shards: Sequence[Path]
    evaluation: EvaluateConfig
    seed: int
    words: Callable[[int], Words]
    """The coins of a redraw by its number."""

    @property
    def classes(self) -> int:
        """C, 0 where the label is a number."""
        return len(self.protocol.label_classes)


def scored(question: Mended, held_back: Rows) -> dict[str, Any]:
    """Scores of both models and every rival on the held-back rows, those of redraws, and both models' in each cell."""
    rows = (
        held_back
        if question.classes
        else Rows(held_back.raw[held_back.is_known], held_back.labels[held_back.is_known])
    )
    told = _told_numbers if not question.classes else _told_classes
    said = question.learned.predict_parts(rows.raw)
    public, ours, cells = said.public, said.corrected, said.cells
    progress.advance(0.1)
    holders = known_residuals(question.shards, question.protocol)
    progress.advance(0.4)
    exact = _exactly(question, holders)
    answers: dict[str, Floats] = {
        "ours": ours,
        "public_only": public,
        "no_noise": _mended(question, exact, public, cells),
        **_rivals(question, rows),
    }
    redraws = []
    for number in range(question.evaluation.redraws):
        seen = estimate_residuals(question.public.plan, holders.drawn_again(question.words(number)))
        redraws.append(_chief(question, rows.labels, _mended(question, seen, public, cells)))
    return {
        "kind": "correction",
        "label": "class" if question.classes else "number",
        "scores": told(rows.labels, answers),
        "redraws": redraws,
        "bins": [] if question.classes else bins_of(rows.labels, ours[:, 0]),
        "cells": [
            _in_cell(question, rows.labels[cells == cell], public[cells == cell], ours[cells == cell])
            for cell in range(question.protocol.n_cells)
        ],
    }


def _exactly(question: Mended, holders: KnownResiduals) -> list[ResidualEstimates]:
    """The true mean residual of each output, over everybody who has one."""
    is_in = holders.usable
    residuals = holders.residuals[is_in].astype(np.float64)
    return [
        ResidualEstimates.exact(question.public.plan, holders.cells[is_in], column) for column in residuals.T
    ]


def _mended(
    question: Mended,
    seen: Sequence[ResidualEstimates],
    public: Floats,
    cells: NDArray[np.int32],
) -> Floats:
    """The public model's answers, corrected by what these observations of its outputs say, [n, M]."""
    found = correct(question.public.plan, seen)
    added = np.where((cells >= 0)[:, None], found.correction[cells], found.mean)
    return add_clipped(public, added) if question.classes else public + added


def _rivals(question: Mended, rows: Rows) -> dict[str, Floats]:
    """Every baseline's answers: shares [n, C], or numbers [n, 1]."""
    evaluation, protocol = question.evaluation, question.protocol
    caps = {"public": evaluation.public_rows, "private": evaluation.private_rows}
    test = protocol.encoding.encode(rows.raw)

    def rows_for(reads: str) -> tuple[NDArray[np.float32], NDArray[Any]]:
        if reads == "private":
            return some_private(question.shards, protocol, caps["private"], question.seed)
        return question.public_rows

    def fit(key: str) -> Floats:
        baseline = BASELINES[key]
        answers = baseline.fit_predict(
            *rows_for(baseline.reads),
            test,
            n_classes=question.classes,
            max_rows=caps[baseline.reads],
            seed=question.seed,
        )
        return answers.reshape(len(test), -1)

    with ThreadPoolExecutor(2) as pool:
        keys = list(select_baselines(question.classes))
        # The last take longest: begun first, they do not end alone.
        waiting = {key: pool.submit(fit, key) for key in reversed(keys)}
        return {key: waiting[key].result() for key in keys}


def _told_classes(labels: NDArray[Any], answers: dict[str, Floats]) -> dict[str, Any]:
    # of two classes a baseline has both shares; of more the corrected ones need not add up to 1
    shares = {key: said if said.shape[1] == 2 else shares_of(said) for key, said in answers.items()}
    is_right = {key: said.argmax(axis=1) == labels for key, said in shares.items()}
    return {
        key: score(labels, said, positive=1).to_json()
        | {"interval": accuracy_interval(int(is_right[key].sum()), labels.size)}
        | ({} if key == "ours" else {"lead": paired_lead(is_right["ours"], is_right[key])})
        for key, said in shares.items()
    }


def _told_numbers(labels: NDArray[Any], answers: dict[str, Floats]) -> dict[str, Any]:
    ours = answers["ours"][:, 0]
    return {
        key: score_numbers(labels, said[:, 0]).to_json()
        | {"interval": mse_interval(labels, said[:, 0])}
        | ({} if key == "ours" else {"lead": paired_mse_lead(labels, ours, said[:, 0])})
        for key, said in answers.items()
    }


def _chief(question: Mended, labels: NDArray[Any], said: Floats) -> float:
    """Accuracy, or the mean squared error."""
    if question.classes:
        return float(np.mean(shares_of(said).argmax(axis=1) == labels))
    return float(np.mean((said[:, 0] - labels) ** 2))


def _in_cell(question: Mended, labels: NDArray[Any], public: Floats, ours: Floats) -> dict[str, Any] | None:
    if labels.size < FEWEST:
        return None
    return {
        "n": labels.size,
        "public": _chief(question, labels, public),
        "ours": _chief(question, labels, ours),
    }
