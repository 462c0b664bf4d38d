"""The data sets that come with the program, and how a run's table is laid over one."""

from __future__ import annotations

import pytest

from ldptree.errors import ConfigError
from schemas.catalogue import catalogue, with_catalogue
from schemas.dataset import DatasetSpec


@pytest.mark.parametrize("name", sorted(catalogue()))
def test_every_entry_is_a_whole_data_set(name):
    spec = DatasetSpec.model_validate(catalogue()[name])
    assert spec.name == name
    assert spec.title
    if spec.classes is None:
        assert spec.types[spec.target] in ("integer", "number")
        assert spec.positive is None
    else:
        assert str(spec.positive) in map(str, spec.classes)
    assert spec.rows if spec.simulated else spec.path


@pytest.mark.parametrize("name", sorted(catalogue()))
def test_only_what_is_simulated_says_so(name):
    spec = DatasetSpec.model_validate(catalogue()[name])
    assert spec.simulated == ("simulated" in spec.title.lower())
    assert all(path.startswith("data:") for path in spec.path)


def test_a_runs_table_is_laid_over_the_entry():
    table = with_catalogue({"name": "taxi", "rows": 5, "drop": ["tips"]}, None)
    assert (table["rows"], table["drop"], table["target"]) == (5, ["tips"], "payment_type")
    assert catalogue()["taxi"]["rows"] != 5


def test_a_path_of_ones_own_needs_no_entry(tmp_path):
    assert with_catalogue({"name": "mine", "path": "rows.csv"}, tmp_path) == {
        "name": "mine",
        "path": [str(tmp_path / "rows.csv")],
    }


def test_a_catalogue_name_with_a_path_of_ones_own_is_another_file_of_the_same_columns(tmp_path):
    table = with_catalogue({"name": "taxi", "path": "rows.csv", "drop": ["tips"]}, tmp_path)
    assert (table["path"], table["target"], table["drop"]) == (
        [str(tmp_path / "rows.csv")],
        "payment_type",
        ["tips"],
    )


def test_paths_in_the_data_folder_and_absolute_ones_stay(tmp_path):
    paths = ["data:census/adult-train.csv.gz", "/data/rows.csv"]
    assert with_catalogue({"path": paths}, tmp_path)["path"] == paths
    assert with_catalogue({"path": ["rows.csv"]}, None)["path"] == ["rows.csv"]


@pytest.mark.parametrize(("name", "hint"), [("taxy", "did you mean 'taxi'?"), ("zzzz", "the catalogue has:")])
def test_an_unknown_name_is_refused_with_the_near_one(name, hint):
    with pytest.raises(ConfigError) as fault:
        with_catalogue({"name": name}, None)
    assert hint in str(fault.value)
    assert str(fault.value).startswith("dataset.name: ")


@pytest.mark.parametrize("table", [{}, {"name": 3}])
def test_a_table_without_a_name_is_refused(table):
    with pytest.raises(ConfigError, match=r"^dataset\.name"):
        with_catalogue(table, None)
