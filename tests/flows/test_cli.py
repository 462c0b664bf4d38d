"""The command line as typed: what each word does, what comes out where, and that nothing heavy is loaded for an answer."""

from __future__ import annotations

import shlex
import subprocess
import sys

import duckdb
import numpy as np
import polars as pl
import pytest
from chain import rides
from typer.main import get_command

import flows.command.running
from flows.command.cli import app
from flows.command.main import main
from ldptree.errors import (
    ArtifactCorrupt,
    BudgetError,
    ConfigError,
    DataError,
    LdptreeError,
    ProtocolMismatch,
)
from ldptree.simulate import trips as simulated
from schemas.catalogue import catalogue
from schemas.config import packaged

HEAVY = ("prefect", "great_expectations", "sklearn", "matplotlib", "pandas", "numba")


@pytest.fixture
def typed(capsys):
    """What a command line exits with and prints: (code, standard output, standard error)."""

    def type_in(*words):
        with pytest.raises(SystemExit) as end:
            main([str(word) for word in words])
        shown = capsys.readouterr()
        return end.value.code, shown.out, shown.err

    return type_in


@pytest.fixture
def runs(monkeypatch):
    """What `run` would start, in place of starting it."""
    asked = []

    def noted(config, work, **options):
        asked.append({"config": config, "work": work} | options)

    monkeypatch.setattr(flows.command.running, "run_here", noted)
    return asked


def in_place_of_a_run(monkeypatch, fault):
    def fail(*_, **__):
        raise fault

    monkeypatch.setattr(flows.command.running, "run_here", fail)


def loaded_by(*words, cwd, of=HEAVY):
    """The modules of these that a command loads, in a process of its own."""
    script = (
        "import sys, flows.command.main\n"
        "try: flows.command.main.main(sys.argv[1:])\n"
        f"except SystemExit as end: sys.stderr.write(' '.join(sorted(set(sys.modules) & set({of!r}))) + f'\\n{{end.code}}')"
    )
    command = [sys.executable, "-c", script, *map(str, words)]
    found = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    *modules, code = found.stderr.split("\n")
    assert code == "0", found.stderr
    return " ".join(modules).split()


def test_help_and_the_catalogue_load_nothing_heavy(tmp_path):
    assert loaded_by("--help", cwd=tmp_path, of=(*HEAVY, "numpy", "pydantic")) == []
    assert loaded_by("datasets", "list", cwd=tmp_path) == []


def test_a_plan_loads_nothing_that_a_run_loads_to_compute(trips, tmp_path):
    assert trips.model
    sets = ("model.estimator=lpct", "dataset.rows=20000", "evaluation.redraws=5")
    words = ("run", "quickstart", "--plan", *(word for key in sets for word in ("--set", key)))
    for work in (tmp_path / "new", trips.store.root):
        assert loaded_by(*words, "--work", work, cwd=tmp_path) == []


def test_help_tells_of_every_command(typed):
    code, out, _ = typed("--help")
    assert code == 0
    for command in ("run", "predict", "export", "audit", "explain", "gc", "ui", "datasets", "benchmark"):
        assert command in out
    assert typed("run", "-h")[0] == 0
    assert typed("benchmark", "-h")[0] == 0


def commands_of(group, *path):
    """Every command and group below a group, those of other distributions too."""
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        yield (*path, name), command
        if hasattr(command, "commands"):
            yield from commands_of(command, *path, name)


@pytest.mark.parametrize(
    ("path", "command"),
    list(commands_of(get_command(app))),
    ids=lambda it: " ".join(it) if isinstance(it, tuple) else "",
)
def test_help_ends_with_an_example_that_the_command_takes(path, command):
    words = shlex.split(command.epilog.removeprefix("Example: "))
    assert words[: len(path) + 1] == ["ldptree", *path]
    command.make_context(path[-1], words[len(path) + 1 :])


@pytest.mark.parametrize("words", [(), ("smoke", "--reps", "1"), ("--help",)])
def test_without_the_benchmark_its_command_says_in_one_line_how_to_install_it(typed, monkeypatch, words):
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: ())
    code, out, err = typed("benchmark", *words)
    assert (code, out) == (2, "")
    assert err == "ldptree: the benchmark is not installed: pip install ldptree-benchmark\n"
    assert "benchmark" not in typed("--help")[1]


