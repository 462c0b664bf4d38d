"""What the machine refuses is one sentence with its exit code, in the system's words and never in those of the fault."""

from __future__ import annotations

import errno
import os

import pytest

from storage.machine_faults import is_passing, machine_fault

CANARY = "CANARY77"


def refused(number, path=None):
    return OSError(number, CANARY, path)


class IOException(Exception):  # noqa: N818 - as DuckDB calls it
    """Stands for DuckDB's."""


@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [
        (refused(errno.ENOSPC), 1, "no space left on the disk of {work}"),
        (refused(errno.EDQUOT), 1, "no space left on the disk of {work}"),
        (refused(errno.ENOSPC, "/elsewhere/who.db"), 1, "no space left on the disk of /elsewhere."),
        (refused(errno.EFBIG, "/w/a"), 1, "/w/a: File too large. A limit on the size of files"),
        (refused(errno.EMFILE, "/w/a"), 1, "Too many open files. Raise the limit"),
        (refused(errno.EACCES, "/w/a"), 2, "/w/a: cannot be used (Permission denied)"),
        (refused(errno.EROFS, b"/w/a"), 2, "/w/a: cannot be used (Read-only file system)"),
        (refused(errno.ENOTDIR, "/w/a"), 2, "Move away what stands there"),
        (refused(errno.EIO), 1, "{work}: Input/output error"),
        (refused(errno.ENAMETOOLONG, "/" + "a" * 4000), 2, "File name too long"),
        (MemoryError(CANARY), 1, "not enough memory"),
        (RuntimeError("can't start new thread"), 1, "not enough memory"),
        (ImportError("libx.so: failed to map segment from shared object"), 1, "not enough memory"),
        (IOException(f'IO Error: "{CANARY}": {os.strerror(errno.ENOSPC)}'), 1, "no space left on the disk"),
    ],
)
def test_a_fault_of_the_machine_is_told_with_its_exit_code(tmp_path, fault, code, said):
    told = machine_fault(fault, tmp_path)
    assert told is not None
    assert told.exit_code == code
    assert said.format(work=tmp_path) in str(told)
    assert CANARY not in str(told)
    assert len(str(told)) < 500


@pytest.mark.parametrize(
    "fault", [OSError("no number"), ValueError(os.strerror(errno.ENOSPC)), KeyError("a")]
)
def test_other_faults_are_none_of_the_machines(fault):
    assert machine_fault(fault) is None


def test_a_fault_that_may_pass_is_known():
    assert is_passing(refused(errno.EIO))
    assert not is_passing(refused(errno.ENOSPC))
    assert not is_passing(MemoryError())
