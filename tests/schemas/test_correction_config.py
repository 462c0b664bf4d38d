"""What a configuration of a correction may say, what its label is, and what it is told where it says something else."""

from __future__ import annotations

import pytest
from chain import fares_config, rides_config

from ldptree.errors import ConfigError
from ldptree.estimators import CorrectionClassifier, CorrectionRegressor
from schemas.config import load

MENDED = {"model": {"estimator": "correction", "depth": "auto"}}


def test_the_defaults_are_those_of_the_estimators():
    config = rides_config("a.csv", **MENDED)
    for of in (CorrectionClassifier, CorrectionRegressor):
        other = of(epsilon=2.0)
        for key in ("partition", "depth"):
            assert getattr(config.model.settings, key) == getattr(other, key)
        for key in ("base", "label_levels", "max_protocol_bytes"):
            assert getattr(config.model.settings, key) == getattr(other, key)
        assert config.privacy.mechanism == other.mechanism
    assert config.model.settings.residual_range == CorrectionRegressor(epsilon=2.0).residual_range
    assert config.model.settings.min_samples_leaf == "auto"


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


@pytest.mark.parametrize("estimator", ["lpct", "lpdt"])
def test_other_trees_are_one_word_away_and_known_by_the_keys_they_always_had(estimator):
    make = rides_config if estimator == "lpct" else fares_config
    plain = make("a.csv", model={"estimator": estimator}).model_dump(mode="json")
    assert "base" not in plain["model"]
    mended = make("a.csv", **MENDED).model_dump(mode="json")
    assert mended["model"]["base"] == "auto"
    assert {"lam", "prune", "rule", "paper", "rho"}.isdisjoint(mended["model"])


@pytest.mark.parametrize("name", ["quickstart", "chicago", "taxi_fare"])
def test_ready_made_runs_correct_a_public_model_and_their_tree_is_one_word_away(name):
    assert load(name).model.estimator == "correction"
    tree = "lpdt" if load(name).is_numeric else "lpct"
    assert load(name, [f"model.estimator={tree}"]).model.estimator == tree


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"model": {"lam": "auto"}},
            'model.lam: is for estimator = "lpct" or "lpdt"; leave it out with "correction"',
        ),
        (
            {"model": {"prune": "none"}},
            'model.prune: is for estimator = "lpct" or "lpdt"; leave it out with "correction"',
        ),
        ({"model": {"rho": 0.4}}, 'model.rho: is for estimator = "lpdt"'),
        ({"model": {"label_range": [0, 1]}}, 'model.label_range: is for estimator = "lpdt"'),
        ({"model": {"base": "forrest"}}, "model.base: must be "),
        ({"model": {"bas": "forest"}}, "model.bas: unknown key; did you mean base?"),
        ({"model": {"label_levels": 1}}, "must be 'auto' or a whole number from 2 to 1,024, got 1"),
        ({"model": {"label_levels": True}}, "from 2 to 1,024, got True"),
        ({"model": {"residual_range": 0.0}}, "must be 'auto' or a number above 0, got 0.0"),
        ({"model": {"residual_range": float("inf")}}, "must be 'auto' or a number above 0, got inf"),
        (
            {"model": {"residual_range": 0.5}},
            "model.residual_range: is for a label that is a number",
        ),
        ({"model": {"max_protocol_bytes": 0}}, "model.max_protocol_bytes: "),
        (
            {"privacy": {"epsilon": 1.0, "mechanism": "discrete_laplace"}},
            'privacy.mechanism: "discrete_laplace" is not for a residual, which is reported together with its cell; use one of',
        ),
        (
            {"model": {"estimator": "lpct", "base": "tree"}},
            'model.base: is for estimator = "correction"; leave it out with "lpct"',
        ),
    ],
)
def test_what_does_not_go_with_a_correction_is_refused_with_a_remedy(changes, said):
    model = MENDED["model"] | changes.pop("model", {})
    with pytest.raises(ConfigError) as refused:
        rides_config("a.csv", model=model, **changes)
    assert said in str(refused.value)


def test_a_number_whose_column_is_declared_a_text_is_refused():
    with pytest.raises(ConfigError, match=r"and this label is a number"):
        fares_config("a.csv", **MENDED, dataset={"types": {"paid": "text"}})
