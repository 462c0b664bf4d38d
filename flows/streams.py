"""Standard streams as a shell may hand them over: closed, full, or for ASCII alone. What is said is decided elsewhere."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from typing import Any

from ldptree.errors import LdptreeError


class _StderrBytes(io.FileIO):
    """Standard error, which nothing can be told of when it takes no more: what is written is lost, and nothing stops."""

    def write(self, data: Any) -> int:
        """Write, or lose, all of `data`."""
        with contextlib.suppress(OSError):
            return super().write(data) or 0
        return len(data)


def prepare_streams() -> None:
    """Make all three streams usable. What is closed is taken by a null device: else the next file that is opened gets its
    number, and what is printed goes into that file. Standard output is opened so that a write to it is a fault, as it was.
    """
    for number, flags in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)  # takes the lowest number that is free: this one
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 - for as long as the process lives
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(_StderrBytes(2, "w", closefd=False)),
        encoding=getattr(sys.stderr, "encoding", "utf-8"),
        errors="backslashreplace",
        line_buffering=True,
    )


def output_fault() -> LdptreeError | None:
    """What to say where standard output took not all that was printed; None where it did, or its reader went away."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return None
    except OSError as fault:
        reason = os.strerror(fault.errno or 0)
        return LdptreeError(f"standard output cannot be written ({reason}): not all was printed.")
    return None


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
