"""The program ends at one place: with its code, with all that was printed, and with no word of anybody else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest


def ended(code, *, stdout=subprocess.PIPE):
    """Exit code, standard output and standard error of a program."""
    buffered = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=60,
        env=buffered,
    )
    return done.returncode, done.stdout, done.stderr.decode()


LEFT_BEHIND = """
import atexit, sys, threading, weakref
from ldptree.errors import ConfigError
import flows.command.main, flows.command.running

class Held: pass

def fail(*_, **__):
    held = Held()
    sys.kept = held, weakref.finalize(held, print, "a finalizer spoke", file=sys.stderr)
    atexit.register(print, "a callback spoke", file=sys.stderr)
    threading.Thread(target=threading.Event().wait).start()  # and is waited for
    {fault}

flows.command.running.run_here = fail
sys.argv = ["ldptree", "run", "quickstart"]
from flows.program import main
main()
"""


@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [
        ("raise ConfigError('config.toml: x')", 2, "ldptree: config.toml: x\n"),
        (
            "raise ValueError('4111 CANARY')",
            1,
            "ldptree: stopped by an unexpected ValueError. This is a fault of ldptree.\n",
        ),
        pytest.param(
            "import asyncio; raise asyncio.CancelledError('4111 CANARY')",
            1,
            "ldptree: stopped by an unexpected CancelledError. This is a fault of ldptree.\n",
            marks=pytest.mark.slow,
        ),
        pytest.param("raise SystemExit(4)", 4, "", marks=pytest.mark.slow),
        (
            "raise KeyboardInterrupt",
            130,
            "ldptree: interrupted. Finished steps are kept; the same command continues from there.\n",
        ),
        ("pass", 0, ""),
    ],
)
def test_nothing_is_said_after_the_last_word_whatever_is_left_behind(fault, code, said):
    assert ended(LEFT_BEHIND.format(fault=fault)) == (code, b"", said)


IN_A_THREAD = """
import threading, warnings, flows.command.cli, flows.command.running

class Dies:
    def __del__(self):
        raise ValueError("4111 CANARY")

def dies(*_, **__):
    Dies()
    thread = threading.Thread(target=int, args=["4111 CANARY"])
    thread.start()
    thread.join()
    with warnings.catch_warnings():  # as one thread leaves the filters to another
        warnings.simplefilter("always")
        warnings.warn("4111 CANARY")

flows.command.running.run_here = dies
import sys
sys.argv = ["ldptree", "run", "quickstart", *{words}]
from flows.program import main
main()
"""


def test_warnings_and_what_a_thread_or_a_destructor_dies_of_are_not_printed():
    assert ended(IN_A_THREAD.format(words=[])) == (0, b"", "")
    shown = ended(IN_A_THREAD.format(words=["--debug"]))[2]
    assert "Traceback" in shown
    assert "UserWarning: 4111" in shown


PRINTS = "import sys; from flows.command.ending import leave; sys.stdout.write('x' * {n}); leave({code})"


@pytest.mark.parametrize("n", [10, 1_000_000])
def test_all_that_was_printed_is_handed_over(n):
    assert ended(PRINTS.format(n=n, code=0)) == (0, b"x" * n, "")


def test_a_reader_who_went_away_is_told_nothing():
    reads, writes = os.pipe()
    os.close(reads)
    try:
        assert ended(PRINTS.format(n=10, code=0), stdout=writes) == (1, None, "")
    finally:
        os.close(writes)


ACTS = """
import os, threading
from flows.command.ending import done_at_the_end, end_now
with done_at_the_end(lambda: os.write(1, b"done")), done_at_the_end(lambda: 1 / 0):
    if {forked} and os.fork() == 0:
        end_now(0, "a child")
    if {forked}:
        os.wait()
    threading.Thread(target=end_now, args=[7, "the last word"]).start()
    threading.Event().wait()
"""


@pytest.mark.parametrize("forked", [False, True])
def test_an_end_in_the_middle_does_first_what_must_be_done_and_a_forked_child_does_not(forked):
    said = "a child\nthe last word\n" if forked else "the last word\n"
    assert ended(ACTS.format(forked=forked)) == (7, b"done", said)


def test_ctrl_c_while_the_program_is_still_being_imported_is_an_interrupt(tmp_path):
    (tmp_path / "typer.py").write_text("import time\nprint('importing', flush=True)\ntime.sleep(60)\n")
    process = subprocess.Popen(
        [sys.executable, "-c", "from flows.program import main; main()"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )
    assert process.stdout.readline() == "importing\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "ldptree: interrupted. Finished steps are kept; the same command continues from there.\n"
