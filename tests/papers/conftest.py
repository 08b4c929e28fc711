from __future__ import annotations

import pytest

from demonstration import Demonstration, demonstrate


@pytest.fixture(scope="session")
def demonstration(tmp_path_factory: pytest.TempPathFactory) -> Demonstration:
    """A dozen seconds: tests that ask for it all run in one process (`one_process.GROUPS`)."""
    return demonstrate(tmp_path_factory.mktemp("demo"))
