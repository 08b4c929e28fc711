"""Pages in Chromium, where it is installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def dumped(address: str, folder: Path, width: int, flags: tuple[str, ...] = (), height: int = 1600) -> str:
    """Return the elements of a page after its scripts have run. folder: for the browser's profile."""
    assert CHROMIUM
    command = [
        *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"),
        *(f"--window-size={width},{height}", "--virtual-time-budget=60000", "--dump-dom", *flags, address),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
