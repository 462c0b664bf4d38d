"""`ldptree init`: any file gives a configuration that runs as it is, and says what it saw."""

from __future__ import annotations

import contextlib
import datetime as dt
import gzip
import io
import json
import os
import pty
import re
import sys
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from chain import Chain, scores_of
from workbooks import workbook

from flows.command.init import init
from ldptree.errors import ConfigError, DataError, LdptreeError
from schemas.config import load
from schemas.dataset import parse_public_rule
from storage.raw import raw_files
from storage.store import Store
from tasks.data.ingest import ZoneFolders, ingest_files
from tasks.data.ingest_plan import RowRules
from tasks.first_look.proposal import MOST_LINES
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
CONSENTED = {"money.csv": "consent = 'yes'", "packed.csv.gz": "\"Opt-in panel\" = 'Y'"}


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
    settings = {"public": None, "out": out, "force": False, "ask": False, "as_json": True}
    init(path, **({"target": TARGETS.get(name, "bought")} | settings | changes))
    return out, json.loads(capsys.readouterr().out)


SEEN = {
    "german.csv": {"id": "only rise", "german": "decimal comma", "day_first": "the day comes first"},
    "money.csv": {"money": "money", "rate": "percentages"},
    "american.csv": {"month_first": "the month comes first", "note": "free text"},
    "leak.csv": {"won": "by itself it predicts", "const": "one value", "empty": "empty"},
    "numbers.csv": {"price": "money"},
    "either.csv": {"either": "dates"},
    "packed.csv.gz": {"money": "money"},
    "odd.csv": {"gaps": "words", "answer": "capital letters", "shouted": "capital letters"},
    "people.parquet": {"iso": "dates", "member_id": "it is called so, and has 199"},
    "coded.csv": {
        "pressure": "2 numbers in one, as in '1",
        "place": "2 numbers in one",
        "coded": "of which -999 (11%) seems to mean missing",
    },
}


@pytest.mark.parametrize("name", UGLY)
def test_what_is_seen_of_an_ugly_file_is_said_and_its_configuration_is_one(tmp_path, capsys, name):
    out, said = look(tmp_path, name, capsys)
    text = out.read_text()
    assert len(text.splitlines()) <= MOST_LINES
    config = load(out)
    assert config.dataset.target == said["target"]
    for column, what in SEEN.get(name, {}).items():
        assert what in said["columns"][column]["note"]
        assert column in config.dataset.drop or any(column in one for one in config.dataset.derive.values())
    quiet = {key: one["note"] for key, one in said["columns"].items() if key not in SEEN.get(name, {})}
    assert not any(quiet.values()), quiet
    assert said["encoding"] == {
        "german.csv": "windows-1252",
        "wide_text.csv": "utf-16",
        "people.parquet": None,
    }.get(name, "utf-8")
    assert said["header"] is (name not in ("nameless.csv", "twins.csv"))
    assert said["label"] == ("number" if name == "numbers.csv" else "class")
    assert config.dataset.public == CONSENTED.get(name, "random 0.1")
    assert ('# holder = "member_id"' in text) is (name == "people.parquet")
    assert ('# public = "site = ' in text) is (name in ("numbers.csv", "people.parquet"))


@pytest.mark.parametrize(
    ("name", "first", "is_holder"),
    [
        ("taxi_id", 2_000_000, True),
        ("Passenger ID", 1, True),
        ("Premium paid", 1, False),
        ("company_id", 1, False),
    ],
)
def test_a_column_that_names_a_person_is_proposed_as_the_holder(tmp_path, capsys, name, first, is_holder):
    path, out = tmp_path / "rows.csv", tmp_path / "rows.toml"
    people = first + np.arange(400) // (80 if name == "company_id" else 8)
    pl.read_csv(io.StringIO(plain())).with_columns(pl.Series(name, people)).write_csv(path)
    init(path, target="y", public=None, out=out, force=False, ask=False, as_json=True)
    text = out.read_text()
    assert (f'# holder = "{name}"' in text) is is_holder
    if not is_holder:
        return
    lines = [line.removeprefix("# ") if line.startswith("# holder") else line for line in text.splitlines()]
    if name in load(out).dataset.drop:
        assert "then take it out of drop" in text
        lines = [line for line in lines if not line.startswith(f'    "{name}",')]
    out.write_text("\n".join(lines))
    assert load(out).dataset.holder == name


