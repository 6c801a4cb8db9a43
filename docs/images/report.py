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
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
ROWS, WIDTH = 12_000, 1100


def write_stream(path: Path) -> None:
    """Sensors of a plant whose load depends on them in another way in each third."""
    rng = random.Random(3)
    with open(path, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["wind", "rain", "sun", "load"])
        for n in range(ROWS):
            wind, rain, sun = (round(rng.gauss(0, 1), 3) for _ in range(3))
            third = 3 * n // ROWS
            loads = (3 * wind + rain, 4 * math.sin(2 * wind) * sun, 3 * abs(wind) - 2 * (rain > 0))
            table.writerow([wind, rain, sun, round(20 + loads[third] + rng.gauss(0, 0.3), 3)])


def main() -> None:
    """Run, take screenshots of some sections, and join them."""
    folder = Path(tempfile.mkdtemp())
    try:
        write_stream(folder / "plant.csv")
        words = ["kernelbank", "run", "plant.csv", "--target", "load", "--report", "page.html"]
        subprocess.run([sys.executable, "-m", *words, "--quiet"], cwd=folder, check=True)
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
            )
            page = chromium.new_page(viewport={"width": WIDTH, "height": 900})
            page.goto((folder / "page.html").as_uri())
            screenshots = []
            for selector in ("header", "#error", "#weights"):
                page.locator(selector).first.screenshot(path=folder / "section.png")
                screenshots.append(Image.open(folder / "section.png").convert("RGB"))
            background = screenshots[0].getpixel((0, 0))
            chromium.close()
        screenshots[2] = screenshots[2].crop((0, 0, screenshots[2].width, 780))
        height = sum(screenshot.height + 20 for screenshot in screenshots)
        joined = Image.new("RGB", (WIDTH, height), background)
        top = 0
        for screenshot in screenshots:
            joined.paste(screenshot, ((WIDTH - screenshot.width) // 2, top))
            top += screenshot.height + 20
        joined.quantize(128, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
            HERE / "report.png", optimize=True
        )
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
