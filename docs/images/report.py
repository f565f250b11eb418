"""Screenshots of ``dualogic report`` for docs/report.md, from a training of one's own; needs scikit-learn and a Chromium.

Call:
    python docs/images/report.py [--runs FOLDER]

Runs ``examples/recorded.py`` (three networks for 40 epochs each, under half a minute on one core), and writes
``report-desktop.png`` and ``report-phone.png`` beside this file.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

from dualogic.cli import main

EXAMPLE = Path(__file__).parents[2] / "examples" / "recorded.py"
SIZES = {"desktop": (1280, 2650), "phone": (390, 2340)}
COLOURS = 128  # enough for this page, in a third of the bytes
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def take(page: Path, out: Path, width: int, height: int) -> None:
    """A screenshot of a page in a window of some size."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        sys.exit("no Chromium found; on Debian type: apt-get install chromium-headless-shell")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={width},{height}"]
    subprocess.run([program, *options, f"--screenshot={out}", page.resolve().as_uri()], check=True, capture_output=True)
    with Image.open(out) as picture:
        picture.convert("RGB").quantize(COLOURS).save(out, optimize=True)


def run() -> None:
    """Train, report, and take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, help="folder of the runs; a temporary one by default")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        runs = given.runs or Path(made) / "digits" / "runs"
        page = Path(made) / "report.html"
        subprocess.run([sys.executable, str(EXAMPLE), "--runs", str(runs)], check=True)
        if main(["report", str(runs), "--out", str(page)]):
            sys.exit(1)
        for name, (width, height) in SIZES.items():
            take(page, Path(__file__).with_name(f"report-{name}.png"), width, height)


if __name__ == "__main__":
    run()