def test_what_ask_would_ask_of_a_date_is_whole_in_the_file_as_comments(tmp_path, capsys):
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
    settings = {"target": "y", "public": rule, "out": out, "ask": False}
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


def test_a_long_list_of_columns_to_read_finds_room_and_the_rest_is_left_out(tmp_path, capsys):
    table = {f"day_{i}": HELD["iso"] for i in range(30)} | {key: HELD[key] for key in ("age", "bought")}
    pl.DataFrame(table).write_csv(tmp_path / "days.csv")
    out = tmp_path / "days.toml"
    init(tmp_path / "days.csv", target="bought", public=None, out=out, force=False, ask=False, as_json=True)
    config = load(out).dataset
    assert len(out.read_text().splitlines()) <= MOST_LINES
    read = {key.rpartition("_")[0] for key in config.derive}
    assert read | set(config.drop) == {f"day_{i}" for i in range(30)}
    assert read.isdisjoint(config.drop)


@pytest.mark.parametrize(
    ("content", "changes", "fault", "said"),
    [
        ("a,b\n1,x\n2,y\n", {"target": "c"}, ConfigError, 'no column "c"; it has'),
        ("1,5\n3,4\n", {"target": "c"}, ConfigError, "columns are called column_1 to column_2"),
        ("price,b\n1,x\n2,y\n", {"target": "prize"}, ConfigError, 'did you mean "price"?'),
        ("a,b\n1,x\n2,x\n" * 20, {"target": "b"}, DataError, "one value in the"),
        ("a,b\n1,x\n2,y\n" * 9, {"target": "b"}, DataError, "too few to learn from"),
        ("a,b\n" + "1.5,2,3,x\n" * 40, {"target": "b"}, DataError, "its first line has 2 fields"),
        ("% note\n@RELATION r\n@data\n1,x\n", {"target": "b"}, DataError, "names no attribute"),
        ('[{"a": 1}]\n', {"target": "b"}, DataError, "it is JSON"),
        ("", {"target": "b"}, DataError, "the file is empty"),
        ("%PDF-1.4 \0\0", {"target": "b"}, DataError, "a PDF"),
        ("a,b\n", {"target": "b"}, DataError, "a header and no rows"),
        ("a,b\n1,x\n2,y\n", {"target": "b", "public": "z = 1"}, ConfigError, "z"),
        ("a,b\n1,x\n2,y\n", {"target": "b", "public": "a = 7"}, DataError, "0 rows for which a = 7"),
        ("a,b\n1,x\n2,y\n", {"target": "b", "ask": True}, ConfigError, "--ask: this is no terminal"),
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
    settings = {"public": None, "out": out, "force": False, "ask": False, "as_json": False}
    with pytest.raises(fault) as told:
        init(path, **(settings | changes))
    assert said in str(told.value)
    assert sorted(tmp_path.iterdir()) == before


ASKED = {
    "the second of all": ("2\n2\n2\n", 0, "site = 'north'"),
    "the first of all": ("\n\n\n", 0, "random 0.38"),
    "wrong answers first": ("x\n9\n0\n2\n\n\n", 0, "is none of these"),
    "Ctrl-C": ("\x03", 130, "interrupted"),
    "Ctrl-C at the second question": ("1\n\x03", 130, "interrupted"),
    "the end of input": ("1\n\x04", 2, "the input ended"),
}


def typed(arguments, keys, folder):
    """What a terminal shows, and the exit code, where these keys are typed: one line a question."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execv(sys.executable, [sys.executable, "-m", "flows.command.main", *arguments])
    lines, shown, seen = re.findall(r"[^\n\x03\x04]*[\n\x03\x04]", keys), b"", 0
    with contextlib.suppress(OSError):  # its end is where the other end is closed
        while part := os.read(terminal, 4096):
            shown += part
            if lines and shown[seen:].endswith(b"]: "):
                seen = len(shown)
                os.write(terminal, lines.pop(0).encode())
    return shown.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.slow
@pytest.mark.parametrize("name", ASKED)
def test_questions_are_asked_until_they_are_answered_or_the_asking_ends(tmp_path, name):
    keys, code, said = ASKED[name]
    table = {
        "day": [f"0{1 + i % 9}/0{1 + i % 5}/2021" for i in range(400)],
        "site": ["north", "south", "south"] * 133 + ["south"],
        "won": np.where(np.arange(400) ** 2 % 11 > 4, "w", "l"),
        "age": np.arange(400) % 50,
        "y": np.where(np.arange(400) ** 2 % 11 > 4, "yes", "no"),
    }
    pl.DataFrame(table).write_csv(tmp_path / "rows.csv")
    shown, ended = typed(["init", "rows.csv", "--target", "y", "--ask"], keys, tmp_path)
    assert (ended, said in shown) == (code, True), shown
    assert "Traceback" not in shown
    assert (tmp_path / "rows.toml").exists() is (code == 0)
    if name == "the second of all":
        spec = load(tmp_path / "rows.toml").dataset
        assert "%m/%d" in spec.derive["day_month"]
        assert "won" not in spec.drop


LAID_OUT = {
    "title.csv": (
        "Report of May,,\nx,z,y\n" + "1.5,2,yes\n0.5,1,no\n" * 30,
        "y",
        "1 line above its header",
        60,
    ),
    "remarks.tsv": (
        "# made by hand, v3\n# x, z\nx\tz\ty\n" + '1.5\t"a, b"\tyes\n0.5\t"c, d"\tno\n' * 30,
        "y",
        "2 lines above its header",
        60,
    ),
    "units.csv": ("x,z,y\n(m),(s),\n" + "1.5,2,yes\n0.5,1,no\n" * 30, "y", "second header", 60),
    "again.csv": ("x,z,y\n1,2,yes\n0,1,no\nx,z,y\n,,\n" * 9, "y", "its header again between its rows", 18),
    "from_r.csv": ("x,z,y\n" + "n1,1,2,yes\nn2,0,1,no\n" * 30, "y", "a name too few", 60),
    "late_again.csv": (
        "x,z,y\n" + "1,2,yes\n0,1,no\n1,2,no\n" * 60 + "x,z,y\n" + "1,2,yes\n" * 20,
        "y",
        "its header again between its rows",
        200,
    ),
    "totals.csv": (
        "Report\nof: May\n\nx|z|w|y\n" + "1|2|3|yes\n0|1|2|no\n1|2|3|no\n" * 60 + "Total|180|| 90\n",
        "y",
        "1 line of totals or remarks below its rows",
        180,
    ),
    "blank_above.csv": (
        "Report\nof: May\n\nx|z|w|y\n" + "1|2|3|yes\n0|1|2|no\n1|2|3|no\n" * 60 + "Source: me|||\n\n",
        "y",
        "3 lines above its header",
        180,
    ),
    "last_end.csv": (
        "x,z,y\r\n" + '"1,5\n5",2,yes\r\n"0,1""",1,no\r\n"1,5\n5",2,no\r\n' * 60 + "\n",
        "y",
        "lines that end in different ways",
        180,
    ),
    "ends.csv": (
        "x,z,y\r\n" + "1,2,yes\r\n" * 30 + "0,1,no\n" * 30,
        "y",
        "lines that end in different ways",
        60,
    ),
    "broken.csv": ('"x\nm",z,y\n' + "1,2,yes\n0,1,no\n" * 30, "y", "a line break in its header", 60),
    "twice.csv": ("x,X,y\n" + "1,2,yes\n0,1,no\n" * 30, "y", "columns of the same name", 60),
}


