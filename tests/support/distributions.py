"""Which distributions of topoplace are installed: `make test-core` runs the tests of the core without the others."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

MISSING: Final = [name for name in ("topoplace_lab", "topoplace_hosts") if find_spec(name) is None]
whole = pytest.mark.skipif(bool(MISSING), reason=f"needs {' and '.join(MISSING)}")
"""The mark of a test that asks for what the lab or the hosts bring, in a file of others that do not."""
_FOLDER: Final = Path(__file__).parent


def cannot_be_imported(path: Path, through: frozenset[Path] = frozenset()) -> bool:
    """Whether a file imports a distribution that is missing, itself or through a module of this folder.

    through: the files that led to this one.
    """
    text, through = path.read_text("utf-8"), through | {path}
    if any(re.search(rf"^(?:from|import) {name}\b", text, re.MULTILINE) for name in MISSING):
        return True
    named = re.findall(r"^(?:from|import) (\w+)\b", text, re.MULTILINE)
    return any(
        cannot_be_imported(file, through) for name in named for file in _files(name) if file not in through
    )


def _files(module: str) -> list[Path]:
    return [*_FOLDER.glob(f"{module}.py"), *_FOLDER.glob(f"{module}/*.py")]
