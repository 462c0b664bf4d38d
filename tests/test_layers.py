"""Who may import whom, and what is not loaded before it is needed: read from the source, and from fresh interpreters."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = ("ldptree", "schemas", "storage", "tasks", "flows", "benchmark/ldptree_benchmark")
"""Each may import itself and what stands before it."""

ALGORITHMS_MAY = {"numpy", "numba", "scipy", "sklearn", "threadpoolctl", "ldptree"}
FILES = {
    "io",
    "pathlib",
    "shutil",
    "tempfile",
    "glob",
    "fileinput",
    "mmap",
    "pickle",
    "shelve",
    "sqlite3",
    "csv",
}
ARCHIVES = {"dbm", "gzip", "bz2", "lzma", "zipfile", "tarfile"}
NETWORK = {"socket", "ssl", "http", "urllib", "ftplib", "smtplib", "asyncio", "requests", "httpx"}
PROCESSES = {"subprocess", "multiprocessing", "logging"}
DATA_LIBRARIES = {"numpy", "scipy", "pandas", "polars", "pyarrow", "duckdb", "numba", "sklearn", "matplotlib"}
SERVERS = {"prefect", "sqlalchemy", "fastapi", "httpx", "great_expectations"}
HEAVY = DATA_LIBRARIES | SERVERS


def modules(*folders):
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


@cache
def parsed(path):
    return ast.parse(path.read_text(), str(path))


@cache
def imports(path):
    """(line, whole name) of everything a module imports, wherever in it, types only or not."""
    return list(_imports(parsed(path), path))


def _imports(tree, path):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = path.parts[-2] if node.level else node.module
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def faults(folder, is_allowed):
    return [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in modules(folder)
        for line, name in imports(path)
        if not is_allowed(name.split(".")[0])
    ]


@pytest.mark.parametrize("layer", LAYERS)
def test_no_folder_imports_what_stands_above_it(layer):
    above = {Path(one).name for one in LAYERS[LAYERS.index(layer) + 1 :]} | {"tests", "configs", "docs"}
    assert modules(layer)
    assert faults(layer, lambda name: name not in above) == []


def test_the_check_of_layers_sees_every_kind_of_import(tmp_path):
    folder = tmp_path / "flows"
    folder.mkdir()
    path = folder / "x.py"
    path.write_text(
        "import a, b.c\nfrom d.e import f\ndef g():\n    from h import i\nif TYPE_CHECKING:\n    import j\n"
        "from . import k\n"
    )
    assert [name for _, name in imports(path)] == ["a", "b.c", "d.e.f", "flows.k", "h.i", "j"]


SHOWN = "ldptree.models"
"""Where a model has a method for each of its texts and pictures, which know that model."""


def test_no_modules_need_each_other_but_a_model_and_its_pictures():
    places = {
        ".".join(path.relative_to((ROOT / layer).parent).with_suffix("").parts).removesuffix(
            ".__init__"
        ): path
        for layer in LAYERS
        for path in modules(layer)
    }
    needed = {
        name: {one for _, found in imports(path) for one in (found, found.rpartition(".")[0])} - {name}
        for name, path in places.items()
    }
    assert needed["flows.executors"] >= {"flows.budget", "flows.server.step_tasks"}
    assert "flows.executors" in needed["ldptree_benchmark.flow"]
    apart = {
        name: {
            one for one in others & places.keys() if not (name.startswith(SHOWN) and one.startswith(SHOWN))
        }
        for name, others in needed.items()
    }
    TopologicalSorter(apart).prepare()  # CycleError names a circle


DEVICE = "ldptree/client/memory.py"
"""What keeps the reports of somebody's device in a file there."""
FRONT = "ldptree/__init__.py"
"""What a person calls with the path of a model; it opens that file, and finds the pipeline where one is installed."""