@pytest.mark.parametrize("name", LAID_OUT)
def test_a_layout_that_no_run_reads_is_named_and_written_anew(tmp_path, capsys, name):
    content, target, what, n_rows = LAID_OUT[name]
    (tmp_path / name).write_bytes(content.encode())
    out = tmp_path / "rows.toml"
    init(tmp_path / name, target=target, public="random 0.5", out=out, force=False, ask=False, as_json=True)
    said = json.loads(capsys.readouterr().out)
    assert any(what in oddity for oddity in said["oddities"])
    (path,) = load(out).dataset.path
    with raw_files.connect(
        [file := raw_files.inspect(Path(path), columns=load(out).dataset.columns)]
    ) as query:
        rows = query.execute(file.select(file.columns, file.columns)).fetchall()
    assert len(rows) == n_rows
    place = file.columns.index(load(out).dataset.target)
    assert {row[place] for row in rows} == {"yes", "no"}
    assert Path(path).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("row", ["1,2,yes", "1,2,yes,", "1,2,yes,,"])
@pytest.mark.parametrize("other", ["0,1,no", "0,1,no,"])
def test_empty_fields_at_the_end_of_rows_are_no_column_and_no_fault(tmp_path, capsys, row, other):
    path, out = tmp_path / "rows.csv", tmp_path / "rows.toml"
    path.write_text("x,z,y\n" + f"{row}\n{other}\n1,2,no\n" * 40)
    init(path, target="y", public="random 0.5", out=out, force=False, ask=False, as_json=True)
    said = json.loads(capsys.readouterr().out)
    assert (said["path"], said["oddities"], list(said["columns"])) == ("rows.csv", [], ["x", "z", "y"])
    with raw_files.connect([file := raw_files.inspect(path)]) as query:
        assert len(query.execute(file.select(file.columns, file.columns)).fetchall()) == 120


