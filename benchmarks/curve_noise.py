"""Whether the band of a run in rounds is as wide as it says: refits' spread beside that of redraws, on a made-up law.

benchmarks/curve_noise.py public_features|histoftree [HOLDERS]

label = 10 [x0 > .4] + 4 x1 + 6 x3 + N(0, 1), x uniform, x3 private. Prints, along x0, x1 and x3, the root mean square over the
curve of the standard deviation: of refits (the band's), of the same questions answered again, and of whole conversations.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.families.curators import CURATORS, Task
from ldptree.models.function_effects import averages
from ldptree.models.refits import refits
from ldptree.oracles import Words
from ldptree.protocol.question import Answers, Question, Shown, converse

Floats = NDArray[np.float64]

SETTINGS: dict[str, tuple[float, dict[str, Any], int]] = {
    "public_features": (2.0, {}, 2),
    "histoftree": (4.0, {"bins": 2, "depth": 2}, 0),
}
"""Epsilon, settings, and how many of the first rounds only shape the later questions."""
REDRAWS = 40
GRID = (np.arange(16)[:, None] + 0.5) / 16


def main(name: str, n: int) -> None:
    """Print the table."""
    epsilon, settings, n_before = SETTINGS[name]
    rng = np.random.default_rng(3)
    rows = rng.random((n, 4))
    labels = 10.0 * (rows[:, 0] > 0.4) + 4 * rows[:, 1] + 6 * rows[:, 3] + rng.normal(0, 1, n)
    protects = np.zeros(rows.shape, dtype=bool)
    protects[:, 3] = True
    shown, words = Shown.of(rows, protects), Words.seeded(np.random.SeedSequence([1]))
    task = Task(columns=["x0", "x1", "x2", "x3"], epsilon=epsilon, label_range=(-10.0, 25.0), seed=5)
    curator = CURATORS[name](task, settings)

    def answer(question: Question, who: NDArray[np.int64]) -> NDArray[Any]:
        return question.randomize(rows[who], labels[who], protects[who], words)

    def curves(model: Any) -> Floats:
        return np.array([averages(model.predict, rows[:200], (j,), GRID) for j in (0, 1, 3)])

    def again(asked: list[Answers]) -> list[Answers]:
        fresh = [
            Answers(one.question, one.holders, answer(one.question, one.holders)) for one in asked[n_before:]
        ]
        return [*asked[:n_before], *fresh]

    model, asked = converse(curator, shown, answer)
    start = time.process_time()
    drawn = refits(curator, shown, asked, model, seed=9)
    seconds = time.process_time() - start
    print(
        f"{name}, {n:,} holders, epsilon {epsilon:g}: {len(drawn)} refits in {seconds:.1f} s of one processor"
    )
    told(f"{len(drawn)} refits", [curves(one) for one in drawn])
    told("same questions", [curves(curator.fit(shown, again(asked))) for _ in range(REDRAWS)])
    told("whole conversations", [curves(converse(curator, shown, answer)[0]) for _ in range(REDRAWS)])


def told(name: str, curves: list[Floats]) -> None:
    """One line."""
    spread = np.sqrt(np.var(curves, axis=0, ddof=1).mean(axis=1))
    print(f"{name:20}" + "".join(f"{one:8.3f}" for one in spread))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 4_000)
