"""`ldptree init`: any file gives a configuration that runs as it is, and says what it saw."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest
import sklearn.datasets
from chain import Chain, scores_of
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

import ldptree
from flows.command.init import init
from ldptree.errors import ConfigError, DataError, LdptreeError
from schemas.config import load
from schemas.dataset import parse_public_rule
from storage import tables
from storage.store import Store
from tasks.first_look.rehearsal import type_rows
from tasks.first_look.values import look as look_at
from tasks.first_look.values import rows_by

N = 1500


def german(value):
    return f"{value:,.2f}".replace(",", "_").replace(".", ",").replace("_", ".")


def columns():
    """Made-up people, and what each column of the ugly files is made of."""
    rng = np.random.default_rng(0)
    age, income = rng.integers(18, 80, N), rng.gamma(3, 12_000, N).round(2)
    bought = income + rng.normal(0, 9_000, N) > 36_000
    days = [dt.date(2021, 1, 1) + dt.timedelta(int(day)) for day in rng.integers(0, 1000, N)]
    words = np.array(["good", "bad", "slow", "fast", "kind", "rude"])
    return {
        "age": age,
        "income": income,
        "bought": bought,
        "city": rng.choice(["Köln", "Berlin", "München"], N),
        "site": rng.choice(["north", "south", "west"], N),
        "consent": rng.choice(["yes", "no"], N, p=[0.3, 0.7]),
        "Opt-in panel": rng.choice(["Y", "N"], N, p=[0.3, 0.7]),
        "id": np.arange(1, N + 1),
        "member_id": rng.integers(1, 200, N),
        "note": [" ".join(rng.choice(words, 6)) for _ in range(N)],
        "rate": [f"{one / 1.3:.1f}%" for one in age],
        "pressure": [f"{90 + one}/{60 + i % 9}" for i, one in enumerate(age)],
        "place": [f'"{one / 7:.3f}, {i % 50}.5"' for i, one in enumerate(age)],
        "coded": [one if i % 9 else -999 for i, one in enumerate(age)],
        "money": [f'"${one:,.2f}"' for one in income],
        "price": [f'"${2 * a + 10 * s:,.2f}"' for a, s in zip(age, rng.integers(1, 9, N), strict=True)],
        "german": [german(one) for one in income],
        "day_first": [f"{day:%d.%m.%Y}" for day in days],
        "month_first": [f"{day:%m/%d/%Y %I:%M:%S %p}" for day in days],
        "either": [f"0{1 + i % 9}/0{1 + i % 7}/2021" for i in range(N)],
        "won": np.where(bought, "won", "lost"),
        "const": ["x"] * N,
        "empty": [""] * N,
        "class": np.where(bought, 1, 0),
        "quoted": ['"two\nlines, one field"', '"one"'] * (N // 2),
        "truth": np.where(rng.random(N) < 0.5, "TRUE", "False"),
        "iso": [str(day) for day in days],
        "gaps": [one if i % 40 else "unknown" for i, one in enumerate(income)],
        "answer": rng.choice(["Yes", "YES", "no"], N),
        "shouted": [
            "" if i % 30 == 7 else "WON" if one and i % 3 else "won" if one else "lost"
            for i, one in enumerate(bought)
        ],
    }


HELD = columns()


def written(path, names, *, sep=",", encoding="utf-8", header=True, end="\n"):
    table = [HELD[name] for name in names]
    lines = [sep.join(names)] if header else []
    lines += [sep.join(str(column[row]) for column in table) for row in range(N)]
    content = (end.join(lines) + end).encode(encoding)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


BASE = ["age", "income"]
UGLY = {
    "german.csv": (
        ["id", "age", "german", "city", "day_first", "class"],
        {"sep": ";", "encoding": "cp1252", "end": "\r\n"},
    ),
    "money.csv": (["age", "money", "rate", "consent", "bought"], {}),
    "american.csv": ([*BASE, "month_first", "note", "bought"], {}),
    "nameless.csv": ([*BASE, "class"], {"header": False}),
    "tabs.tsv": ([*BASE, "city", "bought"], {"sep": "\t", "encoding": "utf-8-sig"}),
    "leak.csv": ([*BASE, "won", "const", "empty", "bought"], {}),
    "numbers.csv": (["age", "site", "price"], {}),
    "wide_text.csv": ([*BASE, "city", "bought"], {"encoding": "utf-16"}),
    "either.csv": ([*BASE, "either", "bought"], {}),
    "packed.csv.gz": (["age", "money", "Opt-in panel", "bought"], {}),
    "quoted.csv": ([*BASE, "quoted", "truth", "bought"], {"sep": "|"}),
    "odd.csv": (["age", "gaps", "answer", "shouted"], {}),
    "coded.csv": (["pressure", "place", "coded", "income", "bought"], {}),
    "twins.csv": (["age", "age", "income", "class"], {"header": False}),
    "people.parquet": ([*BASE, "member_id", "site", "iso", "bought"], {}),
}
TARGETS = {
    "german.csv": "class",
    "nameless.csv": "column_3",
    "numbers.csv": "price",
    "odd.csv": "shouted",
    "twins.csv": "4",
}
DIVIDED = {
    "german.csv": "try_strptime(day_first, '%d.%m.%Y') < CAST('2021-",
    "american.csv": "try_strptime(month_first, '%m/%d/%Y %I:%M:%S %p') < CAST('2021-",
    "people.parquet": "CAST(iso AS TIMESTAMP) < CAST('2021-",
}
OFFERED = {"money.csv": "consent = 'yes'", "packed.csv.gz": "\"Opt-in panel\" = 'Y'"}


def ugly(folder, name):
    names, how = UGLY[name]
    path = folder / name
    if path.suffix == ".parquet":
        pl.DataFrame({key: HELD[key] for key in names}).write_parquet(path)
        return path
    return written(path, names, **how)


def look(folder, name, capsys, **changes):
    """The configuration that is written, and what `--json` says."""
    path = ugly(folder, name)
    out = folder / f"{name.partition('.')[0]}.toml"
    settings = {"public": None, "out": out, "force": False, "as_json": True}
    init(path, **({"target": TARGETS.get(name, "bought")} | settings | changes))
    return out, json.loads(capsys.readouterr().out)


SEEN = {
    "german.csv": {"id": "only rise", "german": "decimal comma"},
    "money.csv": {"money": "money", "rate": "percentages"},
    "american.csv": {"note": "free text"},
    "leak.csv": {"won": "by itself it predicts", "const": "one value", "empty": "empty"},
    "numbers.csv": {"price": "money"},
    "either.csv": {"either": "dates"},
    "packed.csv.gz": {"money": "money"},
    "odd.csv": {
        "gaps": "for example 'unknown', and become missing",
        "answer": "capital letters",
        "shouted": "capital letters",
    },
    "coded.csv": {
        "pressure": "dataset.derive must read, as '",
        "place": "dataset.derive must read, as '",
    },
}


@pytest.mark.parametrize("name", UGLY)
def test_what_is_seen_of_an_ugly_file_is_said_and_its_configuration_is_one(tmp_path, capsys, name):
    out, said = look(tmp_path, name, capsys)
    text = out.read_text()
    config = load(out)
    assert config.dataset.target == said["target"]
    for column, what in SEEN.get(name, {}).items():
        assert what in said["columns"][column]["note"]
        is_used = what == "by itself it predicts"
        is_read = column in config.dataset.drop or any(
            column in one for one in config.dataset.derive.values()
        )
        assert is_read is not is_used
    assert said["columns"].get("coded", {}).get("perhaps_missing", {}) == (
        {"-999": 167} if name == "coded.csv" else {}
    )
    if not name.endswith(".parquet"):  # whose types are in the file
        read = {*said["columns"]} - {*config.dataset.drop}
        assert read <= {*config.dataset.types}
    quiet = {key: one["note"] for key, one in said["columns"].items() if key not in SEEN.get(name, {})}
    assert not any(quiet.values()), quiet
    assert said["encoding"] == {
        "german.csv": "windows-1252",
        "wide_text.csv": "utf-16",
        "people.parquet": None,
    }.get(name, "utf-8")
    assert said["header"] is (name not in ("nameless.csv", "twins.csv"))
    assert said["label"] == ("number" if name == "numbers.csv" else "class")
    assert config.dataset.public.startswith(DIVIDED.get(name, "random 0.1"))
    assert OFFERED.get(name, config.dataset.public) in {one["rule"] for one in said["public_proposals"]}
    assert ('# holder = "member_id"' in text) is (name == "people.parquet")
    assert ('# public = "random 0.1"' in text) is (name in DIVIDED)


def test_what_the_values_of_a_date_do_not_tell_is_whole_in_the_file_as_comments(tmp_path, capsys):
    out, _ = look(tmp_path, "either.csv", capsys)
    text = out.read_text()
    assert "whether the day comes first or the month comes first, as in '01/01/2021'; here the day" in text
    _, other = text.split("# or, if the month comes first:\n")
    before = load(out).dataset.derive
    lines = [line.removeprefix("# ") for line in other.splitlines() if line.startswith("# ")]
    after = tomllib.loads("\n".join(lines))
    assert list(after) == list(before)
    assert all("%d/%m" in before[name] and "%m/%d" in after[name] for name in before)


@pytest.mark.slow
@pytest.mark.parametrize("name", UGLY)
def test_the_configuration_of_an_ugly_file_runs_and_beats_the_most_frequent_answer(tmp_path, capsys, name):
    out, _ = look(tmp_path, name, capsys)
    chain = Chain(Store(tmp_path / "run"), load(out, ["privacy.epsilon=8", "evaluation.redraws=0"]))
    assert chain.page
    scores = scores_of(chain)["scores"]
    ours = scores["ours"]
    assert ours["r2"] > 0 if "r2" in ours else ours["accuracy"] > scores["majority"]["accuracy"]


CANARIES = ("SECRET", "98765", "2087", "£")
RULES = {
    "zone = 'open'": lambda i: i % 2 == 0,
    "first 300": lambda i: i < 300,
    "random 0.4": None,
    "friends.csv": lambda i: False,
}


def row(i, *, is_public, is_short=False):
    """A row, or a line that is none; of a private one every value is of a kind that no public row has."""
    zone = "open" if is_public else "SECRET zone"
    held = (
        f"{i % 7},£98765.{i % 9},2087-12-{1 + i % 28}"
        if not is_public
        else f"{i % 7},$1{i % 9}.50,2021-03-0{1 + i % 9}"
    )
    label = "ab"[i * 7 % 11 > 5] if is_public else f"SECRET {i % 3}"
    return f"{zone},{held},{label}" + (",SECRET\n" if is_short else "\n")


@pytest.mark.parametrize(
    ("rule", "n"),
    [
        *((rule, 600) for rule in RULES),
        ("zone = 'open'", 60_000),
        *(pytest.param(rule, 60_000, marks=pytest.mark.slow) for rule in list(RULES)[1:]),
    ],
)
def test_with_a_rule_nothing_of_a_private_row_is_told_or_written(tmp_path, capsys, monkeypatch, rule, n):
    monkeypatch.chdir(tmp_path)
    is_public = RULES[rule]
    if is_public is None:
        mask = rows_by(rule).by_number(0, np.arange(n))
        is_public = mask.__getitem__
    header = "zone,x,pay,day,y\n"
    short = range(7, n, 50) if RULES[rule] else ()  # a line that is no row has no number
    Path("rows.csv").write_text(
        header
        + "".join(row(i, is_public=is_public(i), is_short=i in short and not is_public(i)) for i in range(n))
    )
    Path("friends.csv").write_text(header + "".join(row(i, is_public=True) for i in range(300)))
    out = tmp_path / "rows.toml"
    settings = {"target": "y", "public": rule, "out": out}
    for as_json in (False, True)[: 1 + (n == 600)]:
        init(Path("rows.csv"), force=True, as_json=as_json, **settings)
    said = capsys.readouterr()
    told = said.out + said.err + out.read_text()
    assert "money" in told
    assert [canary for canary in CANARIES if canary in told] == []
    assert load(out).dataset.rule.kind == parse_public_rule(rule).kind
    assert load(out).dataset.positive in ("a", "b")  # two classes in public rows, five in all
    if n == 600:  # what is refused quotes nothing either
        for column in ("zone", "y"):
            for file in ("rows.csv", "friends.csv"):
                text = Path(file).read_text()
                Path(file).write_text(text.replace(",b\n", ",a\n"))
            with pytest.raises(LdptreeError) as refused:
                init(Path("rows.csv"), force=True, as_json=False, **(settings | {"target": column}))
            assert [canary for canary in CANARIES if canary in str(refused.value)] == []


def test_every_column_of_a_long_list_is_read(tmp_path, capsys):
    table = {f"day_{i}": HELD["iso"] for i in range(30)} | {key: HELD[key] for key in ("age", "bought")}
    pl.DataFrame(table).write_csv(tmp_path / "days.csv")
    out = tmp_path / "days.toml"
    init(tmp_path / "days.csv", target="bought", public=None, out=out, force=False, as_json=True)
    config = load(out).dataset
    days = {f"day_{i}" for i in range(1, 30)}  # by the first of them it is told who is public
    assert config.public.startswith("CAST(day_0 AS TIMESTAMP) < ")
    assert {key.rpartition("_")[0] for key in config.derive} == days
    assert {*config.drop} == days  # as they stand


@pytest.mark.parametrize(
    ("content", "changes", "fault", "said"),
    [
        ("a,b\n1,x\n2,y\n", {"target": "c"}, ConfigError, 'no column "c"; it has'),
        ("1,5\n3,4\n", {"target": "c"}, ConfigError, "columns are called column_1 to column_2"),
        ("price,b\n1,x\n2,y\n", {"target": "prize"}, ConfigError, 'did you mean "price"?'),
        ("a,b\n" + "1,x\n2,x\n" * 20, {"target": "b"}, DataError, "one value in the"),
        ("a,b\n1,x\n2,y\n" * 9, {"target": "b"}, DataError, "too few to learn from"),
        ("a,b\n" + "1.5,2,3,x\n" * 40, {"target": "b"}, DataError, "its first line has 2 fields"),
        ("", {"target": "b"}, DataError, "the file is empty"),
        ("a,b\n1,x\n2,y\n", {"target": "b", "public": "z = 1"}, ConfigError, "z"),
        ("a,b\n1,x\n2,y\n", {"target": "b", "public": "a = 7"}, DataError, "0 rows for which a = 7"),
        ("b\n" + "x\ny\n" * 40, {"target": "b"}, DataError, "It has no other than the label. Name"),
        (
            "a,b\n" + "".join(f"1,{i} kg\n2,{i} lb\n" for i in range(40)),
            {"target": "b"},
            DataError,
            '"b" holds numbers in more than one unit',
        ),
        (None, {"target": "b"}, DataError, "no such file"),
    ],
)
def test_what_cannot_be_looked_at_is_told_in_one_message_and_nothing_is_written(
    tmp_path, content, changes, fault, said
):
    path, out = tmp_path / "rows.csv", tmp_path / "rows.toml"
    if content is not None:
        path.write_text(content)
    before = sorted(tmp_path.iterdir())
    settings = {"public": None, "out": out, "force": False, "as_json": False}
    with pytest.raises(fault) as told:
        init(path, **(settings | changes))
    assert said in str(told.value)
    assert sorted(tmp_path.iterdir()) == before


def test_a_name_of_the_catalogue_brings_nothing_of_the_catalogue(tmp_path, capsys):
    (tmp_path / "wine.csv").write_text("x,quality\n" + "1,5\n2,6\n1,6\n2,5\n" * 100)
    out = tmp_path / "wine.toml"
    init(tmp_path / "wine.csv", target="quality", public=None, out=out, force=False, as_json=True)
    assert load(out).dataset.title == ""


def test_a_configuration_that_is_there_is_not_written_over(tmp_path, capsys):
    out, _ = look(tmp_path, "tabs.tsv", capsys)
    out.write_text("mine")
    with pytest.raises(LdptreeError, match="is there already"):
        look(tmp_path, "tabs.tsv", capsys)
    assert out.read_text() == "mine"
    look(tmp_path, "tabs.tsv", capsys, force=True)
    assert tomllib.loads(out.read_text())["name"] == "tabs"


REAL = {
    "abalone/abalone.csv": "9",
    "algerian/Algerian_forest_fires_dataset_UPDATE.csv": "Classes",
    "anonymity/AnonymityPoll.csv": "Smartphone",
    "census/adult-train.csv.gz": "15",
    "diabetes/Healthcare-Diabetes.csv": "Outcome",
    "employee/Employee.csv": "LeaveOrNot",
    "fish/qsar_fish_toxicity.csv": "LC50",
    "istanbul/data_akbilgic.csv": "ISE",
    "taxi/Taxi_Trips_2022_03.parquet": "payment_type",
    "taxi/tfx_data.csv": "tips",
    "wine/winequality-white.csv": "quality",
    "digits.csv.gz": "65",
}
SHIPPED = {"digits.csv.gz": Path(sklearn.datasets.__file__).with_name("data") / "digits.csv.gz"}
"""Not in the catalogue's folder, but with scikit-learn."""
QUICK = ("algerian/Algerian_forest_fires_dataset_UPDATE.csv",)


