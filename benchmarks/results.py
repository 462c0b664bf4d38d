"""Write a table of docs/measured: the newest run of each name in a work folder, as its files say it.

.venv/bin/python benchmarks/results.py WORK docs/measured/runs.csv quickstart chicago census taxi
"""

from __future__ import annotations

import csv
import json
import statistics
import sys
from pathlib import Path
from typing import Any

COLUMNS = ("set", "method", "parameters", "eps", "score", "spread")
METHODS = {
    "majority": "most frequent class",
    "constant": "constant",
    "public_only": "public only",
    "public_tree": "public tree",
    "public_forest": "public forest",
    "ours": "ldptree",
    "no_noise": "no noise",
    "non_private": "no privacy",
}


def tidy_rows(work: Path, run: Path) -> list[dict[str, str]]:
    """A run's scores, a row a method: accuracy in per cent, or the mean squared error of a number.

    The spread is the standard deviation over the redraws of the noise, where the run has any.
    """
    summary = json.loads((run / "run.json").read_bytes())
    is_number = "mse" in summary["metrics"]
    metric, scale, form = ("mse", 1, ".4g") if is_number else ("accuracy", 100, ".1f")
    found = summary["baselines"] | {"ours": summary["metrics"]}
    redraws = read_scores(work, run)["redraws"]
    cells = f", {summary['cells']:,} cells" if "cells" in summary else ""
    parameters = f"{summary['estimator']}, {summary['n_private']:,} reports, {summary['n_public']:,} public rows{cells}"
    return [
        {
            "set": summary["name"],
            "method": title,
            "parameters": parameters,
            "eps": f"{summary['epsilon']:g}",
            "score": format(scale * found[name][metric], form),
            "spread": format(scale * statistics.stdev(redraws), ".2g")
            if name == "ours" and len(redraws) > 1
            else "",
        }
        for name, title in METHODS.items()
        if name in found
    ]


def read_scores(work: Path, run: Path) -> Any:
    """What the run's step `evaluate` wrote."""
    records = json.loads((run / "records.json").read_bytes())["records"]
    (path,) = (work / name for name in records if name.startswith("simulation/evaluate/"))
    part = json.loads(path.read_bytes())["parts"]["scores"]
    return json.loads((work / part["path"] / "scores.json").read_bytes())


def write_tidy(rows: list[dict[str, str]], path: Path) -> None:
    """The table that docs/write_measured.py shows."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main(work: Path, out: Path, names: list[str]) -> None:
    """Write the scores of the runs, in the order of their names."""
    runs = sorted(work.glob("runs/*/run.json"), key=lambda path: path.stat().st_mtime)
    newest = {json.loads(path.read_bytes())["name"]: path.parent for path in runs}
    write_tidy([row for name in names for row in tidy_rows(work, newest[name])], out)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
