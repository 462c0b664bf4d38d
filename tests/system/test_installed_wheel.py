"""The wheel in an environment of its own, from another folder, with no server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from whole_runs import SMALL

pytestmark = [pytest.mark.server, pytest.mark.slow]

CHECKOUT = Path(__file__).parents[2]
SERVER = ("PREFECT_API_URL", "PREFECT_HOME")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder of commands of an environment that has the wheel, and its dependencies from where the tests run."""
    folder = tmp_path_factory.mktemp("installed")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder / "dist"]
    subprocess.run(build, cwd=CHECKOUT, check=True, capture_output=True)
    (wheel,) = (folder / "dist").glob("ldptree-*.whl")
    venv.create(folder / "env", with_pip=False)
    python = folder / "env" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", wheel], check=True, capture_output=True)
    (packages,) = (folder / "env" / "lib").glob("python*/site-packages")
    # Only a folder that Python itself knows has its .pth files read: the checkout, installed there, does not come along.
    (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return python.parent


def test_an_installed_wheel_runs_the_packaged_quickstart_from_any_folder(installed, tmp_path):
    alone = {key: value for key, value in os.environ.items() if key not in (*SERVER, "PYTHONPATH")}
    sets = [word for assignment in SMALL for word in ("--set", assignment)]
    run = subprocess.run(
        [installed / "ldptree", "run", "quickstart", *sets, "--json"],
        cwd=tmp_path,
        env=alone,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    summary = json.loads(run.stdout)
    assert Path(summary["report"]).is_relative_to(tmp_path / "work")
    assert Path(summary["report"]).stat().st_size > 10_000
    assert summary["metrics"]["accuracy"] > 0.5
    where = "import flows.command.cli, tasks.page.render, schemas; print(flows.command.cli.__file__, schemas.__file__)"
    found = subprocess.run(
        [installed / "python", "-c", where],
        cwd=tmp_path,
        env=alone,
        capture_output=True,
        text=True,
        check=True,
    )
    assert all(Path(path).is_relative_to(installed.parent) for path in found.stdout.split())
