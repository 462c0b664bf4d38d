"""Whatever a user mistypes gets one clear message and the right exit code; nothing below is written, nothing private said."""

from __future__ import annotations

import json
import subprocess
from contextlib import contextmanager

import pyarrow.parquet as pq
import pytest
from desk import Desk


@pytest.fixture
def desk(tmp_path, capsys, monkeypatch):
    return Desk(tmp_path, capsys, monkeypatch)


@contextmanager
def read_only(folder):
    """A folder that not even root can write."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a read-only folder needs the right to mount one: root can write to all others")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


# The configuration: nothing is opened, made or started before all of it is right.


def test_every_fault_of_a_configuration_is_listed_at_once_with_its_key(desk):
    said = desk.refused(
        2,
        "6 problems",
        "privacy.mechanims: unknown key; did you mean mechanism?",
        "privacy.epsilon: input should be a valid number, got 'two'",
        "seed: input should be a valid integer, got 1.5",
        "evaluate: write true or false, got 'yes'",
        "name: use letters, digits, '.', '_' and '-'",
        "dataset.types.miles: input should be 'integer', 'number', 'text' or 'boolean', got 'float'",
        name='"my run"', seed="1.5", evaluate='"yes"', privacy__epsilon='"two"', privacy__mechanims='"grr"',
        dataset__types='{miles = "float"}',
    )  # fmt: skip
    assert len(said.splitlines()) == 7
    assert not desk.work.exists()


@pytest.mark.parametrize(
    ("assignment", "said"),
    [
        *((f"privacy.epsilon={value}", "privacy.epsilon: epsilon must be a number above 0 and at most 64, got")
          for value in ("0", "-1.0", "nan", "inf", "-inf", "1e9")),
        ("privacy.epsilon=true", "privacy.epsilon: true and false are not numbers"),
        ('privacy.epsilon="2"', "privacy.epsilon: input should be a valid number, got '2'"),
        ('privacy.epsilon=""', "privacy.epsilon: input should be a valid number, got ''"),
        ("privacy.epsilom=2", "privacy.epsilom: unknown key; did you mean epsilon?"),
        ("privcy.epsilon=2", "privcy: unknown key; did you mean privacy?"),
        ("privacy=2", "privacy: input should be a table of keys, got 2"),
        ("model.depth=99", "model.depth: must be 'auto' or a whole number from 0 to 62, got 99"),
        ("evaluate=no", "evaluate: write true or false, got 'no'"),
        ("run.ray=ray://a:1", 'run.ray: write "auto", or the host and port of the cluster'),
        ("dataset.path=[]", "dataset.path: names no file"),
        ("dataset.path=s3:/b/rows.csv", "dataset: s3:/b/rows.csv: no address of a bucket that is known"),
        ('dataset.drop=["paid"]', 'dataset.drop: "paid" is the target'),
        ("dataset.delimiter=::", "dataset.delimiter: string should have at most 1 character"),
        ('dataset.public=""', "dataset.public: say which rows are public"),
        ("dataset.public=random 2", 'dataset.public: "random 2": the fraction must be'),
        ("dataset.public=first 0", 'dataset.public: "first 0": the count must be'),
        ("dataset.ranges.miles=[5, 1]", 'dataset.ranges: "miles": [5.0, 1.0] is not a range'),
        ('dataset.classes=["cash", "cheque"]', "dataset.positive: 'card' is not among classes"),
        ("privacy.epsilon", "--set privacy.epsilon: write KEY=VALUE, as in --set privacy.epsilon=2"),
        ("=2", "write KEY=VALUE"),
        ("privacy..epsilon=2", "write KEY=VALUE"),
        ("seed=", "--set seed=: the configuration has no such key to take away; an empty text is --set 'seed=\"\"'"),
        ("name.first=x", "--set name.first=x: name is a value, not a table"),
    ],
)  # fmt: skip
def test_an_assignment_that_cannot_be_is_refused_by_its_key(desk, assignment, said):
    desk.told(desk.run("--set", assignment), 2, said)
    assert not desk.work.exists()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("nothing.toml", None, "nothing.toml: no such file, and no packaged configuration (abalone, census, chicago"),
        ("quickstrat", None, "Did you mean quickstart?"),
        (".", None, ".: is a folder"),
        ("word.toml", b"name = mine\n", "word.toml: not TOML: Invalid value (at line 1, column 8)"),
        ("empty.toml", b"", "empty.toml: 2 problems\n  dataset: missing\n  name: missing"),
        ("binary.toml", b"\xff\xfe\0", "binary.toml: not UTF-8 text. A configuration is a TOML file."),
        ("rides.csv", None, "rides.csv: rows, and no configuration. First have one written: ldptree init"),
        ("my rides.csv", b"zone;m\xf6ney\nopen;2\n", "ldptree init 'my rides.csv' --target COLUMN"),
    ],
)  # fmt: skip
def test_a_configuration_that_is_none_is_refused(desk, name, content, said):
    if content is not None:
        desk.file(name, content)
    desk.told(desk.type("run", name, "--work", desk.work), 2, said)


def test_a_configuration_beside_what_was_typed_is_named(desk):
    desk.file("rides.toml", b"")
    for name, said in (
        ("rides", "Did you mean rides.toml?"),
        ("ride.tml", "Did you mean rides.toml?"),
        ("rides.csv", "or name rides.toml, which is beside it"),
    ):
        desk.told(desk.type("plan", name), 2, said)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "quickstart", "--workers", "0"], "'--workers'"),
        (["run", "quickstart", "--workers", "two"], "valid integer"),
        (["run", "quickstart", "--epsilon", "2"], "No such option: --epsilon. Write --set privacy.epsilon=2"),
        (["run", "quickstart", "--dataset-target=paid"], "No such option: --dataset-target"),
        (["run", "quickstart", "--test-fraction=.5"], "Write --set dataset.test_fraction=.5"),
        (["plan", "quickstart", "--depth"], "Write --set model.depth=VALUE"),
        (["run", "quickstart", "privacy.epsilon=2"], "sets a key: write --set privacy.epsilon=2"),
        (["plan", "quickstart", "--set", "x.y=1", "model.depth=2"], "model.depth=2 sets a key: write --set"),
        (["run", "quickstart", "--workerz", "2"], "Possible options: --work, --workers"),
        (["run", "quickstart", "census"], "unexpected extra argument"),
        (["runn"], "Did you mean 'run'?"),
        (["predict", "model.json", "rows.parquet"], "Missing option '--out'"),
        (["export", "model.json"], "Missing option '--to'"),
        (["gc", "--keep", "-1"], "'--keep'"),
        (["ui", "--port", "99999"], "'--port'"),
        (["datasets", "get", "taxi"], "No such command 'get'"),
        (["datasets", "make", "taxi", "--rows", "many", "--out", "x.csv"], "'--rows'"),
    ],
)
def test_a_command_that_is_none_is_refused_with_its_usage(desk, words, said):
    code, out, err = desk.type(*words)
    assert (code, out) == (2, "")
    assert said in err
    assert "Usage: " in err
    assert "Traceback" not in err
    assert [path.name for path in desk.folder.iterdir()] == ["rides.csv"]


# Names and rules: told before a server is started.


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("dataset__path", '"rids.csv"', "rids.csv: no such file. Did you mean rides.csv?"),
        ("dataset__path", '"nowhere/rides.csv"', "There is no folder"),
        ("dataset__path", '"*.parquet"', "*.parquet: no such file. Nothing in"),
        ("dataset__path", '"."', "a folder. Name a file, or a pattern"),
        ("dataset__public", '"public.csv"', "public.csv: no such file."),
        ("dataset__expect", '"suit.json"', "suit.json: no such file."),
        ("dataset__path", '"data:census/adult.csv"', "Set LDPTREE_DATA"),
    ],
)
@pytest.mark.parametrize("plan", [[], ["--plan"]])
def test_a_file_that_is_not_there_is_told_before_anything_starts(desk, monkeypatch, key, value, said, plan):
    monkeypatch.delenv("LDPTREE_DATA", raising=False)
    desk.told(desk.run(*plan, **{key: value}), 3, said)
    assert not desk.work.exists()


FISH = "CIC0;SM1_Dz(Z);GATS1i;NdsCH;NdssC;MLOGP;LC50\n" + "3.2;0.8;1.6;0;1;1.4;3.7\n" * 40


@pytest.mark.parametrize(
    ("content", "stated", "said"),
    [
        (None, True, "qsar_fish_toxicity.csv: no such file. There is no folder"),
        (FISH, True, "fish/qsar_fish_toxicity.csv: another file than the catalogue states"),
        (FISH.replace("MLOGP", "logp"), False, 'dataset.types: no column "MLOGP" (did you mean "logp"?)'),
        (FISH.replace(";", ","), False, "Set dataset.delimiter = "),
    ],
)
def test_a_data_set_of_the_catalogue_that_is_not_as_stated_is_refused(
    desk, monkeypatch, content, stated, said
):
    home = desk.folder / "sets"
    monkeypatch.setenv("LDPTREE_DATA", str(home))
    file = home / "fish" / "qsar_fish_toxicity.csv"
    if content is not None:
        file.parent.mkdir(parents=True)
        file.write_text(content)
    config = desk.folder / "fish.toml"
    own = "" if stated else f'path = "{file}"\n'
    config.write_text(f'name = "fish"\n[dataset]\nname = "fish"\n{own}[model]\nestimator = "lpdt"\n')
    desk.told(desk.type("run", config, "--work", desk.work, "--json"), 3, said)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("zone = 'open'; DROP TABLE x", 'syntax error at or near ";"'),
        ("zone IN (SELECT c FROM read_csv('/etc/passwd'))", "a subquery is not allowed here"),
        ("read_text('/etc/passwd') = ''", "the function read_text() is not allowed here"),
        ("row_number() OVER () < 9", "a window function"),
    ],
)
def test_a_rule_is_an_expression_over_one_row_or_refused_before_anything_starts(desk, rule, said):
    """For each reason one; storage/test_sql.py has all."""
    for key in ("dataset.public", "dataset.where", "dataset.derive.new"):
        ended = desk.run("--set", f'{key}="""{rule}"""')
        desk.told(ended, 2, f"{key}: ", said, "It must be one SQL expression over")
    assert not desk.work.exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{oops", "not a suite of expectations\n  invalid JSON"),
        ("", "invalid JSON"),
        ("[]", "input should be an object"),
        (b"\xff\xfe", "invalid JSON"),
        ([{"expectation": "betwen"}], "expectations.0.expectation: input should be 'columns', 'rows', 'read', 'known'"),
        ([{"expectation": "rows", "atleast": 1}], "expectations.0.atleast: unknown key; did you mean at_least?"),
        ([{"expectation": "known", "severity": "error"}], "expectations.0.severity: input should be 'stop' or 'warn'"),
        ([{"expectation": "between", "low": float("nan")}], "expectations.0.low: input should be a finite number"),
    ],
)  # fmt: skip
def test_an_edited_suite_that_is_none_is_refused_before_anything_starts(desk, content, said):
    if isinstance(content, list):
        content = json.dumps({"dataset": "mine", "expectations": content})
    desk.refused(2, "suite.json: ", said, dataset__expect=desk.file("suite.json", content))
    assert not desk.work.exists()


# The work folder.


def test_a_work_folder_that_is_a_file_or_below_one_is_refused(desk):
    for work in (desk.folder / "rides.csv", desk.folder / "rides.csv" / "work"):
        ended = desk.type("run", desk.config(), "--work", work)
        desk.told(ended, 2, f"work folder {work}: that is a file. Name another one with --work.")
    lines = (desk.folder / "rides.csv").read_text()
    for words in (["--plan"], ["--plan", "--json"]):
        desk.told(desk.type("run", desk.config(), "--work", "rides.csv", *words), 2, "that is a file")
    assert (desk.folder / "rides.csv").read_text() == lines


def test_a_work_folder_that_cannot_be_written_is_refused(desk):
    with read_only(desk.folder / "locked") as locked:
        for work in (locked, locked / "work"):
            ended = desk.type("run", desk.config(), "--work", work)
            desk.told(ended, 2, f"work folder {work}: cannot be written (Read-only file system).", "--work")
        ended = desk.type("datasets", "make", "taxi", "--rows", 5, "--out", locked / "trips.csv")
        desk.told(ended, 2, "trips.csv: cannot be written (Read-only file system)")


# The other commands.


@pytest.fixture
def model(trips):
    return trips.store.file(trips.model["model"], "model.json")


@pytest.fixture
def rows(trips, tmp_path):
    """Rows that the model can score, as a file of the user's."""
    path = tmp_path / "rows.parquet"
    path.write_bytes(trips.store.files(trips.held["test"])[0].read_bytes())
    return path


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda text: text[: len(text) // 2], "not JSON; is it a model file, and whole?"),
        (lambda text: text.replace("0.5", "0.25", 1), "its digest is not that of its content"),
        (lambda _: '{"kind": "xgboost"}', "not an ldptree model"),
        (lambda _: "[1, 2]", "not an ldptree model"),
        (lambda _: "\0", "not JSON"),
    ],
)
def test_a_model_that_is_damaged_or_foreign_is_refused(desk, model, rows, damage, said):
    text = model.read_text()
    assert damage(text) != text
    desk.file("model.json", damage(text))
    desk.told(desk.type("predict", "model.json", rows, "--out", "out.parquet"), 5, "model.json: ", said)
    desk.told(desk.type("export", "model.json", "--to", "sql"), 5, said)
    assert not (desk.folder / "out.parquet").exists()


