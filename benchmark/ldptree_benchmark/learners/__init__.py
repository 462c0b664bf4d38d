"""Every learner that a suite may name, with its title, the rows that it reads, and its answers for held-back rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ldptree.baselines import BASELINES
from ldptree.errors import ConfigError, LdptreeError
from ldptree_benchmark.learners.answers import (
    Answers,
    Trial,
    baseline_answer,
    estimator_answer,
    rival_answer,
    tree_answer,
)
from ldptree_benchmark.learners.correction import answer_corrected, answer_publicly, correct_truth
from ldptree_benchmark.learners.lpct_printed import answer_printed, answer_printed_grid, reads_with_switches
from ldptree_benchmark.learners.public_features import explain_histoftree, masked_answer
from ldptree_benchmark.learners.statements import Stated
from ldptree_benchmark.rivals import CLASSIFIERS, PUBLIC_LEARNERS, REGRESSORS
from ldptree_benchmark.rows import PRIVATE, PUBLIC
from ldptree_benchmark.suite import Method, check_one_of

Reads = Literal["reports", "public rows", "private rows", "reports beyond epsilon"]
"""Rows that a method learns from, "private rows" without noise, "reports beyond epsilon" more than it allows."""


@dataclass(frozen=True)
class Learner:
    """A way to learn.

    Attributes:
        title: what a table calls it.
        reads: reports and public rows, public rows alone, or private rows without any privacy.
        label: what it can learn; None: both.
        answer: classes or numbers for the held-back rows, [n_test], or these and what else was measured.
        answer_grid: of one that answers for many settings at once faster than one after the other.
        explain: of one that can tell what the error of its answers is made of.
        needs_mask: whether it has to be told who protects which features.
        reads_with: what it reads with some settings, where that is something else.
    """

    title: str
    reads: Reads
    label: Literal["class", "number"] | None
    answer: Callable[[Trial], Answers | Stated]
    answer_grid: Callable[[Trial, Sequence[Mapping[str, Any]]], Iterator[Answers]] | None = None
    explain: Callable[[Trial], Stated] | None = None
    needs_mask: bool = False
    reads_with: Callable[[Mapping[str, Any]], Reads | None] = lambda _: None

    def answer_each(
        self, trial: Trial, settings: Sequence[Mapping[str, Any]], *, with_parts: bool = False
    ) -> Iterator[Stated | LdptreeError]:
        """Answers with each of these settings besides those of the trial, or why there are none."""
        if self.answer_grid is not None:
            yield from (Stated(answers) for answers in self.answer_grid(trial, settings))
            return
        for setting in settings:
            own = replace(trial, settings={**trial.settings, **setting})
            try:
                answer = (self.explain if with_parts and self.explain else self.answer)(own)
                yield answer if isinstance(answer, Stated) else Stated(answer)
            except LdptreeError as fault:
                yield fault
            except TypeError as fault:
                unknown = re.search(r"unexpected keyword argument '(\w+)'", str(fault))
                if unknown is None or unknown[1] not in own.settings:
                    raise
                yield ConfigError(f"{self.title}: {unknown[1]} is no setting of this learner")

    @property
    def is_private(self) -> bool:
        """Whether people report, so that an epsilon matters."""
        return self.reads == "reports"


LEARNERS: dict[str, Learner] = {
    "correction": Learner(
        "corrected public model",
        "reports",
        None,
        answer_corrected,
    ),
    "correction_of_truth": Learner("corrected truth", "reports", "number", correct_truth),
    "public_model": Learner("public model alone", "public rows", None, answer_publicly),
    "lpct": Learner("LPCT", "reports", "class", estimator_answer("LPCTClassifier")),
    "lpct_printed": Learner(
        "LPCT as printed",
        "reports",
        "class",
        answer_printed,
        answer_printed_grid,
        reads_with=reads_with_switches,
    ),
    "lpdt": Learner("LPDT", "reports", "number", estimator_answer("LPDTRegressor")),
    "phist": Learner("PHIST", "reports", None, rival_answer("phist")),
    "pglm": Learner("PGLM, (eps, delta)", "reports", "class", rival_answer("pglm")),
    "psgd_linear": Learner("PSGD-L", "reports", "class", rival_answer("psgd_linear")),
    "psgd_neural": Learner("PSGD-N", "reports", "class", rival_answer("psgd_neural")),
    "ct_q": Learner("CT-Q, full tree on public rows", "public rows", "class", tree_answer(PUBLIC)),
    "ct_w": Learner(
        "CT-W, full tree on all rows, no privacy", "private rows", "class", tree_answer(PUBLIC, PRIVATE)
    ),
    "histoftree": Learner(
        "HistOfTree",
        "reports",
        "number",
        masked_answer("HistOfTreeRegressor"),
        explain=explain_histoftree,
        needs_mask=True,
    ),
    "public_features": Learner(
        "public features",
        "reports",
        None,
        masked_answer("PublicFeatureRegressor", "PublicFeatureClassifier"),
        needs_mask=True,
    ),
    "par_dt": Learner("ParDT", "reports", "number", rival_answer("par_dt", reads_mask=True), needs_mask=True),
    "krr": Learner("KRR", "reports", "number", rival_answer("krr", reads_mask=True), needs_mask=True),
    "label_dt": Learner("LabelDT", "reports", "number", rival_answer("label_dt")),
    "hist": Learner("Hist", "reports", "number", rival_answer("hist")),
    "deconv": Learner("DECONV", "reports", "number", rival_answer("deconv")),
    "plain_tree": Learner("plain tree, no privacy", "private rows", "number", tree_answer(PRIVATE)),
    **{
        name: Learner(
            baseline.title,
            "public rows" if baseline.reads == "public" else "private rows",
            baseline.label,
            baseline_answer(name),
        )
        for name, baseline in {**BASELINES, **PUBLIC_LEARNERS}.items()
    },
}
"""By the name that a suite has for it."""


def reads_of(method: Method) -> Reads:
    """What a method of a suite learns from."""
    learner = LEARNERS[method.learner]
    return learner.reads_with(method.settings) or learner.reads


def list_modules(name: str) -> frozenset[str]:
    """The modules that a learner is defined in."""
    learner = LEARNERS[name]
    answers = (learner.answer, learner.answer_grid, learner.explain)
    modules = {answer.__module__ for answer in answers if answer is not None}
    modules |= {kinds.module_of(name) for kinds in (CLASSIFIERS, REGRESSORS) if name in kinds}
    baselines = {**BASELINES, **PUBLIC_LEARNERS}
    if name in baselines:
        modules.add(baselines[name].fit_predict.__module__)
    return frozenset(modules)


def check_method(name: str, method: Method, *, is_number: bool) -> None:
    """Raise ConfigError if the learner is unknown, or cannot learn such a label, or tell its error's parts."""
    try:
        learner = learner_of(method.learner, is_number=is_number)
    except ConfigError as fault:
        raise ConfigError(f"methods.{name}.{fault}") from None
    if method.parts != "none" and learner.explain is None:
        able = ", ".join(key for key, other in LEARNERS.items() if other.explain is not None)
        raise ConfigError(
            f"methods.{name}.parts: {method.learner} cannot tell what its error is made of; these can: {able}"
        )


def learner_of(name: str, *, is_number: bool) -> Learner:
    """A learner that can learn such a label. Raises ConfigError."""
    try:
        check_one_of(name, LEARNERS, "learner", "learner")
    except ValueError as fault:
        raise ConfigError(str(fault)) from None
    learner = LEARNERS[name]
    label = "number" if is_number else "class"
    if learner.label not in (None, label):
        raise ConfigError(
            f"learner: {name} learns a {learner.label}, and this suite's labels are "
            f"{'numbers' if is_number else 'classes'}; take one of "
            f"{', '.join(key for key, other in LEARNERS.items() if other.label in (None, label))}"
        )
    return learner
