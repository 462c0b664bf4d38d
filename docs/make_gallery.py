"""Make docs/gallery anew: run each story's command, and take its page, the picture of its page and its scores.

    LDPTREE_DATA=DIR .venv/bin/python docs/make_gallery.py FOLDER [STORY ...]

The stories with their commands are in docs/gallery/stories.toml. What a story says about its figures is written by hand: read it
again afterwards. `make reference` writes the gallery's page.
"""

from __future__ import annotations

import csv
import json
import shlex
import shutil
import statistics
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from picture_of_report import take_picture

FOLDER = Path(__file__).with_name("gallery")
HEIGHT = 1000
MOST_BYTES = 300_000
COLUMNS = ("set", "method", "parameters", "eps", "score", "spread")
METHODS = {
    "majority": "most common class",
    "constant": "constant",
    "public_only": "public model",
    "public_tree": "public tree",
    "public_forest": "public forest",
    "ours": "ldptree",
    "no_noise": "no noise",
    "non_private": "one tree, no privacy",
}


def make_story(name: str, command: str, work: Path) -> None:
    """Run the command and write NAME.html, NAME.png and NAME.csv."""
    arguments = [word for word in shlex.split(command) if not word.startswith("LDPTREE_DATA=")]
    arguments[0] = str(Path(sys.executable).with_name(arguments[0]))
    # The page shows the command that was typed: no folder of this machine is in it.
    work.mkdir(parents=True, exist_ok=True)
    ended = subprocess.run([*arguments, "--json"], stdout=subprocess.PIPE, check=True, cwd=work)
    page = work / json.loads(ended.stdout)["page"]
    with (FOLDER / f"{name}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(tidy_rows(work / "work", page.parent))
    take_picture(page, FOLDER / f"{name}.png", HEIGHT)
    if page.stat().st_size >= MOST_BYTES:
        sys.exit(f"{page}: {page.stat().st_size:,} bytes, above {MOST_BYTES:,}")
    shutil.copyfile(page, FOLDER / f"{name}.html")


def tidy_rows(work: Path, run: Path) -> list[dict[str, str]]:
    """A run's scores, a row a method: accuracy in per cent, or the typical error of a number.

    The spread is the standard deviation over the redraws of the noise, where the run has any.
    """
    summary = json.loads((run / "run.json").read_bytes())
    is_number = "rmse" in summary["metrics"]
    metric, scale, form = ("rmse", 1, ".3g") if is_number else ("accuracy", 100, ".1f")
    found = summary["baselines"] | {"ours": summary["metrics"]}
    drawn = read_scores(work, run)["redraws"]
    redraws = [error**0.5 for error in drawn] if is_number else drawn
    groups = f", {summary['cells']:,} groups" if "cells" in summary else ""
    parameters = f"{summary['estimator']}, {summary['n_private']:,} reports, {summary['n_public']:,} public rows{groups}"
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


def main(work: Path, only: list[str]) -> None:
    """Make the stories that are named, or all."""
    for story in tomllib.loads((FOLDER / "stories.toml").read_text())["results"]:
        name = Path(story["tables"][0]["tidy"]).stem
        if not only or name in only:
            make_story(name, story["command"], work)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), sys.argv[2:])
