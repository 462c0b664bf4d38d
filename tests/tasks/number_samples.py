"""Pages of numbers for the tests: made-up trips, learned from for real, and those that a page has to bear."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import page_samples
from sklearn.tree import DecisionTreeRegressor

from ldptree.encoding import CategoricalFeature, Encoding, NumericFeature
from ldptree.families.fit_numbers import PublicLabels, fit_regression, fit_without_noise
from ldptree.mechanisms import number_mechanism_for
from ldptree.metrics.numbers import bins_of, mse_interval, paired_mse_lead, score_numbers
from ldptree.models.tree import NumberTree
from ldptree.oracles import Words
from ldptree.partition import grow_partition
from ldptree.partition.tree import Partition
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.stochastic_rounding import label_levels
from ldptree.protocol.totals import Totals
from tasks.number_report import number_facts, number_scores
from tasks.page.basic_facts import DiscrepancyFacts, InfluenceFacts, Span
from tasks.page.facts import NumberFacts
from tasks.report import _coins

AREAS = ("the Loop", "O'Hare", "Lake View", "Hyde Park", "elsewhere")
FEWER = 20_000
COLUMNS = ("trip_miles", "trip_minutes", "hour_of_day", "pickup_area", "tip_share")

NUMBER_SAMPLES = (
    "number_sample",
    "alike",
    "released",
    "by_paper",
    "by_laplace",
    "one_answer",
    "hostile_numbers",
    "many_numbers",
)
"""The functions here that make one, by name."""


def trips(n: int, seed: int, *, dearer: bool) -> tuple[np.ndarray, np.ndarray]:
    """n made-up trips as a raw matrix and their fares; where `dearer`, they cost 1.5 more, and 8 more from O'Hare."""
    rng = np.random.default_rng(seed)
    miles = rng.gamma(1.6, 2.6, n)
    minutes = 4 + 3.1 * miles + rng.gamma(2.0, 2.0, n)
    area = rng.choice(len(AREAS), n, p=[0.34, 0.16, 0.2, 0.1, 0.2])
    tips = np.where(rng.random(n) < 0.1, np.nan, rng.beta(2, 8, n))
    fare = 3.25 + 2.25 * miles + 0.28 * minutes + 14.0 * (area == 1) + rng.normal(0, 2.5, n)
    fare = fare + dearer * (1.5 + 6.5 * (area == 1))
    return np.column_stack([miles, minutes, rng.integers(0, 24, n), area, tips]), fare


