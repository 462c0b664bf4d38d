"""A device of holders, on the same disk: two of its processes answer for everybody who uses it, by `ldptree.client`, and hand in
what they answer, some of it twice. The curator receives it by `tasks.answers.receive`.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ldptree.client import Client, FileMemory
from ldptree.protocol.protocol import Protocol
from simulation.schedule import Violation
from simulation.witness import Witness
from storage.private_files import make_to_last
from tasks.answers.receive import SEEN, receive_folder

FOLDER = "device"
PROCESSES = ("device", "device again")
HOLDERS = ("ann", "bob", "cy")
VECTORS = Path(__file__).parents[2] / "docs" / "client" / "vectors.json"


@cache
def published() -> tuple[Protocol, dict, str]:
    """A protocol; a row, and its label. It was answered once: what is compiled for that is no step of a simulation."""
    vector = json.loads(VECTORS.read_text())[0]
    protocol, answer = Protocol.from_json(json.dumps(vector["protocol"])), vector["answers"][0]
    Client(protocol, max_epsilon=protocol.epsilon, memory={}).report(answer["row"], answer["label"])
    return protocol, answer["row"], answer["label"]


@dataclass
class Device:
    """A folder with the memory of who answered, and what was handed in from it."""

    folder: Path
    witness: Witness
    handed_in: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        published()

    def answer(self) -> None:
        """Hand in everybody's report: the one that was handed in before, if any was."""
        protocol, row, label = published()
        make_to_last(self.folder)
        memory = FileMemory(self.folder / "memory.json")
        client = Client(protocol, max_epsilon=protocol.epsilon, memory=memory)
        for holder in HOLDERS:
            report = client.report(row, label, holder=holder).to_json()
            self.witness.note(("report of", holder), report)
            self.handed_in.append(report)

    def check_received(self) -> None:
        """Everybody's report counts once. Raises Violation."""
        if not self.handed_in:
            return
        with tempfile.TemporaryDirectory() as folder:
            protocol, reports = Path(folder) / "protocol.json", Path(folder) / "reports"
            protocol.write_text(published()[0].to_json())
            reports.mkdir()
            (reports / "1.jsonl").write_text("\n".join(self.handed_in))
            received = receive_folder(protocol, reports)
        twice = len(self.handed_in) - len(HOLDERS)
        if received.accepted != len(HOLDERS) or +received.rejected != ({SEEN: twice} if twice else {}):
            raise Violation(f"{received.accepted} reports of {len(HOLDERS)} holders; {received.in_words()}")
