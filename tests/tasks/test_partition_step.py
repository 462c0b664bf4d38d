"""The published protocol: grown on public rows, whole, and all that the curator's later steps need."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import polars as pl
import pytest
from chain import Chain, fares, fares_config, inputs_of, rides, rides_config

from ldptree.estimators import CorrectionClassifier, LPCTClassifier, LPDTRegressor
from ldptree.families.settings import PaperOptions
from ldptree.mechanisms import CHOICES, mechanism_for
from storage.store import Store
from tasks.artifacts import read_protocol, read_scaled
from tasks.learning import partition


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A finished run on 600 rides, to be read and copied."""
    folder = tmp_path_factory.mktemp("rides")
    chain = Chain(Store(folder / "work"), rides_config(rides(folder / "a.csv", 600, 1)))
    assert chain.model
    return chain


def grown(base, frozen=None, **changes):
    call = inputs_of(base, "published") | {"frozen": frozen}
    settings = {key: changes.pop(key) for key in [*changes] if key in call["asking"].settings}
    update = changes | {"settings": call["asking"].settings | settings}
    record = partition.fn(base.store, **call | {"asking": call["asking"].model_copy(update=update)})
    return record, read_protocol(base.store, record["question"])


@pytest.mark.parametrize("kind", ["cart", "max-edge"])
@pytest.mark.parametrize("depth", [0, 1, 4])
def test_a_given_depth_is_not_passed(base, kind, depth):
    record, protocol = grown(base, partition=kind, depth=depth)
    assert protocol.partition.max_depth <= depth
    assert protocol.n_cells <= 2**depth
    assert (record.facts["cells"], record.facts["depth"]) == (protocol.n_cells, protocol.partition.max_depth)


def test_what_is_published_says_what_was_promised(base):
    record, protocol = grown(base, epsilon=0.7, outside="drop", holder="person", campaign="rides")
    assert (protocol.epsilon, protocol.outside, protocol.holder) == (0.7, "drop", "person")
    assert (protocol.campaign, protocol.target, protocol.classes) == ("rides", "paid", ("cash", "card"))
    assert protocol.positive == "card"
    assert protocol.epsilon_exact <= 0.7
    assert record.facts["epsilon_exact"] == protocol.epsilon_exact
    assert record.facts["digest"] == protocol.digest
    assert grown(base, has_positive=False)[1].positive is None


@pytest.mark.parametrize("mechanism", CHOICES)
def test_the_mechanism_is_the_one_asked_for_or_the_quieter_one(base, mechanism):
    for epsilon, depth in ((0.5, 4), (6.0, 2)):
        _, protocol = grown(base, mechanism=mechanism, epsilon=epsilon, depth=depth)
        assert protocol.mechanism == mechanism_for(mechanism, epsilon, protocol.n_cells, 2)


def test_more_holders_and_budget_allow_a_deeper_tree(base):
    depths = [
        grown(base, depth="auto", n_private=n, epsilon=e)[1].partition.max_depth
        for n, e in ((100, 0.5), (10_000, 1.0), (10**8, 4.0))
    ]
    assert depths == sorted(depths)
    assert depths[0] < depths[2]


def test_the_tree_has_the_floor_of_rows_asked_for(base):
    _, protocol = grown(base, depth=6, min_samples_leaf=20)
    X, _ = read_scaled(base.store, base.scaled["scaled"])
    assert np.bincount(protocol.partition.apply(X)).min() >= 20


ONCE = PaperOptions(termination=False)
"""Algorithm 2 with one question, whose tree both have."""


@pytest.mark.parametrize("n_public", [20, 200])
@pytest.mark.parametrize(
    ("model", "alone"),
    [
        ({}, LPCTClassifier(2.0, depth=6, random_state=1)),
        ({"partition": "max-edge"}, LPCTClassifier(2.0, depth=6, partition="max-edge", random_state=1)),
        (
            {"prune": "paper", "paper": asdict(ONCE)},
            LPCTClassifier(2.0, depth=6, prune="paper", paper=ONCE, random_state=1),
        ),
        ({"estimator": "lpdt"}, LPDTRegressor(2.0, depth=6, random_state=1)),
        (
            # of whose base no tree of reports can be cut
            {"estimator": "correction", "base": "boosting", "questions": 1},
            CorrectionClassifier(2.0, depth=6, base="boosting", questions=1, random_state=1),
        ),
    ],
)
def test_few_public_rows_or_many_a_run_and_the_estimator_have_the_same_partition(
    tmp_path, model, alone, n_public
):
    is_number = isinstance(alone, LPDTRegressor)
    zone = np.where(np.arange(900) < n_public, "open", "closed")
    path = (fares if is_number else rides)(tmp_path / "a.csv", 900, 1, zone=zone)
    plain: dict[str, Any] = {
        "model": {"depth": 6} | model,
        "dataset": {"drop": ["person", "firm"]},
        "evaluate": False,
    }
    make = fares_config if is_number else rides_config
    run = Chain(Store(tmp_path / "work"), make(path, **plain))
    rows = pl.read_csv(path)
    X, y = rows.select("miles", "hour").to_numpy().astype(float), rows["paid"].to_numpy()
    alone.fit(X, y if is_number else y == "card", public=zone == "open")
    asked = read_protocol(run.store, run.published["question"])
    tree = alone.plan_.partition if isinstance(alone, CorrectionClassifier) else alone.partition_
    assert asked.n_cells > 1
    assert asked.partition.to_json() == tree.to_json()


def test_the_same_public_rows_give_the_same_protocol_in_any_work_folder(base, tmp_path):
    path = base.store.files(base.raw)[0]
    other = Chain(Store(tmp_path / "work"), rides_config(path))
    assert other.published["question"].digest == base.published["question"].digest


def test_a_campaigns_published_protocol_is_taken_as_it_is(base):
    record, protocol = grown(base, frozen=base.published["question"], depth=1, epsilon=9.0)
    assert protocol.digest == base.published.facts["digest"]
    files = [base.store.file(r["question"], "protocol.json") for r in (record, base.published)]
    assert files[0].read_bytes() == files[1].read_bytes()
