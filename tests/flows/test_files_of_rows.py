"""Where each row is a holder a row is known by its file and its number there, and by nothing that it says: neither counts nor
spends tell of it, and a second file is refused where it matters whose it is.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from chain import Chain, rides, rides_config
from first_fast import first_fast

from flows.budget import say_who_rows_are
from flows.run_plan.look import plan_of
from flows.run_plan.show import show_plan
from ldptree.coins import Words
from ldptree.errors import BudgetError, ConfigError
from storage import tables
from storage.ledger.accounts import Account
from storage.store import Store

N = 150
PRIVATE = 100
"""Of each file, as every third row is public."""
NEW_PEOPLE = {"holder": "row", "new_people": True}
CAMPAIGN = {"campaign": {"name": "rides"}}
ITS_TERMS = CAMPAIGN | {"dataset": {"drop": ["person", "day"]}}
"""Of the campaign that is begun, whatever columns a later file has."""
CAPPED = {"cap": 9.0}


def config_of(*paths, epsilon=2.0, cap=None, seed=None, dataset=None, **changes):
    """A release; what is no feature in a file is dropped."""
    head = paths[0].read_text().partition("\n")[0].split(",")
    drop = [name for name in head if name in ("person", "day", "date", "more")]
    privacy = {"epsilon": epsilon} | ({} if cap is None else {"lifetime_epsilon": cap})
    charged = {"release": True, "evaluate": False, "model": {"depth": 1}, "simulation": {"noise_seed": seed}}
    tables = {"privacy": privacy, "dataset": {"drop": drop} | (dataset or {})}
    return rides_config(*paths, **charged | tables | changes)


def run(store, *paths, **settings):
    """A run, as far as it is let."""
    return Chain(store, config_of(*paths, **settings))


def drawn(store):
    return {p.name: p.read_bytes() for p in (store.root / "curator").glob("reports/*/*/*.parquet")}


def largest(store):
    return Account(store, None).read().largest_spend().epsilon


@pytest.fixture
def path(tmp_path):
    columns = {"member": ["true", "false", "false"] * (N // 3), "day": ["2024-03-05"] * N}
    return rides(tmp_path / "rides.csv", N, 1, person=range(N), **columns)


# What a row says is nowhere in what leaves its holders


def with_row(path, place, row, name):
    """The file with another row at a place."""
    lines = path.read_text().splitlines()
    lines[place] = row
    other = path.with_name(name)
    other.mkdir()
    (other / "b.csv").write_text("\n".join(lines) + "\n")
    return other / "b.csv"


def outside(root):
    """The size of every file outside the holders' zone, under its folder, whatever keyed names and times are in it."""
    found = []
    for path in root.rglob("*"):
        place = path.relative_to(root)
        if path.is_file() and place.parts[0] != "holders":
            content = re.sub(rb'"seconds":[^,}]*', b"", path.read_bytes())
            found.append((re.sub(r"[0-9a-f]{12,}", "KEY", place.as_posix()), len(content)))
    return sorted(found)


@pytest.mark.parametrize("changes", first_fast({}, CAMPAIGN, {"evaluate": True}))
def test_a_row_that_equals_one_of_another_file_shows_in_no_count_size_or_spend(
    tmp_path, path, monkeypatch, changes
):
    """The same twice but for one private row, with reports that are drawn of nothing."""
    monkeypatch.setattr("tasks.perturb.values_of", lambda path, protocol, words, outputs, asked: 0 * asked)
    monkeypatch.setattr(Words, "system", lambda: Words.seeded(np.random.SeedSequence(5)))
    b = rides(tmp_path / "b.csv", N, 2, person=range(N, 2 * N), member=["true"] * N, day=["2024-03-06"] * N)
    lines = path.read_text().splitlines()
    told = []
    for name, row in (("as it was", b.read_text().splitlines()[3]), ("as another", lines[3])):
        store = Store(tmp_path / name / "work")
        store.objects.put("holders/secret", b"s" * 32)
        both = run(store, path, with_row(b, 3, row, f"{name} b"), **changes)
        assert both.model
        again = run(store, path, epsilon=1.0), run(store, with_row(b, 3, row, f"{name} c"), epsilon=1.0)
        assert all(one.model for one in again)
        told.append((both.totals.facts, both.spent, largest(store), outside(store.root)))
    assert told[0] == told[1]
    assert told[0][0]["n_private"] == 2 * (PRIVATE - ("evaluate" in changes) * 20)


