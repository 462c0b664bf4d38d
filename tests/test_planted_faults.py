"""Every fault that `make faults` plants still has its text in the program, once, and a test that promises the opposite."""

from __future__ import annotations

from pathlib import Path

from plant_faults import FAULTS, PROGRAM

ROOT = Path(__file__).parents[1]


def text_of(*folders: str) -> str:
    return "\n".join(path.read_text() for folder in folders for path in (ROOT / folder).rglob("*.py"))


def test_every_fault_can_be_planted() -> None:
    program, tests = text_of(*PROGRAM), text_of("tests")
    assert [fault.name for fault in FAULTS if program.count(fault.right) != 1] == []
    assert [name for fault in FAULTS for name in fault.tests if f"\ndef {name}(" not in tests] == []
