"""Policies decide as they did before: the same GPUs, reasons and scores on the same clusters, ties included.

A change that is meant is kept by `python tools/write_decisions.py`, and stands in CHANGELOG.md.
"""

from __future__ import annotations

import pytest

import kept_decisions as kept
from decision_streams import STREAMS


@pytest.mark.parametrize("stream", STREAMS)
def test_the_streams_ask_what_they_asked(stream: str) -> None:
    assert kept.shortened(stream, kept.asked(stream)) == kept.read(kept.ASKED)[stream]


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("variant", kept.VARIANTS)
def test_a_policy_decides_as_before(variant: str, stream: str) -> None:
    assert kept.shortened(stream, kept.decisions(variant, stream)) == kept.read(variant)[stream]


def test_only_decisions_that_are_compared_are_kept() -> None:
    assert set(kept.FOLDER.iterdir()) == kept.paths()
