"""Write and read the JSON of protocols, reports and models once, from the annotations of a dataclass.

A text is canonical (sorted keys, no spaces, ASCII only), so that its digest is that of the value. It is read strictly: what two
readers may understand differently is refused, and so is a field that is absent, unknown or of another type.

    str, bool, int, float, None    as they are; a float may be a whole number; an infinite one is the text "inf"
    tuple                          a list
    NDArray[kind]                  nested lists of numbers, whole ones where the kind is whole
    a class with to_json           what that gives, read by its from_json
    another dataclass              an object with its fields
    a field with a `Codec`         what its functions give: `field(metadata={"codec": Codec(...)})`
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, cached_property
from inspect import get_annotations
from typing import Any, ClassVar, Literal, Self, Union, get_args, get_origin

import numpy as np

from ldptree.errors import DataError, LdptreeError

MARK = "\ufeff"
_SURROGATE = re.compile(r"[\ud800-\udfff]|\\u[dD][89a-fA-F]")


def read(
    text: str | bytes,
    *,
    of: str,
    remedy: str = "",
    hint: str = "",
    error: type[LdptreeError] = DataError,
    parse_float: Callable[[str], float] | None = None,
) -> Any:
    """The plain values in a text.

    Args:
        text: JSON; bytes are UTF-8. A byte-order mark before it, which Windows editors write, is passed over.
        of: what a message calls it.
        remedy: what a message says to do.
        hint: what it says in place of that where the text is not JSON at all.
        error: what is raised.
        parse_float: of numbers with a point or an exponent; None: `float`. An OverflowError of it is not caught.

    Raises:
        LdptreeError: `error`, where the text is none or not JSON, an object has a key twice, or NaN, an infinity or half a
            character stands in it.
    """
    if not isinstance(text, str | bytes | bytearray):
        raise error(f"{of}: a {type(text).__name__} where its text is needed")
    try:
        plain = text if isinstance(text, str) else text.decode()
        value = json.loads(
            plain.removeprefix(MARK),
            parse_constant=_no_constant,
            parse_float=parse_float,
            object_pairs_hook=_each_once,
        )
        if _SURROGATE.search(plain):
            _check_characters(value)
        return value
    except _NotStrictError as fault:
        what, advice = str(fault), remedy
    except (ValueError, RecursionError):
        what, advice = "not JSON", hint or remedy
    raise error(f"{of}: {what}" + (f"; {advice}" if advice else ""))


class _NotStrictError(ValueError):
    """A text that only a lenient `json.loads` would read. The message is half a sentence."""


def _each_once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise _NotStrictError(f"the key {_twice(name for name, _ in pairs)} stands twice in it")
    return content


def _twice(names: Iterable[str]) -> str:
    """The first name that was there before, as JSON has it."""
    seen: set[str] = set()
    twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
    return json.dumps(twice[:40])


def _check_characters(value: Any) -> None:
    """Raise an error if half of a surrogate pair stands alone, which no program can print or store."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _NotStrictError("a text in it holds half a character") from None


def _no_constant(name: str) -> float:
    raise _NotStrictError(f"not JSON, {name} is no number there")


def canonical(content: Any) -> str:
    """Return a digest's text, with sorted keys, no spaces, ASCII. Raises ValueError if a number is not finite."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def canonical_of_parts(parts: Mapping[str, str]) -> str:
    """Return the canonical text of an object by those of its values, of which a large one may be written once for many."""
    return "{" + ",".join(f"{json.dumps(name)}:{parts[name]}" for name in sorted(parts)) + "}"


def digest_of(content: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical text, as hexadecimal digits."""
    return hashlib.sha256(canonical(content).encode()).hexdigest()


@dataclass(frozen=True)
class Codec:
    """The way to write and read a field whose type does not say so.

    Attributes:
        write: plain values of the field's value.
        read: the field's value from plain ones. Raises LdptreeError where they are none of it.
    """

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def to_plain(value: Any) -> dict[str, Any]:
    """The fields of a dataclass as plain values."""
    return {
        attribute.name: codec.write(getattr(value, attribute.name))
        if (codec := attribute.metadata.get("codec"))
        else plain_value(getattr(value, attribute.name))
        for attribute in fields(value)
    }


