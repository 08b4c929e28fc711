"""Logs: a line of JSON for each event, whole even if several threads write."""

from __future__ import annotations

import io
import json
import sys

import pytest

from topoplace_hosts import log


def test_an_event_is_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    class Noted(io.StringIO):
        def write(self, text: str) -> int:
            written.append(text)
            return len(text)

    written: list[str] = []
    monkeypatch.setattr(sys, "stderr", Noted())
    log.to_stderr("bound", pod="a\nb")
    (line,) = written
    assert line.endswith("\n")
    assert json.loads(line)["pod"] == "a\nb"
