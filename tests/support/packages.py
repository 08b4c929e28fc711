"""The packages of the three distributions, as folders below the repository."""

from __future__ import annotations

from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).parents[2]
PACKAGES: Final = tuple(
    REPOSITORY / name for name in ("python/topoplace", "lab/topoplace_lab", "hosts/topoplace_hosts")
)


def own_name(path: Path) -> str:
    """Return the path of a file below the folder of its distribution, such as topoplace_lab/suite/page.py."""
    return next(
        path.relative_to(package.parent) for package in PACKAGES if path.is_relative_to(package)
    ).as_posix()
