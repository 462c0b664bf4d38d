"""The command line, installed as `ldptree`: arguments in, exit codes and messages out. Its commands are in `cli`."""

from __future__ import annotations

import os
import sys
from gc import set_threshold
from typing import Any, NoReturn

import typer

from flows.command.cli import app
from flows.command.ending import leave, silence_libraries
from flows.command.interrupt import EXIT_CODES, FINISHED_STEPS_STAND, INTERRUPTED
from flows.command.streams import output_fault, prepare_streams
from ldptree.errors import LdptreeError
from storage.machine_faults import machine_fault


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit: 0 done, 2 bad command or config, 3 bad data, 4 budget, 5 artifact or protocol, 1
    the rest; 130 where it was interrupted, and 143 where a run was terminated.
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
        typer.echo(f"ldptree: {fault}", err=True)
        code = fault.exit_code
        _let_go(fault)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except (SystemExit, KeyboardInterrupt) as end:
        code = INTERRUPTED if isinstance(end, KeyboardInterrupt) else end.code or 0
        if code in EXIT_CODES.values():
            typer.echo(FINISHED_STEPS_STAND if words[:1] == ["run"] else "ldptree: interrupted.", err=True)
        _let_go(end)
        if (lost := output_fault()) is not None:
            typer.echo(f"ldptree: {lost}", err=True)
            code = code or lost.exit_code
    except BaseException as fault:
        # Unexpected, a broken off task of an event loop for one. It may quote a value from the data: only its kind is named.
        if "--debug" in words:
            import traceback

            where = traceback.extract_tb(fault.__traceback__)[-1]
            typer.echo(f"at {where.filename}:{where.lineno} in {where.name}", err=True)
        known = machine_fault(fault) or _unexpected(fault)
        typer.echo(f"ldptree: {known}", err=True)
        code = known.exit_code
        _let_go(fault)
    if arguments is None:
        leave(code if isinstance(code, int) else 1)
    sys.exit(code)


def _unexpected(fault: BaseException) -> LdptreeError:
    return LdptreeError(f"stopped by an unexpected {type(fault).__name__}. This is a fault of ldptree.")


def _let_go(fault: BaseException | None) -> None:
    """Let go of what the calls that failed held: an open DuckDB that outlives them fills the terminal with its own words."""
    while fault is not None:
        fault.__traceback__ = None
        fault = fault.__cause__ or fault.__context__


if __name__ == "__main__":
    main()
