"""A person is known again however their name or their row is written: nobody is asked twice."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from chain import Chain, rides, rides_config
from first_fast import first_fast

from flows.run_plan.look import plan_of
from ldptree.errors import BudgetError, DataError, ProtocolMismatch
from storage import tables
from storage.ledger.accounts import Account
from tasks.holders import roles as module

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


@pytest.mark.parametrize("way", first_fast("shuffled", "gzip", "line ends", "a newline"))
def test_a_row_of_another_file_format_is_the_same_person(store, path, way):
    assert run(store, path, cap=3.0).reports
    before = drawn(store)
    other = written(path, way)
    with pytest.raises(BudgetError, match=r"holders would spend epsilon 3\.5"):
        assert run(store, other, epsilon=1.5).reports
    assert run(store, other).reports  # the same question is answered by the reports that stand
    assert drawn(store) == before
    assert largest(store) == 2.0


@pytest.mark.parametrize("way", first_fast("floats", "columns", "parquet"))
def test_a_row_whose_columns_have_other_types_or_another_order_is_the_same_person(store, path, way):
    """The question to them is another one."""
    assert run(store, path, cap=3.0).reports
    before = drawn(store)
    with pytest.raises(BudgetError, match=r"holders would spend epsilon 4"):
        assert run(store, written(path, way)).reports
    assert drawn(store) == before


@pytest.mark.slow
def test_a_cap_set_later_knows_who_was_asked_before_there_was_one(store, path):
    assert run(store, path).reports
    with pytest.raises(BudgetError):
        assert run(store, written(path, "parquet"), epsilon=1.5, cap=3.0).reports


@pytest.mark.parametrize(
    "settings",
    first_fast(
        {"drop": ["person", "hour"]},
        {"types": {"hour": "text"}, "drop": ["person"]},
        {"drop": ["person"], "where": "hour >= 0"},
        {"drop": ["person"], "nulls": ["", "-"]},
        {"drop": ["person"], "derive": {"far": "miles > 5"}},
    ),
)
def test_other_settings_make_no_other_people(store, path, settings):
    assert run(store, path, cap=3.0).reports
    with pytest.raises(BudgetError):
        assert run(store, written(path, "shuffled"), epsilon=1.5, dataset=settings).reports


@pytest.mark.slow
def test_a_line_that_is_left_out_moves_no_row_to_another_person(store, path):
    settings = {"dataset": BY_ROW | {"on_bad_rows": "quarantine", "max_bad_fraction": 0.5}}
    assert run(store, path, cap=3.0).reports
    head, *rows = path.read_text().splitlines()
    new = [row.replace(f",{7000 + i},", f",{8000 + i},") for i, row in enumerate(rows[:-2])]
    lines = [head, "a,ragged,line", new[1].replace("card", "").replace("cash", ""), *new]
    assert run(store, rewritten(path, "new", lines), epsilon=1.5, **settings).reports
    with pytest.raises(BudgetError):
        assert run(store, rewritten(path, "old", [*lines, rows[-1]]), epsilon=1.5, **settings).reports


def rewritten(path, name, lines):
    """Another file with these lines."""
    other = path.with_name(f"{name}.csv")
    other.write_text("\n".join(lines) + "\n")
    return other


@pytest.mark.slow
def test_rows_among_others_are_known_again(store, path, tmp_path):
    assert run(store, path, cap=3.0).reports
    head, *rows = path.read_text().splitlines()
    more = rides(tmp_path / "more.csv", 90, 2, person=np.arange(90)).read_text().splitlines()[1:]
    (tmp_path / "mixed.csv").write_text("\n".join([head, *more, *rows[-30:]]))
    with pytest.raises(BudgetError):
        assert run(store, tmp_path / "mixed.csv", epsilon=1.5).reports
    (tmp_path / "new.csv").write_text("\n".join([head, *more]))
    assert run(store, tmp_path / "new.csv", epsilon=1.5).reports


@pytest.mark.slow
def test_calling_people_of_a_copy_otherwise_gives_them_no_new_budget(store, path):
    for first, second in ((BY_ROW, BY_PERSON), (BY_PERSON, BY_ROW)):
        assert run(store, path, cap=3.0, dataset=first).reports
        with pytest.raises(BudgetError):
            assert run(store, written(path, "parquet"), epsilon=1.5, dataset=second).reports
        path = rides(path.with_name("again.csv"), N, 3, person=np.arange(9000, 9000 + N))


def test_a_file_that_an_earlier_version_charged_by_its_rows_is_known(store, path, monkeypatch):
    """Which had no names of rows: the same file under the same question costs nothing, under another one it adds up."""
    kept = Account.charge
    monkeypatch.setattr(
        Account,
        "charge",
        lambda self, charges, *rest: kept(self, [c for c in charges if hasattr(c.who, "source")], *rest),
    )
    assert run(store, path, cap=3.0).reports
    monkeypatch.undo()
    assert run(store, path).reports
    assert largest(store) == 2.0
    with pytest.raises(BudgetError):
        assert run(store, written(path, "parquet"), epsilon=1.5).reports
    with pytest.raises(BudgetError):
        assert run(store, path, epsilon=1.5).reports


@pytest.mark.parametrize("way", first_fast("floats", "gzip", "shuffled"))
@pytest.mark.parametrize("dataset", first_fast(BY_ROW, BY_PERSON), ids=["rows", "named"])
def test_a_campaign_asks_nobody_again_who_comes_in_another_file_format(store, path, dataset, way):
    settings = {"campaign": {"name": "rides"}, "dataset": dataset}
    first = run(store, path, **settings)
    assert first.totals.facts["n_private"] == 80
    before = drawn(store)
    other = written(path, way)
    both = run(store, path, other, **settings)
    assert both.totals.facts["n_private"] == 80
    with pytest.raises(DataError, match="no private rows are left"):
        assert run(store, other, **settings).reports
    assert drawn(store) == before


@pytest.mark.parametrize("begun", first_fast(True, False))
@pytest.mark.parametrize("theirs", [["b.csv"], ["b.csv", "a.csv"], ["b.csv", "c.csv"]])
@pytest.mark.parametrize("dataset", first_fast(BY_PERSON, BY_ROW), ids=["person", "row"])
def test_two_runs_of_a_campaign_at_once_with_files_of_their_own_ask_nobody_twice(
    store, path, tmp_path, dataset, theirs, begun
):
    """The second one chose its people before the first one asked any; half of these are in both their files, and none of them
    may be asked anything else.
    """
    settings = {"campaign": {"name": "rides"}, "dataset": dataset, "cap": 2.0}
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
        name: np.load(file)
        for one in runs
        for file in store.files(one.held["answers"])
        if (name := file.name.removesuffix(".at.npy" if dataset is BY_ROW else ".npy")) in files_of(one)
    }
    everybody = np.concatenate([np.atleast_2d(names)[0] for names in asked.values()])
    assert len(everybody) == len(np.unique(everybody)) > 0
    assert Account(store, None).read().largest_spend().epsilon == 2.0
    again = run(store, *(tmp_path / name for name in theirs), **settings)
    assert again.page == runs[1].page  # what it asked is found


def files_of(one):
    """The keyed digests of the files in which a run asked somebody."""
    store = one.store
    return json.loads(store.file(one.held["answers"], "files.json").read_bytes())


def test_a_campaign_asks_the_new_rows_of_a_file_that_repeats_old_ones(store, path, tmp_path):
    settings = {"campaign": {"name": "rides"}}
    assert run(store, path, **settings).reports
    more = rides(tmp_path / "more.csv", 90, 2, person=np.arange(90)).read_text().splitlines()[1:]
    (tmp_path / "week-2.csv").write_text("\n".join([*path.read_text().splitlines(), *more]))
    third = rides(tmp_path / "week-3.csv", 60, 3, person=np.arange(100, 160))
    before = drawn(store)
    assert run(store, tmp_path / "week-2.csv", **settings).totals.facts["n_private"] == 80 + 60
    after = drawn(store)
    assert before.items() < after.items()
    # Named together, in whatever order, who was asked in each file stays as it was.
    every = run(store, third, tmp_path / "week-2.csv", path, **settings)
    assert every.totals.facts["n_private"] == 80 + 60 + 40
    assert after.items() < drawn(store).items()


@pytest.mark.slow
def test_a_campaign_begun_before_rows_were_kept_goes_on_and_keeps_them(store, path, tmp_path):
    settings = {"campaign": {"name": "rides"}}
    second = tmp_path / "week-2.csv"
    extra = rides(tmp_path / "more.csv", 60, 2, person=np.arange(60)).read_text().splitlines()[1:]
    second.write_text(
        "\n".join([path.read_text().splitlines()[0], *path.read_text().splitlines()[41:], *extra])
    )
    with pytest.MonkeyPatch.context() as patch:  # weeks that overlap were asked whole
        patch.setattr(module.RowNames, "of", lambda self, digests, kept: digests + np.uint64(id(digests)))
        assert run(store, path, **settings).reports
        n_private = run(store, path, second, **settings).totals.facts["n_private"]
    holders = store.root / "holders"
    kept = (*holders.glob("campaigns/*/answered/*"), *holders.glob("split/*.json"))
    for path_kept in (*kept, *store.root.rglob("seal")):  # an earlier version kept none of these
        path_kept.unlink()
    (files,) = holders.glob("campaigns/*/files.json")
    files.write_text(json.dumps(json.loads(files.read_text())["files"]))
    before = drawn(store)
    assert run(store, path, second, **settings).totals.facts["n_private"] == n_private
    assert drawn(store) == before
    with pytest.raises(DataError, match="no private rows are left"):
        assert run(store, written(path, "parquet"), **settings).reports


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


def test_texts_are_trimmed_and_composed_and_their_leading_zeros_count(store, tmp_path):
    def named(name, people):
        return rides(tmp_path / f"{name}.csv", 30, len(name), person=people)

    one = named("one", [f"Zo\u00e9 {i}" for i in range(30)])
    other = named("other", [f" Zoe\u0301 {i}\u00a0" for i in range(30)])
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


@pytest.mark.slow
def test_a_campaign_of_an_earlier_version_knows_its_people_by_numbers_with_a_range(store, path, monkeypatch):
    """Whose names were floats to it: 7000.0."""
    settings = {"campaign": {"name": "rides"}, "dataset": BY_PERSON}
    monkeypatch.setattr(module, "hash_names", module.hash_names_as_floats)
    assert run(store, path, **settings).reports
    monkeypatch.undo()
    (published,) = (store.root / "curator" / "campaigns").glob("*/published.json")
    assert json.loads(published.read_text())["terms"]["holder_type"] == "integer"
    with pytest.raises(DataError, match="no private rows are left"):
        assert run(store, written(path, "shuffled"), **settings).reports


@pytest.mark.parametrize("dataset", [BY_ROW, BY_PERSON], ids=["rows", "named"])
def test_a_shard_tells_nothing_of_the_order_of_the_file(store, tmp_path, dataset, monkeypatch):
    monkeypatch.setattr("tasks.holders.stretches.SHARD_ROWS", 100)
    n = 900
    path = rides(tmp_path / "a.csv", n, 1, miles=np.arange(n) / 100, person=np.arange(n))
    first = run(store, path, dataset=dataset).held
    shards = [tables.read([p]).column("miles").to_numpy() for p in store.files(first["train"])]
    for miles in (shard for shard in shards if len(shard) == 100):
        ranks = np.argsort(np.argsort(miles))
        assert abs(np.corrcoef(ranks, np.arange(100))[0, 1]) < 0.5  # five standard deviations
    for record in (store.root / "holders" / "split").glob("*.json"):
        record.unlink()
    again = run(store, path, dataset=dataset).held
    assert [e.digest for e in again["train"].files] == [e.digest for e in first["train"].files]


def test_a_shard_of_a_simulation_keeps_its_order(store, tmp_path):
    path = rides(tmp_path / "a.csv", 300, 1, miles=np.arange(300) / 100)
    held = run(store, path, simulation={"noise_seed": 11}).held
    miles = tables.read(store.files(held["train"])).column("miles").to_numpy()
    assert (np.diff(miles) > 0).all()


def test_reports_of_a_release_that_an_earlier_version_asked_stand(store, path):
    """Its shards had the order of the file, and its records say so."""
    settings = {"simulation": {"noise_seed": 11}}
    seeded = run(store, path, **settings).held
    (folder,) = {p.parent for p in (store.root / "holders" / "split").glob("*.json")}
    (record,) = folder.glob("*.json")
    told = json.loads(record.read_text())
    told["version"] = "3"
    for part in told["parts"].values():
        part["made_by"]["parameters"]["noise_seed"] = None
    told.pop("format")  # an earlier version kept none
    (folder / "old.json").write_text(json.dumps(told))
    now = run(store, path).held
    assert [e.digest for e in now["train"].files] == [e.digest for e in seeded["train"].files]
    other = run(store, path, dataset={"drop": ["person", "hour"]}).held
    (shard,) = store.files(other["train"])
    assert (
        sorted(tables.read([shard]).column("miles").to_pylist())
        != tables.read([shard]).column("miles").to_pylist()
    )