WORSE = pytest.mark.xfail(reason="of 150 public rows a blend is .027 ± .008 below a forest", strict=True)
"""Where ours is surely worse; the day it is not, this says so."""
MARKS = {"anonymity/AnonymityPoll.csv": (pytest.mark.slow, WORSE), **dict.fromkeys(QUICK, ())}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=MARKS.get(name, pytest.mark.slow)) for name in REAL]
)
def test_a_real_file_goes_from_init_to_export_and_is_as_good_as_a_forest(data_home, tmp_path, capsys, name):
    """As good as scikit-learn's on the same public rows, within two standard errors over the private rows that were looked at."""
    path, out, work = SHIPPED.get(name, data_home / name), tmp_path / "real.toml", tmp_path / "work"
    init(path, target=REAL[name], public=None, out=out, force=False, as_json=True)
    said, config = json.loads(capsys.readouterr().out), load(out)
    is_number = said["label"] == "number"
    commanded("run", out, "--plan", "--work", work)
    run = ldptree.run(out, work=work, evaluation={"redraws": 0})
    commanded("predict", run.summary["model"], path, "--out", tmp_path / "answers.parquet")
    answers = pl.read_parquet(tmp_path / "answers.parquet")
    assert answers.height >= said["rows_looked_at"]
    seen = look_at(path, target=REAL[name], public=None)
    with duckdb.connect() as connection:
        connection.register("rows", seen.texts.with_row_index("place").to_arrow())
        exported = connection.sql(f"{run.to_sql('rows')} ORDER BY place").pl()["prediction"]
    assert exported.cast(answers["prediction"].dtype).equals(
        answers["prediction"].gather(seen.sample.numbers)
    )
    typed = type_rows(seen, config.dataset, is_number=is_number)
    rows, model = typed.rows, run.model
    raw, is_public = tables.raw_matrix(rows.to_arrow(), model.encoding), typed.is_public.to_numpy()
    usable = model.encoding.encodable(raw) & rows[config.dataset.target].is_not_null().to_numpy()
    X, labels = (
        model.encoding.encode(raw[usable]),
        rows[config.dataset.target].filter(pl.Series(usable)).to_numpy(),
    )
    is_public = is_public[usable]
    kind = RandomForestRegressor if is_number else RandomForestClassifier
    labels = labels.astype(float) if is_number else labels.astype(str)
    forest = kind(200, min_samples_leaf=2, random_state=0, n_jobs=2).fit(X[is_public], labels[is_public])
    ours, theirs = model.predict_raw(raw[usable]), forest.predict(X)
    if not is_number:
        ours = np.array([str(value) for value in model.classes])[ours]
    losses = [(one - labels) ** 2 if is_number else one != labels for one in (ours, theirs)]
    worse = (losses[0].astype(float) - losses[1])[~is_public]
    assert worse.mean() <= 2 * worse.std() / np.sqrt(len(worse)), (
        worse.mean(),
        worse.std() / np.sqrt(len(worse)),
    )


def commanded(*words):
    """Run a command as a user types it, to its good end."""
    done = subprocess.run(
        [sys.executable, "-m", "flows.command.main", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