ROWS = [["x", "z", "y"], *[[1.5 + i, i % 7, "yes" if i % 2 else "no"] for i in range(60)]]
TEXT = "".join(",".join(map(str, row)) + "\n" for row in ROWS)


def zipped(name, text):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(name, text)
    return content.getvalue()


FORMATS = {
    "rows.xlsx": (workbook({"S": ROWS}), "y"),
    "rows.arff": (
        "@relation r\n" + "".join(f"@attribute {n} string\n" for n in "xzy") + "@data\n" + TEXT[6:],
        "y",
    ),
    "rows.zip": (zipped("rows.csv", TEXT), "y"),
    "rows.data": (TEXT.replace(",", "  "), "y"),
    "no_header.data": (TEXT[6:].replace(",", "  "), "3"),
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_that_a_run_reads_is_named_as_it_is(tmp_path, capsys, name):
    content, target = FORMATS[name]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    out = tmp_path / "rows.toml"
    init(tmp_path / name, target=target, public="random 0.5", out=out, force=False, ask=False, as_json=True)
    said = json.loads(capsys.readouterr().out)
    assert (said["oddities"], said["path"], said["rows_looked_at"] > 20) == ([], name, True)
    spec = load(out).dataset
    file = raw_files.inspect(Path(spec.path[0]), columns=spec.columns, delimiter=spec.delimiter)
    with raw_files.connect([file]) as query:
        assert len(query.execute(file.select(file.columns, file.columns)).fetchall()) == 60
    assert spec.target == file.columns[2]


@pytest.mark.parametrize("title", [[], [["Report of May"]]])
def test_the_sheet_of_a_workbook_is_named_where_there_are_several(tmp_path, capsys, title):
    path, out = tmp_path / "rows.xlsx", tmp_path / "rows.toml"
    path.write_bytes(workbook({"notes": [["none"]], "May": [*title, *ROWS]}))
    how = {"target": "y", "public": "random 0.5", "out": out, "force": False, "ask": False, "as_json": True}
    with pytest.raises(DataError, match=r"2 sheets have cells \(notes, May\).*--sheet"):
        init(path, **how)
    assert not out.exists()
    init(path, sheet="May", **how | {"as_json": False})
    assert "written    a workbook, a header" in capsys.readouterr().out
    spec = load(out).dataset
    assert (spec.sheet, Path(spec.path[0]).name) == (
        ((), "rows.tidy.csv") if title else (("May",), "rows.xlsx")
    )
    file = raw_files.inspect(Path(spec.path[0]), sheets=spec.sheet)
    with raw_files.connect([file]) as query:
        assert len(query.execute(file.select(file.columns, file.columns)).fetchall()) == 60


def late(folder, suffix):
    """A long file whose first nine tenths have one class, no gap and no word."""
    n = 60_000
    rng = np.random.default_rng(1)
    x, z = np.sort(rng.normal(size=n)), rng.normal(size=n).round(3).astype(str)
    z[-4000:] = np.where(np.arange(4000) % 3, z[-4000:], "unknown")
    table = {
        "x": x.round(3),
        "z": z,
        "day": ["2021-03-04"] * n,
        "y": np.where(np.arange(n) < 0.9 * n, "a", "b"),
    }
    path, rows = folder / f"late.{suffix}", pl.DataFrame(table | {"open": np.arange(n) % 2})
    if suffix == "parquet":
        rows.write_parquet(path, row_group_size=n)
    else:
        text = rows.write_csv(line_terminator="\r\n").encode()
        path.write_bytes(gzip.compress(text, 1) if suffix == "csv.gz" else text)
    return path


@pytest.mark.parametrize("suffix", ["csv", pytest.param("csv.gz", marks=pytest.mark.slow), "parquet"])
def test_what_stands_only_at_the_end_of_a_long_file_is_seen(tmp_path, capsys, suffix):
    out = tmp_path / "late.toml"
    init(late(tmp_path, suffix), target="y", public=None, out=out, force=False, ask=False, as_json=True)
    said = json.loads(capsys.readouterr().out)
    assert not said["all_rows"]
    assert "words that then are missing" in said["columns"]["z"]["note"]
    assert said["columns"]["day"]["note"] == "dates, all public ones alike"
    assert said["label"] == "class"
    assert load(out).dataset.on_bad_rows == "quarantine"


@pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
@pytest.mark.parametrize("n", [21_000, 26_000, 60_000])
def test_no_row_of_a_long_file_is_looked_at_twice(tmp_path, capsys, suffix, n):
    content = "x,z,y\n" + "".join(f"{i / 7:.4f} °C,{i % 9},{'ab'[i % 3 == 0]}\n" for i in range(n))
    path = tmp_path / f"long.{suffix}"
    path.write_bytes(gzip.compress(content.encode(), 1) if suffix == "csv.gz" else content.encode())
    init(path, target="y", public=None, out=tmp_path / "long.toml", force=False, ask=False, as_json=True)
    said = json.loads(capsys.readouterr().out)
    assert not said["all_rows"]
    assert said["duplicates"] == 0


def plain(end="", **more):
    """Rows of x, z and y, of which no column tells y, and of more columns; and what stands below them."""
    rng = np.random.default_rng(5)
    y = rng.choice(["a", "b"], 400)
    table = {"x": rng.integers(0, 7, 400), "z": rng.integers(0, 9, 400)}
    table |= {name: [one(i, y[i]) for i in range(400)] for name, one in more.items()}
    return pl.DataFrame(table | {"y": y}).write_csv() + end


REFUSED_BY_RUNS = {
    "a few odd values": (
        plain(odd=lambda i, y: "0.5" if i == 390 else "word" if i == 399 else ""),
        "nearly empty",
    ),
    "a leak in money": (plain(odd=lambda i, y: f"${1 + (y == 'a')}.00"), "by itself it predicts"),
    "a leak in a date": (
        plain(odd=lambda i, y: f"2021-0{1 + (y == 'a')}-0{1 + i % 5}"),
        "by itself it predicts",
    ),
    "a date where it happened": (
        plain(odd=lambda i, y: f"2021-0{1 + i % 7}-0{1 + i % 5}" if y == "a" else ""),
        "by itself it predicts",
    ),
    "a leak in a number, where the classes are digits": (
        plain(odd=lambda i, y: f"{10 * (y == 'a') + i % 9}.5")
        .replace(",a\n", ",1\n")
        .replace(",b\n", ",0\n"),
        "by itself it predicts",
    ),
    "free text where it happened": (
        plain(odd=lambda i, y: f"stopped on day {i} of all days, sadly" if y == "a" else ""),
        "free text: 2",
    ),
    "a short line": (plain("1,2\n"), ""),
    "many short lines": (plain("1,2\n" * 6), ""),
    "a line of totals": (plain("Total,600,\n"), ""),
    "numbers in two notations": (
        plain(odd=lambda i, y: f"{i},25" if i % 2 else f"{i}.25"),
        "more than one way",
    ),
    "infinite numbers": (
        plain(odd=lambda i, y: "inf" if i % 50 == 0 else f"{i % 13}.5"),
        "words that then are missing",
    ),
    "the sign behind": (plain(odd=lambda i, y: f"{i}.5-" if i % 3 else f"{i}.5"), "the sign behind"),
    "blanks around truth": (plain(odd=lambda i, y: " True " if i % 3 else " False "), ""),
    "an empty column": (plain(odd=lambda i, y: ""), "empty"),
}


@pytest.mark.parametrize("name", REFUSED_BY_RUNS)
def test_what_a_run_would_refuse_is_dealt_with_before_it_is_written(tmp_path, capsys, name):
    content, note = REFUSED_BY_RUNS[name]
    (tmp_path / "rows.csv").write_text(content)
    out = tmp_path / "rows.toml"
    init(tmp_path / "rows.csv", target="y", public=None, out=out, force=False, ask=False, as_json=True)
    said = json.loads(capsys.readouterr().out)["columns"]
    assert note in said.get("odd", {"note": ""})["note"]
    assert ("by itself it predicts" in said.get("odd", {"note": ""})["note"]) is (
        "leak" in name or "happened" in name
    )
    spec = load(out).dataset
    zones = ZoneFolders(public=tmp_path / "p", holders=tmp_path / "h", faults=tmp_path / "faults")
    found = ingest_files(RowRules(dataset=spec, seed=0), [Path(path) for path in spec.path], zones)
    features = spec.features([column.name for column in found.columns])
    assert {"x", "x_number"} & set(features)
    assert ("odd" in features) is (name == "blanks around truth")
    numbers = ("numbers in two notations", "infinite numbers", "the sign behind")
    assert ("odd_number" in features) is (name in numbers)


@pytest.mark.parametrize(
    ("given", "typed", "note"),
    [
        (1.0, "stays", "it is missing just where y is stays"),
        (0.9, "stays", ""),
        (1.0, "moves", "it is there just where y is is moved"),
        (1.0, "a fault", "by itself it predicts y"),
        (0.9, "a fault", ""),
    ],
)
def test_a_column_that_is_missing_or_there_just_for_one_of_several_classes_is_left_out(
    tmp_path, capsys, given, typed, note
):
    rng = np.random.default_rng(6)
    y, is_slip = rng.choice(["stays", "moves", "is moved"], 600), rng.random(600) < 0.01
    others = {"stays": ("stays",), "moves": ("stays", "moves"), "a fault": ("stays",)}[typed]
    is_there = ~np.isin(y, others) & (rng.random(600) < given)
    if typed == "a fault":
        y = np.where(is_slip, "?!", np.where(y == "stays", "stays", "moves"))
    ended = [f"2021-0{1 + i % 7}-0{1 + i % 5}" if there else "" for i, there in enumerate(is_there)]
    pl.DataFrame({"x": rng.integers(0, 7, 600), "ended": ended, "y": y}).write_csv(tmp_path / "rows.csv")
    out = tmp_path / "rows.toml"
    init(tmp_path / "rows.csv", target="y", public=None, out=out, force=False, ask=False, as_json=True)
    said = json.loads(capsys.readouterr().out)["columns"]["ended"]["note"]
    assert said.startswith("dates" if not note else ("dates", note))
    assert note in said
    assert ("ended" in load(out).dataset.drop) is bool(note)


@pytest.mark.parametrize(("noise", "is_left_out"), [(0.0, True), (0.1, False)])
def test_a_multiple_of_a_heavy_tailed_target_is_left_out_and_a_strong_feature_is_none(
    tmp_path, capsys, noise, is_left_out
):
    rng = np.random.default_rng(7)
    y = np.exp(rng.normal(3, 1, 2000)) * np.where(rng.random(2000) < 0.004, 40, 1)
    gross = 1.19 * y * np.exp(rng.normal(0, noise, 2000))
    table = {"x": rng.normal(size=2000).round(2), "gross": gross.round(2), "y": y.round(2)}
    pl.DataFrame(table).write_csv(tmp_path / "rows.csv")
    out = tmp_path / "rows.toml"
    init(tmp_path / "rows.csv", target="y", public=None, out=out, force=False, ask=False, as_json=True)
    capsys.readouterr()
    assert ("gross" in load(out).dataset.drop) is is_left_out


NUMBERS_AND_WORDS = {
    "top-coded": (["0", "1", "2", "3+"], "not only numbers, as in '3+'", ["0", "1", "2", "3+"]),
    "codes": (["01", "02", "2A", "974"], "codes, as in '2A'", ["01", "02", "2A", "974"]),
    "long codes": (
        ["02139", "10001", "n/b", "94105"],
        "codes, as in 'n/b'",
        ["02139", "10001", "94105", "n/b"],
    ),
    "few, and unknown": (
        ["0", "1", "2", "unbekannt"],
        "words that then are missing (25%, as 'unbekannt')",
        None,
    ),
    "bounds": (
        ["<5.0", *(f"{i}.5" for i in range(29))],
        "bounds (4%, as '<5.0') are read without their sign",
        None,
    ),
}


@pytest.mark.parametrize("name", NUMBERS_AND_WORDS)
def test_numbers_and_words_are_a_category_where_the_words_are_values(tmp_path, capsys, name):
    values, note, levels = NUMBERS_AND_WORDS[name]
    (tmp_path / "rows.csv").write_text(plain(odd=lambda i, y: values[i * 7 % len(values)]))
    out = tmp_path / "rows.toml"
    init(tmp_path / "rows.csv", target="y", public=None, out=out, force=False, ask=False, as_json=True)
    assert note in json.loads(capsys.readouterr().out)["columns"]["odd"]["note"]
    spec = load(out).dataset
    zones = ZoneFolders(public=tmp_path / "p", holders=tmp_path / "h", faults=tmp_path / "faults")
    ingest_files(RowRules(dataset=spec, seed=0), [Path(path) for path in spec.path], zones)
    rows = pl.concat(pl.read_parquet(tmp_path / zone / "*.parquet") for zone in "ph")
    if levels is None:
        assert rows["odd_number"].dtype == pl.Float64
        assert rows["odd_number"].null_count() == (100 if name == "few, and unknown" else 0)
    else:
        assert sorted(rows["odd"].unique()) == levels
        assert "odd" not in spec.drop


def test_a_name_of_the_catalogue_brings_nothing_of_the_catalogue(tmp_path, capsys):
    (tmp_path / "wine.csv").write_text("x,quality\n" + "1,5\n2,6\n1,6\n2,5\n" * 100)
    out = tmp_path / "wine.toml"
    init(tmp_path / "wine.csv", target="quality", public=None, out=out, force=False, ask=False, as_json=True)
    assert load(out).dataset.title == ""


@pytest.mark.parametrize(
    ("first", "has_header"),
    [
        ("1,2,y", True),
        ("0,1,y", True),
        ("2019,2021,y", True),
        ("# x,z,y", True),
        ("39,State-gov,77516", False),
        ("a,7.5,0.3", False),
        ('NY,"1,250.40",60 months', False),
        ("NY,$40,12 %", False),
    ],
)
def test_a_first_line_that_counts_its_columns_is_a_header_and_one_with_measures_is_none(
    tmp_path, capsys, first, has_header
):
    (tmp_path / "rows.csv").write_text("\n".join([first] + [f"{i % 7},{i % 5},{i % 2}" for i in range(40)]))
    out = tmp_path / "rows.toml"
    target = "y" if has_header else "2"
    init(tmp_path / "rows.csv", target=target, public=None, out=out, force=False, ask=False, as_json=True)
    assert json.loads(capsys.readouterr().out)["header"] is has_header


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
    "aquatic/qsar_aquatic_toxicity.csv": "9",
    "cbm/naval.csv": "1",
    "census/adult-train.csv.gz": "15",
    "diabetes/Healthcare-Diabetes.csv": "Outcome",
    "diabetes/diabetes_pri.csv": "9",
    "employee/Employee.csv": "LeaveOrNot",
    "fish/qsar_fish_toxicity.csv": "LC50",
    "housing/housing.data": "14",
    "istanbul/data_akbilgic.csv": "ISE",
    "jobs_partial/stackoverflow_full.csv.gz": "Employed",
    "music/default_features_1059_tracks.txt": "69",
    "taxi/Taxi_Trips_2022_03.parquet": "payment_type",
    "taxi/tfx_data.csv": "tips",
    "wine/winequality-red.csv": "quality",
    "wine/winequality-white.csv": "quality",
}
QUICK = ("algerian/Algerian_forest_fires_dataset_UPDATE.csv",)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in REAL]
)
def test_a_real_file_runs_as_it_is_and_beats_the_most_frequent_answer(data_home, tmp_path, name):
    out = tmp_path / "real.toml"
    init(data_home / name, target=REAL[name], public=None, out=out, force=False, ask=False, as_json=True)
    chain = Chain(Store(tmp_path / "run"), load(out, ["evaluation.redraws=0"]))
    assert chain.page
    scores = scores_of(chain)["scores"]
    ours = scores["ours"]
    assert ours["r2"] > 0 if "r2" in ours else ours["accuracy"] > scores["majority"]["accuracy"]