def held_back(store, path, **changes):
    chain = run(store, path, evaluate=True, **changes)
    test = [p for p in store.files(chain.held["test"]) if p.suffix == ".parquet"]
    return chain, set(tables.read(test).column("miles").to_pylist())


@pytest.mark.parametrize("dataset", [{}, {"holder": "person", "drop": []}], ids=["rows", "named"])
def test_a_stated_number_is_held_back_of_a_release_whatever_rows_say(tmp_path, dataset):
    """Drawn by coins that only the holders know: another secret, another seed or another file draws others."""
    store, other = Store(tmp_path / "one"), Store(tmp_path / "two")
    found = []
    for seed in range(3):
        path = rides(tmp_path / f"{seed}.csv", N, seed, miles=np.arange(N) / 4 + 100 * seed, person=range(N))
        chain, test = held_back(store, path, dataset=dataset | {"test_fraction": 0.17})
        assert chain.held.facts["n_private"] == PRIVATE - 17
        assert len(test) == chain.held.facts["n_test"] == 17
        found.append({miles - 100 * seed for miles in test})
    assert len({frozenset(one) for one in found}) == len(found)
    assert held_back(store, path, dataset=dataset | {"test_fraction": 0.17})[1] == test
    assert held_back(other, path, dataset=dataset | {"test_fraction": 0.17})[1] != test
    more = held_back(store, path, dataset=dataset | {"test_fraction": 0.5})[1]
    assert test < more
    assert len(more) == 50


def test_whoever_was_held_back_in_a_campaign_of_real_coins_has_no_role_in_a_later_file(store, tmp_path):
    """As exactly a stated number is, the later week could not tell that they were."""
    settings = {"dataset": {"holder": "person", "drop": []}, "evaluate": True} | CAMPAIGN
    weeks = [
        rides(tmp_path / f"{week}.csv", N, week, person=range(40 * week, 40 * week + N)) for week in range(3)
    ]
    roles = {}
    for paths in (weeks[:1], weeks[1:2], weeks[:2], weeks[2:], weeks):
        chain = run(store, *paths, **settings)
        assert chain.totals
        for part in ("train", "test"):
            files = [p for p in store.files(chain.held[part]) if p.suffix == ".parquet"]
            for row in tables.read(files).to_pylist():
                key = tuple(sorted(row.items(), key=str))
                assert roles.setdefault(key, part) == part


# Whose rows another file has cannot be known


