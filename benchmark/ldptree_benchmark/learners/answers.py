"""How each learner answers for held-back rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.baselines import BASELINES, PUBLIC_ROWS
from ldptree.errors import ConfigError
from ldptree_benchmark.learners.statements import Stated, check_statements
from ldptree_benchmark.rivals import CLASSIFIERS, PUBLIC_LEARNERS, REGRESSORS
from ldptree_benchmark.rows import PRIVATE, PUBLIC, TEST, LabelledRows

Answers = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Trial:
    """One repetition, with split rows, the epsilon of each report (or None), coins, and the learner's settings."""

    rows: LabelledRows
    epsilon: float | None
    seed: int
    settings: Mapping[str, Any]


def feature_range(rows: LabelledRows, wanted: Any) -> Any:
    """Return (low, high), numbers or one per feature, of a setting, which is a range or its name. "known" is that of
    the law, "private rows" theirs, which no product may look at. Raises ConfigError if the set has no known range.
    """
    if wanted == "known":
        if rows.feature_range is None:
            raise ConfigError('feature_range = "known": nothing but a law knows it; give two numbers')
        return rows.feature_range
    if wanted == "private rows":
        private = rows.of(PRIVATE).X
        low, high = private.min(axis=0), private.max(axis=0)
        return low, np.where(high > low, high, low + 1.0)
    return wanted


def estimator_answer(name: str) -> Callable[[Trial], Stated]:
    """An estimator of ours by its name."""

    def answer(trial: Trial) -> Stated:
        from ldptree import estimators

        rows = trial.rows
        kind = getattr(estimators, name)
        learn = rows.part != TEST
        is_public = (rows.part == PUBLIC)[learn]
        settings = {**({} if is_public.any() else known_ranges(rows)), **trial.settings}
        if "feature_range" in settings:
            settings["feature_range"] = feature_range(rows, settings["feature_range"])
        if name == "LPDTRegressor" and rows.label_range is not None:
            settings.setdefault("label_range", rows.label_range)
        model = kind(trial.epsilon, random_state=trial.seed, **settings)
        model.fit(rows.X[learn], rows.y[learn], public=is_public if is_public.any() else None)
        answers = np.asarray(model.predict(rows.X[rows.part == TEST]))
        return Stated(answers, check_statements(model.model_, rows))

    return answer


def known_ranges(rows: LabelledRows) -> dict[str, Any]:
    """Return an estimator's arguments for ranges, which are those known before any row is seen, or else of public rows.

    Raises ConfigError: a range is not known, and there are no public rows.
    """
    public = rows.of(PUBLIC)
    if not public.n and (rows.feature_range is None or (not rows.n_classes and rows.label_range is None)):
        raise ConfigError(
            "no range of features and labels is known without public rows; leave some rows public, or set ranges"
        )
    low, high = rows.feature_range or (public.X.min(axis=0), public.X.max(axis=0))
    known: dict[str, Any] = {"feature_range": (low, np.where(np.greater(high, low), high, np.add(low, 1.0)))}
    if not rows.n_classes:
        known["label_range"] = rows.label_range or (float(public.y.min()), float(public.y.max()))
    return known


def rival_answer(name: str, *, reads_mask: bool = False) -> Callable[[Trial], Answers]:
    """Return the answers of a rival of the papers. For classes it is fitted to public and private rows. For numbers it
    knows ranges and is fitted to private rows and, if it `reads_mask`, to who protects what.
    """

    def answer(trial: Trial) -> Answers:
        rows = trial.rows
        if rows.n_classes:
            learn, rival = rows.part != TEST, CLASSIFIERS[name]
            model = rival(trial.epsilon, random_state=trial.seed, **trial.settings)
            model.fit(rows.X[learn], rows.y[learn], public=(rows.part == PUBLIC)[learn])
            return np.asarray(model.predict(rows.X[rows.part == TEST]))
        private, test = rows.of(PRIVATE), rows.of(TEST)
        known = {**known_ranges(rows), **trial.settings}
        model = REGRESSORS[name](trial.epsilon, random_state=trial.seed, **known)
        more = {"protects": private.protects} if reads_mask else {}
        return np.asarray(model.fit(private.X, private.y, **more).predict(test.X))

    return answer


def tree_answer(*parts: int) -> Callable[[Trial], Answers]:
    """Return the answers of the papers' CT and DT, scikit-learn's tree without a limit, on these parts."""

    def answer(trial: Trial) -> Answers:
        from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

        rows = trial.rows
        learn = np.isin(rows.part, parts)
        kind = DecisionTreeClassifier if rows.n_classes else DecisionTreeRegressor
        model = kind(random_state=trial.seed, **trial.settings)
        return np.asarray(model.fit(rows.X[learn], rows.y[learn]).predict(rows.X[rows.part == TEST]))

    return answer


def baseline_answer(name: str) -> Callable[[Trial], Answers]:
    """Return the answers of a run's baseline, from public rows alone or private rows without any privacy."""

    def answer(trial: Trial) -> Answers:
        baseline = {**BASELINES, **PUBLIC_LEARNERS}[name]
        learn = trial.rows.of(PUBLIC if baseline.reads == "public" else PRIVATE)
        predicted = baseline.fit_predict(
            learn.X.astype(np.float32),
            learn.y,
            trial.rows.of(TEST).X.astype(np.float32),
            n_classes=trial.rows.n_classes,
            max_rows=baseline.max_rows or PUBLIC_ROWS,
            seed=trial.seed,
            **trial.settings,
        )
        return predicted.argmax(axis=1) if trial.rows.n_classes else predicted

    return answer
