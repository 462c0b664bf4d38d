"""Check what a run printed and wrote, as a person would who reads its last lines: .ci/check_run.py PRINTED [--cached]."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

KEYS = {
    *("run", "name", "epsilon", "epsilon_exact", "epsilon_spent", "mechanism", "form", "seeded"),
    *("n_private", "n_public", "n_test", "n_features", "cells", "depth", "lam", "metrics", "baselines"),
    *("steps", "page", "model", "seconds", "peak_rss_mb"),
}
STEPS = {
    *("ingest", "validate", "split", "scale", "partition"),
    *("perturb", "aggregate", "prune", "evaluate", "report"),
}
BASELINES = {"majority", "public_only", "public_tree", "public_forest", "no_noise", "non_private"}
VIEWS = ("runs", "totals", "cells", "reports_per_shard")
LOADS = re.compile(
    r"""\b(?:src|action)\s*=\s*["']?(?!data:)[^"'>\s]|<link\b[^>]*href\s*=\s*["']?(?!data:)\w|url\(\s*["']?(?!#|data:)\w|@import""",
    re.IGNORECASE,
)


def check_summary(summary: dict[str, Any], *, is_cached: bool) -> None:
    """`run.json` has what is documented, and its figures hang together."""
    assert not KEYS - summary.keys(), f"run.json lacks {sorted(KEYS - summary.keys())}"
    assert not BASELINES - summary["baselines"].keys(), f"baselines are {list(summary['baselines'])}"
    states = {step["name"]: step["state"] for step in summary["steps"]}
    wanted = STEPS | {"source"} if is_simulated(summary) else STEPS
    assert not wanted - states.keys(), f"steps are {list(states)}"
    if is_cached:
        assert set(states.values()) == {"cached"}, f"not all cached: {states}"
    assert summary["epsilon_exact"] <= summary["epsilon"], "its coins spend more than it claims"
    ours, floor = summary["metrics"]["accuracy"], summary["baselines"]["majority"]["accuracy"]
    assert ours > floor, f"accuracy {ours:.3f} is not above that of the most frequent class, {floor:.3f}"


def is_simulated(summary: dict[str, Any]) -> bool:
    """Whether the run made its own raw files."""
    return bool(summary["name"] == "quickstart")


def check_page(path: Path, summary: dict[str, Any]) -> None:
    """The page says what was found, and loads nothing from anywhere."""
    text = path.read_text(encoding="utf-8")
    load = LOADS.search(text)
    assert load is None, f"the page loads from elsewhere: {text[load.start() : load.end() + 60]}"
    heading = re.search(r"<h1[^>]*>(.*?)</h1>", text, re.DOTALL)
    assert heading is not None, "the page has no finding"
    finding = " ".join(re.sub(r"<[^>]+>", " ", heading[1]).split())
    print(f"finding: {finding}")
    figures = [
        f"{100 * score['accuracy']:.1f}"
        for score in (summary["metrics"], summary["baselines"]["public_only"])
    ]
    assert any(figure in finding for figure in figures), f"the finding has none of the accuracies {figures}"
    words = re.sub(r"<[^>]+>", " ", text)
    assert f"{summary['n_private']:,}" in words, "the page does not say how many reported"
    assert "simulated" in words or not is_simulated(summary), "the page does not say that trips are simulated"
    assert figures[0] in words, "the page does not show the accuracy"


def check_warehouse(path: Path, summary: dict[str, Any]) -> None:
    """Every view answers, and the run is in it."""
    import duckdb

    run = [summary["run"]]
    with duckdb.connect(str(path), read_only=True) as connection:
        for view in VIEWS:
            found = connection.execute(f"SELECT 1 FROM {view} WHERE run = ? LIMIT 1", run).fetchall()
            assert found, f"view {view} has nothing of this run"
        holders = "SELECT sum(holders) FROM reports_per_shard WHERE run = ?"
        assert connection.execute(holders, run).fetchall() == [(summary["n_private"],)], (
            "reports do not add up"
        )


def main(printed: Path, *, is_cached: bool) -> None:
    """Raises AssertionError at the first thing that does not hold."""
    lines = printed.read_text(encoding="utf-8").splitlines()
    said = dict(line.split(maxsplit=1) for line in lines if line.startswith(("page ", "model ")))
    page, model = Path(said["page"]), Path(said["model"])
    summary = json.loads((page.parent / "run.json").read_bytes())
    assert lines.count(lines[-1]) == 2, "what was found is not printed first and last"
    assert summary["finding"] in lines[-1], "the last line is not what was found"
    assert Path(summary["page"]) == page, "printed and written paths differ"
    assert json.loads(model.read_bytes()), "the model is empty"
    check_summary(summary, is_cached=is_cached)
    check_page(page, summary)
    check_warehouse(page.parents[2] / "curator" / "warehouse.duckdb", summary)
    accuracy = summary["metrics"]["accuracy"]
    print(f"checked: {summary['name']}, accuracy {accuracy:.3f}, {summary['seconds']:.1f} s")


if __name__ == "__main__":
    main(Path(sys.argv[1]), is_cached="--cached" in sys.argv[2:])
