"""A disk that fills up in the middle of a run: a clear error, and a store that the same command can go on with."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest
from chain import rides
from whole_runs import PATIENCE, learned, rides_toml, run, start

from flows.command.terminal import STEPS
from ldptree.errors import LdptreeError
from storage.holders.secret import SECRET_BYTES

pytestmark = [pytest.mark.server, pytest.mark.slow]


@pytest.fixture
def small_disk(tmp_path):
    """A disk in memory; called with a size in kB, it is made that large."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def resize(kilobytes, *options):
        command = ["mount", "-t", "tmpfs", "-o", ",".join([*options, f"size={kilobytes}k"]), "tmpfs", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"a small disk needs root: {done.stderr.strip()}")
        return folder

    resize(64)
    yield lambda kilobytes: resize(kilobytes, "remount")
    subprocess.run(["umount", "--lazy", folder], check=False)


def room(folder, kilobytes):
    """A size in kB that leaves so much."""
    used = subprocess.run(["du", "-sk", folder], capture_output=True, text=True, check=True).stdout
    return int(used.split()[0]) + kilobytes


def test_wherever_the_disk_fills_the_same_run_goes_on_with_more_room(small_disk, release):
    """From split on, as what stands before takes the most room; Prefect's own records are on that disk too."""
    from prefect.settings import PREFECT_LOCAL_STORAGE_PATH, temporary_settings

    work = small_disk(1 << 14) / "work"
    for zone in ("holders", "public", "curator/validate"):
        shutil.copytree(release.work / zone, work / zone)
    for later in ("holders/split", "holders/perturb", "public/scale"):
        shutil.rmtree(work / later)
    (work / "holders" / "holders.db").unlink()
    secret = work / "holders" / "secret"
    # Behind it stands the last transaction: there is none yet.
    secret.write_bytes(secret.read_bytes()[:SECRET_BYTES])
    stopped = []

    def attempt(free):
        small_disk(room(work.parent, free))
        try:
            with temporary_settings({PREFECT_LOCAL_STORAGE_PATH: work / "prefect" / "storage"}):
                return run(release.config, work)
        except LdptreeError as fault:
            stopped.append(fault)

    free = 64
    while (summary := attempt(free)) is None:
        free += free // 8  # small steps: the disk fills in every step once
    assert learned(work, summary) == learned(release.work, release.summary)
    # All is found now, but a run leaves its page and more.
    assert (attempt(16), attempt(48)) == (None, None)
    assert attempt(1 << 12)["n_private"] == summary["n_private"]
    assert all("no space left on the disk of" in str(fault) and fault.exit_code == 1 for fault in stopped)
    assert {"split", "ledger", "perturb", "run"} <= {str(fault).partition(":")[0] for fault in stopped}


def test_the_command_says_so_and_goes_on_with_more_room(small_disk, tmp_path):
    work = small_disk(128) / "work"
    config = rides_toml(tmp_path / "rides.toml", str(rides(tmp_path / "rides.csv", 900, seed=1)))
    own = {"PREFECT_HOME": str(work / "prefect")}
    said = start("run", config, "--work", work, env=own)
    out, err = said.communicate(timeout=PATIENCE)
    assert (said.returncode, out) == (1, "")
    _, full, sentence = err.splitlines()[-1].split(": ", 2)
    assert sentence.startswith(f"no space left on the disk of {work}. Free some")
    assert "Traceback" not in err
    small_disk(1 << 15)
    again = start("run", config, "--work", work, "--json", env=own)
    out, err = again.communicate(timeout=PATIENCE)
    assert again.returncode == 0, err
    cached = {s["name"] for s in json.loads(out)["steps"] if s["state"] == "cached"}
    assert cached == set(STEPS[STEPS.index("types") : STEPS.index(full)])
