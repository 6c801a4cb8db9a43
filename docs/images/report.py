"""Draws report.png: the page of a run on a stream whose law changes twice, as a browser shows it.

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


def stream(path: Path) -> None:
    """Sensors of a plant whose load follows other waves from each third on."""
    draw = random.Random(3)
    with open(path, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["wind", "rain", "sun", "load"])
        for n in range(ROWS):
            wind, rain, sun = (round(draw.gauss(0, 1), 3) for _ in range(3))
            regime = 3 * n // ROWS
            laws = (3 * wind + rain, 4 * math.sin(2 * wind) * sun, 3 * abs(wind) - 2 * (rain > 0))
            table.writerow([wind, rain, sun, round(20 + laws[regime] + draw.gauss(0, 0.3), 3)])


def main() -> None:
    """Run, show, cut out and put together."""
    folder = Path(tempfile.mkdtemp())
    try:
        stream(folder / "plant.csv")
        words = ["kernelbank", "run", "plant.csv", "--target", "load", "--report", "page.html"]
        subprocess.run([sys.executable, "-m", *words, "--quiet"], cwd=folder, check=True)
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
            )
            page = chromium.new_page(viewport={"width": WIDTH, "height": 900})
            page.goto((folder / "page.html").as_uri())
            pieces = []
            for place in ("header", "#error", "#weights"):
                page.locator(place).first.screenshot(path=folder / "piece.png")
                pieces.append(Image.open(folder / "piece.png").convert("RGB"))
            ground = pieces[0].getpixel((0, 0))
            chromium.close()
        pieces[2] = pieces[2].crop((0, 0, pieces[2].width, 780))
        height = sum(piece.height + 20 for piece in pieces)
        whole = Image.new("RGB", (WIDTH, height), ground)
        top = 0
        for piece in pieces:
            whole.paste(piece, ((WIDTH - piece.width) // 2, top))
            top += piece.height + 20
        whole.quantize(128, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
            HERE / "report.png", optimize=True
        )
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
