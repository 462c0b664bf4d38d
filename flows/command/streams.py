"""Make standard streams usable that the shell left closed, full or limited to ASCII. Messages are written elsewhere."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

from ldptree.errors import LdptreeError
from ldptree.plain_text import VISIBLE, make_visible

if TYPE_CHECKING:
    from rich.console import Console

_lost: list[OSError] = []
"""Why standard output did not take all that was printed."""


class _Bytes(io.FileIO):
    """A standard stream whose failure stops nothing. It drops what cannot be written, and remembers why."""

    def __init__(self, number: int, lost: list[OSError]) -> None:
        super().__init__(number, "w", closefd=False)
        self._lost = lost

    def write(self, data: Any) -> int:
        """Write, or lose, all of `data`. Raises BrokenPipeError where the reader of standard output went away."""
        try:
            return super().write(data) or 0
        except OSError as fault:
            if isinstance(fault, BrokenPipeError) and self._lost is _lost:
                raise
            self._lost.append(fault)
        return len(data)


class _Text(io.TextIOWrapper):
    """A standard stream of harmless text, which writes characters out that a terminal would obey."""

    def write(self, text: str) -> int:
        """Write the text, visible."""
        super().write(make_visible(text))
        return len(text)

    @property
    def rich_proxied_file(self) -> _Styled:
        """Return the stream for rich's styled text from our consoles, typer's and Prefect's."""
        from rich import control

        # Rich strips this table's characters from all text before it styles it; it looks for its stream before its first text.
        control._CONTROL_STRIP_TRANSLATE.update(VISIBLE)  # type: ignore[arg-type]
        return _Styled(self)


class _Styled:
    """The same stream for text with styles."""

    def __init__(self, stream: _Text) -> None:
        self._stream = stream
        self.write = partial(io.TextIOWrapper.write, stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def prepare_streams() -> None:
    """Make all three streams usable. A closed one becomes a null device, so that no file opened later gets its number
    and its output. For standard output, the device is opened so that writing still fails.
    """
    for number, flags in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)  # takes the lowest number that is free: this one
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 - for as long as the process lives
    sys.stdout = _text(_Bytes(1, _lost), sys.stdout)
    sys.stderr = _text(_Bytes(2, []), sys.stderr, line_buffering=True)


def _text(raw: _Bytes, before: TextIO | None, *, line_buffering: bool = False) -> _Text:
    encoding = before.encoding if before is not None else "utf-8"
    return _Text(
        io.BufferedWriter(raw),
        encoding=encoding,
        errors="backslashreplace",
        line_buffering=line_buffering or raw.isatty(),
    )


def output_fault() -> LdptreeError | None:
    """Return what to say where standard output took not all that was printed; None where it did, or its reader went away."""
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
    if not _lost:
        return None
    reason = os.strerror(_lost[0].errno or 0)
    return LdptreeError(f"standard output cannot be written ({reason}): not all was printed.")


def say(text: str, end: str = "\n") -> None:
    """Write a line to standard error."""
    print(text, end=end, file=sys.stderr, flush=True)


def make_console(*, stderr: bool = False, **settings: Any) -> Console:
    """Return a console that prints text as it is, without markup, emoji or coloured numbers."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, **settings)


def print_json(value: Any) -> None:
    """Exactly one JSON object on standard output, in ASCII where that takes nothing else."""
    text = json.dumps(value, ensure_ascii=False)
    print(text if _is_encodable(text) else json.dumps(value))


def print_file(text: str) -> None:
    """Write a file's content to standard output, exactly, and where that cannot encode it as UTF-8; to a terminal as words."""
    if sys.stdout.isatty():
        print(text)
        return
    sys.stdout.flush()
    encoding = sys.stdout.encoding if _is_encodable(text) else "utf-8"
    sys.stdout.buffer.write(f"{text}\n".encode(encoding))


def _is_encodable(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        return False
    return True
