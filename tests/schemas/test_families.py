"""The settings of the families of estimators: one table for each, chosen by `model.estimator`."""

from __future__ import annotations

import jsonschema
import pytest

from ldptree.errors import ConfigError
from schemas.config import RunConfig, parse
from schemas.families import FAMILIES, OWNERS


def plain(estimator, **model):
    features = {"features": {"private": []}} if FAMILIES[estimator].in_rounds else {}
    return {
        "name": "a",
        "dataset": {"name": "own", "path": ["a.csv"], "target": "paid", "public": "random 0.1"},
        "model": {"estimator": estimator} | model,
        "privacy": {"epsilon": 1.0},
    } | features


@pytest.mark.parametrize("estimator", FAMILIES)
def test_a_configuration_is_known_by_the_keys_and_tables_of_its_own_family(estimator):
    ends = {"label_range": [0, 10]} if "label_range" in FAMILIES[estimator].model_fields else {}
    config = parse(plain(estimator, **ends))
    dumped = config.model_dump(mode="json")
    assert type(config.model) is FAMILIES[estimator]
    assert dumped["model"].keys() == {"estimator", *config.model.settings}
    assert dumped.keys() & OWNERS.keys() == config.model.tables
    assert parse(dumped) == config  # as a server sends it back


@pytest.mark.parametrize("estimator", FAMILIES)
def test_a_key_of_another_family_may_have_its_usual_value_and_no_other(estimator):
    own = FAMILIES[estimator].model_fields
    remedy = "set model.estimator" if estimator == "auto" else f'leave it out with "{estimator}"'
    for other in FAMILIES.values():
        for key in other.model_fields.keys() - own.keys():
            usual = other.model_fields[key].default
            assert parse(plain(estimator, **{key: usual})) == parse(plain(estimator))
            with pytest.raises(ConfigError, match=rf"model\.{key}: is for .*{remedy}"):
                parse(plain(estimator, **{key: "other"}))


@pytest.mark.parametrize("estimator", [3, None, ["lpct"], "lpcd"])
def test_an_estimator_that_nobody_knows_is_told_which_there_are(estimator):
    with pytest.raises(
        ConfigError, match=r"model\.estimator: input should be 'auto', 'lpct', 'lpdt', .* got "
    ):
        parse(plain("lpct") | {"model": {"estimator": estimator}})


def test_a_table_that_is_none_is_told_so():
    with pytest.raises(ConfigError, match=r"model: input should be a table of keys, got 3"):
        parse(plain("lpct") | {"model": 3})


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
    for table in SCHEMA["$defs"].values():
        shown = {
            key: bool({"description", "$ref"} & set(value)) for key, value in table["properties"].items()
        }
        assert all(shown.values()), (table["title"], shown)
