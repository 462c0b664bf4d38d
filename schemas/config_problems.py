"""What is wrong with a configuration, in words: where it stands, what was found, what to write, and what may have been meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel

from schemas.families import FAMILIES, ModelConfig, foreign_key
from schemas.tables import IN_WORDS


def find_key(config: type[BaseModel], key: str, siblings: Iterable[str] = ()) -> str:
    """What may have been meant by a word that is no key: a sibling, or the path of a key of any table; "" where none is near."""

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
    found: dict[str, str] = {}
    level: list[tuple[str, Any]] = [("", config)]
    while level:  # of two keys of one name the one that is less deep, and that of the model before those of single families
        fields = [(path, key, info) for path, model in level for key, info in _fields(model).items()]
        fields.sort(key=lambda field: field[1] != "model")
        for path, key, _ in fields:
            found.setdefault(key, f"{path}{key}")
        level = [
            (f"{path}{key}.", model)
            for path, key, info in fields
            for model in ((_model_of(info),) if key != "model" else FAMILIES.values())
        ]
    return found


def describe_problem(problem: Any, raw: dict[str, Any], config: type[BaseModel]) -> list[tuple[str, str]]:
    """Where a problem is, as a key's path, and what it is; several where a table's keys do not go together."""
    if problem["type"] != "value_error":
        return [_describe_one(problem, raw, config)]
    lines = str(problem["ctx"]["error"]).split("\n")
    return [_describe_one(problem | {"ctx": {"error": line}}, raw, config) for line in lines]


def _describe_one(problem: Any, raw: dict[str, Any], config: type[BaseModel]) -> tuple[str, str]:
    location = [str(part) for part in problem["loc"]]
    family = FAMILIES.get(location.pop(1)) if location[:1] == ["model"] and len(location) > 1 else None
    path: list[str] = []
    known: dict[str, Any] = _fields(config)
    table: Any = raw
    for part in location:
        if part not in known and not (isinstance(table, dict) and part in table):
            break  # one of the types that the value may have
        path.append(part)
        known = _fields(family if path == ["model"] else _model_of(known.get(part)))
        table = table.get(part, {}) if isinstance(table, dict) else {}
    where = ".".join(path)
    match problem["type"]:
        case "extra_forbidden":
            return ".".join(location), _unknown(location, family, config)
        case "union_tag_invalid":
            names = [f"{name!r}" for name in FAMILIES]
            found = problem["input"]["estimator"]
            near = difflib.get_close_matches(str(found), FAMILIES, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            return (
                f"{where}.estimator",
                f"input should be {', '.join(names[:-1])} or {names[-1]}, got {_short(found)}{hint}",
            )
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


def _unknown(location: list[str], family: type[ModelConfig] | None, config: type[BaseModel]) -> str:
    """Why a table has no such key, and what it has."""
    *tables, key = location
    parent: Any = config
    for part in tables:
        parent = family if parent is config and family else _model_of(_fields(parent).get(part))
    if family is not None and parent is family and (fault := foreign_key(key, family)):
        return fault
    names = list(_fields(parent))
    near = find_key(config, key, names)
    return f"unknown key; {f'did you mean {near}?' if near else 'known here: ' + ', '.join(names)}"


def _nearest(problem: Any) -> str:
    """'; did you mean ...?', of the words that may be written; '' where none is near."""
    words = re.findall(r"'([^']*)'", problem["ctx"]["expected"])
    near = difflib.get_close_matches(str(problem["input"]), words, n=1)
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


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 80 else text[:77] + "..."


def _fields(model: Any) -> dict[str, Any]:
    return model.model_fields if isinstance(model, type) and issubclass(model, BaseModel) else {}


def _model_of(info: Any) -> Any:
    if info is None:
        return None
    annotation = info.annotation
    candidates = [annotation, *get_args(annotation)]
    return next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), None)
