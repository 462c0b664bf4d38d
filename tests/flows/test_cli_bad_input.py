"""Whatever a user mistypes gets one clear message and the right exit code; nothing below is written, nothing private said.

The command line is the real one; only the Prefect server is left out, by calling the steps of the flow one by one.
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chain import Chain, rides

import flows.command.running
import flows.finish
from flows.command.main import main
from ldptree.models.tree import ClassTree
from schemas.config import load
from storage import tables
from storage.store import Store

CANARY = "CANARY77"
CONFIG = {
    "name": '"mine"',
    "dataset.name": '"mine"',
    "dataset.path": '"rides.csv"',
    "dataset.target": '"paid"',
    "dataset.positive": '"card"',
    "dataset.public": "\"zone = 'open'\"",
    "dataset.drop": '["person"]',
    "model.estimator": '"lpct"',
    "model.depth": "1",
    "privacy.epsilon": "2.0",
    "simulation.noise_seed": "11",
    "evaluate": "false",
}


def steps_of_the_flow(config, work, **_):
    """The flow's steps in its order, in this process."""
    chain = Chain(Store(work), config)
    flows.finish.stop_where_failed(chain)
    assert chain.held
    assert chain.model


class Desk:
    """Where a user sits: files, a configuration, a prompt, and a work folder that no command has used."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.capsys = capsys
        rides(folder / "rides.csv", 240, seed=1)

    def lines(self) -> list[str]:
        """The lines of good rides, the header first."""
        return (self.folder / "rides.csv").read_text().splitlines()

    def file(self, name: str, content: str | bytes | list[str]) -> str:
        """A file, and its name as TOML."""
        if isinstance(content, list):
            content = "\n".join(content) + "\n"
        (self.folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return f'"{name}"'

    def config(self, **changes: str | None) -> Path:
        """The good configuration with keys, written table__key, set to TOML (None: left out)."""
        keys = CONFIG | {key.replace("__", "."): value for key, value in changes.items()}
        path = self.folder / "run.toml"
        path.write_text("".join(f"{key} = {value}\n" for key, value in keys.items() if value is not None))
        return path

    def type(self, *words: object) -> tuple[int, str, str]:
        """Exit code, standard output and standard error of a command."""
        with pytest.raises(SystemExit) as end:
            main([str(word) for word in words])
        shown = self.capsys.readouterr()
        return end.value.code, shown.out, shown.err

    def run(self, *words: object, **changes: str | None) -> tuple[int, str, str]:
        """`ldptree run` on the good configuration with changes."""
        return self.type("run", self.config(**changes), "--work", self.work, "--json", *words)

    def refused(self, code: int, *words: str, after: set[str] | None = None, **changes: str | None) -> str:
        """A run that must be refused with `code` and a message with `words`, with only the steps `after` done."""
        return self.told(self.run(**changes), code, *words, after=after)

    def told(self, ended: tuple[int, str, str], code: int, *words: str, after: set[str] | None = None) -> str:
        """What a refused command says: one message and no more, no private value, nothing written below."""
        ended_with, out, err = ended
        assert ended_with == code, err
        assert out == ""
        assert err.startswith("ldptree: ")
        assert err.count("ldptree: ") == 1
        assert "Traceback" not in err
        assert "unexpected" not in err
        for word in words:
            assert word in err
        assert CANARY not in err
        assert self.steps_done() == (after or set())
        self.nothing_private_lies_outside_the_holders_zone()
        return err

    def steps_done(self) -> set[str]:
        """The steps that left a record or a part of an artifact."""
        zones = ("public", "holders", "curator", "simulation")
        folders = [path for zone in zones for path in (self.work / zone).glob("*/*")]
        return {path.parent.name for path in folders if path.parent.name != "faults"}

    def nothing_private_lies_outside_the_holders_zone(self) -> None:
        """No file but those of the holders has the canary."""
        for path in self.work.rglob("*"):
            if path.is_file() and "holders" not in path.relative_to(self.work).parts:
                assert CANARY.encode() not in path.read_bytes()


@pytest.fixture
def desk(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(flows.command.running, "run_here", steps_of_the_flow)
    return Desk(tmp_path, capsys)


def with_cell(lines, zone, column, value):
    """The lines with one value of the fifth row of a zone replaced."""
    at = [i for i, line in enumerate(lines) if line.startswith(zone)][4]
    cells = lines[at].split(",")
    cells[lines[0].split(",").index(column)] = value
    return [*lines[:at], ",".join(cells), *lines[at + 1 :]]


def with_column(lines, zone, column, value):
    """The lines with a column's value replaced in every row of a zone ("" for both)."""
    at = lines[0].split(",").index(column)

    def changed(line):
        cells = line.split(",")
        return ",".join([*cells[:at], value, *cells[at + 1 :]])

    return [lines[0], *(changed(line) if line.startswith(zone) else line for line in lines[1:])]


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
        ("model.depth=99", "model.depth: input should be 'auto' or less than or equal to 62, got 99"),
        ("evaluate=no", "evaluate: write true or false, got 'no'"),
        ("store.holders=S3://b", "store.holders: write the address of a bucket as s3://bucket/prefix"),
        ("run.ray_address=ray://a:1", 'run.ray_address: write "auto", or the host and port of the cluster'),
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
        ("zone = 'open", "unterminated string literal"),
        ("zone = 'open' AND", "syntax error"),
        ("zone IN (SELECT 'open')", "a subquery is not allowed here"),
        ("read_text('/etc/passwd') = ''", "the function read_text() is not allowed here"),
        ("zone IN (SELECT c FROM read_csv('/etc/passwd'))", "a subquery is not allowed here"),
        ("random() < 0.5", "the function random() is not allowed here"),
        ("now() > DATE '2026-01-01'", "the function now() is not allowed here"),
        ("miles > avg(miles)", "the function avg() is not allowed here"),
        ("row_number() OVER () < 9", "a window function"),
        ("getenv('HOME') = ''", "the function getenv() is not allowed here"),
    ],
)
def test_a_rule_is_an_expression_over_one_row_or_refused_before_anything_starts(desk, rule, said):
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
        ([{"expectation": "betwen"}], "expectations.0.expectation: input should be 'columns', 'rows', 'known'"),
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


