"""`ldptree registry`: a run as an entry of the registry of deployments, whole but for what its owner alone knows."""

import json

import jsonschema
import pytest
import yaml
from chain import rides, rides_config

from flows.command.main import main
from flows.executors import InlineExecutor
from flows.finish import finish
from flows.pipeline import Pipeline
from storage.store import Store

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
CHOICES = {
    "data_product_type": "Summary statistics|Machine learning model|Dataset|Synthetic data|Interactive API|SQL queries",
    "data_product_sector": "Technology|Healthcare|Education|Government|Energy|Finance",
    "variant_name": "Pure DP|Approximate DP|Zero-concentrated DP|Renyi DP|Custom",
    "model_name": "Local|Central|Shuffle|Federated|Varies",
    "release_type": "One release|Many releases",
    "data_source_type": "Static|Dynamic",
    "access_type": "Interactive|Non-interactive",
    "status": "Converted|Draft|Pending|Changes Required|Approved|Approved (Update Requested)|Approved (Pending)",
}


def part(names, others=None, *, needs=""):
    """An object of these fields, of text or of a choice, and of others; no further ones."""
    fields = {
        name: {"type": "string", "enum": CHOICES[name].split("|")} if name in CHOICES else TEXT
        for name in names.split()
    }
    return {
        "type": "object",
        "additionalProperties": False,
        "required": needs.split(),
        "properties": {**fields, **(others or {})},
    }


CURATOR = {
    "type": "object",
    "required": ["data_curator_name", "data_curator_type"],
    "properties": {
        "data_curator_name": TEXT,
        "data_curator_type": {"enum": ["Government", "Industry", "Nonprofit"]},
    },
}
SECTIONS = {
    "basic": part(
        "name description intended_use data_product_type data_product_region data_product_sector",
        {
            "data_curators": {"type": "array", "items": CURATOR, "minItems": 1},
            "publication_date": {"type": "string", "format": "date"},
        },
        needs="name data_curators description intended_use data_product_type data_product_region publication_date",
    ),
    "dp_variant": part("variant_name data_domain unprotected_quantities"),
    "privacy_loss": part(
        "privacy_unit privacy_unit_details privacy_parameters_details",
        {
            "number_of_privacy_units": WHOLE,
            "privacy_parameters": part("", {"epsilon": {"type": "number"}}),
        },
    ),
    "deployment_model": part(
        "model_name model_name_details trust_assumptions actors release_type release_type_details"
        " data_source_type data_source_type_details access_type access_type_details"
    ),
    "implementation": part(
        "preprocessing_and_hyperparameter_tuning mechanisms composition post_processing justification"
        " utility additional_information"
    ),
    "administrative": part(
        "status",
        {
            "evidence_sources": {"type": "object"},
            "registry_authors": {"type": "array", "items": TEXT, "minItems": 1},
            "tier": {"type": "integer", "enum": [1, 2, 3]},
        },
        needs="status registry_authors tier",
    ),
}
REGISTRY = part(
    "url_slug",
    {"deployment": part("", SECTIONS, needs="basic administrative")},
    needs="url_slug deployment",
)
"""Which fields the registry allows and asks for, and of which kind: schemas/deployments-schema.yaml, commit 057e5d81."""
REGISTRY_CHECK = jsonschema.Draft202012Validator(
    REGISTRY, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
)
OWNERS = {
    "data_curator_name",
    "data_curator_type",
    "intended_use",
    "data_product_region",
    "data_product_sector",
    "justification",
    "additional_information",
    "evidence_sources",
    "registry_authors",
}


def fields_of(content):
    """Each field that holds no others, by its name."""
    for key, value in content.items():
        inner = value[0] if isinstance(value, list) else value
        if isinstance(inner, dict) and inner:
            yield from fields_of(inner)
        else:
            yield key, inner or None


def finished(room, **changes):
    """The folder of a whole run of rides."""
    store = Store(room / "work")
    config = rides_config(rides(room / "rides.csv", 2000, 1), **changes)
    run = Pipeline(
        store=store, config=config, executor=InlineExecutor(store), name="rides-20261128-101500-000001"
    )
    run.walk()
    finish(run)
    return store.root / "runs" / run.name


def entry_of(folder, capsys):
    with pytest.raises(SystemExit) as end:
        main(["registry", str(folder)])
    shown = capsys.readouterr()
    return end.value.code, shown.out, shown.err


def test_a_release_fills_every_field_but_those_that_its_owner_must(tmp_path, capsys):
    folder = finished(tmp_path, simulation={"noise_seed": None}, evaluate=False)
    code, text, _ = entry_of(folder, capsys)
    assert code == 0
    entry, summary = yaml.safe_load(text), json.loads((folder / "run.json").read_text())
    wrong = sorted(fault.json_path.split(".")[-1] for fault in REGISTRY_CHECK.iter_errors(entry))
    assert wrong == ["data_curator_type", "data_product_sector"]
    entry["deployment"]["basic"]["data_curators"][0]["data_curator_type"] = "Nonprofit"
    entry["deployment"]["basic"]["data_product_sector"] = "Healthcare"
    REGISTRY_CHECK.validate(entry)
    entry = yaml.safe_load(text)
    assert {name: len(entry["deployment"][name]) for name in SECTIONS} == {
        name: len(section["properties"]) for name, section in SECTIONS.items()
    }
    fields = dict(fields_of(entry["deployment"]))
    assert {name for name, value in fields.items() if value is None} == OWNERS
    assert (fields["epsilon"], fields["number_of_privacy_units"]) == (
        summary["epsilon_spent"],
        summary["n_private"],
    )
    assert fields["publication_date"] == "2026-11-28"
    assert "The curator sees: " in fields["actors"]
    assert "- epsilon, delta: 2.0 for all that a person sent, 0." in text
    assert text.count("\n# - ") == 7


def test_a_trial_is_nothing_to_register(tmp_path, capsys):
    folder = finished(tmp_path)
    assert entry_of(folder, capsys)[:2] == (2, "")
    assert entry_of(tmp_path, capsys)[0] == 3
