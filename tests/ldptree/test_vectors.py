"""Known answers for whoever writes a client in another language: docs/client/vectors.json holds what this client answers.

`python tests/ldptree/test_vectors.py` writes the file anew, after a change of the format.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import base_examples
import numpy as np
import pytest

from ldptree.client import Client
from ldptree.coins import Words
from ldptree.encoding import CategoricalFeature, Encoding, NumericFeature
from ldptree.errors import ConfigError
from ldptree.mechanisms import CHOICES, mechanism_for, number_mechanism_for
from ldptree.partition import Partition
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.stochastic_rounding import label_levels

FILE = Path(__file__).parents[2] / "docs" / "client" / "vectors.json"
NAMES = [name for name in CHOICES[1:] if name != "laplace"]
LATER = ["signed_subset"]
"""Of these, what was added when the file had vectors of numbers and bases already: theirs stand at its end."""
ROWS = [
    ({"miles": 1.5, "company": "Sun"}, "cash"),
    ({"miles": 12.0, "company": "Sun"}, "card"),
    ({"miles": 99.0, "company": "Blue"}, "card"),
    ({"miles": None, "company": "Moon"}, "cash"),
    ({"miles": 3.0, "company": None}, "cash"),
    ({"miles": 3.0, "company": "Sun"}, "cheque"),
]
OF_NUMBERS = {"number, oue": "oue", "number_response": "randomized_response"}
"""Where the label is a number: a joint report of five levels, and the mechanism of its own."""
LABELS = [12.5, -40.0, 99.0, 70, 0.1, None]
"""Instead of the labels of ROWS; the range is -10 to 70."""
OF_BASES = {f"base, {kind}": kind for kind in base_examples.KINDS if "contrasts" not in kind}
"""Where the holder reports how wrong a public model is."""
CONTRASTS = {f"base, {kind}": kind for kind in base_examples.KINDS if "contrasts" in kind}
"""Along which of several columns; to a part of the holders."""
BASE_LABELS = {0: [12.5, -40.0, 11.0, 9, 10.0, None], 2: [y for _, y in ROWS]}
BASE_LABELS[3] = BASE_LABELS[2]
"""By the number of declared classes; "cheque" is not declared."""
MARKED = {"oue, of a simulation": "oue"}
"""A protocol that says it is of a simulation."""
SIGNED = {"base, two classes, signed_subset": "two classes, one share"}
"""Where the residual has two levels and is reported by a signed subset."""
GONE = 16
"""The coins with this number belonged to a kind of base that is no more; those of later answers stay what they were."""
EVERY = [
    *(name for name in NAMES if name not in LATER),
    *OF_NUMBERS,
    *OF_BASES,
    *LATER,
    *MARKED,
    *SIGNED,
    *CONTRASTS,
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


def number_protocol_of(name: str) -> Protocol:
    mechanism = number_mechanism_for(OF_NUMBERS[name], 1.0, 3, 5)
    classes = protocol_of("grr")
    return Protocol(
        encoding=classes.encoding,
        partition=classes.partition,
        target="fare",
        classes=label_levels(-10.0, 70.0, mechanism.n_classes),
        positive=None,
        mechanism=mechanism,
        epsilon=1.0,
        campaign="vectors",
        numeric=True,
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


def answers_to(name: str) -> tuple[Protocol, list]:
    if name in NAMES:
        return protocol_of(name), ROWS
    if name in MARKED:
        return replace(protocol_of(MARKED[name]), simulation=True), ROWS
    if name in OF_BASES | SIGNED | CONTRASTS:
        protocol = base_examples.protocol_of((OF_BASES | SIGNED | CONTRASTS)[name])
        if name in CONTRASTS:
            protocol = replace(protocol, asked=(0, 400))
        if name in SIGNED:
            mechanism = mechanism_for("signed_subset", protocol.epsilon, protocol.n_cells, 2)
            protocol = replace(protocol, mechanism=mechanism, classes=label_levels(*protocol.label_range, 2))
        return protocol, list(zip(base_examples.ROWS, BASE_LABELS[len(protocol.label_classes)], strict=True))
    return number_protocol_of(name), [(row, y) for (row, _), y in zip(ROWS, LABELS, strict=True)]


def value_of(protocol: Protocol, row, label, taken: list[int]) -> int:
    """What is randomised: an output is drawn, then a number is rounded, with the first words of those taken."""
    client = Client(protocol, max_epsilon=64.0, memory={}, words=played(taken))
    words = played(taken)
    outputs = protocol.draw_outputs(1, words)
    return int(protocol.values(client._row(row), [coded(client, label)], words=words, outputs=outputs)[0])


def coded(client: Client, label) -> float:
    if client.protocol.label_classes:
        return client._label(label)
    return np.nan if label is None else float(label)


def residual_of(protocol: Protocol, row, label, output: int | None) -> float | None:
    """Label less the base's answer, to the digits that every libm has; None where it is reported as "outside"."""
    client = Client(protocol, max_epsilon=64.0, memory={})
    outputs = None if output is None else np.array([output])
    found = float(protocol.residuals(client._row(row), [coded(client, label)], outputs=outputs)[0])
    return None if np.isnan(found) else float(f"{found:.12g}")


