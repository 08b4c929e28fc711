"""Packages that offer policies, or what else there are entry points for, installed for a test."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Install = Callable[..., None]
"""Installs a package, whose name comes first, with entry points: one line of text each."""


def installer(
    module: str, folder: Path, monkeypatch: pytest.MonkeyPatch, group: str = "topoplace.policies"
) -> Install:
    """Return what installs packages in `folder`, each with the text `module`, until the test ends."""
    monkeypatch.syspath_prepend(str(folder))

    def install(package: str, *lines: str) -> None:
        (folder / f"{package}.py").write_text(module)
        monkeypatch.delitem(sys.modules, package, raising=False)
        info = folder / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("\n".join((f"[{group}]", *lines, "")))

    return install
