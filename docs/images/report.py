"""Draw report.png: the page of a run on a stream that changes twice, as a browser shows it.

    python docs/images/report.py

Needs chromium, and the packages of the tests.
"""

import csv
import math
import random
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
ROWS, WIDTH, GAP = 12_000, 1100, 14
SECTIONS = {"header": 312, "#stream": 432, "#weights": 505}
"""What of the page is shown, and how many pixels of each section from its top."""


def write_stream(path: Path) -> None:
    """Hours of a plant whose load depends on the weather in another way in each third."""
    rng = random.Random(3)
    start = datetime(2024, 1, 1, tzinfo=UTC)
    with open(path, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["when", "wind", "rain", "sun", "load"])
        for n in range(ROWS):
            wind, rain, sun = (round(rng.gauss(0, 1), 3) for _ in range(3))
            third = 3 * n // ROWS
            loads = (3 * wind + rain, 4 * math.sin(2 * wind) * sun, 3 * abs(wind) - 2 * (rain > 0))
            load = 20 + loads[third] + 4 * math.sin(2 * math.pi * n / 24) + rng.gauss(0, 0.3)
            when = (start + timedelta(hours=n)).isoformat()
            table.writerow([when, wind, rain, sun, round(load, 3)])


def main() -> None:
    """Run, take screenshots of the upper parts of some sections, and join them."""
    folder = Path(tempfile.mkdtemp())
    try:
        write_stream(folder / "plant.csv")
        words = ["kernelbank", "run", "plant.csv", "--target", "load", "--time", "when"]
        words += ["--report", "page.html", "--quiet"]
        subprocess.run([sys.executable, "-m", *words], cwd=folder, check=True)
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
            )
            page = chromium.new_page(viewport={"width": WIDTH, "height": 900})
            page.goto((folder / "page.html").as_uri())
            screenshots = []
            for selector, height in SECTIONS.items():
                page.locator(selector).first.screenshot(path=folder / "section.png")
                screenshot = Image.open(folder / "section.png").convert("RGB")
                screenshots.append(screenshot.crop((0, 0, screenshot.width, height)))
            background = screenshots[0].getpixel((0, 0))
            chromium.close()
        joined = Image.new("RGB", (WIDTH, sum(SECTIONS.values()) + GAP * len(SECTIONS)), background)
        top = 0
        for screenshot in screenshots:
            joined.paste(screenshot, ((WIDTH - screenshot.width) // 2, top))
            top += screenshot.height + GAP
        joined.quantize(128, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
            HERE / "report.png", optimize=True
        )
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
