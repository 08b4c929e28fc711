from __future__ import annotations

import pytest

from command_line import Call, Called, exit_code_of
from topoplace import cli


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.setattr(cli, "_prepare_output", lambda: None)
    monkeypatch.setattr(cli, "_discard_output", lambda: None)

    def run(*arguments: object) -> Called:
        code = exit_code_of([str(argument) for argument in arguments])
        return Called(code, *capsys.readouterr())

    return run