def vectors():
    found = []
    for number, name in enumerate(EVERY):
        protocol, rows = answers_to(name)
        answers = []
        for row, (x, y) in enumerate(rows):
            coins = Recorded(number + (number >= GONE), row)
            report = Client(protocol, words=coins.words, max_epsilon=64.0, memory={}).report(x, y)
            answer = {
                "row": x,
                "label": y,
                "value": value_of(protocol, x, y, coins.taken),
                "words": [f"{word:016x}" for word in coins.taken],
                "report": report.payload.hex(),
                "id": report.id,
            }
            if protocol.base is not None:
                answer["residual"] = residual_of(protocol, x, y, report.output)
            answers.append(answer if report.output is None else answer | {"output": report.output})
        found.append({"mechanism": name, "protocol": json.loads(protocol.to_json()), "answers": answers})
    return found


@pytest.mark.parametrize("number", range(len(EVERY)), ids=EVERY)
def test_the_client_gives_the_known_answers(number):
    vector = json.loads(FILE.read_text())[number]
    protocol = Protocol.from_json(json.dumps(vector["protocol"]))
    assert vector["mechanism"] == EVERY[number]
    assert protocol.digest == vector["protocol"]["digest"]
    is_number = isinstance(vector["protocol"]["classes"][0], float)
    assert ("numeric" in vector["protocol"]) == protocol.numeric == is_number
    assert len(vector["answers"]) == len(ROWS)
    for answer in vector["answers"]:
        words = [int(word, 16) for word in answer["words"]]
        report = Client(protocol, words=played(words), max_epsilon=64.0, memory={}).report(
            answer["row"], answer["label"]
        )
        assert (report.payload.hex(), report.id) == (answer["report"], answer["id"])
        assert report.output == answer.get("output")
        assert value_of(protocol, answer["row"], answer["label"], words) == answer["value"]
        if protocol.base is not None:
            found = residual_of(protocol, answer["row"], answer["label"], report.output)
            assert found == answer["residual"]


def test_a_protocol_of_a_simulation_is_answered_with_a_simulations_coins_only():
    text = next(json.dumps(v["protocol"]) for v in json.loads(FILE.read_text()) if v["mechanism"] in MARKED)
    assert json.loads(text)["simulation"] is True
    with pytest.raises(ConfigError, match="no real holder answers it"):
        Client(text, max_epsilon=64.0, memory={})
    client = Client(text, max_epsilon=64.0, memory={}, words=np.random.default_rng(1))
    assert json.loads(client.report(*ROWS[0]).to_json())["simulation"] is True


def test_the_file_is_what_is_written_anew():
    assert json.loads(FILE.read_text()) == vectors()


if __name__ == "__main__":
    text = ",\n".join(json.dumps(vector, sort_keys=True) for vector in vectors())
    FILE.write_text(f"[\n{text}\n]\n")
    sys.stdout.write(f"{FILE}\n")
