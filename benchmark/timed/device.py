"""Measure a protocol with a forest of 200 trees on a holder's device (one core, Python and numpy, no numba).

    .venv/bin/python benchmark/timed/device.py

A forest on simulated public rows is made as large as a protocol may be; a process of its own, where numba, scipy and
scikit-learn cannot be imported, then reads the protocol and answers it. Times are of the processor, the best of five.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from ldptree.encoding import Encoding, NumericFeature
from ldptree.families.correction import Correction
from ldptree.families.correction_plan import make_plan
from ldptree.families.family import PublicRows
from ldptree.protocol.protocol import Protocol
from ldptree_benchmark.results.measured import Measured

ROWS, COLUMNS = 2_750, 10
DEVICE = """
import sys, time
for name in ("numba", "scipy", "sklearn"):
    sys.modules[name] = None
from ldptree.client import Client

def client_of(text):
    return Client(text, max_epsilon=1.0, memory={})


def best(work, runs=5):
    times = []
    for run in range(runs):
        start = time.process_time()
        work(run)
        times.append(1e3 * (time.process_time() - start))
    return min(times)

text = open(sys.argv[1]).read()
x = [0.5] * int(sys.argv[2])
print(f"read and check the protocol|{best(lambda run: client_of(text)):,.0f} ms")
clients = iter([client_of(text) for _ in range(5)])
print(f"first report|{best(lambda run: next(clients).report(x, 'yes')):.1f} ms")
client = client_of(text)
client.report(x, "yes")
each = best(lambda run: [client.report(x, "yes", holder=f"{run} {i}") for i in range(100)]) / 100
print(f"every further report|{each:.1f} ms")
"""


def forest_protocol() -> Protocol:
    """Return a protocol of two classes and ten columns with noise in the labels, so that leaves are many."""
    rng = np.random.default_rng(0)
    encoding = Encoding(tuple(NumericFeature(f"x{j}", 0.0, 1.0) for j in range(COLUMNS)))
    X = rng.random((ROWS, COLUMNS)).astype(np.float32)
    y = (rng.random(ROWS) < 0.2 + 0.6 * X[:, 0] * X[:, 1]).astype(int)
    family = Correction(epsilon=1.0, base="forest", heading={"target": "label"})
    view = family.summarize(PublicRows(encoding=encoding, X=X, y=y, label=("no", "yes"), n_private=100_000))
    return family.publish(view, make_plan(view.evidence, epsilon=1.0, n_holders=100_000))


def main() -> None:
    """Make the protocol, print its size and what a device takes as one result of a page of docs/measured."""
    protocol = forest_protocol()
    assert protocol.base is not None
    trees, text = protocol.base.ensemble, protocol.to_json()
    packed = len(gzip.compress(text.encode()))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "protocol.json"
        path.write_text(text)
        alone = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        done = [sys.executable, "-c", DEVICE, str(path), str(COLUMNS)]
        answers = subprocess.run(done, check=True, capture_output=True, text=True, env=alone).stdout
    heads = (f"{trees.roots.size} trees, {trees.n_nodes:,} nodes", "")
    size = ("size", f"{len(text):,} bytes, {packed:,} by gzip")
    print(
        Measured(
            title="A public model on a device",
            command="python benchmark/timed/device.py > docs/measured/suites/device.toml",
            note=(
                f"A forest takes about {len(text) / trees.n_nodes:.0f} bytes a node; the curator's `max_protocol_bytes` shrinks "
                "it to fit. One core, Python with numpy alone, processor time, the best of five."
            ),
            tables=[("", [heads, size, *(tuple(line.split("|")) for line in answers.splitlines())])],
        ),
        end="",
    )


if __name__ == "__main__":
    main()
