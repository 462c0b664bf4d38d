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
    assert err == "ldptree: interrupted. Finished steps are kept; the same command continues from there.\n"


WITHIN = """
import os, signal, sys, threading
from flows.command import interrupt
from flows.command.interrupt import ended_politely
interrupt.GRACE_SECONDS = 0.2
"""
UNWOUND = """
try:
    with ended_politely():
        os.kill(os.getpid(), signal.{number})
        signal.pause()
except {raised}:
    print("unwound")
"""
TURNED = """
with ended_politely():
    try:
        signal.raise_signal(signal.{number})
    except BaseException:  # as a client does whose exchange with a server was broken off
        raise ConnectionError("the request was not answered")
"""
TAKEN = """
def takes(number, frame):  # as Prefect does while its flow goes on
    raise BaseException
with ended_politely():
    signal.signal(signal.SIGTERM, takes)
    try:
        signal.raise_signal(signal.SIGTERM)
    except BaseException:
        {does}
"""
LOST = """
with ended_politely():
    signal.set_wakeup_fd(-1)  # as an event loop does whose own signals are taken away
    try:
        signal.raise_signal(signal.SIGTERM)
    except BaseException:
        raise ValueError("a value")
"""
FORKED = """
with ended_politely():
    child = os.fork()
    if child == 0:
        {child}
    os.waitpid(child, 0)
    threading.Event().wait(1.0)
    print("went on")
"""


@pytest.mark.parametrize(
    ("script", "code", "printed"),
    [
        (UNWOUND.format(number="SIGINT", raised="KeyboardInterrupt"), 0, "unwound\n"),
        (UNWOUND.format(number="SIGTERM", raised="SystemExit"), 0, "unwound\n"),
        (TURNED.format(number="SIGINT"), 130, ""),
        (TURNED.format(number="SIGTERM"), 143, ""),
        (TAKEN.format(does="raise"), 143, ""),
        (TAKEN.format(does="raise ValueError('a value')"), 143, ""),
        (TAKEN.format(does="raise SystemExit(1)"), 143, ""),
        (LOST, 143, ""),
        (FORKED.format(child="os.kill(os.getpid(), signal.SIGTERM); os._exit(0)"), 0, "went on\n"),
        (FORKED.format(child="sys.exit(0)"), 0, "went on\n"),
    ],
    ids=[
        "an interrupt unwinds first",
        "a termination unwinds first",
        "an interrupt that comes out as a fault",
        "a termination that comes out as a fault",
        "a signal that another handler took",
        "a signal that another handler took, and a fault",
        "a signal that another handler took, and an end",
        "a signal whose wakeup descriptor is gone",
        "a forked child that is ended",
        "a forked child that ends",
    ],
)
def test_a_signal_ends_the_run_it_was_sent_to_whatever_becomes_of_it(script, code, printed):
    done = subprocess.run(
        [sys.executable, "-c", WITHIN + script], check=False, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, printed, "")


def test_a_fault_that_no_interrupt_came_before_stays_what_it_is():
    before = {number: signal.getsignal(number) for number in interrupt.EXIT_CODES}
    with pytest.raises(ConnectionError), interrupt.ended_politely():
        raise ConnectionError("the request was not answered")
    assert {number: signal.getsignal(number) for number in interrupt.EXIT_CODES} == before


def test_what_handled_signals_before_does_so_again():
    before = {number: signal.getsignal(number) for number in interrupt.EXIT_CODES}
    interrupt.handle_again(interrupt.end_at_once())
    assert {number: signal.getsignal(number) for number in interrupt.EXIT_CODES} == before