def test_a_prediction_that_cannot_be_made_or_written_is_refused_and_leaves_no_file(desk, model, rows):
    table = pq.read_table(rows)
    desk.file("rows.csv", "a,b\n1,2\n")
    desk.file("cut.parquet", rows.read_bytes()[:3000])
    pq.write_table(table.drop_columns(["trip_miles"]), desk.folder / "lacks.parquet")
    pq.write_table(
        table.append_column("trip_miles", table.column("trip_miles")), desk.folder / "twice.parquet"
    )
    before = sorted(desk.folder.iterdir())
    for code, said, words in [
        (3, "none.json: no such file. Name a run's folder, or the model.json in it.", ["none.json", rows, "--out", "o"]),
        (3, "model.json: no such file. Name a run's folder", [".", rows, "--out", "o"]),
        (3, "s3://b/m.json: in a bucket. Copy it here", ["s3://b/m.json", rows, "--out", "o"]),
        (3, "none.parquet: no such file. Name a CSV or Parquet file.", [model, "none.parquet", "--out", "o"]),
        (3, "rows.csv: lacks the column", [model, "rows.csv", "--out", "o"]),
        (3, "cut.parquet: the Parquet file is truncated.", [model, "cut.parquet", "--out", "o"]),
        (3, "lacks the column 'trip_miles'", [model, "lacks.parquet", "--out", "o"]),
        (3, 'duplicate column names, "trip_miles"', [model, "twice.parquet", "--out", "o"]),
        (2, "--out .: a folder. Name a file.", [model, rows, "--out", "."]),
        (2, "there is no folder", [model, rows, "--out", "nowhere/o"]),
        (2, "--out /proc/o.parquet: cannot be written (No such file or directory).", [model, rows, "--out", "/proc/o.parquet"]),
        (2, "that is what is read. Name another file.", [model, rows, "--out", rows]),
    ]:  # fmt: skip
        desk.told(desk.type("predict", *words), code, said)
    assert sorted(desk.folder.iterdir()) == before
    assert pq.read_table(rows).equals(table)


