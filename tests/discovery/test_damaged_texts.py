"""Every damage listed in the folder `damaged` is refused, with a message that says where and why.

Each file there names a reader, a sample of tests/data, and damages: the first `old` in the sample becomes `new`.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from refusals import assert_refused

DAMAGED = Path(__file__).parent / "damaged"
TABLES = {path.stem: tomllib.loads(path.read_text("utf-8")) for path in sorted(DAMAGED.glob("*.toml"))}


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        pytest.param(name, damage, id=f"{name} {number}")
        for name, table in TABLES.items()
        for number, damage in enumerate(table["damage"], 1)
    ],
)
def test_a_damaged_text_is_refused(name: str, damage: dict[str, str], repository: Path) -> None:
    reader = pytest.importorskip(TABLES[name]["reader"], exc_type=ModuleNotFoundError)
    assert_refused(
        reader.parse, (repository / "tests/data" / TABLES[name]["sample"]).read_text("utf-8"), **damage
    )
