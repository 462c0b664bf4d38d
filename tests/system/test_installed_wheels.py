"""The wheels, in environments of their own: what is in them, the library with numpy alone, and pipeline and benchmark from any
folder, with no server.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import numpy as np
import pytest
from whole_runs import SMALL

import ldptree

pytestmark = pytest.mark.slow

CHECKOUT = Path(__file__).parents[2]
SERVER = ("PREFECT_API_URL", "PREFECT_HOME")
SOURCES = (CHECKOUT / "ldptree", CHECKOUT, CHECKOUT / "benchmark")
WITH_NUMPY_ALONE = """
import importlib.util, json, sys
from pathlib import Path

import numpy as np

import ldptree
from ldptree.client import Client
from ldptree.coins import Words
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.totals import RawSums

assert not any(importlib.util.find_spec(name) for name in ("scipy", "sklearn", "numba", "flows", "tasks", "schemas", "storage"))
for known in json.loads(Path(sys.argv[1]).read_text()):
    protocol = Protocol.from_json(json.dumps(known["protocol"]))
    answer = known["answers"][0]
    words = Words.seeded(np.random.SeedSequence(1))
    report = Client(protocol, max_epsilon=100.0, memory={}, words=words).report(answer["row"], answer["label"])
    assert report.to_json()
protocol = Protocol.from_json(json.dumps(json.loads(Path(sys.argv[1]).read_text())[0]["protocol"]))
sums = RawSums.none(protocol)
values = np.arange(60) % protocol.k
sums.add(protocol.mechanism.randomize(values, Words.system()), None)
assert sums.n_private == 60
try:
    ldptree.run("quickstart")
except ImportError as fault:
    assert "pip install ldptree-pipeline" in str(fault)
try:
    ldptree.LPCTClassifier()
except ImportError as fault:
    assert 'pip install "ldptree[estimators]"' in str(fault)
else:
    raise AssertionError
print(ldptree.__version__, ldptree.__file__)
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """The wheel of the library, that of the pipeline, and that of the benchmark."""
    folder = tmp_path_factory.mktemp("wheels")
    for source in SOURCES:
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
        subprocess.run(build, cwd=source, check=True, capture_output=True)
    (library,) = folder.glob("ldptree-*.whl")
    (pipeline,) = folder.glob("ldptree_pipeline-*.whl")
    (benchmark,) = folder.glob("ldptree_benchmark-*.whl")
    return library, pipeline, benchmark


def environment(folder, *wheels):
    """The Python of a new environment with these wheels, and the folder of its packages."""
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", *wheels], check=True, capture_output=True)
    (packages,) = (folder / "lib").glob("python*/site-packages")
    return python, packages


@pytest.fixture(scope="module")
def installed(wheels, tmp_path_factory):
    """The folder of commands of an environment that has the wheels, and their dependencies from where the tests run."""
    python, packages = environment(tmp_path_factory.mktemp("installed"), *wheels)
    # Only a folder that Python itself knows has its .pth files read: the checkout, installed there, does not come along.
    (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return python.parent


def of_wheel(wheel):
    """The names of its files, and what its METADATA says."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith("/METADATA"))
        return names, Parser().parsestr(archive.read(metadata).decode())


def test_the_wheels_have_every_file_and_no_folder_of_the_other(wheels):
    kept = subprocess.run(["git", "ls-files"], cwd=CHECKOUT, check=True, capture_output=True, text=True)
    rooms = {
        "ldptree": wheels[0],
        **dict.fromkeys(("schemas", "storage", "tasks", "flows", "configs", "clients"), wheels[1]),
        "ldptree_benchmark": wheels[2],
    }
    for wheel in wheels:
        names, _ = of_wheel(wheel)
        mine = {name for name in names if ".dist-info/" not in name}
        folders = {room for room, where in rooms.items() if where == wheel}
        placed = [path.removeprefix("benchmark/") for path in kept.stdout.splitlines()]
        wanted = {path for path in placed if path.split("/")[0] in folders}
        assert mine == wanted - {"ldptree/pyproject.toml", "ldptree/LICENSE"}
        assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_a_wheel_from_the_source_distribution_is_that_of_the_checkout(wheels, tmp_path):
    """Without the checkout around it: byte for byte, whoever builds it."""
    for source, wheel in zip(SOURCES, wheels, strict=True):
        to = tmp_path / wheel.stem
        build = [sys.executable, "-m", "hatchling", "build", "-d", to]
        subprocess.run([*build, "-t", "sdist"], cwd=source, check=True, capture_output=True)
        (packed,) = to.glob("*.tar.gz")
        with tarfile.open(packed) as archive:
            archive.extractall(to, filter="data")
        unpacked = to / packed.name.removesuffix(".tar.gz")
        subprocess.run([*build, "-t", "wheel"], cwd=unpacked, check=True, capture_output=True)
        assert (to / wheel.name).read_bytes() == wheel.read_bytes()


def test_every_distribution_has_the_licence_of_the_checkout():
    assert {(source / "LICENSE").read_bytes() for source in SOURCES} == {(CHECKOUT / "LICENSE").read_bytes()}


def test_the_library_needs_numpy_alone_and_the_others_need_those_before_of_their_version(wheels):
    library, pipeline, benchmark = (of_wheel(wheel)[1] for wheel in wheels)
    needed = [text for text in library.get_all("Requires-Dist") if "extra ==" not in text]
    assert [text.partition(">")[0] for text in needed] == ["numpy"]
    assert library["Version"] == pipeline["Version"] == benchmark["Version"] == ldptree.__version__
    ours = f"ldptree[estimators]=={ldptree.__version__}"
    assert ours in pipeline.get_all("Requires-Dist")
    # nothing that these two do not bring: the locks of the checkout are the benchmark's too
    assert benchmark.get_all("Requires-Dist") == [f"ldptree-pipeline=={ldptree.__version__}", ours]


def test_the_library_answers_and_adds_up_with_numpy_alone(wheels, tmp_path):
    python, packages = environment(tmp_path / "env", wheels[0])
    numpy = Path(np.__file__).parent
    for path in (numpy, *numpy.parent.glob("numpy.libs")):
        (packages / path.name).symlink_to(path)
    alone = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [python, "-c", WITH_NUMPY_ALONE, CHECKOUT / "docs" / "client" / "vectors.json"],
        cwd=tmp_path,
        env=alone,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert str(packages) in done.stdout


@pytest.mark.server
def test_the_installed_pipeline_runs_the_packaged_quickstart_from_any_folder(installed, tmp_path):
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
    assert Path(summary["page"]).is_relative_to(tmp_path / "work")
    assert Path(summary["page"]).stat().st_size > 10_000
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


@pytest.mark.server
def test_the_installed_benchmark_runs_a_suite_from_any_folder(installed, tmp_path):
    alone = {key: value for key, value in os.environ.items() if key not in (*SERVER, "PYTHONPATH")}
    run = subprocess.run(
        [installed / "ldptree", "benchmark", "smoke", "--json"],
        cwd=tmp_path,
        env=alone,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    summary = json.loads(run.stdout)
    assert (summary["suite"], summary["failed"]) == ("smoke", 0)
    assert Path(summary["page"]).is_relative_to(tmp_path / "work")
    where = subprocess.run(
        [installed / "python", "-c", "import ldptree_benchmark.flow as flow; print(flow.__file__)"],
        cwd=tmp_path,
        env=alone,
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(where.stdout.strip()).is_relative_to(installed.parent)