def test_words_that_name_nothing_are_refused(desk, model, trips):
    for said, words in [
        ("--to xml: write sql, json or dot", ["export", model, "--to", "xml"]),
        ("--table", ["export", model, "--to", "sql", "--table", " "]),
        ("beef: no artifact of", ["explain", "beef", "--work", trips.store.root]),
        ("nowhere: no such work folder. Name it with --work.", ["explain", "beef", "--work", "nowhere"]),
        ("nowhere: no such work folder. Name it with --work.", ["gc", "--work", "nowhere"]),
        ("rides.csv: that is a file.", ["gc", "--work", "rides.csv"]),
        ("Did you mean taxi?", ["datasets", "show", "taxii"]),
        ("census: real data cannot be made.", ["datasets", "make", "census", "--rows", 5, "--out", "x.csv"]),
        ("--rows 0: must be at least 1", ["datasets", "make", "taxi", "--rows", 0, "--out", "x.csv"]),
        ("--out .: a folder. Name a file.", ["datasets", "make", "taxi", "--rows", 5, "--out", "."]),
        ("rides.csv/x.csv: cannot be written", ["datasets", "make", "taxi", "--rows", 5, "--out", "rides.csv/x.csv"]),
        ("/proc/x.csv: cannot be written", ["datasets", "make", "taxi", "--rows", 5, "--out", "/proc/x.csv"]),
    ]:  # fmt: skip
        desk.told(desk.type(*words), 2, said)
    assert [path.name for path in desk.folder.iterdir()] == ["rides.csv"]


@pytest.mark.parametrize(
    "words",
    [["run"], ["run", "--plan"], ["explain", "beef"], ["gc"], ["ui"], ["benchmark", "lpct-table2"]],
    ids=" ".join,
)
def test_no_command_takes_the_address_of_nothing_for_a_folder(desk, words):
    said = "work folder S3://bucket/team: no address that is known. Write s3://bucket/prefix"
    desk.told(desk.type(*words, "--work", "S3://bucket/team"), 2, said)
    assert [path.name for path in desk.folder.iterdir()] == ["rides.csv"]


def test_an_address_is_shown_as_it_was_written(desk, trips):
    model = "s3://bucket/runs/r/model.json"
    said = f"{model}: no artifact of the work folder"
    desk.told(desk.type("explain", model, "--work", trips.store.root), 2, said)