def test_the_version_is_the_packages(typed):
    from importlib.metadata import version

    assert typed("--version")[:2] == (0, f"ldptree {version('ldptree')}\n")


def test_a_run_is_handed_what_was_typed(typed, runs, tmp_path):
    code, out, err = typed(
        "run", "quickstart", "--set", "privacy.epsilon=0.5", "--set", "dataset.public=random 0.1",
        "--work", tmp_path / "w", "--workers", 3, "--json", "--debug",
    )  # fmt: skip
    assert (code, out, err) == (0, "", "")
    (asked,) = runs
    assert (asked["config"].name, asked["config"].privacy.epsilon) == ("quickstart", 0.5)
    assert asked["config"].dataset.public == "random 0.1"
    assert asked["work"] == tmp_path / "w"
    assert (asked["config"].run.workers, asked["as_json"], asked["debug"]) == (3, True, True)
    assert asked["command"] == (
        "ldptree run quickstart --set privacy.epsilon=0.5 --set 'dataset.public=random 0.1' "
        f"--work {tmp_path / 'w'}"
    )


def test_the_work_folder_may_come_from_the_environment(typed, runs, tmp_path, monkeypatch):
    monkeypatch.setenv("LDPTREE_WORK", str(tmp_path / "elsewhere"))
    typed("run")
    assert (runs[0]["config"].name, runs[0]["work"]) == ("quickstart", tmp_path / "elsewhere")


def test_paths_in_a_file_are_its_folders_and_typed_ones_the_current_folders(
    typed, runs, tmp_path, monkeypatch
):
    for folder in ("configs", "here"):
        for name in ("a.csv", "b.csv"):
            rides(tmp_path / folder / name, 9, seed=1)
    (tmp_path / "configs" / "suite.json").write_text('{"dataset": "mine", "expectations": []}')
    (tmp_path / "configs" / "mine.toml").write_text(
        'name = "mine"\n[dataset]\nname = "mine"\npath = "a.csv"\ntarget = "paid"\npublic = "b.csv"\n'
        'expect = "suite.json"\n[privacy]\nepsilon = 1\n'
    )
    monkeypatch.chdir(tmp_path / "here")
    assert typed("run", "../configs/mine.toml")[0] == 0
    assert typed("run", "../configs/mine.toml", "--set", "dataset.path=a.csv")[0] == 0
    written, at_the_prompt = (asked["config"].dataset for asked in runs)

    def real(path):
        return type(tmp_path)(path).resolve().relative_to(tmp_path).as_posix()

    assert [real(p) for p in (*written.path, written.public, written.expect)] == [
        "configs/a.csv", "configs/b.csv", "configs/suite.json",
    ]  # fmt: skip
    assert [real(p) for p in (*at_the_prompt.path, at_the_prompt.public)] == ["here/a.csv", "configs/b.csv"]


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (ConfigError("config.toml: x"), 2),
        (DataError("rows.csv: x"), 3),
        (BudgetError("campaign: x"), 4),
        (ProtocolMismatch("protocol: x"), 5),
        (ArtifactCorrupt("reports: x"), 5),
        (LdptreeError("server: x"), 1),
    ],
)
def test_every_error_has_its_exit_code_and_its_one_message(typed, monkeypatch, fault, code):
    in_place_of_a_run(monkeypatch, fault)
    assert typed("run", "quickstart", "--json") == (code, "", f"ldptree: {fault}\n")
    assert "Traceback" in typed("run", "quickstart", "--debug")[2]


@pytest.mark.parametrize("debug", [[], ["--debug"]])
def test_an_unexpected_fault_is_named_by_its_kind_and_never_quoted(typed, monkeypatch, debug):
    in_place_of_a_run(monkeypatch, ValueError("could not convert '4111 1111 CANARY'"))
    code, out, err = typed("run", "quickstart", *debug)
    assert (code, out) == (1, "")
    assert "ldptree: stopped by an unexpected ValueError. This is a fault of ldptree." in err
    assert "CANARY" not in err
    assert "Traceback" not in err


@pytest.mark.parametrize(("ended_by", "code"), [(KeyboardInterrupt(), 130), (SystemExit(143), 143)])
def test_an_interrupted_run_says_how_it_goes_on(typed, monkeypatch, ended_by, code):
    in_place_of_a_run(monkeypatch, ended_by)
    assert typed("run", "quickstart") == (
        code,
        "",
        "ldptree: interrupted. Finished steps are kept; the same command continues from there.\n",
    )