# Files: nothing of them is kept.


def whole_parquet(desk):
    pl.read_csv(desk.folder / "rides.csv").write_parquet(desk.folder / "rides.parquet")
    return (desk.folder / "rides.parquet").read_bytes()


def damaged(content):
    """Zeros in its middle."""
    at = len(content) // 4
    return content[:at] + bytes(300) + content[at + 300 :]


FILES = {
    "empty.csv": (lambda _: b"", "empty.csv: the file is empty (0 bytes)."),
    "blank.csv": (lambda _: b"\n\n \n", "blank.csv: the file is empty: nothing but blank lines."),
    "head.csv": (lambda desk: desk.lines()[:1], "head.csv: a header and no rows."),
    "binary.csv": (lambda _: np.random.default_rng(0).bytes(5000), "binary.csv: has a NUL byte in it"),
    "picture.csv": (lambda _: b"\x89PNG\r\n\x1a\n" + bytes(range(1, 200)), "not a table: it is a picture."),
    "page.csv": (lambda _: b"<html><body>404</body></html>\n", "not a table: it is HTML or XML"),
    "spaces.csv": (lambda desk: [line.replace(",", " ") for line in desk.lines()], 'no column "paid"'),
    "cut.csv.gz": (lambda desk: gzip.compress("\n".join(desk.lines()).encode())[:900], "the gzip file is truncated"),
    "cut.parquet": (lambda desk: whole_parquet(desk)[:2000], "cut.parquet: the Parquet file is truncated"),
    "damaged.parquet": (lambda desk: damaged(whole_parquet(desk)), "damaged.parquet: "),
    "csv.parquet": (lambda desk: desk.lines(), "csv.parquet: named .parquet, but not a Parquet file."),
    "latin.csv": (lambda desk: "\n".join(desk.lines()).replace("ash", "\xe4sh").encode("latin1"),
                  "latin.csv: not UTF-8 text. Convert it, for example with: iconv"),
    "nul.csv": (lambda desk: [*desk.lines()[:20], "\0", *desk.lines()[20:]], "nul.csv: has a NUL byte in it"),
    "twice.csv": (lambda desk: ["zone,person,miles,miles,firm,paid", *desk.lines()[1:]],
                  'duplicate column names, "miles"'),
    "cases.csv": (lambda desk: ["zone,person,miles,Miles,firm,paid", *desk.lines()[1:]],
                  'duplicate column names, "miles" and "Miles"'),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_table_is_refused_by_its_name(desk, name):
    content, said = FILES[name]
    desk.refused(3, name, said, dataset__path=desk.file(name, content(desk)))


def test_a_delimiter_that_does_not_split_is_told_with_the_one_that_does(desk):
    desk.file("semicolons.csv", [line.replace(",", ";") for line in desk.lines()])
    desk.refused(
        3,
        "split at ',' the first line has one column, split at a semicolon it has 6. Set dataset.delimiter = ';'",
        dataset__path='"semicolons.csv"', dataset__delimiter='","',
    )  # fmt: skip
    assert desk.run(dataset__path='"semicolons.csv"')[0] == 0


ABOVE = {"ingest", "validate", "split"}


@pytest.mark.parametrize(
    ("code", "said", "after", "changes"),
    [
        (2, "dataset.test_fraction: 0 holds no row back to score on", set(),
         {"evaluate": "true", "dataset__test_fraction": "0.0"}),
        (2, "dataset.name: 'taxii' is not in the catalogue (did you mean 'taxi'?)", set(),
         {"dataset__name": '"taxii"', "dataset__path": None}),
        (3, 'rides.csv: dataset.target: no column "payed" (did you mean "paid"?). Columns: zone,', set(),
         {"dataset__target": '"payed"'}),
        (3, 'dataset.target: no column "Paid" (did you mean "paid"?)', set(), {"dataset__target": '"Paid"'}),
        (3, 'dataset.drop: no column "persons" (did you mean "person"?)', set(), {"dataset__drop": '["persons"]'}),
        (3, 'dataset.holder: no column "persn" (did you mean "person"?)', set(), {"dataset__holder": '"persn"'}),
        (2, 'dataset.public: unknown column "zome" (did you mean "zone"?). Columns: zone, person, miles, hour, firm', set(),
         {"dataset__public": "\"zome = 'open'\""}),
        (2, "(Text values take single quotes: 'like this'.)", set(), {"dataset__public": '"zone = \\"open\\""'}),
        (2, "gives a DOUBLE where it must be true or false", set(), {"dataset__public": '"miles + 1"'}),
        (3, "no public rows by the rule \"zone = 'opne'\"", set(), {"dataset__public": "\"zone = 'opne'\""}),
        (3, "no private rows: the rule \"zone <> 'x'\" makes every row public", set(),
         {"dataset__public": "\"zone <> 'x'\""}),
        (3, "no private rows: the rule 'first 1000' makes every row public", set(), {"dataset__public": '"first 1000"'}),
        (3, "no features are left", set(), {"dataset__drop": '["person", "miles", "hour", "firm"]'}),
        (2, "dataset.positive: 'cart' is not a label of public rows (card, cash). Did you mean 'card'?", ABOVE,
         {"dataset__positive": '"cart"'}),
        (3, "all public rows that can be used say 'card'. Nothing can be learned", ABOVE,
         {"dataset__classes": '["card", "cheque"]'}),
        (3, 'column "hour": no public value is among its declared levels', ABOVE,
         {"dataset__levels": '{hour = ["noon"]}'}),
        (3, "no private rows are left to report", {"ingest", "validate"},
         {"dataset__test_fraction": "0.9999", "evaluate": "true"}),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_rows_is_told_by_its_key_and_stops_the_step_that_meets_it(
    desk, code, said, after, changes
):
    """What stands above the fault is kept, nothing below it is made."""
    desk.refused(code, said, after=after, **changes)


# Rows: ingest stops, and leaves no row in any zone.


def test_a_text_among_numbers_is_told_by_line_and_value_if_public_and_by_column_alone_if_private(desk):
    desk.file("public.csv", with_cell(desk.lines(), "open", "miles", "lots"))
    desk.refused(3, 'public.csv, column "miles": not a number in 1 public row at line 14: \'lots\'. Correct it, or',
                 dataset__path='"./public.csv"')  # fmt: skip
    desk.file("private.csv", with_cell(desk.lines(), "closed", "miles", CANARY))
    said = desk.refused(3, 'private.csv, column "miles": not a number in private rows (details in ',
                        dataset__path='"private.csv"')  # fmt: skip
    assert " 1 " not in said
    assert "line" not in said


def test_a_private_row_with_a_field_too_many_or_no_label_is_told_without_its_line(desk):
    wide = [line + f",{CANARY}" if i == 100 else line for i, line in enumerate(desk.lines())]
    said = desk.refused(3, "wide.csv: a row with the wrong number of fields (details in ",
                        dataset__path=desk.file("wide.csv", wide))  # fmt: skip
    assert "101" not in re.sub(
        r"ingest-[0-9a-f]+", "", said
    )  # the file of details has a name drawn by chance
    bare = with_cell(desk.lines(), "closed", "paid", "")
    desk.refused(3, 'bare.csv, column "paid": label missing in private rows (details in ',
                 dataset__path=desk.file("bare.csv", bare))  # fmt: skip


def test_a_target_that_is_constant_in_public_rows_is_refused(desk):
    constant = desk.file("constant.csv", with_column(desk.lines(), "open", "paid", "card"))
    said = "column \"paid\" (the target) has a single value in the public rows: 'card'"
    desk.refused(3, said, dataset__path=constant)
    one = [line for i, line in enumerate(desk.lines()) if i < 2 or line.startswith("closed")]
    desk.refused(
        3, "(the target) has a single value in the public rows", dataset__path=desk.file("one.csv", one)
    )


@pytest.mark.parametrize("zone", ["", "open"])
def test_a_column_without_a_public_value_is_refused(desk, zone):
    path = desk.file("missing.csv", with_column(desk.lines(), zone, "miles", ""))
    desk.refused(3, "every public value is missing in miles", "Add to dataset.drop.", dataset__path=path)


# Later steps: what stands above the fault is kept, nothing below it is made.


@pytest.mark.parametrize(
    ("expectation", "said"),
    [
        ({"expectation": "between", "column": "miles"}, "expectations.0: between needs low, high"),
        ({"expectation": "known", "column": "mles"}, "expectations.0: no column 'mles' (did you mean 'miles'?)"),
        ({"expectation": "between", "column": "firm", "low": 0, "high": 1}, "'firm' is text"),
        ({"expectation": "between", "column": "miles", "low": 5, "high": 1}, "low 5 is above high 1"),
        ({"expectation": "one_of", "column": "miles", "values": ["a"]}, "'a' is no number, which 'miles' is"),
        ({"expectation": "one_of", "column": "firm", "values": []}, "values is empty: no row can meet it"),
    ],
)  # fmt: skip
def test_an_edited_suite_that_does_not_fit_the_data_is_refused(desk, expectation, said):
    suite = desk.file("suite.json", json.dumps({"dataset": "mine", "expectations": [expectation]}))
    desk.refused(2, "suite.json: does not fit the data", said, after={"ingest"}, dataset__expect=suite)


def test_a_failed_validation_names_what_failed_in_which_zone_and_stops_the_run(desk):
    said = desk.refused(
        3,
        "validation failed, nothing was learned:",
        "not in all public rows: miles is between 0 and 1",
        "not in all private rows: miles is between 0 and 1",
        "report.html",
        after={"ingest", "validate"},
        dataset__ranges="{miles = [0, 1]}",
    )
    (page,) = (desk.work / "runs").glob("*/report.html")
    assert str(page) in said
    warned = [{"expectation": "between", "column": "miles", "low": 0, "high": 1, "severity": "warn"}]
    suite = desk.file("suite.json", json.dumps({"dataset": "mine", "expectations": warned}))
    assert desk.run(dataset__expect=suite)[0] == 0


# What looks like a fault and is none.


def test_a_private_label_that_no_public_row_has_is_outside_and_no_fault(desk):
    path = desk.file("voucher.csv", with_cell(desk.lines(), "closed", "paid", "voucher"))
    assert desk.run(dataset__path=path)[0] == 0
    (model,) = desk.work.glob("curator/prune/*/model.json")
    assert json.loads(model.read_text())["classes"] == ["cash", "card"]
    assert b"voucher" not in model.read_bytes()


def test_one_feature_is_enough(desk):
    assert desk.run(dataset__drop='["person", "hour", "firm"]')[:2] == (0, "")


@pytest.mark.slow
def test_three_thousand_features_are_not_too_many_for_any_step_after_ingest(desk):
    names = [f"x{i}" for i in range(3000)]
    rng, n = np.random.default_rng(0), 90
    wide = {name: rng.random(n).round(2) for name in names}
    columns = wide | {"paid": np.where(wide["x5"] > 0.5, "card", "cash"), "_row": np.arange(n)}
    chain = Chain(Store(desk.work), load(desk.config()))
    place = chain.store.place("holders", "ingest", "1", inputs={}, parameters={"test": "wide"})
    with chain.store.draft(place) as draft:
        for part, zone, rows in (
            ("public", "public", slice(None, 30)),
            ("private", "holders", slice(30, None)),
        ):
            table = pa.table({name: values[rows] for name, values in columns.items()})
            tables.write(draft.folder(part, zone) / "part-0000.parquet", table)
            draft.count(part, "part-0000.parquet", table.num_rows)
        (draft.folder("private") / "sources.json").write_text(json.dumps({"part-0000.parquet": "5a" * 32}))
        np.save(draft.folder("rows", "holders") / "part-0000.npy", np.arange(n - 30, dtype=np.uint64))
        typed = [*([name, "number", "double"] for name in names), ["paid", "text", "string"]]
        chain.ingested = draft.finish({"columns": typed, "types": {}, "features": names}, 0.0)
    assert chain.checked.facts["met"] == chain.checked.facts["expected"]
    assert chain.scaled.facts["n_features"] == 3000
    model = ClassTree.from_json(chain.store.file(chain.model["model"], "model.json").read_text())
    assert len(model.encoding.columns) == 3000


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
        (3, "none.json: no such file. A run says where its model.json is.", ["none.json", rows, "--out", "o"]),
        (3, "a folder. Name the model.json in it.", [".", rows, "--out", "o"]),
        (3, "s3://b/m.json: in a bucket. Copy it here", ["s3://b/m.json", rows, "--out", "o"]),
        (3, "none.parquet: no such file. Name a CSV or Parquet file.", [model, "none.parquet", "--out", "o"]),
        (3, "rows.csv: lacks the column", [model, "rows.csv", "--out", "o"]),
        (3, "cut.parquet: not a whole Parquet file.", [model, "cut.parquet", "--out", "o"]),
        (3, "lacks the column 'trip_miles'", [model, "lacks.parquet", "--out", "o"]),
        (3, "has the column 'trip_miles' twice", [model, "twice.parquet", "--out", "o"]),
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
    store = ["--set", "store.holders=s3://one", "--set", "store.curator=s3://two"]
    for said, words in [
        (f"{model}: no artifact of the work folder", ["explain", model, "--work", trips.store.root]),
        ("--work s3://c/x: the configuration's [store] names two", ["run", *store, "--work", "s3://c/x"]),
    ]:
        desk.told(desk.type(*words), 2, said)
