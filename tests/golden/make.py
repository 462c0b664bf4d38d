"""A golden work folder: what this version keeps of a campaign and of a conversation in rounds, packed for all later versions to
open. Run once for each version that changes what is kept: `python tests/golden/make.py NAME`; never made again.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from chain import rides  # noqa: E402 - from the folder that the line above names

CAMPAIGN = """
name = "rides"
seed = 7
evaluate = false
[dataset]
name = "rides"
path = "week-*.csv"
target = "paid"
positive = "card"
public = "zone = 'open'"
holder = "person"
[model]
estimator = "lpct"
depth = 2
[privacy]
epsilon = 1.0
lifetime_epsilon = 4.0
[campaign]
name = "rides-2026"
"""
ROUNDS = """
name = "fares"
seed = 7
evaluate = false
[dataset]
name = "fares"
path = "fares.csv"
target = "hour"
public = "zone = 'open'"
drop = ["person", "paid"]
test_fraction = 0.0
[model]
estimator = "histoftree"
label_range = [0, 24]
[histoftree]
bins = 2
depth = 1
[features]
protects = { miles = "hides" }
[privacy]
epsilon = 1.0
"""


def make_inputs(folder: Path) -> None:
    """The configurations and the rows that the golden runs are made of."""
    (folder / "rides.toml").write_text(CAMPAIGN)
    (folder / "fares.toml").write_text(ROUNDS)
    rides(folder / "week-1.csv", 120, seed=1)
    rides(folder / "fares.csv", 120, seed=3, hides=["true", "false"] * 60)


def run(folder: Path, config: str) -> None:
    """A run in `folder`, whose work folder stands in it."""
    command = Path(sys.executable).with_name("ldptree")
    subprocess.run([command, "run", config, "--work", "work"], cwd=folder, check=True)


def pack(folder: Path, target: Path) -> None:
    """Everything but Prefect's own database, what browsers show, and what says who packed it."""

    def kept(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        path = Path(entry.name)
        if "prefect" in path.parts or path.suffix in (".html", ".duckdb") or "-docs" in entry.name:
            return None
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        return entry

    with tarfile.open(target, "w:xz") as archive:
        for path in sorted(folder.iterdir()):
            archive.add(path, path.name, filter=kept)


if __name__ == "__main__":
    place = Path(tempfile.gettempdir()) / "ldptree-golden"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    make_inputs(place)
    for name in ("rides.toml", "fares.toml"):
        run(place, name)
    pack(place, HERE / f"{sys.argv[1]}.tar.xz")
    shutil.rmtree(place)
