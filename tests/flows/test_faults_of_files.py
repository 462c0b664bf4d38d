"""Whatever stands in place of a file, whatever the shell hands over: one message, the documented exit code, nothing written.

Devices and pipes are made in the test's own folder: a command that writes over one would replace it.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chain import example_protocol, rides
from first_fast import first_fast

import flows.command.running
from flows.command.main import main
from ldptree.errors import ConfigError
from storage.store import Store

COMMAND = Path(sys.executable).with_name("ldptree")
PATIENCE = 60

CONFIG = """
name = "mine"
evaluate = false
[dataset]
name = "mine"
path = {path}
target = "paid"
positive = "card"
public = "zone = 'open'"
[privacy]
epsilon = 2
"""


def pipe(folder):
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


def device(folder):
    try:
        os.mknod(folder / "device", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only root makes a device")
    return folder / "device"


def open_socket(folder):
    here = Path.cwd()
    os.chdir(folder)  # the name of a socket is short
    try:
        socket.socket(socket.AF_UNIX).bind("socket")
    finally:
        os.chdir(here)
    return folder / "socket"


def circle(folder):
    (folder / "circle").symlink_to(folder / "circle")
    return folder / "circle"


def below_a_file(folder):
    (folder / "plain").write_text("x")
    return folder / "plain" / "x"


FAULTS = {
    "pipe": (pipe, "a pipe, and no file"),
    "device": (device, "a device, and no file"),
    "socket": (open_socket, "a socket, and no file"),
    "circle": (circle, "Too many levels of symbolic links"),
    "below a file": (below_a_file, "Not a directory"),
    "long path": (lambda folder: folder / ("a/" * 2100), "File name too long"),
    "long name": (lambda folder: folder / ("b" * 300), "File name too long"),
    "two thousand folders": (lambda folder: folder / ("a/" * 1900), ""),
    "folder": (lambda folder: folder, "folder"),
}

READS = {
    "config": (2, lambda path, _: ["run", path]),
    "plan": (2, lambda path, _: ["run", path, "--plan"]),
    "data": (3, lambda path, ok: ["run", ok / "run.toml", "--set", f"dataset.path={path}"]),
    "planned data": (3, lambda path, ok: ["run", ok / "run.toml", "--plan", "--set", f"dataset.path={path}"]),
    "suite": (3, lambda path, ok: ["run", ok / "run.toml", "--set", f"dataset.expect={path}"]),
    "model": (3, lambda path, ok: ["predict", path, ok / "rows.parquet", "--out", ok / "out"]),
    "rows": (3, lambda path, ok: ["predict", ok / "model.json", path, "--out", ok / "out"]),
    "exported": (3, lambda path, _: ["export", path, "--to", "sql"]),
    "protocol": (2, lambda path, ok: ["aggregate", "--protocol", path, "--reports", ok]),
}
WRITES = {
    "prediction": lambda path, ok: ["predict", ok / "model.json", ok / "rows.parquet", "--out", path],
    "simulated rows": lambda path, _: ["datasets", "make", "taxi", "--rows", 5, "--out", path],
}
WORKS = {
    "planned": lambda path, ok: ["run", ok / "run.toml", "--plan", "--work", path],
    "explained": lambda path, _: ["explain", "beef", "--work", path],
    "tidied": lambda path, _: ["gc", "--work", path],
}


@pytest.fixture(autouse=True)
def _nothing_hangs():
    def end(*_):
        raise AssertionError("waited in vain: a pipe or a device was read")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(PATIENCE)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def ok(tmp_path, monkeypatch):
    """A folder with one good file of each kind; no run is started."""
    folder = tmp_path / "ok"
    folder.mkdir()
    rides(folder / "rides.csv", 60, seed=1)
    (folder / "run.toml").write_text(CONFIG.format(path=f'"{folder}/rides.csv"'))
    (folder / "model.json").write_text("{}")
    (folder / "protocol.json").write_text(example_protocol("oue").to_json())
    pq.write_table(pa.table({"miles": [1.0]}), folder / "rows.parquet")
    monkeypatch.setattr(flows.command.running, "run_here", lambda *_, **__: None)
    monkeypatch.setenv("LDPTREE_WORK", str(tmp_path / "work"))
    return folder


@pytest.fixture
def told(capsys, ok):
    """What a command that must be refused says, once its exit code and its one message are as documented."""

    def type_in(code, *words):
        before = sorted(ok.iterdir())
        with pytest.raises(SystemExit) as end:
            main([str(word) for word in words])
        out, err = capsys.readouterr()
        assert (end.value.code, out) == (code, ""), err
        assert err.startswith("ldptree: ")
        assert err.count("ldptree: ") == 1
        assert "unexpected" not in err
        assert "Traceback" not in err
        assert len(err) < 700
        assert sorted(ok.iterdir()) == before
        return err

    return type_in


def kinds_in(folder):
    """What each name below a folder is, links not followed; nothing where the folder cannot be named."""
    try:
        return {path: stat.S_IFMT(path.lstat().st_mode) for path in folder.rglob("*")}
    except OSError:
        return {}


@pytest.fixture
def fault(request, tmp_path):
    make, said = FAULTS[request.param]
    folder = tmp_path / "bad"
    folder.mkdir()
    return make(folder), said


@pytest.mark.parametrize("fault", FAULTS, indirect=True)
@pytest.mark.parametrize("read", READS)
def test_what_is_no_file_is_never_read(told, ok, fault, read, monkeypatch):
    if read in ("model", "rows"):
        monkeypatch.setattr("tasks.predict.read_model", lambda *_: Mock(summary=None))
    path, said = fault
    code, words = READS[read]
    assert said in told(code, *words(path, ok))


@pytest.mark.parametrize("fault", FAULTS, indirect=True)
@pytest.mark.parametrize("write", WRITES)
def test_what_is_no_file_is_never_written_over(told, ok, fault, write, monkeypatch):
    monkeypatch.setattr("tasks.predict.read_model", lambda *_: Mock(summary=None))
    monkeypatch.setattr("tasks.predict.read_raw", Mock())
    path, said = fault
    before = kinds_in(path.parent.parent)
    err = told(2, *WRITES[write](path, ok))
    assert said in err or "File exists" in err or "there is no folder" in err
    assert kinds_in(path.parent.parent) == before


@pytest.mark.parametrize("fault", [name for name in FAULTS if "folder" not in name], indirect=True)
@pytest.mark.parametrize("used", WORKS)
def test_what_is_no_folder_is_no_work_folder(told, ok, fault, used):
    path, _ = fault
    assert "Name " in told(2, *WORKS[used](path, ok))


def test_a_nul_in_a_path_is_told(told, ok):
    nul, good = '"a\\u0000b"', f'"{ok}/rides.csv"'
    for path in (nul, f"{good}\nexpect = {nul}"):
        (ok / "run.toml").write_text(CONFIG.format(path=path))
        assert "NUL character" in told(3, "run", ok / "run.toml")


def test_a_link_is_written_through_and_stays(ok, tmp_path):
    (tmp_path / "there.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to(tmp_path / "there.csv")
    with pytest.raises(SystemExit) as end:
        main(["datasets", "make", "taxi", "--rows", "5", "--out", str(tmp_path / "link.csv")])
    assert end.value.code == 0
    assert (tmp_path / "link.csv").is_symlink()
    assert len((tmp_path / "there.csv").read_text().splitlines()) == 6


def test_a_configuration_nested_too_deep_is_told(told, ok):
    (ok / "run.toml").write_text("a = " + "[" * 50_000)
    assert "run.toml: " in told(2, "run", ok / "run.toml")


# What the shell hands over. Each is a process of its own, whose streams are spoilt as a shell does.

SHELL = {
    "full": (">/dev/full", 1, "standard output cannot be written (No space left on device)"),
    "closed": (">&-", 1, "standard output cannot be written (Bad file descriptor)"),
    "limited": (">out", 1, "standard output cannot be written (File too large)"),
    "stderr full": (">out 2>/dev/full", 0, ""),
    "stderr closed": (">out 2>&-", 0, ""),
    "all closed": ("<&- >&- 2>&-", 1, ""),
}


@pytest.mark.parametrize("name", SHELL)
def test_streams_that_take_nothing_are_told_where_anything_can_be(tmp_path, name):
    redirect, code, said = SHELL[name]
    limit = "ulimit -f 0; " if name == "limited" else ""
    done = subprocess.run(
        ["bash", "-c", f'{limit}exec "$0" datasets list {redirect}', COMMAND],
        cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == code
    assert done.stderr == (f"ldptree: {said}: not all was printed.\n" if said else "")
    if code == 0:
        assert "abalone" in (tmp_path / "out").read_text()


def test_a_deleted_working_directory_is_told(tmp_path):
    script = f'mkdir gone; cd gone; rmdir ../gone; exec "{COMMAND}" gc'
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("ldptree: the working directory is gone")


def test_ascii_output_loses_no_content(tmp_path, monkeypatch):
    from flows.command import streams

    with (tmp_path / "out").open("w", encoding="ascii") as out:
        monkeypatch.setattr(sys, "stdout", out)
        streams.print_json({"name": "café"})
        streams.print_file("SELECT 'café'")
    assert (tmp_path / "out").read_bytes() == b'{"name": "caf\\u00e9"}\n' + "SELECT 'café'\n".encode()


# A work folder that this user may use in part only.

OLD = f"curator/prune/{'0' * 32}"
"""An artifact that no run records."""


def without_special_rights(*words):
    """Run the command as a user whom file modes bind, as they bind everybody but root."""
    rights = "-dac_override,-dac_read_search"
    bound = ["setpriv", "--bounding-set", rights, "--inh-caps", rights] if os.geteuid() == 0 else []
    if bound and shutil.which("setpriv") is None:
        pytest.skip("file modes do not bind root, and there is no setpriv")
    command = [*bound, COMMAND, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)


@pytest.fixture
def closed(tmp_path):
    """Close a file or a folder of a work folder that a run has used; it is opened again for the test's end."""
    work, shut = tmp_path / "used", []
    for folder in ("holders", OLD, "public", "runs/run-1"):
        (work / folder).mkdir(parents=True)
    for file in ("holders/secret", ".in-use"):
        (work / file).write_bytes(b"s" * 32)

    def close(name, mode=0o000):
        (work / name).chmod(mode)
        shut.append(work / name)
        return work

    yield close
    for path in reversed(shut):
        path.chmod(0o700)


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        (".in-use", 0),
        ("curator", 0o555),
        pytest.param("public", 0o555, marks=pytest.mark.slow),
    ],
)
def test_what_a_run_may_not_use_is_told_before_anything_is_started(ok, closed, name, mode):
    work = closed(name, mode)
    done = without_special_rights("run", ok / "run.toml", "--work", work)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"ldptree: {work / name}: cannot be read")
    assert done.stderr.count("\n") == 1
    assert not (work / "prefect").exists()


@pytest.mark.parametrize("name", first_fast("holders/secret", "holders", "runs"))
def test_what_its_owner_shut_of_what_is_theirs_alone_is_opened_to_them_alone(ok, closed, name):
    work = closed(name, 0)
    done = without_special_rights("run", ok / "run.toml", "--work", work, "--plan")
    assert done.returncode == 0, done.stderr
    assert (work / name).stat().st_mode & 0o777 == (0o600 if name == "holders/secret" else 0o700)


@pytest.mark.parametrize("name", ["prefect", "runs", "curator", "simulation"])
def test_a_file_in_place_of_a_folder_is_told_before_anything_is_started(tmp_path, name):
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / name).write_text("x")
    with pytest.raises(ConfigError, match=f"{name}: no folder, and a work folder has one of this name"):
        Store(tmp_path / "used").check_rights()


def test_garbage_that_cannot_be_deleted_is_not_said_to_be_gone(closed):
    work = closed("curator/prune", 0o555)
    done = without_special_rights("gc", "--work", work, "--keep", "0")
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot be deleted (Permission denied)" in done.stderr
    assert not (work / "runs" / "run-1").exists()
    assert (work / OLD).exists()
