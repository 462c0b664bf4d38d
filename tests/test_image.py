"""What is installed, in the container image and by `make`: by hashes alone; and in the image for a user who is not root."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMAGE = (ROOT / "Dockerfile").read_text().replace("\\\n", "")


def test_only_what_is_installed_is_sent_to_the_build():
    """A work folder or a file of rows beside the program would otherwise lie in a layer of the image."""
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    needed = {
        *packages,
        "ldptree",
        "pyproject.toml",
        project["project"]["readme"],
        "LICENSE",
        "requirements.lock",
        "requirements-dev.lock",
    }
    assert lines[0] == "*"
    assert {line.removeprefix("!") for line in lines if line.startswith("!")} == needed
    assert all((ROOT / name).exists() for name in needed)


def test_it_is_built_from_public_images_with_hashes_and_runs_as_nobody_special():
    assert re.findall(r"^FROM (\S+)", IMAGE, re.MULTILINE) == ["python:3.11-slim"] * 2
    installs = [step for step in re.split(r"&&|\n", IMAGE) if "pip install" in step]
    assert installs
    assert all("--require-hashes" in line or "--no-deps --no-build-isolation" in line for line in installs)
    assert "://" not in IMAGE
    last = IMAGE.rpartition("FROM ")[2]
    assert re.findall(r"^USER (\S+)", last, re.MULTILINE) == ["ldptree"]
    assert last.index("USER") < last.index("CMD")


def test_make_installs_nothing_without_a_hash_of_it():
    """That goes for uv too, which installs all the rest."""
    commands = re.findall(r"^\t(.*pip install.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert commands
    assert [line for line in commands if "--require-hashes" not in line and "--no-deps" not in line] == []
    for lock in ROOT.glob("requirements*.lock"):
        pinned = re.split(r"\n(?=\S)", lock.read_text().strip())
        assert all("==" in entry and "--hash=sha256:" in entry for entry in pinned), lock
        assert "://" not in lock.read_text()
