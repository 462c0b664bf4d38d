"""Ctrl-C and a termination signal end a run wherever they strike, and say that finished steps stand."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from flows.command import interrupt

SWALLOWED = """
import signal, time
from flows.command import interrupt
interrupt.GRACE_SECONDS = 0.2
{begin}
end = time.monotonic() + 60
while time.monotonic() < end:
    try:
        print("ready", flush=True)
        time.sleep(60)
    except BaseException:  # as Python does in an import's callbacks
        pass
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize(
    "begin", ["interrupt.end_at_once()", "(within := interrupt.ended_politely()).__enter__()"]
)
def test_an_interrupt_that_python_swallows_ends_the_process_all_the_same(begin, number, code):
    process = subprocess.Popen(
        [sys.executable, "-c", SWALLOWED.format(begin=begin)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert err == "ldptree: interrupted. Finished steps stand; the same command goes on from there.\n"


UNWOUND = """
import os, signal
from flows.command.interrupt import ended_politely
try:
    with ended_politely():
        os.kill(os.getpid(), signal.{number})
        signal.pause()
except {raised}:
    print("unwound")
"""


@pytest.mark.parametrize(("number", "raised"), [("SIGINT", "KeyboardInterrupt"), ("SIGTERM", "SystemExit")])
def test_a_politely_ended_run_unwinds_first(number, raised):
    code = UNWOUND.format(number=number, raised=raised)
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("unwound\n", "")


TURNED = """
import signal
from flows.command.interrupt import ended_politely
with ended_politely():
    try:
        signal.raise_signal(signal.{number})
    except BaseException:  # as a client does whose exchange with a server was broken off
        raise ConnectionError("the request was not answered")
"""


@pytest.mark.parametrize(("number", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_fault_that_an_interrupt_comes_out_as_is_the_interrupt(number, code):
    done = subprocess.run(
        [sys.executable, "-c", TURNED.format(number=number)], check=False, capture_output=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, b"", b"")


TAKEN = """
import signal
from flows.command.interrupt import ended_politely
def takes(number, frame):  # as Prefect does while its flow goes on
    raise BaseException
with ended_politely():
    signal.signal(signal.SIGTERM, takes)
    try:
        signal.raise_signal(signal.SIGTERM)
    except BaseException:
        {does}
"""


@pytest.mark.parametrize("does", ["raise", "raise ValueError('a value')", "raise SystemExit(1)"])
def test_whatever_a_signal_comes_out_as_which_another_handler_took_it_is_the_signal(does):
    code = TAKEN.format(does=does)
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (143, b"", b"")


LOST = """
import signal
from flows.command.interrupt import ended_politely
with ended_politely():
    signal.set_wakeup_fd(-1)  # as an event loop does whose own signals are taken away
    try:
        signal.raise_signal(signal.SIGTERM)
    except BaseException:
        raise ValueError("a value")
"""


def test_a_signal_is_noted_where_somebody_took_the_wakeup_descriptor_away():
    done = subprocess.run([sys.executable, "-c", LOST], check=False, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (143, b"", b"")


FORKED = """
import os, signal, sys
from flows.command import interrupt
from flows.command.interrupt import ended_politely
interrupt.GRACE_SECONDS = 0.2
with ended_politely():
    child = os.fork()
    if child == 0:
        {child}
    os.waitpid(child, 0)
    import threading
    threading.Event().wait(1.0)
    print("went on")
"""


@pytest.mark.parametrize("child", ["os.kill(os.getpid(), signal.SIGTERM); os._exit(0)", "sys.exit(0)"])
def test_what_a_forked_child_does_ends_no_parent(child):
    code = FORKED.format(child=child)
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "went on")


def test_a_fault_that_no_interrupt_came_before_stays_what_it_is():
    before = {number: signal.getsignal(number) for number in interrupt.EXIT_CODES}
    with pytest.raises(ConnectionError), interrupt.ended_politely():
        raise ConnectionError("the request was not answered")
    assert {number: signal.getsignal(number) for number in interrupt.EXIT_CODES} == before


def test_what_handled_signals_before_does_so_again():
    before = {number: signal.getsignal(number) for number in interrupt.EXIT_CODES}
    interrupt.handle_again(interrupt.end_at_once())
    assert {number: signal.getsignal(number) for number in interrupt.EXIT_CODES} == before
