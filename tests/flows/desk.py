"""Where a user sits, for tests of what the command line refuses.

The command line is the real one; only the Prefect server is left out, by calling the steps of the flow one by one.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from chain import Chain, rides

import flows.command.running
import flows.finish
from flows.command.main import main
from storage.formats import LAST_TRANSACTION
from storage.store import Store

CANARY = "CANARY77"
CONFIG = {
    "name": '"mine"',
    "dataset.name": '"mine"',
    "dataset.path": '"rides.csv"',
    "dataset.target": '"paid"',
    "dataset.positive": '"card"',
    "dataset.public": "\"zone = 'open'\"",
    "dataset.drop": '["person"]',
    "model.estimator": '"lpct"',
    "model.depth": "1",
    "privacy.epsilon": "2.0",
    "simulation.noise_seed": "11",
    "evaluate": "false",
}


def steps_of_the_flow(config, work, **_):
    """The flow's steps in its order, in this process."""
    chain = Chain(Store(work), config)
    flows.finish.stop_where_failed(chain)
    assert chain.held
    assert chain.model


class Desk:
    """Where a user sits: files, a configuration, a prompt, and a work folder that no command has used."""

    def __init__(
        self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(folder)
        monkeypatch.setattr(flows.command.running, "run_here", steps_of_the_flow)
        self.folder = folder
        self.work = folder / "work"
        self.capsys = capsys
        rides(folder / "rides.csv", 240, seed=1)

    def lines(self) -> list[str]:
        """The lines of good rides, the header first."""
        return (self.folder / "rides.csv").read_text().splitlines()

    def file(self, name: str, content: str | bytes | list[str]) -> str:
        """A file, and its name as TOML."""
        if isinstance(content, list):
            content = "\n".join(content) + "\n"
        (self.folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return f'"{name}"'

    def config(self, **changes: str | None) -> Path:
        """The good configuration with keys, written table__key, set to TOML (None: left out)."""
        keys = CONFIG | {key.replace("__", "."): value for key, value in changes.items()}
        path = self.folder / "run.toml"
        path.write_text("".join(f"{key} = {value}\n" for key, value in keys.items() if value is not None))
        return path

    def type(self, *words: object) -> tuple[int, str, str]:
        """Exit code, standard output and standard error of a command."""
        with pytest.raises(SystemExit) as end:
            main([str(word) for word in words])
        shown = self.capsys.readouterr()
        return end.value.code, shown.out, shown.err

    def run(self, *words: object, **changes: str | None) -> tuple[int, str, str]:
        """`ldptree run` on the good configuration with changes."""
        return self.type("run", self.config(**changes), "--work", self.work, "--json", *words)

    def refused(self, code: int, *words: str, after: set[str] | None = None, **changes: str | None) -> str:
        """A run that must be refused with `code` and a message with `words`, with only the steps `after` done."""
        return self.told(self.run(**changes), code, *words, after=after)

    def told(self, ended: tuple[int, str, str], code: int, *words: str, after: set[str] | None = None) -> str:
        """What a refused command says: one message and no more, no private value, nothing written below."""
        ended_with, out, err = ended
        assert ended_with == code, err
        assert out == ""
        assert err.startswith("ldptree: ")
        assert err.count("ldptree: ") == 1
        assert "Traceback" not in err
        assert "unexpected" not in err
        for word in words:
            assert word in err
        assert CANARY not in err
        assert self.steps_done() == (after or set())
        self.nothing_private_lies_outside_the_holders_zone()
        return err

    def steps_done(self) -> set[str]:
        """The steps that left a record or a part of an artifact, but for those whose parts another step puts together."""
        zones = ("public", "holders", "curator", "simulation")
        folders = [path for zone in zones for path in (self.work / zone).glob("*/*")]
        apart = {"faults", "types", "read", "count", "cut", "add"}
        left = [path for path in folders if not path.name.startswith((LAST_TRANSACTION, ".lock"))]
        return {path.parent.name for path in left} - apart

    def nothing_private_lies_outside_the_holders_zone(self) -> None:
        """No file but those of the holders has the canary."""
        for path in self.work.rglob("*"):
            if path.is_file() and "holders" not in path.relative_to(self.work).parts:
                assert CANARY.encode() not in path.read_bytes()
