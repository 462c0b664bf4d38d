"""The settings of the families of estimators: one table for each, chosen by `model.estimator`."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import jsonschema
import pytest
from sklearn.base import clone
from wrong_settings import WRONG_SETTINGS

from ldptree.errors import ConfigError
from ldptree.estimators import (
    CorrectionClassifier,
    CorrectionRegressor,
    HistOfTreeRegressor,
    LPCTClassifier,
    LPDTRegressor,
    PublicFeatureRegressor,
)
from ldptree.estimators.estimator import PublicRowsEstimator
from ldptree.families import FAMILIES, RegisteredFamily
from ldptree.families.settings import LPCTSettings
from ldptree.settings import Limits
from schemas.config import RunConfig, parse
from schemas.families import settings_by_name

BY_NAME = settings_by_name()


def plain(estimator, **model):
    in_rounds = estimator in FAMILIES and FAMILIES[estimator].in_rounds
    return {
        "name": "a",
        "dataset": {"name": "own", "path": ["a.csv"], "target": "paid", "public": "random 0.1"},
        "model": {"estimator": estimator} | model,
        "privacy": {"epsilon": 1.0},
    } | ({"features": {"private": []}} if in_rounds else {})


@dataclass(frozen=True, kw_only=True)
class TidalSettings(LPCTSettings):
    """A family with one setting more."""

    tide: Literal["low", "high"] | Annotated[int, Limits(1, 9)] = "low"
    """How far the water comes up."""


def test_a_new_setting_is_one_line_and_stands_in_estimator_configuration_reference_and_help(monkeypatch):
    """`tide` above is all that says so."""
    build = FAMILIES["lpct"].build
    monkeypatch.setitem(FAMILIES, "tidal", RegisteredFamily(build, TidalSettings))

    class TidalClassifier(PublicRowsEstimator, settings=(TidalSettings,)):
        """Args:
        {parameters}
        """

    assert TidalClassifier().get_params()["tide"] == "low"
    assert "tide: How far the water comes up." in TidalClassifier.__doc__
    assert "tide" in inspect.signature(TidalClassifier).parameters
    with pytest.raises(
        ConfigError, match="tide must be 'low', 'high' or a whole number from 1 to 9, got 'hihg'; did"
    ):
        TidalClassifier(tide="hihg")._check_parameters()
    assert clone(TidalClassifier(tide=3)).tide == 3

    config = parse(plain("tidal", tide=4))
    assert config.model.settings.tide == 4
    assert config.model_dump(mode="json")["model"]["tide"] == 4
    assert config.model.settings.for_questions["tide"] == 4
    with pytest.raises(
        ConfigError, match=r"model\.tide: must be 'low', 'high' or a whole number from 1 to 9, got 10"
    ):
        parse(plain("tidal", tide=10))
    with pytest.raises(
        ConfigError, match=r'model\.tide: is for estimator = "tidal"; leave it out with "lpct"'
    ):
        parse(plain("lpct", tide=4))
    with pytest.raises(ConfigError, match=r"model\.tied: unknown key; did you mean tide\?"):
        parse(plain("tidal", tied=4))

    (form,) = (
        one
        for one in RunConfig.model_json_schema()["properties"]["model"]["anyOf"]
        if one["title"] == "tidal"
    )
    assert form["properties"]["tide"]["description"] == "How far the water comes up."
    sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
    reference = importlib.import_module("write_reference")
    line = (
        '| `model.tide` | "low" | How far the water comes up. | "low", "high" or a whole number from 1 to 9 |'
    )
    assert line in list(reference.write_configuration())


@pytest.mark.parametrize("estimator", BY_NAME)
def test_a_configuration_is_known_by_the_keys_and_tables_of_its_own_family(estimator):
    ends = {"label_range": [0, 10]} if "label_range" in BY_NAME[estimator].names() else {}
    config = parse(plain(estimator, **ends))
    dumped = config.model_dump(mode="json")
    assert type(config.model.settings) is BY_NAME[estimator]
    assert dumped["model"].keys() == {"estimator", *BY_NAME[estimator].names()}
    assert ("features" in dumped) == config.model.in_rounds
    assert parse(dumped) == config  # as a server sends it back


@pytest.mark.parametrize("estimator", BY_NAME)
def test_a_key_of_another_family_may_have_its_usual_value_and_no_other(estimator):
    own = BY_NAME[estimator].names()
    remedy = "set model.estimator" if estimator == "auto" else f'leave it out with "{estimator}"'
    for other in BY_NAME.values():
        for key, usual in other.defaults().items():
            if key in own:
                continue
            assert parse(plain(estimator, **{key: usual})) == parse(plain(estimator))
            with pytest.raises(ConfigError, match=rf"model\.{key}: is for .*{remedy}"):
                parse(plain(estimator, **{key: "other"}))


@pytest.mark.parametrize("estimator", [3, None, ["lpct"], "lpcd"])
def test_an_estimator_that_nobody_knows_is_told_which_there_are(estimator):
    with pytest.raises(ConfigError, match=r"model\.estimator: must be 'auto', 'lpct', 'lpdt', .* got "):
        parse(plain("lpct") | {"model": {"estimator": estimator}})


def test_a_table_that_is_none_is_told_so():
    with pytest.raises(ConfigError, match=r"model: input should be a table of keys, got 3"):
        parse(plain("lpct") | {"model": 3})


@pytest.mark.parametrize(("family", "settings", "key", "said"), WRONG_SETTINGS)
def test_what_an_estimator_refuses_a_configuration_refuses_with_the_path_of_its_key(
    family, settings, key, said
):
    with pytest.raises(ConfigError) as fault:
        parse(plain(family, **settings))
    assert fault.value.exit_code == 2
    assert re.search(rf"1 problem\n  model\.{key}: .*{re.escape(said)}", str(fault.value))


@pytest.mark.parametrize(
    ("estimator", "of"),
    [
        ("lpct", LPCTClassifier),
        ("lpdt", LPDTRegressor),
        ("correction", CorrectionClassifier),
        ("correction", CorrectionRegressor),
        ("histoftree", HistOfTreeRegressor),
        ("public_features", PublicFeatureRegressor),
    ],
)
def test_the_defaults_are_those_of_the_estimator(estimator, of):
    config, defaults = parse(plain(estimator)), of().get_params()
    settings = config.model.settings.defaults()
    assert {key: value for key, value in settings.items() if key in defaults} == {
        key: value for key, value in defaults.items() if key in settings
    }
    assert config.model.in_rounds or config.privacy.mechanism == defaults["mechanism"]


SCHEMA = RunConfig.model_json_schema()


@pytest.mark.parametrize(
    "model", [{}, {"depth": 3}, {"estimator": "lpdt", "rho": 0.3}, {"estimator": "correction"}]
)
def test_the_schema_of_a_deployment_takes_a_model_with_or_without_its_estimator(model):
    """Prefect checks the parameters of a run that is triggered from outside by this schema."""
    config = plain("lpct")
    jsonschema.validate(config | {"model": model}, SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(config | {"model": model | {"depht": 3}}, SCHEMA)


def test_every_key_says_in_the_form_what_it_is():
    for table in [*SCHEMA["$defs"].values(), *SCHEMA["properties"]["model"]["anyOf"]]:
        shown = {
            key: bool({"description", "$ref"} & set(value)) for key, value in table["properties"].items()
        }
        assert all(shown.values()), (table["title"], shown)
