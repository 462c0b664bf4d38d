"""What a configuration of a run in rounds may say, and what it is told where it says something else."""

from __future__ import annotations

import pytest
from chain import shells_config, shells_plain

from ldptree.errors import ConfigError
from schemas.config import load, parse

LPCT = {"estimator": "lpct", "label_range": None}
TREE = {"estimator": "histoftree"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"model": LPCT, "dataset": {"unit": ""}},
            'features: is for model.estimator = "histoftree" or "public_features"; leave it out with "lpct"',
        ),
        (
            {"model": LPCT | {"t": 2}, "features": None},
            'model.t: is for estimator = "histoftree"; leave it out with "lpct"',
        ),
        (
            {"model": {"t": 2}},
            'model.t: is for estimator = "histoftree"; leave it out with "public_features"',
        ),
        (
            {"campaign": {"name": "spring"}},
            "campaign.name: a campaign asks each holder once, and public_features asks in rounds",
        ),
        ({"privacy": {"mechanism": "oue"}}, "privacy.mechanism: a family that asks in rounds has its own; leave it out"),
        (
            {"model": TREE, "privacy": {"mechanism": "grr"}},
            "leave it out, or set model.mechanism or label",
        ),
        ({"features": None}, "features: say what the holders protect: private = [...]"),
        ({"features": {"private": {"size": True}}}, "features.private: write a list of column names"),
        ({"model": {"label_range": [-1e308, 1e308]}}, "not so far apart"),
        ({"privacy": {"outside": "drop"}}, "privacy.outside: with public_features, values out of range are moved"),
        (
            {"model": TREE | {"label": "laplace"}, "simulation": None, "release": True},
            "model.label: laplace is a simulation device",
        ),
        ({"model": {"depth": 3}}, 'model.depth: is for estimators of one tree; leave it out with "public_features"'),
        ({"model": TREE | {"lam": "auto"}}, 'model.lam: is for estimator = "lpct" or "lpdt"; leave it out with "histoftree"'),
        (
            {"features": {"protects": {"weight": "hides"}}},
            'features.protects: "weight" is protected by everybody already (private); say it once',
        ),
        (
            {"features": {"protects": {"size": "weight"}}},
            'features.protects: "weight" says what is protected, so it is no feature itself',
        ),
        ({"features": {"privat": ["weight"]}}, "features.privat: unknown key; did you mean private?"),
        ({"model": TREE | {"t": 0}}, "model.t: must be 'auto' or a whole number from 1 to 254, got 0"),
        ({"model": TREE | {"t": True}}, "model.t: must be 'auto' or a whole number from 1 to 254, got True"),
        ({"model": TREE | {"rho": 1.0}}, "model.rho: must be a number above 0 and below 1, got 1.0"),
        ({"model": TREE | {"mask_release": "some"}}, "model.mask_release: "),
        ({"model": {"label_range": [30, 0]}}, "model.label_range: low must be below high"),
        ({"dataset": {"positive": "old"}}, 'dataset.positive: is for a label of classes, and model.estimator'),
    ],
)  # fmt: skip
def test_what_does_not_go_with_rounds_is_refused_with_a_remedy(changes, said):
    plain = shells_plain("a.parquet", **changes)
    with pytest.raises(ConfigError) as refused:
        parse(plain)
    assert said in " ".join(str(refused.value).split())


def test_the_tables_of_rounds_are_no_part_of_what_other_runs_are_known_by():
    plain = shells_plain("a.parquet", model={"estimator": "lpdt"}, features=None)
    dumped = parse(plain).model_dump(mode="json")
    assert "features" not in dumped


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
