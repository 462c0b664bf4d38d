"""The installed program, from its first line on. What it does is in `main`, how it ends in `ending`.

Signals are handled before anything but the standard library is imported: Ctrl-C while the rest is imported is an interrupt, too.
"""

from __future__ import annotations

import sys
from typing import NoReturn

from flows.command.ending import leave
from flows.command.interrupt import INTERRUPTED, end_at_once, handle_again


def main() -> NoReturn:
    """Run the command line, and end with its exit code."""
    before = end_at_once()
    try:
        from flows.command.main import main as run_command

        if sys.argv[1:2] != ["run"]:  # which unwinds once its flow goes on, and has nothing to undo before
            handle_again(before)
        run_command()
    except KeyboardInterrupt:  # one more, while the last word was said
        leave(INTERRUPTED)


if __name__ == "__main__":
    main()
