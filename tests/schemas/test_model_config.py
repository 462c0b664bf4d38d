"""What [model] asks of the other tables of a run, and what is told where it does not fit."""

from __future__ import annotations

import pytest
from chain import fares_config, rides_config, shells_config, shells_plain

from ldptree.errors import ConfigError
from schemas.config import load, parse

MENDED = {"model": {"estimator": "correction", "depth": "auto"}}
LPCT = {"estimator": "lpct", "label_range": None}
TREE = {"estimator": "histoftree"}


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


def corrected(model=(), **changes):
    return rides_config("a.csv", model=MENDED["model"] | dict(model), **changes)


def in_rounds(**changes):
    return parse(shells_plain("a.parquet", **changes))


def text_fares():
    return fares_config("a.csv", **MENDED, dataset={"types": {"paid": "text"}})


REFUSED = [
    (corrected, {"model": {"bas": "forest"}}, "model.bas: unknown key; did you mean base?"),
    (corrected, {"model": {"residual_range": 0.5}}, "model.residual_range: is for a label that is a number"),
    (
        corrected,
        {"privacy": {"epsilon": 1.0, "mechanism": "discrete_laplace"}},
        'privacy.mechanism: "discrete_laplace" is not for a residual, which is reported together with its cell; use one of',
    ),
    (text_fares, {}, "and this label is a number"),
    (
        config,
        {"dataset": {"positive": 1}},
        "dataset.positive: is for a label of classes, and model.estimator",
    ),
    (config, {"dataset": {"classes": [0, 1]}}, "dataset.classes: is for a label of classes"),
    (config, {"dataset": {"types": {"fare": "text"}}}, 'dataset.types: "fare", the target, is declared text'),
    (config, {"dataset": {"types": {"fare": "boolean"}}}, "dataset.types: "),
    (config, {"dataset": {"levels": {"fare": [1, 2]}}}, 'dataset.levels: "fare" is the target'),
    (config, {"dataset": {"unit": 3}}, "dataset.unit: "),
    (
        in_rounds,
        {"model": LPCT, "dataset": {"unit": ""}},
        'features: is for model.estimator = "histoftree" or "public_features"; leave it out with "lpct"',
    ),
    (
        in_rounds,
        {"campaign": {"name": "spring"}},
        "campaign.name: a campaign asks each holder once, and public_features asks in rounds",
    ),
    (
        in_rounds,
        {"privacy": {"mechanism": "oue"}},
        "privacy.mechanism: a family that asks in rounds has its own",
    ),
    (
        in_rounds,
        {"model": TREE, "privacy": {"mechanism": "grr"}},
        "leave it out, or set model.mechanism or label",
    ),
    (in_rounds, {"features": None}, "features: say what the holders protect: private = [...]"),
    (in_rounds, {"features": {"private": {"size": True}}}, "features.private: write a list of column names"),
    (in_rounds, {"features": {"privat": ["weight"]}}, "features.privat: unknown key; did you mean private?"),
    (
        in_rounds,
        {"features": {"protects": {"weight": "hides"}}},
        "is protected by everybody already (private)",
    ),
    (
        in_rounds,
        {"features": {"protects": {"size": "weight"}}},
        "says what is protected, so it is no feature",
    ),
    (in_rounds, {"model": {"label_range": [-1e308, 1e308]}}, "not so far apart"),
    (in_rounds, {"model": {"depth": 3}}, "model.depth: is for estimators of one tree; leave it out"),
    (
        in_rounds,
        {"privacy": {"outside": "drop"}},
        "privacy.outside: with public_features, values out of range",
    ),
    (
        in_rounds,
        {"model": TREE | {"label": "laplace"}, "simulation": None, "release": True},
        "model.label: laplace is a simulation device",
    ),
    (in_rounds, {"dataset": {"positive": "old"}}, "dataset.positive: is for a label of classes"),
]


@pytest.mark.parametrize(("make", "changes", "said"), REFUSED)
def test_what_does_not_go_together_is_refused_with_the_path_of_its_key_and_a_remedy(make, changes, said):
    with pytest.raises(ConfigError) as refused:
        make(**changes)
    assert refused.value.exit_code == 2
    assert said in " ".join(str(refused.value).split())


def test_a_label_is_a_class_where_one_is_declared_and_a_number_where_none_is():
    assert not rides_config("a.csv", **MENDED).is_numeric
    assert not rides_config(
        "a.csv", **MENDED, dataset={"positive": None, "classes": ["card", "cash"]}
    ).is_numeric
    assert fares_config("a.csv", **MENDED).is_numeric
    plain = {"dataset": {"unit": "", "positive": None}} | MENDED
    assert rides_config("a.csv", **plain).label is None
    for dataset, label in [
        ({"label": "number"}, "number"),
        ({"label": "class"}, "class"),
        ({"types": {"paid": "number"}}, "number"),
        ({"types": {"paid": "text"}}, "class"),
        ({"unit": "$"}, "number"),
    ]:
        assert rides_config("a.csv", **MENDED, dataset=plain["dataset"] | dataset).label == label
    assert (
        rides_config("a.csv", **plain | {"model": MENDED["model"] | {"residual_range": 2.0}}).label
        == "number"
    )


@pytest.mark.parametrize(("make", "label"), [(rides_config, "number"), (fares_config, "class")])
def test_a_label_that_the_estimator_does_not_learn_is_refused(make, label):
    with pytest.raises(ConfigError, match=r"dataset\.label: model\.estimator"):
        make("a.csv", dataset={"label": label})


@pytest.mark.parametrize("name", ["quickstart", "chicago", "taxi_fare"])
def test_ready_made_runs_correct_a_public_model_and_their_tree_is_one_word_away(name):
    assert load(name).model.estimator == "correction"
    tree = "lpdt" if load(name).is_numeric else "lpct"
    assert load(name, [f"model.estimator={tree}"]).model.estimator == tree


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


def test_settings_are_those_of_the_estimator():
    config = shells_config("a.parquet", model=TREE | {"t": 3, "p": "auto", "mask_release": "cells"})
    assert config.mask_release == "cells"
    assert (config.model.settings.t, config.model.settings.p) == (3, "auto")
    ours = shells_config("a.parquet")
    assert (ours.mask_release, ours.model.settings.for_questions) == ("all", {"label_range": [0, 30]})


def test_a_mask_column_is_no_feature():
    config = shells_config("a.parquet", features={"private": [], "protects": {"weight": "hides"}})
    assert config.features.masks == {"hides"}


@pytest.mark.parametrize("estimator", ["public_features", "histoftree"])
def test_the_packaged_configuration_is_valid(estimator):
    config = load("configs/abalone.toml", [f"model.estimator={estimator}"])
    assert config.features.private
    assert config.model.in_rounds
