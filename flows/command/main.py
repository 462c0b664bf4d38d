"""The command line, installed as `ldptree`, turns arguments into exit codes and messages. Its commands are in `cli`."""

from __future__ import annotations

import os
import sys
from gc import set_threshold
from typing import Any, NoReturn

from flows.command.cli import app
from flows.command.ending import leave, silence_libraries
from flows.command.interrupt import EXIT_CODES, FINISHED_STEPS_STAND, INTERRUPTED
from flows.command.streams import output_fault, prepare_streams, say
from ldptree.errors import LdptreeError
from ldptree.plain_text import indent_lines
from storage.machine_faults import machine_fault


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit with 0 if done, 2 for a bad command or config, 3 for bad data, 4 for the budget, 5
    for an artifact or protocol, 1 for the rest, 130 if interrupted, and 143 if a run was terminated.
    """
    words = sys.argv[1:] if arguments is None else arguments
    # Imports make many objects and no garbage: a fifth of their time went into looking for it.
    set_threshold(100_000)
    code: Any = 1
    if arguments is None:
        prepare_streams()
        if "--debug" not in words:
            silence_libraries()
    try:
        app(words, standalone_mode=True, prog_name="ldptree")
    except LdptreeError as fault:
        if "--debug" in words:
            import traceback

            traceback.print_exc()
        say(f"ldptree: {indent_lines(str(fault))}")
        code = fault.exit_code
        _let_go(fault)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except (SystemExit, KeyboardInterrupt) as end:
        code = INTERRUPTED if isinstance(end, KeyboardInterrupt) else end.code or 0
        if code in EXIT_CODES.values():
            say(FINISHED_STEPS_STAND if words[:1] == ["run"] else "ldptree: interrupted.")
        _let_go(end)
        if (lost := output_fault()) is not None:
            say(f"ldptree: {lost}")
            code = code or lost.exit_code
    except BaseException as fault:
        # Unexpected, a broken off task of an event loop for one. It may quote a value from the data: only its kind is named.
        if "--debug" in words:
            import traceback

            where = traceback.extract_tb(fault.__traceback__)[-1]
            say(f"at {where.filename}:{where.lineno} in {where.name}")
        known = machine_fault(fault) or _unexpected(fault)
        say(f"ldptree: {known}")
        code = known.exit_code
        _let_go(fault)
    if arguments is None:
        leave(code if isinstance(code, int) else 1)
    sys.exit(code)


def _unexpected(fault: BaseException) -> LdptreeError:
    return LdptreeError(f"stopped by an unexpected {type(fault).__name__}. This is a fault of ldptree.")


def _let_go(fault: BaseException | None) -> None:
    """Release what the failed calls held, as an open DuckDB that outlives them prints to the terminal."""
    while fault is not None:
        fault.__traceback__ = None
        fault = fault.__cause__ or fault.__context__


if __name__ == "__main__":
    main()
