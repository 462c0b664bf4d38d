"""Writes the reference pages that are told from the code: docs/reference/configuration.md and docs/reference/command-line.md.

python docs/write_reference.py            # writes the files anew; tests/test_contributing.py fails where they are stale
"""

from __future__ import annotations

import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo

if typing.TYPE_CHECKING:
    from ldptree.settings import Settings

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "reference"
SIGNS = {Ge: ("ge", "at least"), Gt: ("gt", "above"), Le: ("le", "at most"), Lt: ("lt", "below")}
WRITTEN = "<!-- written by `python docs/write_reference.py` -->"


def words(info: FieldInfo) -> str:
    """The words that may be written, and the limits of a number."""
    texts: list[str] = []
    limits = list(info.metadata)

    def look(annotation: Any) -> None:
        if typing.get_origin(annotation) is typing.Literal:
            texts.extend(f'"{word}"' for word in typing.get_args(annotation) if isinstance(word, str))
            return
        limits.extend(getattr(annotation, "__metadata__", ()))
        for part in typing.get_args(annotation):
            look(part)

    look(info.annotation)
    for limit in limits:
        for one in getattr(limit, "metadata", [limit]):
            if type(one) in SIGNS:
                name, said = SIGNS[type(one)]
                texts.append(f"{said} {getattr(one, name):,}")
    return ", ".join(dict.fromkeys(texts))


def default(info: FieldInfo) -> str:
    """What holds where the key is left out."""
    return "required" if info.is_required() else written_default(info.default)


def written_default(value: Any) -> str:
    """A default, as a configuration writes it."""
    if value is None or value in ((), {}, ""):
        return ""
    if isinstance(value, tuple):
        return ", ".join(f'"{one}"' for one in value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else f"{value:,}"


def rows(table: type[BaseModel], prefix: str = "", *, without: frozenset[str] = frozenset()) -> Iterator[str]:
    """A line for each key of a table."""
    from ldptree.settings import texts_of

    for key, info in table.model_fields.items():
        if key in without:
            continue
        inner = info.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from rows(inner, f"{prefix}{key}.")
            continue
        cells = (f"`{prefix}{key}`", default(info), texts_of(table).get(key, ""), words(info))
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def rows_of_settings(settings: type[Settings], prefix: str) -> Iterator[str]:
    """A line for each setting of a family."""
    from ldptree.settings import annotations_of, describe_kind, settings_in, texts_of

    texts, defaults = texts_of(settings), settings.defaults()
    for key, kind in annotations_of(settings).items():
        inner = settings_in(kind)
        if inner is not None:
            yield from rows_of_settings(inner, f"{prefix}{key}.")
            continue
        values = describe_kind(kind, written=True).replace("'", '"')
        cells = (f"`{prefix}{key}`", written_default(defaults[key]), texts.get(key, ""), values)
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


HEAD = ["| key | default | meaning | values |", "|---|---|---|---|"]


def write_configuration() -> Iterator[str]:
    """Every key of a configuration."""

    from schemas.config import RunConfig
    from schemas.families import settings_by_name

    tables = {name: info.annotation for name, info in RunConfig.model_fields.items()}
    yield from (
        "# Configuration",
        "",
        WRITTEN,
        "",
        "For everybody who writes a configuration: every key of the TOML file, generated from the code that checks it.",
        "",
        "A file is checked whole before anything starts; all problems are reported together, each with the closest valid name. "
        "`--set KEY=VALUE` sets any key for one run, and `KEY=` takes away a key that the file sets.",
        "",
        "## The run",
        "",
        *HEAD,
    )
    nested = frozenset(
        name for name, of in tables.items() if isinstance(of, type) and issubclass(of, BaseModel)
    )
    yield from rows(RunConfig, without=nested | {"model"})
    for name in ("dataset", "privacy", "simulation", "evaluation", "campaign", "collection", "run"):
        yield from ("", f"## [{name}]", "", *HEAD, *rows(tables[name], f"{name}."))  # type: ignore[arg-type]
    for name, settings in settings_by_name().items():
        yield from ("", f'## [model] of estimator = "{name}"', "", settings.__doc__ or "")
        yield from ("", *HEAD, *rows_of_settings(settings, "model."))
    yield from ("", "## [features]", "", *HEAD, *rows(tables["features"], "features."))  # type: ignore[arg-type]


def write_command_line() -> Iterator[str]:
    """Every command with its options."""
    from typer.main import get_command

    from flows.command.cli import app

    yield from (
        "# Command line",
        "",
        WRITTEN,
        "",
        "For everybody who types `ldptree`: every command, told from the program.",
        "",
        "Exit codes: 0 done, 1 anything else, 2 a bad command or configuration, 3 bad data, 4 no budget left, 5 a damaged or "
        "foreign artifact, 130 interrupted, 143 terminated.",
    )

    def walk(command: Any, name: str) -> Iterator[str]:
        if hasattr(command, "commands"):
            context = command.make_context(name, ["--help"], resilient_parsing=True)
            for key in command.list_commands(context):
                yield from walk(command.get_command(context, key), f"{name} {key}")
            if not (command.invoke_without_command and command.callback) or name == "ldptree":
                return
        named = "".join(f" {p.name.upper()}" for p in command.params if p.param_type_name == "argument")
        example = ("", f"    {command.epilog.removeprefix('Example: ')}") if command.epilog else ()
        yield from (
            "",
            f"## {name}{named}",
            "",
            " ".join((command.help or "").split()),
            *example,
            "",
            "| | |",
            "|---|---|",
        )
        for param in command.params:
            is_argument = param.param_type_name == "argument"
            label = param.name.upper() if is_argument else ", ".join(param.opts)
            meaning = " ".join((getattr(param, "help", "") or "").split())
            yield f"| `{label}` | {meaning} |"

    yield from walk(get_command(app), "ldptree")


PAGES = {"configuration.md": write_configuration, "command-line.md": write_command_line}


def written() -> dict[Path, str]:
    """Each page and what it should say."""
    return {FOLDER / name: "\n".join(lines()) + "\n" for name, lines in PAGES.items()}


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    for path, text in written().items():
        path.write_text(text)
