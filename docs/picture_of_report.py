"""Take docs/images/report.png and report-dark.png anew: the top of a run's page, as Chromium shows it in either theme.

.venv/bin/python docs/picture_of_report.py work/runs/RUN/page.html
"""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path
from typing import Literal

from PIL import Image
from playwright.sync_api import sync_playwright

WIDTH, HEIGHT = 1280, 1310
COLOURS = 224
IMAGES = Path(__file__).parent / "images"


def take_picture(page: Path, out: Path, height: int, theme: Literal["light", "dark"] = "light") -> None:
    """Write the top of a page as a PNG, in few enough colours for a README."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("no Chromium on this machine (Debian: apt-get install chromium)")
    with sync_playwright() as session:
        browser = session.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        view = browser.new_page(viewport={"width": WIDTH, "height": height}, color_scheme=theme)
        view.goto(page.resolve().as_uri())
        picture = Image.open(io.BytesIO(view.screenshot())).convert("RGB")
        browser.close()
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(out, optimize=True)
    print(f"{out}: {out.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    take_picture(Path(sys.argv[1]), IMAGES / "report.png", HEIGHT)
    take_picture(Path(sys.argv[1]), IMAGES / "report-dark.png", HEIGHT, "dark")