def plain_value(value: Any) -> Any:
    """Return the JSON value of a field."""
    if isinstance(value, np.ndarray):
        return value.tolist() if np.isfinite(value).all() else _with_inf(value.tolist())
    if isinstance(value, float):
        return "inf" if value == math.inf else value
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, tuple):
        return [item if isinstance(item, float) else plain_value(item) for item in value]
    return to_plain(value) if is_dataclass(value) else value


def of_plain(cls: Any, data: Any, *, of: str) -> Any:
    """The dataclass whose fields `to_plain` gave.

    Raises:
        DataError: not an object, or a field is absent, unknown or of another type.
    """
    kinds = field_types(cls)
    if not isinstance(data, Mapping) or set(data) != set(kinds):
        raise DataError(f"{of}: expected exactly the fields {', '.join(sorted(kinds))}")
    return cls(**read_fields(cls, data, of=of))


def read_fields(cls: type, data: Mapping[str, Any], names: Iterable[str] = (), *, of: str) -> dict[str, Any]:
    """The values of these fields of a dataclass, all of them where none is named, from plain values that are there.

    Raises:
        DataError: a field is of another type.
    """
    kinds, codecs = field_types(cls), _codecs(cls)
    return {
        name: codecs[name].read(data[name]) if name in codecs else typed(kinds[name], data[name], of, name)
        for name in (names or kinds)
    }


def field_types(cls: type) -> dict[str, Any]:
    """The types of a dataclass's fields."""
    return _field_types(cls)


@cache
def _field_types(cls: Any) -> dict[str, Any]:
    owners = [owner for owner in reversed(cls.__mro__) if "__dataclass_fields__" in vars(owner)]
    hints = {name: kind for owner in owners for name, kind in get_annotations(owner, eval_str=True).items()}
    return {field.name: hints[field.name] for field in fields(cls)}


@cache
def _codecs(cls: Any) -> dict[str, Codec]:
    return {
        attribute.name: attribute.metadata["codec"]
        for attribute in fields(cls)
        if "codec" in attribute.metadata
    }


def typed(kind: Any, value: Any, of: str, name: str) -> Any:
    """A plain value as the annotated type has it. Raises DataError, which names the field."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _typed_union(get_args(kind), value, of, name)
    if origin is np.ndarray:
        return numbers(value, get_args(get_args(kind)[1])[0], of, name)
    if origin is tuple:
        return _typed_tuple(get_args(kind), value, of, name)
    if origin is Literal:
        is_known = any(type(value) is type(literal) and value == literal for literal in get_args(kind))
    elif kind is float:
        if value == "inf":
            return math.inf
        is_known = type(value) in (int, float)
    elif hasattr(kind, "from_json"):
        return kind.from_json(value)
    elif is_dataclass(kind):
        return of_plain(kind, value, of=name)
    else:
        is_known = type(value) is kind
    if not is_known:
        raise _wrong(of, name, value)
    return value


def numbers(value: Any, kind: Any, of: str, name: str) -> np.ndarray[Any, Any]:
    """An array of this kind from a number or nested lists of them; "inf" where the kind is not whole. Raises DataError."""
    known: tuple[type, ...] = (int,) if np.issubdtype(kind, np.integer) else (int, float)
    try:
        if _are_numbers(value, known):
            return np.array(value, dtype=kind)
    except (TypeError, ValueError, OverflowError):
        pass
    raise DataError(f'{of}: field "{name}" is not an array of numbers')


class Document:
    """A frozen dataclass with a text of its own, which has its kind, the kind's version, its fields and a digest.

    A class whose text is not its fields overrides `text_fields`, `to_content` and `of_content`.
    """

    KINDS: ClassVar[tuple[str, ...]]
    """What the field "kind" of its text says, one of these."""
    VERSION: ClassVar[int] = 1
    NAME: ClassVar[str] = "model"
    """What messages call it."""

    @property
    def kind(self) -> str:
        """Name of its kind in the text."""
        return self.KINDS[0]

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the canonical JSON without the digest itself."""
        return digest_of(self._marked_content())

    def to_json(self) -> str:
        """Return the canonical text, with sorted keys, no spaces, its own digest, and "inf" for infinity."""
        return canonical({**self._marked_content(), "digest": self.digest})

    def _marked_content(self) -> dict[str, Any]:
        return {"kind": self.kind, "version": self.VERSION, **self.to_content()}

    def __str__(self) -> str:
        return f"{self.NAME} {self.digest[:12]}"

    def __repr__(self) -> str:
        return f"<{self}>"

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """The value that `to_json` wrote, every part checked anew.

        Raises:
            DataError: not JSON, another kind, an unknown version, a field absent, unknown or of a wrong type, a number
                beyond every float, parts that do not fit each other, or a digest that is not that of the content.
        """
        return cls.from_data(read_document(text, of=cls.NAME))

    @classmethod
    def from_data(cls, data: object) -> Self:
        """The same from the plain values in the text. Raises DataError."""
        if not isinstance(data, Mapping) or (kind := data.get("kind")) not in cls.KINDS:
            raise DataError(
                f'{cls.NAME}: not an {cls.KINDS[0]} (its "kind" says otherwise); give a model file'
            )
        if data.get("version") != cls.VERSION:
            raise DataError(
                f"{cls.NAME}: version {data.get('version')!r} is not known here (only {cls.VERSION})"
            )
        needed, optional = cls.text_fields(kind)
        expected = {"kind", "version", "digest", *needed}
        for name in sorted((expected ^ set(data)) - set(optional)):
            raise DataError(f'{cls.NAME}: field "{name}" is {"absent" if name in expected else "unknown"}')
        content = {name: value for name, value in data.items() if name != "digest"}
        try:
            if data["digest"] != digest_of(content):
                raise DataError(f"{cls.NAME}: its digest is not that of its content; export it again")
            return cls.of_content(content)
        except DataError:
            raise
        except (OverflowError, ValueError):  # beyond every float, as it is written or as it is read
            raise DataError(f"{cls.NAME}: a number in it is too large; export it again") from None

    @classmethod
    def text_fields(cls, kind: str) -> tuple[Collection[str], Collection[str]]:
        """The fields that its text has besides kind, version and digest, and those that it may have."""
        return field_types(cls).keys(), ()

    def to_content(self) -> dict[str, Any]:
        """Its fields as plain values."""
        return to_plain(self)

    @classmethod
    def of_content(cls, data: Mapping[str, Any]) -> Self:
        """The value from its fields, whose names are those of `text_fields`. Raises DataError."""
        return cls(**read_fields(cls, data, of=cls.NAME))