@cache
def learned(
    *,
    n_private: int = 120_000,
    n_public: int = 2_000,
    epsilon: float = 3.0,
    mechanism: str = "auto",
    depth: int = 4,
    dearer: bool = True,
    columns: tuple[str, ...] = COLUMNS,
    target: str = "fare",
    areas: tuple[str, ...] = AREAS,
    seed: int = 0,
    **how: Any,
) -> tuple[NumberTree, Protocol, Totals, dict[str, Any]]:
    """A model of made-up trips, what was asked, what was received, and what evaluate would write of it."""
    (public, y_public), (private, y), (test, y_test) = (
        trips(n, seed + i, dearer=dearer and i > 0) for i, n in enumerate((n_public, n_private, 4_000))
    )
    encoding = Encoding(
        (
            *(NumericFeature.from_public(name, public[:, j]) for j, name in enumerate(columns[:3])),
            CategoricalFeature(columns[3], areas),
            NumericFeature.from_public(columns[4], public[:, 4], missing="level"),
        )
    )
    regrow = partial(
        grow_partition,
        kind="cart",
        depth=depth,
        n_classes=2,
        criterion="variance",
        min_samples_leaf=15,
    )
    X = encoding.encode(public)
    partition = regrow(X, y_public) if depth else Partition.single()
    ends = (0.0, 80.0)
    made = number_mechanism_for(mechanism, epsilon, partition.n_leaves, 4)
    protocol = Protocol(
        encoding=encoding,
        partition=partition,
        target=target,
        classes=label_levels(*ends, made.n_classes),
        positive=None,
        mechanism=made,
        epsilon=epsilon,
        simulation=True,
        numeric=True,
    )
    values = protocol.values(private, y, words=Words.seeded(np.random.SeedSequence(seed)))
    counts = np.bincount(values, minlength=made.n_values)
    raw = made.sample_totals(counts, np.random.default_rng(seed))
    totals = Totals.from_raw(raw, mechanism=made, n_private=n_private, depth=partition.max_depth)
    known = PublicLabels.of(partition, X, y_public, ends, regrow if depth else lambda *_: Partition.single())
    model = fit_regression(protocol, totals, known, **how)
    cells = partition.apply(encoding.encode(private))
    count = np.bincount(cells, minlength=partition.n_leaves)
    total = np.bincount(cells, weights=np.clip(y, *ends), minlength=partition.n_leaves)
    said = {
        "ours": model.predict(test),
        "public_only": fit_regression(protocol, totals, known, lam=np.inf).predict(test),
        "no_noise": fit_without_noise(protocol, count, total, known, **how).predict(test),
        "constant": np.full(y_test.size, y_public.mean()),
        "public_tree": _tree(X, y_public, encoding.encode(test)),
        "non_private": _tree(encoding.encode(private[:20_000]), y[:20_000], encoding.encode(test)),
    }
    scores: dict[str, Any] = {
        key: score_numbers(y_test, answer).to_json()
        | {"interval": mse_interval(y_test, answer)}
        | ({} if key == "ours" else {"lead": paired_mse_lead(y_test, said["ours"], answer)})
        for key, answer in said.items()
    }
    mse = scores["ours"]["mse"]
    content = {
        "kind": "regression",
        "scores": scores,
        "redraws": [mse * f for f in (0.98, 0.99, 1.0, 1.01, 1.04)],
        "bins": bins_of(y_test, said["ours"]),
        "duplicates": 0,
        "n_test": y_test.size,
        "n_test_all": y_test.size,
    }
    return model, protocol, totals, content


def _tree(X: np.ndarray, y: np.ndarray, test: np.ndarray) -> np.ndarray:
    return np.asarray(DecisionTreeRegressor(min_samples_leaf=30, random_state=0).fit(X, y).predict(test))


def _made(**changes: Any) -> NumberFacts:
    return facts_of(*learned(**changes))


def facts_of(
    model: NumberTree,
    protocol: Protocol,
    totals: Totals,
    content: dict[str, Any] | None,
    *,
    unit: str = "$",
    **common: Any,
) -> NumberFacts:
    """The facts of the page as report gathers them, with the rest of the run from the sample of classes."""
    like = page_samples.sample()
    force = protocol.mechanism.poisoning_bound(model.n_private)
    rows = {row.zone: row for row in like.rows}
    n_test = 0 if content is None else content["n_test"]
    of_run: dict[str, Any] = {
        name: getattr(like, name)
        for name in ("title", "noun", "nouns", "simulated_data", "created", "version", "checks", "seeded")
    }
    of_run |= {
        **_coins(protocol.mechanism),
        "name": "fares",
        "title": "Simulated Chicago taxi trips, fare",
        "command": "ldptree run configs/taxi_fare.toml --set privacy.epsilon=3",
        "estimator": "lpdt",
        "partition": "cart",
        "target": protocol.target,
        "public_rule": "payment_type = 'cash'",
        "public_columns": ("payment_type",),
        "steps": like.steps,
        "seconds": like.seconds,
        "cores": 2,
        "peak_rss_mb": 512.0,
        "config": like.config,
        "versions": like.versions,
        "digests": {"protocol": protocol.digest, "model": model.digest},
        "epsilon": protocol.epsilon,
        "epsilon_exact": protocol.epsilon_exact,
        "epsilon_spent": protocol.epsilon,
        "largest_spend": protocol.epsilon,
        "n_questions": 1,
        "k": protocol.k,
        "influence": InfluenceFacts(
            one=force.one, one_percent=force.one_percent, at_once=force.totals_at_once
        ),
        "lam": str(model.lam),
        "prune": model.prune,
        "n_private": model.n_private,
        "n_public": model.n_public,
        "n_test": n_test,
        "n_features": model.encoding.n_encoded,
        "n_cells": protocol.n_cells,
        "depth": model.partition.max_depth,
        "rows": (
            replace(rows["public"], kept=model.n_public, read=model.n_public, quarantined=0),
            replace(rows["private"], kept=model.n_private, held_out=n_test),
        ),
    }
    spread = None
    if content is not None:
        ends = sorted(content["redraws"])
        spread = Span(low=ends[0], high=ends[-1])
    scored = {} if content is None else number_scores(content, {}, spread)
    return number_facts(of_run | common, model, protocol, totals, scored, names={}, unit=unit)


