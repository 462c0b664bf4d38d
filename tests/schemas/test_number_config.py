"""What a configuration says of a label that is a number: defaults, which keys go together, and what is refused at once."""

from __future__ import annotations

import math

import pytest
from chain import rides_config

from ldptree.errors import ConfigError
from ldptree.estimators import LPCTClassifier, LPDTRegressor
from schemas.config import load, parse


def config(**changes):
    content = {
        "name": "fares",
        "dataset": {"name": "own", "path": ["fares.csv"], "target": "fare", "public": "random 0.1"},
        "model": {"estimator": "lpdt"},
        "privacy": {"epsilon": 1.0},
    }
    return parse(
        {key: content.get(key, {}) | changes.get(key, {}) for key in content | changes if key != "name"}
        | {"name": "fares"}
    )


@pytest.mark.parametrize(("estimator", "of"), [("lpct", LPCTClassifier), ("lpdt", LPDTRegressor)])
def test_the_defaults_are_those_of_the_estimator(estimator, of):
    model, other = config(model={"estimator": estimator}).model, of(epsilon=1.0)
    for key in (
        "partition",
        "depth",
        "lam",
        "prune",
        "rule",
        *(("rho", "label_range", "min_samples_leaf") if estimator == "lpdt" else ()),
    ):
        assert getattr(model.settings, key) == getattr(other, key)
    assert model.settings.min_samples_leaf == "auto"
    assert config(model={"estimator": estimator}).is_numeric == (estimator == "lpdt")


@pytest.mark.parametrize("estimator", ["lpct", "lpdt"])
@pytest.mark.parametrize("fewest", ["auto", 1, 7])
def test_how_few_public_rows_a_cell_may_have_is_a_number_or_found_by_the_run(estimator, fewest):
    said = config(model={"estimator": estimator, "min_samples_leaf": fewest}).model
    assert said.settings.min_samples_leaf == fewest
    assert said.plain["min_samples_leaf"] == fewest


def test_a_configuration_of_classes_is_known_by_the_keys_it_always_had():
    """What a step is called with decides where its artifact lies: new keys would move every old one."""
    plain = rides_config("a.csv").model_dump(mode="json")
    assert "unit" not in plain["dataset"]
    assert list(plain["model"]) == [
        "estimator", "partition", "depth", "min_samples_leaf", "lam", "prune", "rule", "paper",
    ]  # fmt: skip
    assert config().model_dump(mode="json")["model"].keys() == {
        *plain["model"], "rho", "label_range",
    } - {"paper"}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": {"label_range": [5, 1]}}, r"model\.label_range: low must be below high, got \(5, 1\); swap them"),
        ({"model": {"label_range": [3, 3]}}, r"model\.label_range: low must be below high"),
        ({"model": {"label_range": [0]}}, r"model\.label_range: must be \(low, high\), two numbers, got \[0\]"),
        ({"model": {"label_range": "0-10"}}, r"model\.label_range: must be \(low, high\), two numbers"),
        ({"model": {"label_range": [0, True]}}, r"model\.label_range: must be \(low, high\), two finite numbers"),
        ({"model": {"label_range": [0, math.inf]}}, r"model\.label_range: must be \(low, high\), two finite numbers"),
        ({"model": {"rho": 1.0}}, r"model\.rho: .*above 0 and below 1, got 1\.0"),
        ({"model": {"rho": 0}}, r"model\.rho: .*above 0 and below 1"),
        ({"model": {"prune": "variance"}}, r"model\.prune: must be 'smooth', 'fallback' or 'none', got 'variance'"),
        ({"model": {"prune": "paper"}}, r"model\.prune: "),
        ({"model": {"paper": {"termination": False}}}, r'model\.paper: is for estimator = "lpct"'),
        ({"model": {"estimator": "lpct", "rho": 0.3}}, r'model\.rho: is for estimator = "lpdt" or "histoftree"'),
        ({"model": {"estimator": "lpct", "label_range": [0, 1]}}, r"model\.label_range: is for "),
        ({"model": {"estimator": "lpct", "prune": "fallback"}}, r"model\.prune: must be 'smooth', .*, got 'fallback'"),
        ({"model": {"rule": "ratio"}}, r'model\.rule: .*prune = "none" or "fallback"'),
        ({"model": {"rule": "ratio", "lam": 0.0, "prune": "smooth"}}, r"model\.rule: "),
        ({"dataset": {"positive": 1}}, r'dataset\.positive: is for a label of classes, and model\.estimator = "lpdt"'),
        ({"dataset": {"classes": [0, 1]}}, r"dataset\.classes: is for a label of classes"),
        ({"dataset": {"types": {"fare": "text"}}}, r'dataset\.types: "fare", the target, is declared text.*"number"'),
        ({"dataset": {"types": {"fare": "boolean"}}}, r"dataset\.types: "),
        ({"dataset": {"levels": {"fare": [1, 2]}}}, r'dataset\.levels: "fare" is the target'),
        ({"dataset": {"unit": 3}}, r"dataset\.unit: "),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused_with_the_path_of_its_key(changes, said):
    with pytest.raises(ConfigError, match=said) as fault:
        config(**changes)
    assert fault.value.exit_code == 2


def test_every_fault_of_a_table_is_told_at_once():
    with pytest.raises(ConfigError, match="3 problems") as fault:
        config(model={"estimator": "lpct", "rho": 0.2, "label_range": [0, 1], "prune": "fallback"})
    lines = str(fault.value).splitlines()[1:]
    assert [line.split(":")[0].strip() for line in lines] == ["model.label_range", "model.prune", "model.rho"]


@pytest.mark.parametrize("kind", ["number", "integer"])
def test_a_target_may_be_declared_a_number(kind):
    assert config(dataset={"types": {"fare": kind}}).dataset.types == {"fare": kind}


def test_what_the_catalogue_says_of_its_own_label_is_not_said_of_another():
    own = {"name": "taxi", "rows": 10, "path": []}
    assert config(dataset=own | {"target": "fare"}).dataset.positive is None
    with pytest.raises(ConfigError, match=r"dataset\.positive: .*choose another dataset\.target"):
        config(dataset=own | {"target": "payment_type"})
    classes = config(dataset=own | {"target": "payment_type"}, model={"estimator": "lpct"}).dataset
    assert (classes.positive, classes.classes) == (1, (0, 1))


def test_the_ready_made_regressions_are_whole(monkeypatch):
    for name, estimator, target, n_levels in (
        ("taxi_fare", "correction", "fare", 98),
        ("chicago_fare", "lpdt", "fare", 98),
        ("wine", "lpdt", "quality", 0),
    ):
        ready = load(name)
        assert ready.is_numeric
        assert (ready.model.estimator, ready.dataset.target) == (estimator, target)
        assert sum(map(len, ready.dataset.levels.values())) == n_levels
    assert load("wine").model.settings.label_range == (0, 10)