def test_the_algorithms_know_no_pipeline_no_files_and_no_network():
    allowed = ALGORITHMS_MAY | (set(sys.stdlib_module_names) - FILES - ARCHIVES - NETWORK - PROCESSES)
    assert [fault for fault in faults("ldptree", allowed.__contains__) if not fault.startswith(DEVICE)] == []
    without_network = {"ldptree", "numpy"} | (set(sys.stdlib_module_names) - NETWORK - PROCESSES)
    assert [
        fault for fault in faults("ldptree", without_network.__contains__) if fault.startswith(DEVICE)
    ] == []
    opened = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in modules("ldptree")
        if path not in (ROOT / DEVICE, ROOT / FRONT)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("open", "print")
    ]
    assert opened == []


def test_what_data_look_like_is_said_without_a_library_that_reads_any():
    allowed = {"pydantic", "pydantic_core", "schemas", "ldptree"} | set(sys.stdlib_module_names)
    assert faults("schemas", allowed.__contains__) == []


@pytest.mark.parametrize("layer", ["schemas", "storage"])
def test_only_steps_and_flows_know_prefect(layer):
    assert faults(layer, lambda name: name not in ("prefect", "typer", "rich")) == []


def test_no_module_is_a_room_nobody_can_say_the_contents_of():
    vague = {"utils", "util", "helpers", "helper", "common", "misc", "base", "manager", "tools", "lib"}
    assert [path for path in modules(*LAYERS) if {path.stem, path.parent.name} & vague] == []


def test_no_room_has_more_than_a_dozen_modules_and_no_test_file_600_lines():
    rooms = {
        path.parent for path in modules(*LAYERS) if path.stem == "__init__"
    }  # claims of suites are in none
    inside = Counter(path.parent for path in modules(*LAYERS) if path.stem != "__init__")
    assert [str(room.relative_to(ROOT)) for room, n in inside.items() if n > 12 and room in rooms] == []
    assert [
        path.name for path in modules("tests", "benchmark/tests") if path.read_bytes().count(b"\n") >= 600
    ] == []


def test_every_module_says_what_lives_in_it():
    silent = [
        str(path.relative_to(ROOT))
        for path in modules(*LAYERS)
        if path.read_text().strip() and not ast.get_docstring(parsed(path))
    ]
    assert silent == []


def loaded_by(code):
    """Which heavy packages a fresh interpreter has loaded after `code`."""
    after = (
        "import json, sys\nprint('\\n' + json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{after}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return HEAVY & set(json.loads(done.stdout.splitlines()[-1]))


COMMANDS = """
from flows.command.main import main
from schemas.config import load
load("quickstart")
for code, *words in (
    (0, "--help"),
    (0, "run", "--help"),
    (0, "benchmark", "--help"),
    (2, "benchmrk"),
    (0, "audit", "--help"),
    (0, "datasets", "list"),
    (2, "run", "quickstart", "--set", "privacy.epsilon=0"),
):
    try:
        main(words)
    except SystemExit as end:
        assert end.code in (code, None), (words, end.code)
"""


def test_help_and_mistakes_and_reading_a_configuration_load_nothing_heavy():
    assert loaded_by(COMMANDS) == set()


def test_the_algorithms_load_neither_scikit_learn_nor_numba_before_they_are_used():
    everything = (
        "families.tree_fit",
        "protocol",
        "models.tree",
        "partition",
        "baselines",
        "mechanisms",
    )
    assert loaded_by("import " + ", ".join(f"ldptree.{module}" for module in everything)) == {"numpy"}


def test_the_package_and_its_client_load_numpy_alone():
    assert loaded_by("import ldptree, sys; assert 'numpy' not in sys.modules; import ldptree.client") == {
        "numpy"
    }


def test_storage_and_schemas_load_no_prefect_and_no_great_expectations():
    code = "import storage.store, storage.ledger.campaigns, storage.tables, storage.warehouse, schemas.config"
    assert not loaded_by(code) & {"prefect", "great_expectations", "sklearn", "matplotlib", "numba", "pandas"}
