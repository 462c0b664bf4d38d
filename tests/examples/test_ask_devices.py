"""The tutorial that asks devices, from the first command to the last page, as it is written."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorial" / "ask-devices.md"
FILES = re.compile(r"`(\w+\.(?:py|toml|mjs))`[^`]*(?:`[^`]+`[^`]*)*?```\w+\n(.*?)```", re.DOTALL)
PORT = 8000
MOST_SECONDS = 600


def commands(text):
    """The commands of a page, in their order."""
    outside = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return [line.strip() for line in outside.splitlines() if line.startswith("    ")]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="no Node on this machine")
def test_devices_answer_a_published_question_and_every_run_learns_more(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    text = PAGE.read_text().replace(f":{PORT}/", f":{port}/").replace(f':{PORT}"', f':{port}"')
    text = text.replace("--seconds 10 &", f"--seconds 10 --port {port} &")
    for name, content in FILES.findall(text):
        (tmp_path / name).write_text(content)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    own = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PREFECT_HOME": str(tmp_path / "home"),
    }
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT")} | own
    script = "\n".join(["set -e", "trap 'kill %1' EXIT", *commands(text)])
    began = time.monotonic()
    with subprocess.Popen(
        ["bash", "-c", script],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as done:
        try:
            printed, _ = done.communicate(timeout=MOST_SECONDS)
        finally:
            if done.poll() is None:
                os.killpg(done.pid, signal.SIGKILL)
    assert done.returncode == 0, printed
    runs = sorted((tmp_path / "work" / "runs").glob("*/run.json"))
    learned = [json.loads(path.read_text()) for path in runs]
    assert [run["n_private"] for run in learned] == [2_000, 10_000, 20_000]
    assert "No report has come yet" in printed
    assert printed.count("reports were received") == 3
    widths = [float(high) - float(low) for low, high in re.findall(r"\(([\d.]+) to ([\d.]+)\)", printed)]
    assert widths[0] > widths[-1]
    assert all(run["warnings"] == [] for run in learned)
    assert time.monotonic() - began < MOST_SECONDS
