"""The suites are whole, and a wrong one is refused in one sentence."""

import math

import numpy as np
import pytest
from small_suite import PAIR, Here, suite_of

from flows.executors import InlineExecutor
from ldptree.errors import ConfigError, DataError, LdptreeError
from ldptree_benchmark.flow import _score, find_rows, list_cells
from ldptree_benchmark.learners import learner_of
from ldptree_benchmark.rows import PRIVATE, PUBLIC, LabelledRows, split_rows
from ldptree_benchmark.suite import Split, load_suite, read_printed, suites
from storage.store import Store


def test_lpdts_tables_are_whole_and_its_tree_without_privacy_is_the_best_of_all():
    table = read_printed("lpdt")
    assert set(table["epsilon"]) == {"0.5", "1", "2", "4", "6", "8"}
    for lines in table["epsilon"].values():
        assert len(lines) == 14
        for name, line in lines.items():
            found = dict(zip(table["columns"], line, strict=True))
            dashes = {method for method, value in found.items() if math.isnan(value)}
            assert dashes == ({"APHIST", "PHIST"} if name in ("BUI", "MUS") else set())
            assert min(found, key=found.__getitem__) == "DT"


@pytest.mark.parametrize("name", suites())
def test_every_suite_is_whole_and_its_learners_can_learn_its_labels(name):
    suite = load_suite(name)
    for method in suite.methods.values():
        assert learner_of(method.learner, is_number=suite.is_number)
    if suite.printed is not None:
        table = read_printed(suite.printed.table)
        assert set(suite.printed.methods.values()) <= set(table["columns"])
        for lines in table["epsilon"].values():
            assert all(len(line) == len(table["columns"]) for line in lines.values())
            assert set(suite.printed.datasets.values()) <= set(lines)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"methds": {}}, r"methds: unknown key \(did you mean methods\?\)"),
        ({"datasets": ["abalon"]}, r"abalon is no data set of the catalogue \(did you mean abalone\?\)"),
        ({"repetitions": 0}, "repetitions"),
        ({"epsilons": []}, "epsilons"),
        ({"laws": {}}, "name at least one"),
        ({"brought": {"pair": {"target": "y"}}}, "pair is named twice"),
        ({"variants": {"a": {"dataset": "abalon"}}}, r"variants.a.dataset: abalon is no .*mean abalone"),
    ],
)
def test_a_wrong_suite_is_refused_in_one_sentence(tmp_path, changes, message):
    plain = {
        "title": "x",
        "methods": {"majority": {"learner": "majority"}},
        "epsilons": [1.0],
        "repetitions": 1,
    }
    plain |= {"laws": {"pair": PAIR.model_dump()}} | changes
    path = tmp_path / "mine.toml"
    path.write_text(to_toml(plain))
    with pytest.raises(ConfigError, match=message) as told:
        load_suite(str(path))
    assert "\n" not in str(told.value)


def to_toml(table):
    """A table of values and of tables that JSON's inline notation is close enough to."""

    def value(one):
        if isinstance(one, dict):
            return "{" + ", ".join(f"{key} = {value(item)}" for key, item in one.items()) + "}"
        if isinstance(one, list):
            return "[" + ", ".join(map(value, one)) + "]"
        return f'"{one}"' if isinstance(one, str) else str(one)

    return "\n".join(f"{key} = {value(item)}" for key, item in table.items())


def test_what_cannot_be_is_refused_by_name():
    with pytest.raises(ConfigError, match=r"smok is no suite \(did you mean smoke"):
        load_suite("smok")
    with pytest.raises(ConfigError, match="--reps 0"):
        suite_of().chosen(repetitions=0)
    with pytest.raises(ConfigError, match="--only: pear is no data set of this suite"):
        suite_of().chosen(only=["pear"])
    with pytest.raises(ConfigError, match="lpdt learns a number, and this suite's labels are classes"):
        learner_of("lpdt", is_number=False)
    part = np.array([PUBLIC, PUBLIC, PUBLIC, PRIVATE], np.int8)
    rows = LabelledRows(X=np.zeros((4, 1)), y=np.zeros(4, int), part=part, n_classes=2, features=("x",))
    with pytest.raises(DataError, match="no held-back row is left"):
        split_rows(rows, "tiny", 0, 0, Split())


def test_a_set_of_ones_own_is_found_from_the_suites_folder(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["a,kind,y", *(f"{a:.3f},{'open' if a < 0.5 else 'closed'},{a > 0.2}" for a in rng.random(200))]
    (tmp_path / "mine.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "mine.toml").write_text(
        """title = "mine"
epsilons = [1]
repetitions = 1
[brought.people]
path = "mine.csv"
target = "y"
public = "kind = 'open'"
[methods.majority]
learner = "majority"
"""
    )
    suite, store = load_suite(str(tmp_path / "mine.toml")), Store(tmp_path / "work")
    sources, missing = find_rows(suite, InlineExecutor(store))
    assert missing == {}
    engine = Here(store)
    (cell,) = _score(store, engine, list_cells(suite, sources, paper=False))
    assert cell.score == 1.0  # private people have a > .5, and most public ones more than .2
    (tmp_path / "mine.csv").unlink()
    with pytest.raises(LdptreeError, match=r"no data set is there\. .*mine\.csv: no such file"):
        find_rows(suite, InlineExecutor(Store(tmp_path / "other")))
