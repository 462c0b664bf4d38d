"""Print the table of docs/measured/results.md: every finished run of a work folder, as its files say it.

.venv/bin/python benchmarks/results.py WORK
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tables import MarkdownTable

COLUMNS = {
    "majority": "most frequent class",
    "public_only": "public only",
    "public_tree": "public tree",
    "public_forest": "public forest",
    "ours": "**ldptree**",
    "redraws": "20 redraws",
    "no_noise": "no noise",
    "non_private": "no privacy",
}


def row(work: Path, run: Path) -> dict[str, str]:
    """One run's accuracies in per cent, by column."""
    summary = json.loads((run / "run.json").read_bytes())
    accuracies = {name: scores["accuracy"] for name, scores in summary["baselines"].items()}
    accuracies["ours"] = summary["metrics"]["accuracy"]
    redraws = _scores(work, run)["redraws"]
    shown = {name: f"{100 * value:.1f}" for name, value in accuracies.items()}
    return shown | {
        "redraws": f"{100 * min(redraws):.1f} to {100 * max(redraws):.1f}" if redraws else "",
        "run": f"{summary['name']}, epsilon {summary['epsilon']:g}",
    }


def _scores(work: Path, run: Path) -> Any:
    records = json.loads((run / "records.json").read_bytes())["records"]
    (path,) = (work / name for name in records if name.startswith("simulation/evaluate/"))
    part = json.loads(path.read_bytes())["parts"]["scores"]
    return json.loads((work / part["path"] / "scores.json").read_bytes())


def main(work: Path) -> None:
    """Print a Markdown table."""
    table = MarkdownTable("accuracy, %", *COLUMNS.values())
    for path in sorted(work.glob("runs/*/run.json"), key=lambda p: p.stat().st_mtime):
        found = row(work, path.parent)
        table.row(found["run"], *(found[column] for column in COLUMNS))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
