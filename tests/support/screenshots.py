"""`python -m tests.support.screenshots RUN COMPARED`: pictures of the reports in two run directories, into docs/img.

Three widths of the report of RUN (a telephone, a laptop and a wall), and the top of the report of COMPARED, which was
rendered with `--baseline`. Look at them and compress them (`pngquant --quality 85-100`) before you commit them.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.browser import CHROMIUM, NARROWEST, framed
from tests.support.paths import ROOT

IMAGES = ROOT / "docs" / "img"
#: Width by height: one screen, and a little more on a telephone.
SIZES = ((360, 1500), (1280, 1010), (1920, 960))
#: The report of an upgrade: its first section has the results that got worse.
UPGRADE = (1280, 1080)
#: Pictures are downloaded with every clone.
BYTES_MAX = 200_000


def shoot(page: Path, width: int, height: int, image: Path) -> int:
    """Take a picture of a page; returns its size in bytes. A page narrower than any window is put into a frame."""
    assert CHROMIUM is not None, "pictures need a chromium on PATH"
    url = (framed(page, width) if width < NARROWEST else page).as_uri()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        subprocess.run(
            [
                CHROMIUM,
                "--headless",
                "--disable-gpu",
                "--no-sandbox",
                "--hide-scrollbars",
                # On a busy machine tiles of the page may still be unpainted when the picture is taken.
                "--run-all-compositor-stages-before-draw",
                "--virtual-time-budget=5000",
                "--blink-settings=preferredColorScheme=1",
                f"--user-data-dir={profile}",
                f"--window-size={max(width, NARROWEST)},{height}",
                f"--screenshot={image}",
                url,
            ],
            capture_output=True,
            timeout=120,
            check=True,
        )
    return image.stat().st_size


def main() -> int:
    """Take every picture; 1 when one of them is too large to be committed."""
    run, compared = (Path(each).resolve() for each in sys.argv[1:3])
    wanted = [(run, f"report-{width}.png", width, height) for width, height in SIZES]
    wanted.append((compared, "upgrade.png", *UPGRADE))
    sizes = {
        name: shoot(directory / "report.html", width, height, IMAGES / name)
        for directory, name, width, height in wanted
    }
    for name, size in sizes.items():
        print(f"{name} {size / 1000:.0f} kB")  # noqa: T201 - the voice of a command
    return int(max(sizes.values()) > BYTES_MAX)


if __name__ == "__main__":
    sys.exit(main())