def exported(path, way):
    """The same people, written otherwise."""
    head, *rows = path.read_text().splitlines()
    other = path.with_name(f"{way.replace(' ', '-')}.csv")
    lines = {
        "another column": [f"{head},more", *(f"{row},1" for row in rows)],
        "a column less": [line.rpartition(",")[0] for line in (head, *rows)],
        "a renamed column": [head.replace("day", "date"), *rows],
        "booleans as 1 and 0": [head, *(r.replace("true", "1").replace("false", "0") for r in rows)],
        "another date form": [head, *(r.replace("2024-03-05", "03/05/2024") for r in rows)],
        "more rows": [head, *rows, rows[1].replace("2024-03-05", "2024-03-09")],
        "another order": [head, *rows[::-1]],
        "another row changed": [head, rows[0].replace("true", "false"), *rows[1:]],
    }[way]
    other.write_text("\n".join(lines) + "\n")
    return other


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """Work folders in which a file was asked, by what was stated then. Only to be copied."""
    room = tmp_path_factory.mktemp("begun")
    columns = {"member": ["true", "false", "false"] * (N // 3), "day": ["2024-03-05"] * N}
    path = rides(room / "rides.csv", N, 1, person=range(N), **columns)
    for name, settings in (("campaign", CAMPAIGN), ("cap", CAPPED), ("nothing", {})):
        assert run(Store(room / name), path, **settings).page
    return room


def refused(store, chain, name):
    """A run that is refused before anybody is asked, and by its plan if that can know."""
    before, spent = drawn(store), largest(store)
    with pytest.raises(BudgetError) as refusal:
        assert chain.reports
    said = str(refusal.value)
    assert name in said.partition(": ")[0]
    assert 'with holder = "row" nobody can tell whether the rows of two files are the same people' in said
    assert refusal.value.exit_code == 4
    assert (drawn(store), largest(store)) == (before, spent)
    return said


@pytest.mark.parametrize("where", ["campaign", "cap"])
@pytest.mark.parametrize(
    "way",
    first_fast(
        "another column",
        "more rows",
        "a column less",
        "a renamed column",
        "booleans as 1 and 0",
        "another date form",
        "another order",
        "another row changed",
        fast={"another column", "more rows"},
    ),
)
def test_a_second_file_is_refused_however_it_was_written(begun, tmp_path, where, way):
    store = Store(shutil.copytree(begun / where, tmp_path / "work"))
    settings = {"campaign": ITS_TERMS, "cap": {"epsilon": 1.0}}[where]
    other = exported(begun / "rides.csv", way)
    said = refused(store, run(store, other, **settings), other.name)
    assert 'state holder = "row" and new_people = true' in said
    if where == "campaign":
        refused(store, run(store, begun / "rides.csv", other, **settings), other.name)


TABLE = [
    # what stood, what the second run states, whether it is let
    ("campaign", CAMPAIGN, {}, False),
    ("campaign", CAMPAIGN, {"holder": "row"}, False),
    ("campaign", CAMPAIGN, NEW_PEOPLE, True),
    ("cap", {}, {}, False),
    ("cap", CAPPED, {"holder": "row"}, False),
    ("cap", {}, NEW_PEOPLE, True),
    ("cap", {"campaign": {"name": "second"}}, {}, False),
    ("nothing", CAPPED, {}, False),
    ("nothing", CAPPED, NEW_PEOPLE, True),
    ("nothing", {}, {}, True),
    ("campaign", {"campaign": {"name": "second"}}, {}, True),
]


@pytest.mark.parametrize(("stood", "settings", "dataset", "is_let"), TABLE)
def test_a_second_file_is_let_where_its_people_are_stated_to_be_new_or_nothing_is_counted(
    begun, tmp_path, stood, settings, dataset, is_let
):
    store = Store(shutil.copytree(begun / stood, tmp_path / "work"))
    other = exported(begun / "rides.csv", "another column")
    if settings == CAMPAIGN:  # whose columns are fixed
        other = exported(begun / "rides.csv", "more rows")
    chain = run(store, other, **settings, dataset=dataset)
    if is_let:
        assert chain.reports
        assert largest(store) == 2.0  # of another file, they are others
    else:
        refused(store, chain, other.name)


@pytest.mark.parametrize("settings", [CAMPAIGN, CAPPED], ids=["campaign", "cap"])
def test_the_files_of_a_first_run_are_taken_together_and_a_copy_is_no_second_file(store, tmp_path, settings):
    paths = [rides(tmp_path / f"{i}.csv", N, i) for i in range(3)]
    assert run(store, *paths[:2], **settings).totals.facts["n_private"] == 2 * PRIVATE
    copy = shutil.copy(paths[0], tmp_path / "copy.csv")
    for again in ([paths[0]], [paths[1], copy], paths[:2]):
        assert run(store, *again, **settings).reports
    assert len(drawn(store)) == 2 or "campaign" not in settings
    refused(store, run(store, *paths, **settings), "2.csv")


@pytest.mark.parametrize("n_questions", [1, 2])
def test_a_cap_that_is_stated_after_runs_of_two_files_lets_neither_be_asked_anew(store, path, n_questions):
    """Charged one after the other, even by one question; unless their people are stated to be new."""
    other = with_row(path, 2, path.read_text().splitlines()[3 if n_questions == 1 else 1], "other")
    for file in (path, other):
        assert run(store, file).reports
    entries = Account(store, None).read().entries
    assert len({entry.question.partition(" ")[0] for entry in entries}) == n_questions
    for files in ([path], [other], [path, other]):
        refused(store, run(store, *files, epsilon=1.0, **CAPPED), files[-1].name)
    assert run(store, path, **CAPPED).reports  # was paid for
    assert run(store, path, other, epsilon=1.0, dataset=NEW_PEOPLE).reports


def test_rows_of_one_file_and_names_in_another_are_not_asked_under_one_cap(store, tmp_path):
    """Of whom nobody knows who is who; a question that was paid for is answered all the same."""
    paths = [rides(tmp_path / f"{i}.csv", N, i, person=range(N)) for i in range(2)]
    named = {"dataset": {"holder": "person", "drop": []}}
    assert run(store, paths[0]).reports
    assert run(store, paths[1], **named).reports
    for chain in (
        run(store, paths[1], epsilon=1.0, cap=9.0, **named),
        run(store, paths[0], epsilon=1.0),
        run(store, paths[1], epsilon=1.0),
        run(store, rides(tmp_path / "3.csv", N, 3, person=range(N)), **named),
    ):
        said = refused(store, chain, ".csv")
        assert "Use another work folder if none of these people was asked here" in said
    assert run(store, paths[0]).reports
    assert run(store, paths[1], **named).reports


def test_a_campaign_or_a_cap_says_at_its_start_what_it_cannot_know(begun, path, capsys):
    never = 'With holder = "row" nobody can tell whether rows of another file are the same people: '
    wanted = {
        "a campaign": (None, CAMPAIGN, "another file will be refused."),
        "a cap": (None, CAPPED, "another file will be refused."),
        "a cap that was stated before": ("cap", {}, "another file will be refused."),
        "new people": (
            None,
            CAMPAIGN | {"dataset": NEW_PEOPLE},
            "new_people = true takes them all for others.",
        ),
        "neither": ("nothing", {}, None),
        "people with names": (None, CAMPAIGN | {"dataset": {"holder": "person", "drop": []}}, None),
        "a trial": ("cap", {"release": False, "evaluate": True, "seed": 3}, None),
    }
    for work, settings, then in wanted.values():
        store = Store(begun / work) if work else None
        config = config_of(path, **settings)
        assert say_who_rows_are(store, config) == ([] if then is None else [never + then])
        show_plan(config, begun / (work or "absent"), as_json=False)
        said = " ".join(capsys.readouterr().out.split())
        assert said.count(never) == (then is not None)


def test_a_plan_refuses_a_second_file_of_a_campaign(begun):
    other = exported(begun / "rides.csv", "another column")
    store = Store(begun / "campaign")
    with pytest.raises(BudgetError, match="another-column"):
        plan_of(config_of(other, **ITS_TERMS), store.root)


@pytest.mark.parametrize(
    "dataset", [{"new_people": True}, {"new_people": True, "holder": "person", "drop": []}]
)
def test_new_people_are_stated_beside_rows_that_are_stated_to_be_holders(dataset):
    with pytest.raises(ConfigError, match=r'new_people: is for holder = "row", stated beside it'):
        rides_config(Path("rides.csv"), dataset=dataset)
