"""Ctrl-C ends a run wherever it strikes, and says that finished steps stand."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

SWALLOWED = """
import signal, time
from flows import interrupt
interrupt.GRACE_SECONDS = 0.2
interrupt.{begin}()
end = time.monotonic() + 60
while time.monotonic() < end:
    try:
        print("ready", flush=True)
        time.sleep(60)
    except KeyboardInterrupt:  # as Python does in an import's callbacks
        pass
"""


@pytest.mark.parametrize("begin", ["end_at_once", "end_politely"])
def test_an_interrupt_that_python_swallows_ends_the_process_all_the_same(begin):
    process = subprocess.Popen(
        [sys.executable, "-c", SWALLOWED.format(begin=begin)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "ldptree: interrupted. Finished steps stand; the same command goes on from there.\n"


UNWOUND = """
import os, signal
from flows.interrupt import end_politely
end_politely()
try:
    os.kill(os.getpid(), signal.SIGINT)
    signal.pause()
except KeyboardInterrupt:
    print("unwound")
"""


def test_a_politely_ended_run_unwinds_first():
    done = subprocess.run(
        [sys.executable, "-c", UNWOUND], check=True, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("unwound\n", "")
