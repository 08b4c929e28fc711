from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ray_nodes import Nodes


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    from ray_nodes import Nodes

    running = Nodes()
    yield running
    running.stop()
