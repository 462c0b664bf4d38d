"""Make docs/gallery anew: run each story's command, and take its page, the picture of its page and its scores.

    LDPTREE_DATA=DIR .venv/bin/python benchmarks/gallery.py WORK [STORY ...]

The stories with their commands are in docs/gallery/stories.toml. What a story says about its figures is written by hand: read it
again afterwards. `make reference` writes the gallery's page.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from picture_of_report import take_picture
from results import tidy_rows, write_tidy

FOLDER = Path(__file__).parents[1] / "docs" / "gallery"
HEIGHT = 1000
MOST_BYTES = 300_000


def make_story(name: str, command: str, work: Path) -> None:
    """Run the command and write NAME.html, NAME.png and NAME.csv."""
    arguments = [word for word in shlex.split(command) if not word.startswith("LDPTREE_DATA=")]
    arguments[0] = str(Path(sys.executable).with_name(arguments[0]))
    ended = subprocess.run([*arguments, "--work", str(work), "--json"], stdout=subprocess.PIPE, check=True)
    page = Path(json.loads(ended.stdout)["report"])
    write_tidy(tidy_rows(work, page.parent), FOLDER / f"{name}.csv")
    take_picture(page, FOLDER / f"{name}.png", HEIGHT)
    if page.stat().st_size >= MOST_BYTES:
        sys.exit(f"{page}: {page.stat().st_size:,} bytes, above {MOST_BYTES:,}")
    shutil.copyfile(page, FOLDER / f"{name}.html")


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
