"""Render what notebooks show to PNG, to be looked at: python docs/render.py FOLDER

Writes the static pictures, and the HTML of records and pages as a headless Chromium shows it
(from the package manager; without one only the HTML files are written).
"""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

import gaussmech as gm

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
# two masses on a straight massless rod, at 1 rad, with its velocity terms
ROD = (
    np.diag([1.0, 1.0, 2.5, 2.5]),
    [0, -9.81, 0, -24.525],
    [[0.34, -0.22, 0, 0], [0, 0, 0.935, -0.605], [-0.605, -0.935, 0.22, 0.34]],
    [-0.04, -0.3, 0],
)
NAMES = {"rows": ["inner", "outer", "straight"], "coordinates": ["x1", "y1", "x2", "y2"]}
TABLE = ([[1, 0], [0, 1]], [3, -10], [[0, 1], [0, 1]], [0, 0])
SLOPE = ([[1, 0.3], [0.3, 2]], [3, -8], [[1, 1]], [0])


def records():
    """Name and record of everything that a notebook shows as a table."""
    qdd = gm.acceleration(*ROD)
    wrong = gm.acceleration(*ROD[:3], -np.array(ROD[3]))
    yield "motion", gm.solve(*ROD, names=NAMES)
    yield "cross_check", gm.cross_check(*TABLE)
    yield "cross_check_masses", gm.cross_check(np.diag([1, 1e-9, 1]), [1, 2, 3], [[1, 1, 0]], [1])
    yield "report", gm.principles.report(*ROD, qdd=qdd, names=NAMES)
    yield "report_wrong", gm.principles.report(*ROD, qdd=wrong, names=NAMES)


def pictures():
    """Name, problem and options of every picture."""
    yield "zwang", SLOPE, {}
    yield "zwang_nonideal", (*SLOPE, [1, -1.5]), {}
    yield "zwang_rod", ROD, {"names": NAMES}
    yield "zwang_section", ROD, {"plane": ("x1", "y2"), "names": NAMES}
    yield "zwang_singular", ([[1, 0], [0, 0]], [0, 5], [[1, -1]], [0]), {}


def screenshot(page, width, height):
    if BROWSER is None:
        return
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    size = [f"--window-size={width},{height}", f"--screenshot={page.with_suffix('.page.png')}"]
    subprocess.run([*command, *size, page.as_uri()], capture_output=True, timeout=120, check=True)


def main(folder):
    folder = Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for name, record in records():
        page = folder / f"{name}.html"
        style = "<meta charset='utf-8'><body style='font:14px sans-serif;background:white'>"
        page.write_text(style + record._repr_html_(), encoding="utf-8")
        screenshot(page, 1250, 330)
    for name, problem, options in pictures():
        gm.plot.zwang(*problem, **options, path=folder / f"{name}.png")
        page = folder / f"{name}.html"
        gm.plot.zwang(*problem, **options, path=page)
        screenshot(page, 760, 760)
    print(*sorted(p.name for p in folder.glob("*.png")), sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