def test_the_catalogue_is_listed_and_shown(typed, monkeypatch, tmp_path):
    code, out, _ = typed("datasets", "list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["name", *catalogue()]
    assert [line.split()[1:3] for line in out.splitlines() if line.startswith("taxi ")] == [
        ["class", "simulated"]
    ]
    (diabetes,) = [line.split() for line in out.splitlines() if line.startswith("diabetes ")]
    assert diabetes[1:5] == ["class", "2,768", "8", "97%"]
    assert "simulated = true" in typed("datasets", "show", "taxi")[1]
    monkeypatch.setenv("LDPTREE_DATA", str(tmp_path))
    code, out, _ = typed("datasets", "show", "census")
    assert code == 0
    assert f"# LDPTREE_DATA is {tmp_path}" in out
    assert "# missing" in out


def test_simulated_trips_are_written_whole(typed, tmp_path):
    out = tmp_path / "new" / "trips.csv"
    assert typed("datasets", "make", "taxi", "--rows", 300, "--out", out, "--seed", 4) == (
        0,
        "",
        f"{out}: 300 simulated rows\n",
    )
    lines = out.read_text().splitlines()
    assert lines[0].split(",") == list(simulated.COLUMNS)
    assert len(lines) == 301
    assert [path.name for path in out.parent.iterdir()] == ["trips.csv"]


def test_a_model_is_exported_explained_and_scores_a_file(typed, trips, tmp_path):
    model = trips.store.file(trips.model["model"], "model.json")
    assert typed("export", model, "--to", "json")[1] == f"{model.read_text()}\n"
    assert 'FROM "my trips"' in typed("export", model, "--to", "sql", "--table", "my trips")[1]
    code, out, _ = typed("explain", model, "--work", trips.store.root)
    assert code == 0
    assert "made by prune" in out
    assert "─ aggregate " in out
    rows = trips.store.files(trips.held["test"])[0]
    scored = tmp_path / "scored.parquet"
    n = trips.held.facts["n_test"]
    assert typed("predict", model, rows, "--out", scored) == (0, "", f"{scored}: {n:,} rows\n")
    query = typed("export", model, "--to", "sql", "--table", "my trips")[1]
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE \"my trips\" AS FROM '{rows}'")
        found = pl.DataFrame(connection.execute(query).fetchnumpy())
    by_predict = pl.read_parquet(scored)
    for name in ("probability_0", "probability_1"):
        np.testing.assert_array_equal(found[name], by_predict[name.replace("_", " of ")])
    assert found["prediction"].to_list() == by_predict["prediction"].to_list()


@pytest.mark.parametrize(
    ("typed_so_far", "offered"),
    [
        ("ldptree run qu", ["quickstart"]),
        ("ldptree datasets show ce", ["census"]),
        ("ldptree pre", ["predict"]),
    ],
)
def test_the_shell_completes_commands_configurations_and_data_sets(
    typed_so_far, offered, monkeypatch, capsys
):
    monkeypatch.setenv("_LDPTREE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed_so_far)
    monkeypatch.setenv("COMP_CWORD", str(len(typed_so_far.split()) - 1))
    monkeypatch.setattr(sys, "argv", ["ldptree"])
    with pytest.raises(SystemExit):
        main([])
    assert capsys.readouterr().out.split() == offered


def test_every_packaged_configuration_is_offered(monkeypatch):
    from flows.command.cli import _configs

    assert _configs("") == list(packaged())


def test_columns_that_are_left_out_are_told_the_first_of_many_by_name():
    assert flows.command.running._left_out({}) == []
    assert flows.command.running._left_out({"id": "whole numbers [1]"}) == ["left out  id: whole numbers [1]"]
    lines = flows.command.running._left_out({f"c{i}": f"constant: {i}" for i in range(13)})
    assert [len(lines), lines[-1]] == [11, "left out  3 more, see the page"]
    lines = flows.command.running._left_out({f"c{i}": "free text" for i in range(13)})
    assert lines == [
        f"left out  {', '.join(f'c{i}' for i in range(10))}: free text",
        "left out  3 more, see the page",
    ]
