"""Known answers for whoever writes a client in another language: docs/client/vectors.json holds what this client answers.

`python tests/ldptree/test_vectors.py` writes the file anew, after a change of the format.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from ldptree.client import Client
from ldptree.encoding import CategoricalFeature, Encoding, NumericFeature
from ldptree.mechanisms import CHOICES, mechanism_for
from ldptree.oracles import Words
from ldptree.partition import Partition
from ldptree.protocol import Protocol

FILE = Path(__file__).parents[2] / "docs" / "client" / "vectors.json"
NAMES = [name for name in CHOICES[1:] if name != "laplace"]
ROWS = [
    ({"miles": 1.5, "company": "Sun"}, "cash"),
    ({"miles": 12.0, "company": "Sun"}, "card"),
    ({"miles": 99.0, "company": "Blue"}, "card"),
    ({"miles": None, "company": "Moon"}, "cash"),
    ({"miles": 3.0, "company": None}, "cash"),
    ({"miles": 3.0, "company": "Sun"}, "cheque"),
]


def protocol_of(name: str) -> Protocol:
    return Protocol(
        encoding=Encoding(
            (
                NumericFeature("miles", 0.0, 16.0, fill=2.0),
                CategoricalFeature("company", ("Sun", "Blue")),
            )
        ),
        partition=Partition.of(
            [0, -1, 1, -1, -1], [0.25, 0, 0.5, 0, 0], [1, -1, 3, -1, -1], [2, -1, 4, -1, -1]
        ),
        target="paid",
        classes=("card", "cash"),
        positive="cash",
        mechanism=mechanism_for(name, 1.0, 3, 2),
        epsilon=1.0,
        campaign="vectors",
    )


class Recorded:
    """Words of a seed, each written down as it is taken."""

    def __init__(self, *seed: int) -> None:
        self.taken: list[int] = []
        self._source = np.random.SFC64(np.random.SeedSequence(seed))
        self.words = Words(self._draw, np.random.SeedSequence(seed), is_seeded=True)

    def _draw(self, n):
        words = self._source.random_raw(n)
        self.taken += words.tolist()
        return words


def played(taken: list[int]) -> Words:
    """Words read from a list."""
    left = iter(taken)
    return Words(
        lambda n: np.array([next(left) for _ in range(n)], dtype=np.uint64),
        np.random.SeedSequence(0),
        is_seeded=True,
    )


def vectors():
    found = []
    for number, name in enumerate(NAMES):
        protocol = protocol_of(name)
        answers = []
        for row, (x, y) in enumerate(ROWS):
            coins = Recorded(number, row)
            client = Client(protocol, words=coins.words)
            value = int(protocol.values(client._row(x), [client._label(y)])[0])
            report = client.report(x, y)
            answers.append(
                {
                    "row": x,
                    "label": y,
                    "value": value,
                    "words": [f"{word:016x}" for word in coins.taken],
                    "report": report.payload.hex(),
                    "id": report.id,
                }
            )
        found.append({"mechanism": name, "protocol": json.loads(protocol.to_json()), "answers": answers})
    return found


@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
def test_the_client_gives_the_known_answers(number):
    vector = json.loads(FILE.read_text())[number]
    protocol = Protocol.from_json(json.dumps(vector["protocol"]))
    assert vector["mechanism"] == NAMES[number]
    assert len(vector["answers"]) == len(ROWS)
    for answer in vector["answers"]:
        client = Client(protocol, words=played([int(word, 16) for word in answer["words"]]))
        report = client.report(answer["row"], answer["label"])
        assert (report.payload.hex(), report.id) == (answer["report"], answer["id"])
        assert (
            protocol.values(client._row(answer["row"]), [client._label(answer["label"])]) == answer["value"]
        )


def test_the_file_is_what_is_written_anew():
    assert json.loads(FILE.read_text()) == vectors()


if __name__ == "__main__":
    text = ",\n".join(json.dumps(vector, sort_keys=True) for vector in vectors())
    FILE.write_text(f"[\n{text}\n]\n")
    sys.stdout.write(f"{FILE}\n")
