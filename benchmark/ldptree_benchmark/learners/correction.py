"""Answers of a corrected public model for held-back rows, by the parts of its estimator, so that a public model is
fitted once for all epsilons.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

import numpy as np

from ldptree.errors import ConfigError
from ldptree.estimators.holders import encoding_of, respond_with
from ldptree.families.correction import Correction, PublicModelled
from ldptree.families.family import PublicRows, converse
from ldptree.protocol.ledger import Ledger
from ldptree_benchmark.learners.answers import Trial, estimator_answer
from ldptree_benchmark.learners.statements import Stated, check_statements
from ldptree_benchmark.rows import PRIVATE, PUBLIC, TEST

OF_REPORTS = ("questions", "depth", "mechanism", "n_levels")
"""Settings that no public model depends on."""
KEPT = 8
"""Public models that are kept, enough for the cells that are computed side by side, and some before."""


@dataclass
class _Entry:
    lock: Lock = field(default_factory=Lock)
    view: PublicModelled | None = None
    seconds: float = 0.0


class _PublicModels:
    """Fitted ones, by a digest of their public rows and settings."""

    def __init__(self) -> None:
        self.lock, self.entries = Lock(), OrderedDict[str, _Entry]()

    def take(self, trial: Trial) -> tuple[PublicModelled, float]:
        """The view of the public rows, its model fitted, and the seconds which that took before now."""
        public, began = trial.rows.of(PUBLIC), time.monotonic()
        settings = {key: value for key, value in trial.settings.items() if key not in OF_REPORTS}
        key = hashlib.sha256(
            public.X.tobytes() + public.y.tobytes() + repr(sorted(settings.items())).encode()
        )
        with self.lock:
            entry = self.entries.setdefault(key.hexdigest(), _Entry())
            while len(self.entries) > KEPT:
                self.entries.popitem(last=False)
        with entry.lock:
            if entry.view is None:
                entry.view = _fit(trial, settings)
                entry.seconds = time.monotonic() - began
        return entry.view, max(entry.seconds - (time.monotonic() - began), 0.0)


def _fit(trial: Trial, settings: dict[str, Any]) -> PublicModelled:
    public = trial.rows.of(PUBLIC)
    encoding = encoding_of(public.X, None, None)
    rows = PublicRows(
        encoding=encoding, X=encoding.encode(public.X), y=public.y, label=tuple(range(public.n_classes)), n_private=0
    )  # fmt: skip
    view = Correction(epsilon=1.0, heading={"target": "label"}, **settings).summarize(rows)
    assert view.evidence is not None  # fitted when it is asked for
    return view


_MODELS = _PublicModels()


def answer_corrected(trial: Trial) -> Stated:
    """A public model, corrected by one report of every private row."""
    view, seconds = _MODELS.take(trial)
    private, epsilon = trial.rows.of(PRIVATE), trial.epsilon or 0.0
    family = Correction(epsilon=epsilon, heading={"target": "label"}, **trial.settings)
    coins = np.array([trial.seed, 0, 0, 0])
    respond = respond_with(private.X, private.y.__getitem__, ledger=Ledger(cap=epsilon), seeds=coins)
    model, _ = converse(family, family.expect(view, private.n), respond)
    return Stated(
        model.predict(trial.rows.of(TEST).X), check_statements(model, trial.rows), seconds_before=seconds
    )


def answer_publicly(trial: Trial) -> Stated:
    """The public model that a correction corrects, alone."""
    view, seconds = _MODELS.take(trial)
    family = Correction(epsilon=1.0, heading={"target": "label"}, **trial.settings)
    X = view.rows.encoding.encode(trial.rows.of(TEST).X)
    return Stated(family.predict_publicly(view, X), seconds_before=seconds)


def correct_truth(trial: Trial) -> Stated:
    """Correct a public model that is right, a tree that has a law's few expected labels and is fitted on them."""
    from sklearn.tree import DecisionTreeRegressor

    rows = trial.rows
    if rows.expected is None:
        raise ConfigError("correction_of_truth: only of a law is it known what labels are expected")
    truth = DecisionTreeRegressor(max_leaf_nodes=len(np.unique(rows.expected)), random_state=0)
    base = truth.fit(rows.X, rows.expected)
    return estimator_answer("CorrectionRegressor")(replace(trial, settings={**trial.settings, "base": base}))
