"""Standard streams as a shell may hand them over: closed, full, or for ASCII alone. What is said is decided elsewhere."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from typing import Any, TextIO

from ldptree.errors import LdptreeError

_lost: list[OSError] = []
"""Why standard output did not take all that was printed."""


class _Bytes(io.FileIO):
    """A standard stream that stops nothing: what it does not take is lost, and why is remembered."""

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


def prepare_streams() -> None:
    """Make all three streams usable. What is closed is taken by a null device: else the next file that is opened gets its
    number, and what is printed goes into that file. To standard output that device is opened so that a write fails, as it did.
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


def _text(raw: _Bytes, before: TextIO | None, *, line_buffering: bool = False) -> io.TextIOWrapper:
    encoding = before.encoding if before is not None else "utf-8"
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=encoding,
        errors="backslashreplace",
        line_buffering=line_buffering or raw.isatty(),
    )


def output_fault() -> LdptreeError | None:
    """What to say where standard output took not all that was printed; None where it did, or its reader went away."""
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
    if not _lost:
        return None
    reason = os.strerror(_lost[0].errno or 0)
    return LdptreeError(f"standard output cannot be written ({reason}): not all was printed.")


def print_json(value: Any) -> None:
    """Exactly one JSON object on standard output, in ASCII where that takes nothing else."""
    text = json.dumps(value, ensure_ascii=False)
    print(text if _is_encodable(text) else json.dumps(value))


def print_file(text: str) -> None:
    """What is a file's content rather than words for a person: where standard output cannot encode it, as UTF-8."""
    if _is_encodable(text):
        print(text)
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(f"{text}\n".encode())


def _is_encodable(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True
