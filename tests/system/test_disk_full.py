"""A disk that fills up in the middle of a run: a clear error, and a store that the same command can go on with."""

from __future__ import annotations

import json
import subprocess

import pytest
from whole_runs import learned, rides_toml, run, start

from ldptree.errors import LdptreeError

pytestmark = pytest.mark.server


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


def test_wherever_the_disk_fills_the_same_run_goes_on_with_more_room(small_disk, release):
    """Prefect's own records are on that disk too."""
    from prefect.settings import PREFECT_LOCAL_STORAGE_PATH, temporary_settings

    told = []
    size = 64
    while True:
        work = small_disk(size) / "work"
        try:
            with temporary_settings({PREFECT_LOCAL_STORAGE_PATH: work / "prefect" / "storage"}):
                summary = run(release.config, work)
            break
        except LdptreeError as fault:
            assert "no space left" in str(fault), fault
            assert fault.exit_code == 1
            told.append(str(fault).partition(":")[0])
        size = int(size * 1.2)
        assert size < 8192
    print(told)
    assert learned(work, summary) == learned(release.work, release.summary)
    assert len(set(told)) > 3
