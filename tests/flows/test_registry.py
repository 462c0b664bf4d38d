"""`ldptree registry`: a run as an entry of the registry of deployments, whole but for what its owner alone knows."""

import json

import pytest
import yaml
from chain import rides, rides_config

from flows.command.main import main
from flows.executors import InlineExecutor
from flows.finish import finish
from flows.pipeline import Pipeline
from storage.store import Store

ENUMS = {
    "data_product_type": ("Machine learning model",),
    "variant_name": ("Pure DP",),
    "model_name": ("Local",),
    "release_type": ("One release", "Many releases"),
    "data_source_type": ("Static", "Dynamic"),
    "access_type": ("Non-interactive",),
    "status": ("Draft",),
    "tier": (3,),
}
"""Of fields that the registry's schema gives a choice in, what a run may say."""
SECTIONS = {
    "basic": 8,
    "dp_variant": 3,
    "privacy_loss": 5,
    "deployment_model": 10,
    "implementation": 7,
    "administrative": 4,
}
"""Fields in each section of the schema."""
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
    assert {section: len(content) for section, content in entry["deployment"].items()} == SECTIONS
    fields = dict(fields_of(entry["deployment"]))
    assert {name for name, value in fields.items() if value is None} == OWNERS
    assert {name for name, allowed in ENUMS.items() if fields[name] not in allowed} == set()
    assert (fields["epsilon"], fields["number_of_privacy_units"]) == (
        summary["epsilon_spent"],
        summary["n_private"],
    )
    assert str(fields["publication_date"]) == "2026-11-28"
    assert "The curator sees: " in fields["actors"]
    assert "- epsilon, delta: 2.0 for all that a person sent, 0." in text
    assert text.count("\n# - ") == 7


def test_a_trial_is_nothing_to_register(tmp_path, capsys):
    folder = finished(tmp_path)
    assert entry_of(folder, capsys)[:2] == (2, "")
    assert entry_of(tmp_path, capsys)[0] == 3