def read_document(text: str | bytes, *, of: str = "model") -> Any:
    """The plain values in a document's text. Raises DataError."""
    return read(text, of=of, remedy="export it again", hint="is it a model file, and whole?")


def _typed_union(kinds: Sequence[Any], value: Any, of: str, name: str) -> Any:
    """Infinity is taken before text, so that a field of texts and numbers has no text "inf"."""
    if value is None and types.NoneType in kinds:
        return None
    for kind in sorted(kinds, key=lambda each: each is not float):
        if get_origin(kind) is not None or kind in (str, bool, int, float):
            try:
                return typed(kind, value, of, name)
            except DataError:
                continue
    for kind in kinds:
        if kind is not types.NoneType and (hasattr(kind, "from_json") or is_dataclass(kind)):
            return typed(kind, value, of, name)
    raise _wrong(of, name, value)


def _typed_tuple(kinds: tuple[Any, ...], value: Any, of: str, name: str) -> tuple[Any, ...]:
    is_any_length = len(kinds) == 2 and kinds[1] is Ellipsis
    if not isinstance(value, list) or not (is_any_length or len(value) == len(kinds)):
        raise _wrong(of, name, value)
    each = [kinds[0]] * len(value) if is_any_length else kinds
    return tuple(_typed_item(kind, item, of, name) for kind, item in zip(each, value, strict=True))


def _typed_item(kind: Any, value: Any, of: str, name: str) -> Any:
    """In a list a text is a text, "inf" too."""
    if isinstance(value, str) and kind is not str and str not in get_args(kind):
        raise _wrong(of, name, value)
    return value if isinstance(value, str) else typed(kind, value, of, name)


def _are_numbers(value: Any, kinds: tuple[type, ...]) -> bool:
    if isinstance(value, list):
        return all(_are_numbers(item, kinds) for item in value)
    return type(value) in kinds or (value == "inf" and float in kinds)


def _with_inf(values: Any) -> Any:
    """The lists with "inf" in the place of infinities, which JSON has not."""
    if isinstance(values, list):
        return [_with_inf(v) for v in values]
    return "inf" if values == math.inf else values


def _wrong(of: str, name: str, value: object) -> DataError:
    return DataError(f'{of}: field "{name}" has the wrong type ({type(value).__name__})')
