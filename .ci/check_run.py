"""Whether a work folder holds what a run promises: the summary's keys, a page that loads nothing, a warehouse that answers."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import duckdb

KEYS = {
    "run", "name", "epsilon", "epsilon_spent", "mechanism", "n_private", "n_public", "n_test", "n_features", "cells", "depth",
    "lam",
    "metrics", "baselines", "steps", "report", "model", "seconds", "peak_rss_mb",
}  # fmt: skip
STEPS = [
    "source",
    "ingest",
    "validate",
    "split",
    "scale",
    "partition",
    "perturb",
    "aggregate",
    "prune",
    "evaluate",
    "report",
]


def main() -> None:
    """Exit with what is missing."""
    work = Path(sys.argv[1])
    run = max((work / "runs").glob("*/run.json"), key=lambda path: path.stat().st_mtime).parent
    summary = json.loads((run / "run.json").read_text())
    faults = [f"run.json lacks {key}" for key in sorted(KEYS - summary.keys())]
    if [step["name"] for step in summary["steps"]] != STEPS:
        faults.append(f"steps are {[step['name'] for step in summary['steps']]}")
    if "--all-cached" in sys.argv and any(step["state"] != "cached" for step in summary["steps"]):
        faults.append(f"not all cached: {[(step['name'], step['state']) for step in summary['steps']]}")
    if (
        not 0.5 < summary["metrics"]["accuracy"] < 1
        or summary["metrics"]["accuracy"] < summary["baselines"]["majority"]["accuracy"]
    ):
        faults.append(f"accuracy {summary['metrics']}")
    page = (run / "report.html").read_text(encoding="utf-8")
    if re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//|@import|url\(\s*["']?https?:""", page):
        faults.append("the page loads something")
    if "<h1" not in page or f"{summary['n_private']:,}" not in page or "simulated" not in page:
        faults.append("the page does not say what was learned from whom")
    with duckdb.connect(str(work / "curator" / "warehouse.duckdb"), read_only=True) as warehouse:
        for view in ("totals", "cells", "reports_per_shard", "runs"):
            (rows,) = warehouse.execute(f"SELECT count(*) FROM {view}").fetchone()
            if not rows:
                faults.append(f"warehouse: {view} is empty")
    if faults:
        sys.exit("\n".join(faults))
    print(
        f"{run.name}: accuracy {summary['metrics']['accuracy']:.3f}, {summary['n_private']:,} reports, {summary['seconds']:.1f} s"
    )


if __name__ == "__main__":
    main()
