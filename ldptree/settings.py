"""Settings: what a person may set, declared once, as the fields of a frozen dataclass.

Parameters of estimators, keys of a configuration, the reference and help are made from the fields: the annotation says what a
value may be, the text below it what it means. This module reads no field's meaning; those are in `ldptree.families.settings`.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import math
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from ldptree.errors import ConfigError
from ldptree.limits import is_number

Auto = Literal["auto"]


@dataclass(frozen=True)
class Limits:
    """The limits of a number: `Annotated[int, Limits(0, 62)]`. A `high` of infinity may be reached.

    Attributes:
        low, high: the ends, which belong to the range.
        above, below: ends that do not.
    """

    low: float | None = None
    high: float | None = None
    above: float | None = None
    below: float | None = None

    def holds(self, value: float) -> bool:
        """Return whether a number lies within."""
        return (
            (self.low is None or value >= self.low)
            and (self.high is None or value <= self.high)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )

    @property
    def words(self) -> str:
        """Say where the range lies: "from 0 to 62"."""
        start = [f"from {self.low:,g}"] if self.low is not None else []
        start += [f"above {self.above:,g}"] if self.above is not None else []
        end = [f"below {self.below:,g}"] if self.below is not None else []
        if self.high is not None:
            high = "infinity" if self.high == math.inf else f"{self.high:,g}"
            end.append(f"to {high}" if self.low is not None else f"at most {high}")
        return (" " if self.low is not None and self.high is not None else " and ").join(start + end)

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> Any:
        """Pydantic's hook: the limits in the schema of a deployment's form."""
        ends = {
            "minimum": self.low,
            "maximum": self.high if self.high != math.inf else None,
            "exclusiveMinimum": self.above,
            "exclusiveMaximum": self.below,
        }
        return handler(core_schema) | {key: end for key, end in ends.items() if end is not None}


@dataclass(frozen=True)
class Read:
    """A value that a function reads, and refuses with ConfigError: `Annotated[Any, Read(label_ends)]`.

    Attributes:
        read: from the value, what is kept of it; NotImplemented where it is another alternative's.
        words: what it takes.
        is_written: whether a configuration can say it.
    """

    read: Callable[[Any], Any]
    words: str = ""
    is_written: bool = True

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> Any:
        """Pydantic's hook: nothing fits where a configuration cannot say it."""
        return handler(core_schema) if self.is_written else {"not": {}}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings that are checked when they are made. Plain numbers and texts are kept of what was given."""

    def __post_init__(self) -> None:
        of: type = type(self)
        for name, kind in _kinds(of).items():
            object.__setattr__(self, name, read_value(name, kind, getattr(self, name)))
        if faults := self.misfits():
            raise ConfigError("\n".join(faults))

    def misfits(self) -> list[str]:
        """List the settings that do not go together: "name: what, and what to do" each."""
        return []

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of all settings."""
        return tuple(field.name for field in fields(cls))

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Return the value of each setting where none is given."""
        return {field.name: field.default for field in fields(cls)}

    @property
    def values(self) -> dict[str, Any]:
        """The value of each setting."""
        return {name: getattr(self, name) for name in self.names()}

    @property
    def plain(self) -> dict[str, Any]:
        """The values as JSON writes them, which has no infinite number."""
        return {name: _plain(value) for name, value in self.values.items()}

    @classmethod
    def list_faults(cls, values: Mapping[str, Any]) -> list[tuple[str, str]]:
        """List each value that cannot be: its name, and what is wrong; "" where there is no such setting."""
        kinds, faults = annotations_of(cls), []
        for name, value in values.items():
            inner = settings_in(kinds.get(name))
            if name not in kinds:
                faults.append((name, ""))
            elif inner is not None and isinstance(value, Mapping):
                faults += [(f"{name}.{key}", fault) for key, fault in inner.list_faults(value)]
            else:
                try:
                    read_value(name, kinds[name], value)
                except ConfigError as fault:
                    faults.append((name, str(fault).removeprefix(name).lstrip(": ")))
        return faults


def read_value(name: str, kind: Any, value: Any) -> Any:
    """Return the value of a setting as it is kept.

    Args:
        name: of the setting, for the message.
        kind: its annotation.
        value: as it was given.

    Raises:
        ConfigError: it is none of those that the annotation allows.
    """
    kinds, own = _alternatives(kind), ""
    for each in kinds:
        try:
            kept = _take(each, value)
        except ConfigError as fault:
            own = str(fault)
            continue
        if kept is not NotImplemented:
            return kept
    if own:
        raise ConfigError(own if own.startswith(name) else f"{name}: {own}")
    known = [word for each in kinds if get_origin(each) is Literal for word in get_args(each)]
    near = difflib.get_close_matches(value[:64], map(str, known), n=1) if isinstance(value, str) else []
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ConfigError(f"{name} must be {describe_kind(kind)}, got {_shorten(value)}{hint}")


def describe_kind(kind: Any, *, written: bool = False) -> str:
    """Say what an annotation allows: "'auto' or a whole number from 0 to 62". `written`: of it what a configuration can say."""
    words: list[str] = []
    for each in _alternatives(kind):
        base, *details = get_args(each) if get_origin(each) is Annotated else [each]
        detail = details[0] if details else None
        if get_origin(base) is Literal:
            words += [repr(word) for word in get_args(base)]
        elif isinstance(detail, Read):
            words += [detail.words] if detail.words and (detail.is_written or not written) else []
        elif isinstance(detail, Limits):
            words.append(f"a {'whole ' if base is int else ''}number {detail.words}")
        elif base is bool:
            words.append("true or false")
        elif settings_in(base) is not None:
            words.append("a table of keys")
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def annotations_of(of: type) -> dict[str, Any]:
    """Return the annotation of each setting."""
    return _read_annotations(of)


def texts_of(of: type) -> dict[str, str]:
    """Return the text below each field of a class or of those it inherits from. It is read from the source, so on demand."""
    return _read_texts(of)


@cache
def _read_annotations(of: type) -> dict[str, Any]:
    hints = get_type_hints(of, include_extras=True)
    return {field.name: hints[field.name] for field in fields(of)}


@cache
def _read_texts(of: type) -> dict[str, str]:
    texts: dict[str, str] = {}
    for each in reversed(of.__mro__):
        texts |= _read_module(each.__module__).get(each.__qualname__, {})
    return texts


@cache
def _read_module(name: str) -> dict[str, dict[str, str]]:
    """The texts below the fields of each class of a module."""
    try:
        source = inspect.getsource(sys.modules[name])
    except (OSError, TypeError):
        return {}
    classes = (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    return {node.name: _read_class(node) for node in classes}


def _read_class(body: ast.ClassDef) -> dict[str, str]:
    texts = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(id=key)),
                ast.Expr(value=ast.Constant(value=str(below))),
            ):
                texts[key] = " ".join(below.split())
    return texts


@cache
def _kinds(of: type) -> dict[str, Any]:
    """The annotations that say what a value may be: those of settings, not of what a subclass adds in plain types."""
    return {
        name: kind for name, kind in annotations_of(of).items() if any(map(_is_checked, _alternatives(kind)))
    }


def _is_checked(kind: Any) -> bool:
    return get_origin(kind) in (Literal, Annotated) or settings_in(kind) is not None


def _alternatives(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (types.UnionType, Union) else (kind,)


def settings_in(kind: Any) -> type[Settings] | None:
    """Return the settings that a setting is a table of, if it is one."""
    return next((c for c in _alternatives(kind) if isinstance(c, type) and issubclass(c, Settings)), None)


def _take(kind: Any, value: Any) -> Any:
    """The value as one of the alternatives keeps it; NotImplemented where it does not take it. Raises ConfigError."""
    if kind is types.NoneType:
        return None if value is None else NotImplemented
    if kind is bool:
        return value if isinstance(value, bool) else NotImplemented
    if get_origin(kind) is Literal:
        is_plain = isinstance(value, str) or is_number(value, whole=True)
        return next((word for word in get_args(kind) if is_plain and word == value), NotImplemented)
    if get_origin(kind) is Annotated:
        base, detail = get_args(kind)[:2]
        return detail.read(value) if isinstance(detail, Read) else _take_number(base, detail, value)
    if isinstance(kind, type) and issubclass(kind, Settings):
        if isinstance(value, Mapping) and all(name in kind.names() for name in value):
            return kind(**value)
        return value if isinstance(value, kind) else NotImplemented
    return value


def _take_number(base: type, limits: Limits, value: Any) -> Any:
    if limits.high == math.inf and isinstance(value, str | float) and value in ("inf", math.inf):
        return math.inf
    is_kept = is_number(value, whole=base is int) and limits.holds(value)
    return base(value) if is_kept else NotImplemented


def _plain(value: Any) -> Any:
    if isinstance(value, Settings):
        return value.plain
    if isinstance(value, float) and value == math.inf:
        return "inf"
    return list(value) if isinstance(value, tuple) else value


def _shorten(value: Any) -> str:
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # of tables within tables, of a number of thousands of digits
        return "what is too long to show"
    return text if len(text) < 80 else text[:77] + "..."
