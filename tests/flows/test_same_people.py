"""A person is known again however their name is written, and rows of another file never are: nobody is asked twice."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from chain import Chain, example_protocol, rides, rides_config
from first_fast import first_fast

from flows.run_plan.look import plan_of
from ldptree.client import Client
from ldptree.errors import BudgetError, DataError, ProtocolMismatch
from ldptree.protocol.ledger import name_of
from storage import tables
from storage.holders.holder_names import hash_names
from storage.ledger.accounts import Account

N = 120
BY_ROW = {"drop": ["person"]}
BY_PERSON = {"holder": "person", "drop": []}
RELEASE = {"simulation": {"noise_seed": None}, "evaluate": False, "model": {"depth": 1}}


def run(store, *paths, epsilon=2.0, cap=None, **changes):
    privacy = {"epsilon": epsilon} | ({} if cap is None else {"lifetime_epsilon": cap})
    return Chain(store, rides_config(*paths, privacy=privacy, **{"dataset": BY_ROW} | RELEASE | changes))


def written(path, way):
    """The same people in another file."""
    text, other = path.read_text(), path.with_name(f"other-{way.replace(' ', '-')}.csv")
    head, *rows = text.splitlines()
    if way == "gzip":
        other = other.with_suffix(".csv.gz")
        other.write_bytes(gzip.compress(text.encode()))
    elif way == "line ends":
        other.write_text(text.replace("\n", "\r\n"), newline="")
    elif way == "a newline":
        other.write_text(text + "\n")
    elif way == "shuffled":
        other.write_text("\n".join([head, *np.random.default_rng(0).permutation(rows)]))
    else:
        table = pa.csv.read_csv(path)
        if way == "columns":
            table = table.select(table.column_names[::-1])
            pa.csv.write_csv(table, other)
        else:
            if way == "floats" and pa.types.is_integer(table.schema.field("person").type):
                at = table.column_names.index("person")
                table = table.set_column(at, "person", table.column("person").cast(pa.float64()))
            other = other.with_suffix(".parquet")
            pq.write_table(table, other)
    return other


def drawn(store):
    return {p.name: p.read_bytes() for p in (store.root / "curator").glob("reports/*/*/*.parquet")}


def largest(store):
    return Account(store, None).read().largest_spend().epsilon


@pytest.fixture
def path(tmp_path):
    return rides(tmp_path / "rides.csv", N, 1, person=np.arange(7000, 7000 + N))


@pytest.mark.parametrize("way", first_fast("floats", "gzip", "shuffled"))
def test_a_campaign_asks_nobody_again_who_comes_in_another_file_format(store, path, way):
    settings = {"campaign": {"name": "rides"}, "dataset": BY_PERSON}
    first = run(store, path, **settings)
    assert first.totals.facts["n_private"] == 80
    before = drawn(store)
    other = written(path, way)
    both = run(store, path, other, **settings)
    assert both.totals.facts["n_private"] == 80
    with pytest.raises(DataError, match="no private rows are left"):
        assert run(store, other, **settings).reports
    assert drawn(store) == before


def test_a_campaign_whose_files_were_moved_and_renamed_asks_nobody_again(store, tmp_path):
    """Of two files the one that was asked first stays the first: people of both answered for it."""
    first, second = rides(tmp_path / "b.csv", N, seed=4), rides(tmp_path / "a.csv", N, seed=5)
    campaign = {"campaign": {"name": "rides"}, "dataset": BY_PERSON}
    for paths in ((first,), (first, second)):
        assert run(store, *paths, **campaign).totals
    before, spent = drawn(store), largest(store)
    (tmp_path / "moved").mkdir()
    moved = [first.rename(tmp_path / "moved" / "z.csv"), second.rename(tmp_path / "moved" / "y.csv")]
    assert run(store, *reversed(moved), **campaign).totals
    assert (drawn(store), largest(store)) == (before, spent)


@pytest.mark.parametrize("begun", first_fast(True, False))
@pytest.mark.parametrize("theirs", [["b.csv"], ["b.csv", "a.csv"], ["b.csv", "c.csv"]])
def test_two_runs_of_a_campaign_at_once_with_files_of_their_own_ask_nobody_twice(
    store, path, tmp_path, theirs, begun
):
    """The second one chose its people before the first one asked any; half of these are in both their files, and none of them
    may be asked anything else.
    """
    settings = {"campaign": {"name": "rides"}, "dataset": BY_PERSON, "cap": 2.0}
    head, *lines = path.read_text().splitlines()
    for name, part in (("a.csv", lines[:80]), ("b.csv", lines[40:]), ("c.csv", lines[:60])):
        (tmp_path / name).write_text("\n".join([head, *part]) + "\n")
    if begun:
        run(store, rides(tmp_path / "first.csv", N, 9, person=np.arange(900, 900 + N)), **settings).walk()
    runs = [run(store, *(tmp_path / name for name in names), **settings) for names in (["a.csv"], theirs)]
    for one in runs:
        assert one.published  # it has chosen whom it asks
    for one in runs:
        one.walk()
    asked = {
        name: np.load(store.file(one.held["answers"], f"{name}.asked.npy"))
        for one in runs
        for name in files_of(one)
    }
    everybody = np.concatenate([*asked.values()])
    assert len(everybody) == len(np.unique(everybody)) > 0
    assert Account(store, None).read().largest_spend().epsilon == 2.0
    again = run(store, *(tmp_path / name for name in theirs), **settings)
    assert again.page == runs[1].page  # what it asked is found


def test_of_two_runs_at_once_with_files_of_their_own_whose_rows_are_holders_one_is_refused(store, path):
    for settings in ({"campaign": {"name": "rides"}}, {"cap": 9.0}):
        other = rides(path.with_name(f"{next(iter(settings))}.csv"), N, 5)
        one, two = (run(store, file, **settings, epsilon=1.0) for file in (path, other))
        assert one.published
        assert two.published
        assert one.reports
        with pytest.raises(BudgetError, match=f'{other.name}: .* and with holder = "row" nobody can tell'):
            assert two.reports


def files_of(one):
    """The keyed digests of the files in which a run asked somebody."""
    store = one.store
    return json.loads(store.file(one.held["answers"], "files.json").read_bytes())


@pytest.mark.slow
def test_equal_rows_of_one_file_are_different_people_and_all_report(store, path, tmp_path):
    head, *rows = path.read_text().splitlines()
    (tmp_path / "twice.csv").write_text("\n".join([head, *rows, *rows]))
    assert run(store, tmp_path / "twice.csv").totals.facts["n_private"] == 160
    assert largest(store) == 2.0


@pytest.mark.parametrize(
    "names",
    first_fast(lambda n: f"{n}.0", lambda n: f"0{n}", lambda n: f" {n} ", lambda n: f"{n}e0"),
    ids=["floats of pandas", "leading zeros", "blanks", "exponents"],
)
@pytest.mark.parametrize("campaign", [{}, {"campaign": {"name": "rides"}}], ids=["alone", "campaign"])
def test_a_name_that_is_written_otherwise_is_the_same_person(store, path, tmp_path, names, campaign):
    people = [f"{7000 + i}" for i in range(N)]
    other = rides(tmp_path / "other.csv", N, 2, person=[names(name) for name in people])
    assert run(store, path, cap=3.0, dataset=BY_PERSON, **campaign).reports
    before = drawn(store)
    with pytest.raises((BudgetError, DataError), match=r"would spend epsilon 4|no private rows are left"):
        assert run(store, other, dataset=BY_PERSON, **campaign).reports
    assert drawn(store) == before


@pytest.mark.parametrize("kind", first_fast(pa.float64(), pa.int16(), pa.string(), pa.decimal128(25, 2)))
def test_a_name_of_any_parquet_type_is_that_of_the_csv(store, path, kind):
    assert run(store, path, cap=3.0, dataset=BY_PERSON).reports
    table = pa.csv.read_csv(path)
    at = table.column_names.index("person")
    miles = pa.array(np.arange(N) / 7)  # other rows of theirs
    table = table.set_column(at, "person", table.column("person").cast(kind))
    table = table.set_column(table.column_names.index("miles"), "miles", miles)
    pq.write_table(table, path.with_name("other.parquet"))
    with pytest.raises(BudgetError, match="would spend epsilon 4"):
        assert run(store, path.with_name("other.parquet"), dataset=BY_PERSON).reports


SPELLINGS = [
    [
        "Zo\u00e9 Ba\u00f1o",
        " Zoe\u0301 Ban\u0303o",
        "\u200fZo\u00e9\u200b Ba\u00f1o\u200e",
        "Zoe\u200d\u0301\u3000Ba\u00f1o",
    ],
    ["zo\u00e9 ba\u00f1o", "\u2066zo\u00e9 ba\u00f1o\u2069", "\ufeffzo\u00e9 ba\u00f1o\t"],
    ["Fiona", "\uff26iona", "\u2009Fiona\u2028", "Fi\u00adona\x1f", "\u00a0Fiona"],
    ["fiona", "\ufb01ona", "\u202efiona\u202c", "\x85fiona\u2060", "fi\x00\x1bo\x7f\x9fna\x1c"],
    ["007", "\uff10\uff10\uff17", " 007\u180e"],
    ["7", "\uff17", "7\ufe0f", "\ufff97\ufffa\ufffb"],
]
"""Of each of six people: two differ in their case alone, twice, and two in leading zeros."""


def test_client_and_pipeline_know_a_name_by_whatever_spelling(tmp_path):
    names = [name for spellings in SPELLINGS for name in spellings]
    pq.write_table(pa.table({"who": names}), tmp_path / "names.parquet")
    hashed = hash_names(tmp_path / "names.parquet", "who").tolist()
    protocol, memory = example_protocol(), {}
    reports = [
        Client(protocol, max_epsilon=1.0, memory=memory).report({"x": 1.0, "y": 0.5}, "no", holder=name).id
        for name in names
    ]
    people = [person for person, spellings in enumerate(SPELLINGS) for _ in spellings]
    for known_by in (hashed, reports):
        assert len(set(known_by)) == len(SPELLINGS)
        assert len(set(zip(people, known_by, strict=True))) == len(SPELLINGS)


def test_a_name_of_plain_letters_is_spelled_as_it_is():
    assert [name_of(chr(code) * 2) for code in range(33, 127)] == [chr(code) * 2 for code in range(33, 127)]


def test_a_person_spelled_otherwise_is_asked_once(store, tmp_path):
    def named(name, people):
        return rides(tmp_path / f"{name}.csv", 30, len(name), person=people)

    one = named("one", [f"Zo\u00e9 {i}" for i in range(30)])
    other = named("other", [f" Zo\u200be\u0301 {i}\u00a0" for i in range(30)])
    assert run(store, one, cap=3.0, dataset=BY_PERSON).reports
    with pytest.raises(BudgetError):
        assert run(store, other, dataset=BY_PERSON).reports
    zeros = named("zeros", [f"{'0' * (i % 2)}{i // 2}" if i else "a" for i in range(30)])
    kept = run(store, zeros, dataset=BY_PERSON)
    assert kept.held.facts["n_private"] == 20


@pytest.mark.parametrize("as_file", ["csv", "parquet"])
def test_a_holder_column_of_fractions_is_refused_without_a_value(store, path, as_file):
    people = np.arange(N) + 0.5
    other = rides(path.with_name("other.csv"), N, 1, person=people)
    if as_file == "parquet":
        pq.write_table(pa.csv.read_csv(other), path.with_name("other.parquet"))
        other = path.with_name("other.parquet")
    with pytest.raises(DataError, match='column "person": not an integer') as refused:
        assert run(store, other, dataset=BY_PERSON).reports
    assert refused.value.exit_code == 3
    private = rides(
        path.with_name("private.csv"), N, 1, person=[i if i % 3 == 0 else i + 0.5 for i in range(N)]
    )
    with pytest.raises(DataError, match="not an integer in private rows") as refused:
        assert run(store, private, dataset=BY_PERSON).reports
    assert ".5" not in str(refused.value)
    assert drawn(store) == {}


@pytest.mark.parametrize(
    ("people", "types"),
    [
        ([f"{7000 + i}.0" for i in range(N)], {"person": "text"}),
        ([f"1.2345678901{i:06d}e+18" for i in range(N)], {}),
    ],
)
def test_a_name_that_went_through_a_float_and_may_have_lost_digits_is_refused(store, path, people, types):
    other = rides(path.with_name("other.csv"), N, 1, person=people)
    with pytest.raises(DataError, match="a holder's name written as a floating-point number"):
        assert run(store, other, dataset=BY_PERSON | {"types": types}).reports


@pytest.mark.parametrize("campaign", [{}, {"campaign": {"name": "rides"}}], ids=["ledger", "campaign"])
def test_names_of_another_type_are_refused_with_the_remedy(store, path, campaign):
    texts = rides(path.with_name("texts.csv"), N, 2, person=[f"p{i}" for i in range(N)])
    assert run(store, texts, dataset=BY_PERSON, **campaign).reports
    before = drawn(store)
    chain = run(store, path, dataset=BY_PERSON, **campaign)
    with pytest.raises(
        ProtocolMismatch, match=r'its names were texts.*types = \{"person" = "text"\}'
    ) as refused:
        assert chain.reports
    assert refused.value.exit_code == 5
    with pytest.raises(ProtocolMismatch):
        plan_of(chain.config, store.root)
    assert drawn(store) == before
    as_texts = BY_PERSON | {"types": {"person": "text"}}
    assert run(store, path, dataset=as_texts, **campaign).reports


@pytest.mark.parametrize("dataset", [BY_ROW, BY_PERSON], ids=["rows", "named"])
def test_a_shard_tells_nothing_of_the_order_of_the_file(store, tmp_path, dataset, monkeypatch):
    monkeypatch.setattr("tasks.holders.cut.SHARD_ROWS", 100)
    n = 900
    path = rides(tmp_path / "a.csv", n, 1, miles=np.arange(n) / 100, person=np.arange(n))
    first = run(store, path, dataset=dataset).held
    shards = [tables.read([p]).column("miles").to_numpy() for p in store.files(first["train"])]
    for miles in (shard for shard in shards if len(shard) == 100):
        ranks = np.argsort(np.argsort(miles))
        assert abs(np.corrcoef(ranks, np.arange(100))[0, 1]) < 0.5  # five standard deviations
    for record in (*store.zone("holders").glob("split/*.json"), *store.zone("holders").glob("cut/*.json")):
        record.unlink()
    again = run(store, path, dataset=dataset).held
    assert [e.digest for e in again["train"].files] == [e.digest for e in first["train"].files]


def test_a_shard_of_a_simulation_keeps_its_order(store, tmp_path):
    path = rides(tmp_path / "a.csv", 300, 1, miles=np.arange(300) / 100)
    held = run(store, path, simulation={"noise_seed": 11}).held
    miles = tables.read(store.files(held["train"])).column("miles").to_numpy()
    assert (np.diff(miles) > 0).all()
