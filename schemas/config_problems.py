"""Describe each problem of a configuration with its place, what to write, and what may have been meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel

from ldptree.settings import Settings, annotations_of
from schemas.families import AUTO, ModelConfig, ModelError, settings_by_name
from schemas.tables import IN_WORDS

LONGEST_KEY = 64
"""Characters of a word for which a key is looked for that may have been meant."""
LONGEST_LINE = 2_000
_TABLES = (BaseModel, Settings, ModelConfig)


def find_key(config: type[BaseModel], key: str, siblings: Iterable[str] = ()) -> str:
    """Suggest a key for an unknown word, as a sibling, the path of a key of any table, or "" if none is near."""

    if len(key) > LONGEST_KEY:
        return ""

    def likeness(word: str) -> float:
        if key in word.split("_"):
            return 1.0
        if len(key) > 2 and word.startswith(key):
            return 0.9
        return difflib.SequenceMatcher(None, key, word).ratio()

    sibling = max(siblings, key=likeness, default="")
    places = _places(config)
    place = max(places, key=lambda word: (word == key, likeness(word)))
    if likeness(place) >= 0.7 and likeness(place) > likeness(sibling):
        return places[place]
    return sibling if likeness(sibling) >= 0.5 else ""


@cache
def _places(config: type[BaseModel]) -> dict[str, str]:
    """The path of every key of a configuration, by its last word."""
    places: dict[str, str] = {}
    level: list[tuple[str, Any]] = [("", config)]
    while level:  # of two keys of one name the one that is less deep, and that of the model before those of other tables
        fields = [(path, key, info) for path, model in level for key, info in _fields(model).items()]
        fields.sort(key=lambda field: not field[0].startswith("model."))
        for path, key, _ in fields:
            places.setdefault(key, f"{path}{key}")
        level = [(f"{path}{key}.", _model_of(info)) for path, key, info in fields]
    return places


def split_problem(problem: Any) -> list[Any]:
    """Return a problem for each fault of one: a table's keys that do not go together, or all that is wrong in [model]."""
    if problem["type"] != "value_error":
        return [problem]
    error = problem["ctx"]["error"]
    if isinstance(error, ModelError):
        return [{"type": "model_fault", "loc": key.split("."), "fault": fault} for key, fault in error.faults]
    return [problem | {"ctx": {"error": line}} for line in str(error).split("\n")]


def describe_problem(problem: Any, raw: dict[str, Any], config: type[BaseModel]) -> tuple[str, str]:
    """Return the place of a problem, as a key's path, and the words for it."""
    if problem["type"] == "model_fault":
        location = ["model", *filter(None, problem["loc"])]
        return ".".join(location), problem["fault"] or _unknown(location, config, raw["model"])
    location = [str(part) for part in problem["loc"]]
    path: list[str] = []
    known: dict[str, Any] = _fields(config)
    table: Any = raw
    for part in location:
        if part not in known and not (isinstance(table, dict) and part in table):
            break  # one of the types that the value may have
        path.append(part)
        known = _fields(_model_of(known.get(part)))
        table = table.get(part, {}) if isinstance(table, dict) else {}
    where = ".".join(path)
    match problem["type"]:
        case "extra_forbidden":
            return ".".join(location), _unknown(location, config)
        case "missing":
            return where, "missing"
        case "value_error":
            message = str(problem["ctx"]["error"])
            key, _, what = message.partition(": ")
            # What speaks of several keys of a table, or of several tables, names the first itself.
            return (".".join([*path, key]), what) if key.partition(".")[0] in known else (where, message)
        case "string_pattern_mismatch":
            return where, f"{IN_WORDS[problem['ctx']['pattern']]}, got {_short(problem['input'])}"
        case "bool_type":
            return where, f"write true or false, got {_short(problem['input'])}"
        case "model_type" | "model_attributes_type":
            return where, f"input should be a table of keys, got {_short(problem['input'])}"
        case _:
            message = f"{problem['msg'][0].lower()}{problem['msg'][1:]}, got {_short(problem['input'])}"
            return where, message + (_nearest(problem) if problem["type"] == "literal_error" else "")


def _unknown(location: list[str], config: type[BaseModel], model: Mapping[str, Any] | None = None) -> str:
    """Say why a table has no such key, and what it has. `model`: [model] as it was written, where it is there."""
    *tables, key = location
    parent: Any = config
    for part in tables:
        parent = _model_of(_fields(parent).get(part))
    names = list(_fields(parent))
    if parent is ModelConfig and model is not None:
        names = ["estimator", *settings_by_name()[model.get("estimator", AUTO)].names()]
    near = find_key(config, key, names)
    return f"unknown key; {f'did you mean {near}?' if near else 'known here: ' + ', '.join(names)}"


def _nearest(problem: Any) -> str:
    """'; did you mean ...?', of the words that may be written; '' where none is near."""
    words = re.findall(r"'([^']*)'", problem["ctx"]["expected"])
    near = difflib.get_close_matches(str(problem["input"])[:LONGEST_KEY], words, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def join_messages(messages: list[str]) -> str:
    """One message of the several that a key gives which may be of several types."""
    if len(messages) == 1 or not all(m.startswith("input should be ") for m in messages):
        return "; ".join(dict.fromkeys(messages))
    got = max((m.rpartition(", got ")[2] for m in messages), key=len)  # one of them may know what is near
    wanted = [
        m.removeprefix("input should be ").rpartition(", got ")[0].partition(", unable")[0] for m in messages
    ]
    return f"input should be {' or '.join(dict.fromkeys(wanted))}, got {got}"


def shorten(text: str, most: int = LONGEST_LINE) -> str:
    """A part of a message, cut where it is longer than anybody reads."""
    return text if len(text) <= most else f"{text[:most]} ..."


def _short(value: object) -> str:
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # of tables within tables, of a number of thousands of digits
        return "what is too long to show"
    return text if len(text) < 80 else text[:77] + "..."


def _fields(model: Any) -> dict[str, Any]:
    """The keys of a table, each with what says its type."""
    if model is ModelConfig:
        tables = [annotations_of(of) for of in settings_by_name().values()]
        return {"estimator": str} | {key: kind for table in tables for key, kind in table.items()}
    if isinstance(model, type) and issubclass(model, Settings):
        return annotations_of(model)
    return model.model_fields if isinstance(model, type) and issubclass(model, BaseModel) else {}


def _model_of(info: Any) -> Any:
    annotation = getattr(info, "annotation", info)
    candidates = [annotation, *get_args(annotation)]
    return next((c for c in candidates if isinstance(c, type) and issubclass(c, _TABLES)), None)
