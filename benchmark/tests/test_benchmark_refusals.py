"""A benchmark that cannot be is refused in one sentence, before a server is started or a file is looked at."""

import pytest

from flows.executors import InlineExecutor
from ldptree.errors import ConfigError, DataError
from ldptree_benchmark.command import Asked, came_out, name_part, read_suite
from ldptree_benchmark.flow import find_rows
from ldptree_benchmark.laws import draw_law
from ldptree_benchmark.suite import load_suite
from storage.store import Store

SUITE = """
title = "x"
epsilons = [1]
repetitions = 1
{keys}

[laws.hidden]
law = "hidden-column"

[methods.majority]
learner = "majority"

{tables}
"""
PRINTED = (
    '[printed]\ntable = "lpct-table-2"\ndatasets = { hidden = "Census" }\nmethods = { majority = "LPCT-M" }\n'
)
BROUGHT = '[brought.people]\npath = "people.csv"\ntarget = "answer"\npublic = "consent = 1"\n'


def write(folder, keys="", tables=""):
    path = folder / "mine.toml"
    path.write_text(SUITE.format(keys=keys, tables=tables))
    return str(path)


@pytest.mark.parametrize(
    ("keys", "tables", "message"),
    [
        ("claims = 1", "", "claims: unknown key"),
        ('datasets = ["abalon"]', "", r"abalon is no data set of the catalogue \(did you mean abalone\?\)"),
        ('datasets = ["abalone"]', "", "^data set abalone: its label, rings, is a number, and this suite compares classes"),
        ("", PRINTED.replace("lpct-table-2", "lpct9"), "^.*printed.table: lpct9 is no table of papers.toml"),
        ("", PRINTED.replace("LPCT-M", "LPCT-N"), r"printed.methods.majority: LPCT-N is no name in .*did you mean LPCT-M"),
        ("", PRINTED.replace("Census", "Consus"), r"printed.datasets.hidden: Consus is no name in .*did you mean Census"),
        ("", PRINTED.replace("hidden =", "hiden ="), r"printed.datasets: hiden is no data set of this suite"),
        ("", '[methods.x]\nlearner = "lpctt"', r"^methods.x.learner: lpctt is no learner \(did you mean lpct\?\)"),
        ("", '[methods.x]\nlearner = "lpdt"', "^methods.x.learner: lpdt learns a number, and this suite's labels are classes"),
        ("", '[laws.b]\nlaw = "lpct-pairs"', r"^laws.b.law: lpct-pairs is no law \(did you mean lpct-pair\?\)"),
        ("", '[laws.b]\nlaw = "lpct-pair"\nparameters = { gama = 1 }', r"gama is no parameter of .*did you mean gamma"),
        ("", '[laws.b]\nlaw = "lpct-pair"\nparameters = { gamma = 1 }', "^laws.b.parameters: lpct-pair needs n_public$"),
        ("", BROUGHT.replace("target", "taget"), "^data set people: dataset.taget: unknown key.*dataset.target: missing"),
        ("", BROUGHT + '[variants.v]\ndataset = "people"\nchanges = { publik = "a" }', "^data set v: dataset.publik: unknown"),
        ("", BROUGHT + '[variants.v]\ndataset = "people"\ndiffer = "a"', "variants.v.differ: .*valid number"),
    ],
)  # fmt: skip
def test_a_suite_that_cannot_be_is_refused_in_one_sentence(tmp_path, keys, tables, message):
    with pytest.raises(ConfigError, match=message) as told:
        read_suite(write(tmp_path, keys, tables), Asked())
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"only": "hiden"}, r"--only: hiden is no data set of this suite \(did you mean hidden\?\)"),
        ({"methods": "majorty"}, "--methods: majorty is no method of this suite"),
        ({"only": ","}, "--only: name at least one data set, or leave it out"),
        ({"methods": ""}, "--methods: name at least one method, or leave it out"),
        ({"repetitions": 0}, "--reps 0: must be at least 1"),
        ({"epsilons": "0"}, "--epsilon 0"),
    ],
)
def test_a_part_that_cannot_be_is_refused_in_one_sentence(tmp_path, asked, message):
    with pytest.raises(ConfigError, match=message) as told:
        read_suite(write(tmp_path), Asked(**asked))
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ({}, "smoke"),
        ({"only": "pair", "epsilons": "1"}, "smoke-only-pair-epsilon-1"),
        ({"repetitions": 1, "methods": "lpct"}, "smoke-methods-lpct-reps-1"),
        ({"only": "pair,hidden", "repetitions": 2}, "smoke"),
    ],
)
def test_results_of_a_part_lie_beside_those_of_the_whole(asked, name):
    assert name_part(read_suite("smoke", Asked(**asked)), load_suite("smoke")) == name


def test_a_suite_of_ones_own_cannot_take_the_name_of_another(tmp_path):
    path = tmp_path / "smoke.toml"
    path.write_text(SUITE.format(keys="", tables=""))
    with pytest.raises(
        ConfigError, match=r'smoke is the name of another suite.* Write name = "\.\.\." in it'
    ):
        read_suite(str(path), Asked())
    path.write_text(SUITE.format(keys='name = "mine"', tables=""))
    assert read_suite(str(path), Asked()).name == "mine"


def test_a_law_says_which_value_cannot_be():
    with pytest.raises(ConfigError, match="law lpct-pair cannot be drawn with gamma = 'a', n_public = 10"):
        draw_law("lpct-pair", {"gamma": "a", "n_public": 10}, [1])


def test_where_no_set_is_there_the_first_reason_is_told_with_its_exit_code(tmp_path, monkeypatch):
    monkeypatch.setenv("LDPTREE_DATA", str(tmp_path))
    tables = BROUGHT.replace("people.csv", "data:people.csv")
    suite = read_suite(write(tmp_path, tables=tables), Asked(only="people"))
    store = Store(tmp_path / "work")
    with pytest.raises(DataError, match=r"no data set is there. .*people.csv: no such file"):
        find_rows(suite, InlineExecutor(store))
    (tmp_path / "people.csv").write_text("size,answer\n1,0\n2,1\n")
    with pytest.raises(ConfigError, match='unknown column "consent"'):
        find_rows(suite, InlineExecutor(store))


@pytest.mark.parametrize(
    ("held", "without", "ends_well"),
    [((), [], True), ((True, None), [], True), ((True, False), [], False), ((), ["lpct"], False)],
)
def test_a_benchmark_ends_with_1_where_a_method_has_no_score_or_a_claim_is_refuted(held, without, ends_well):
    summary = {"claims": [{"held": one} for one in held], "methods_without_a_score": without}
    assert came_out(summary) is ends_well
