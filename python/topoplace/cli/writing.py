"""Output functions that several commands share: JSON, paths of pictures, and shortened lists."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_MAX_SHOWN = 20
"""Maximum number of items of a list that a table shows; JSON output has all items."""


def as_json(value: Any) -> None:
    """Print `value` as JSON; NaN and infinities, which JSON lacks, become null."""
    print(json.dumps(_finite(value), indent=2, allow_nan=False))


def wrote(picture: Path, *, beside_json: bool) -> None:
    """Print the path of a written picture; beside_json: to standard error, as standard output contains JSON."""
    print(f"wrote {picture}", file=sys.stderr if beside_json else sys.stdout)


def first_of(items: Sequence[object]) -> str:
    """Return the first 20 items, separated by commas, and the number of further items; "none" if there are no items."""
    more = f" and {len(items) - _MAX_SHOWN} more" if len(items) > _MAX_SHOWN else ""
    return (", ".join(map(str, items[:_MAX_SHOWN])) or "none") + more


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return None if isinstance(value, float) and not math.isfinite(value) else value
