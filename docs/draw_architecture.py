"""Draws the parts of docs/explanation/architecture.md that list what the code registers: rooms, steps and registries.

    python docs/draw_architecture.py            # writes the file anew
    python docs/draw_architecture.py --check    # exit code 1 where the file is stale

A drawn part stands between `<!-- drawn: NAME -->` and `<!-- end -->`; everything else in the file is written by hand.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
LAYERS = ("ldptree", "schemas", "storage", "tasks", "flows", "benchmark/ldptree_benchmark")
REGISTRIES = {
    "frequency oracles": ["ldptree.mechanisms.oracles.ORACLES", "ldptree.mechanisms.ORACLES"],
    "mechanisms": ["ldptree.mechanisms.MECHANISMS"],
    "mechanisms of a number": ["ldptree.mechanisms.NUMBER_MECHANISMS"],
    "partitions": ["ldptree.partition.PARTITIONS"],
    "families": ["ldptree.families.FAMILIES"],
    "baselines": ["ldptree.baselines.BASELINES"],
    "rivals of numbers": ["ldptree_benchmark.rivals.REGRESSORS"],
    "rivals of classes": ["ldptree_benchmark.rivals.CLASSIFIERS"],
    "laws": ["ldptree_benchmark.laws.LAWS"],
}
"""Where each registry is; the first that exists."""
DRAWN = re.compile(r"(<!-- drawn: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def first_sentence(path: Path, function: str = "") -> str:
    """Return the first sentence of a module's docstring, or of a function's in it, in one line and without the name of the step
    or the room before a colon.
    """
    node: Any = ast.parse(path.read_text())
    if function:
        node = next(each for each in ast.walk(node) if getattr(each, "name", "") == function)
    text = ast.get_docstring(node) or ""
    sentence = re.split(r"(?<=[.!?])\s|\n\n", text, maxsplit=1)[0]
    sentence = re.sub(rf"^({path.stem}|{path.parent.name})(, [^:]*)?: ", "", sentence, flags=re.IGNORECASE)
    return " ".join((sentence[:1].upper() + sentence[1:]).split())


def draw_rooms() -> Iterator[str]:
    """Every folder with code, in the order in which they may import each other."""
    yield "| room | what it holds |"
    yield "|---|---|"
    for layer in LAYERS:
        for path in sorted((ROOT / layer).rglob("__init__.py")):
            room = path.parent.relative_to(ROOT)
            name = f"**`{room}/`**" if str(room) == layer else f"`{room}/`"
            yield f"| {name} | {first_sentence(path)} |"


def steps() -> dict[str, tuple[Path, str, str]]:
    """Return file, function and zone of the record of every `@step("name", version=..., home=...)`."""
    found = {}
    for path in sorted(path for layer in LAYERS for path in (ROOT / layer).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            for call in getattr(node, "decorator_list", []):
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "step":
                    given = {keyword.arg: keyword.value for keyword in call.keywords}
                    home = given["home"]
                    zone = home.value if isinstance(home, ast.Constant) else "curator or simulation"
                    found[ast.literal_eval(call.args[0])] = (path, node.name, str(zone))
    return found


def draw_steps() -> Iterator[str]:
    """The steps in the order of the picture."""
    yield "| step | file | its record is kept with | what it does |"
    yield "|---|---|---|---|"
    found = steps()
    order = importlib.import_module("flows.command.terminal").STEPS  # others come last
    for name in sorted(found, key=lambda one: order.index(one) if one in order else len(order)):
        path, function, zone = found[name]
        is_shared = sum(path == other for other, _, _ in found.values()) > 1
        says = first_sentence(path, function if is_shared else "")
        yield f"| {name} | `{path.relative_to(ROOT)}` | {zone} | {says} |"


def registry(places: list[str]) -> tuple[Path, list[str]] | None:
    """The file and the names of the first of these registries that exists."""
    for place in places:
        module, _, name = place.rpartition(".")
        try:
            loaded = importlib.import_module(module)
        except ModuleNotFoundError:
            continue
        if hasattr(loaded, name) and loaded.__file__:
            return Path(loaded.__file__).relative_to(ROOT), list(getattr(loaded, name))
    return None


def draw_registries() -> Iterator[str]:
    """What each registry knows, and where one adds to it."""
    yield "| registry | one line in | names |"
    yield "|---|---|---|"
    for title, places in REGISTRIES.items():
        if (found := registry(places)) is not None:
            yield f"| {title} | `{found[0]}` | {', '.join(found[1])} |"
    for title, folder in (
        ("data sets", "schemas/datasets"),
        ("ready-made runs", "configs"),
        ("suites", "benchmark/ldptree_benchmark/suites"),
    ):
        paths = sorted((ROOT / folder).glob("*.toml"))
        names = ", ".join(path.stem for path in paths if path.stem != "papers")
        yield f"| {title} | none: a file in `{folder}/` is enough | {names} |"


def draw_tables() -> Iterator[str]:
    """Each table of the holders' database, its columns, and its line in the schema's docstring."""
    schema = importlib.import_module("storage.ledger.schema")
    lines = [line.split(maxsplit=1) for line in schema.__doc__.splitlines()[2:]]
    assert {name for name, _ in lines} == {*schema.TABLES.tables}
    yield "| table | columns | what its rows are |"
    yield "|---|---|---|"
    for name, says in lines:
        columns = schema.TABLES.tables[name].columns.keys()
        yield f"| {name} | {', '.join(columns)} | {says} |"


PARTS: dict[str, Callable[[], Iterator[str]]] = {
    "rooms": draw_rooms,
    "steps": draw_steps,
    "registries": draw_registries,
    "tables": draw_tables,
}


def drawn(text: str) -> str:
    """The page with its drawn parts as they are now."""
    return DRAWN.sub(lambda part: part[1] + "\n".join(PARTS[part[2]]()) + "\n" + part[3], text)


def main() -> int:
    """Draw, or check."""
    sys.path.insert(0, str(ROOT))
    text = PAGE.read_text()
    if "--check" in sys.argv[1:]:
        return int(drawn(text) != text)
    PAGE.write_text(drawn(text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
