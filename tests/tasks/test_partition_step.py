"""The published protocol: grown on public rows, whole, and all that the curator's later steps need."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import polars as pl
import pytest
from chain import Chain, fares, fares_config, inputs_of, published, rides, rides_config
from families import THREE, paid_in_three_ways

from ldptree.estimators import CorrectionClassifier, CorrectionRegressor, LPCTClassifier, LPDTRegressor
from ldptree.families.settings import PaperOptions
from ldptree.mechanisms import CHOICES, mechanism_for
from storage.store import Store
from tasks.artifacts import read_protocol, read_scaled
from tasks.learning import partition, read_learning


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


ESTIMATORS = {
    "lpct": LPCTClassifier,
    "lpdt": LPDTRegressor,
    "correction": CorrectionClassifier,
    "correction of three classes": CorrectionClassifier,
    "correction of a number": CorrectionRegressor,
}
ONCE = PaperOptions(termination=False)
"""Algorithm 2 with one question, whose tree both have."""
DEEP = {"depth": 6}
ALIKE = [
    # the label's family, its settings, how many rows are public
    *(("lpct", DEEP, n) for n in (20, 200)),
    *(("lpct", DEEP | {"partition": "max-edge"}, n) for n in (20, 200)),
    *(("lpct", DEEP | {"prune": "paper", "paper": ONCE}, n) for n in (20, 200)),
    ("lpdt", DEEP, 20),
    # deep as public rows, or as private ones carry
    *(("lpdt", {"depth": "auto", "min_samples_leaf": floor}, 200) for floor in (5, 60)),
    # of boosting no tree of reports can be cut
    *(("correction", DEEP | {"base": "boosting"}, n) for n in (20, 200)),
    ("correction", {"depth": 2, "base": "forest"}, 200),
    ("correction", {"depth": 2, "partition": "max-edge", "base": "tree", "label_levels": 4}, 200),
    ("correction of a number", {"depth": "auto", "base": "tree"}, 200),
    ("correction of a number", {"depth": 1, "base": "boosting", "residual_range": 5.0}, 200),
    ("correction of three classes", {"depth": 2, "base": "tree"}, 200),
]


@pytest.mark.parametrize(("family", "settings", "n_public"), ALIKE)
def test_a_run_asks_and_learns_what_the_estimator_does_with_the_same_rows(
    tmp_path, family, settings, n_public
):
    """Of the estimator's totals the run's family makes the estimator's model, to the last digit."""
    n, is_number = 900, family in ("lpdt", "correction of a number")
    zone = np.where(np.arange(n) < n_public, "open", "closed")
    three = family == "correction of three classes"
    columns = {"zone": zone} | (paid_in_three_ways(n, 2) if three else {})
    path = (fares if is_number else rides)(tmp_path / "a.csv", n, 2, **columns)
    name = family.partition(" ")[0]
    once = {"questions": 1} if name == "correction" else {}
    written = {key: asdict(value) if key == "paper" else value for key, value in settings.items()}
    run = Chain(
        Store(tmp_path / "work"),
        (fares_config if is_number else rides_config)(
            path,
            model={"estimator": name} | once | written,
            dataset={"drop": ["person", "firm"], "fill": "drop"} | (THREE if three else {}),
            evaluate=False,
        ),
    )
    rows = pl.read_csv(path)
    X, y = rows.select("miles", "hour").to_numpy().astype(float), rows["paid"].to_numpy()
    if (
        not is_number and not three
    ):  # a class's name decides which is the second: the positive one is called last
        y = np.where(y == "card", "z", "a")
    alone = ESTIMATORS[family](2.0, random_state=1, **once | settings).fit(X, y, public=zone == "open")
    asked, theirs = published(run), getattr(alone, "protocols_", None) or (alone.protocol_,)
    assert asked.n_cells > 1 or settings["depth"] != DEEP["depth"]
    assert asked.partition.to_json() == theirs[0].partition.to_json()
    assert asked.mechanism == theirs[0].mechanism
    assert is_number or name == "lpct" or asked.classes == theirs[0].classes
    if name == "correction":
        assert asked.base.ensemble.to_json() == theirs[0].base.ensemble.to_json()
    call = inputs_of(run, "model")
    learning = read_learning(run.store, call["transcript"], call["asking"], reading=call["reading"])
    (turn,) = learning.transcript
    totals = alone.totals_ if isinstance(alone.totals_, tuple) else (alone.totals_,)
    model = learning.family.fit(learning.rows, [replace(turn, totals=totals)])
    for one, other in (
        [(model.corrections, alone.corrections_), (model, alone.model_)]
        if name == "correction"
        else [(model, alone.model_)]
    ):
        of_arrays = [name for name, value in vars(one).items() if isinstance(value, np.ndarray)]
        assert of_arrays
        for name in of_arrays:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def test_a_campaigns_published_protocol_is_taken_as_it_is(base):
    record, protocol = grown(base, frozen=base.published["question"], depth=1, epsilon=9.0)
    assert protocol.digest == base.published.facts["digest"]
    files = [base.store.file(r["question"], "protocol.json") for r in (record, base.published)]
    assert files[0].read_bytes() == files[1].read_bytes()
