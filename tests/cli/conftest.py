from __future__ import annotations

import pytest

from command_line import Call, Called
from topoplace import cli


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.setattr(cli, "_prepare_output", lambda: None)
    monkeypatch.setattr(cli, "_discard_output", lambda: None)

    def run(*arguments: object) -> Called:
        try:
            code = cli.main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = int(stop.code or 0)
        return Called(code, *capsys.readouterr())

    return run