def number_sample() -> NumberFacts:
    """A likely run: 120,000 made-up trips at epsilon 3, dearer than the public ones, most of all from the airport."""
    return _made()


def alike() -> NumberFacts:
    """Private trips cost what public ones do."""
    return _made(n_private=FEWER, dearer=False, epsilon=1.0)


def released() -> NumberFacts:
    """A release: nothing was held back, noise from the operating system."""
    model, protocol, totals, _ = learned()
    return facts_of(model, protocol, totals, None, seeded=False)


def by_paper() -> NumberFacts:
    """The paper's report and its estimator."""
    return _made(
        n_private=FEWER,
        mechanism="randomized_response",
        lam=0.0,
        prune="none",
        rule="ratio",
        depth=3,
        epsilon=4.0,
    )


def by_laplace() -> NumberFacts:
    """The simulation device."""
    return _made(n_private=FEWER, mechanism="laplace", depth=3, epsilon=4.0)


def one_answer() -> NumberFacts:
    """No split was worth it."""
    return _made(n_private=FEWER, depth=0)


def many_numbers() -> NumberFacts:
    """A tree of many cells, with more noise than people."""
    return _made(n_private=FEWER, depth=9, epsilon=0.5, n_public=6_000)


def hostile_numbers() -> NumberFacts:
    """Names that try to be markup, wherever the data have a say."""
    evil = page_samples.HOSTILE
    model, protocol, totals, content = learned(
        n_private=FEWER,
        depth=3,
        columns=(*(f"{name} {evil}" for name in COLUMNS[:4]), "tips"),
        target=evil,
        areas=(evil, *AREAS[1:]),
    )
    facts = facts_of(
        model,
        protocol,
        totals,
        content,
        unit=evil,
        name=evil,
        title=evil,
        noun=evil,
        nouns=evil,
        where=f"company = '{evil}'",
        public_rule=evil,
        public_columns=(evil,),
        command=evil,
        config={evil: evil},
        warnings=(evil,),
    )
    assert facts.ours is not None
    return replace(facts, ours=replace(facts.ours, name=evil, note=evil))


def found(mean: float, sd: float, *, difference: float, difference_sd: float) -> NumberFacts:
    """The sample with this mean difference, and this difference in its largest cell alone."""
    facts = number_sample()
    cells = sorted(facts.cells, key=lambda cell: -cell.share_private)
    moved = [replace(cell, difference=mean, difference_sd=1.0 + abs(mean)) for cell in cells]
    moved[0] = replace(moved[0], difference=difference, difference_sd=difference_sd)
    varies = any(abs(a.difference - b.difference) > 1e-9 for a, b in pairwise(moved))
    return replace(
        facts,
        cells=tuple(moved),
        discrepancy=DiscrepancyFacts(is_found=True, varies=varies, mean=mean, sd=sd),
    )
