"""Take docs/images/report.png anew: the top of a run's page, as Chromium shows it.

.venv/bin/python docs/picture_of_report.py work/runs/RUN/report.html
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

WIDTH, HEIGHT = 1280, 1310
COLOURS = 224
OUT = Path(__file__).parent / "images" / "report.png"


def take_picture(page: Path, out: Path, height: int) -> None:
    """Write the top of a page as a PNG, in few enough colours for a README."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("no Chromium on this machine (Debian: apt-get install chromium)")
    with tempfile.TemporaryDirectory() as folder:
        shot = Path(folder) / "shot.png"
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"]
        subprocess.run(
            [
                browser,
                *options,
                "--disable-background-networking",
                "--disable-component-update",
                f"--user-data-dir={folder}/profile",
                f"--window-size={WIDTH},{height}",
                f"--screenshot={shot}",
                page.resolve().as_uri(),
            ],
            check=True,
            capture_output=True,
        )
        picture = Image.open(shot).convert("RGB").crop((0, 0, WIDTH, height))
        picture.quantize(COLOURS, dither=Image.Dither.NONE).save(out, optimize=True)
    print(f"{out}: {out.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    take_picture(Path(sys.argv[1]), OUT, HEIGHT)
