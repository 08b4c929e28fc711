"""Logs of batch systems, broken or swollen, are read or refused."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batch_logs import PBS, SWF
from mutations import WAYS, broken, swollen
from topoplace.simulate import Workload

logs = pytest.mark.parametrize(
    ("log", "read"),
    [(SWF, Workload.from_swf), (PBS, partial(Workload.from_pbs, without_gpus=True))],
    ids=["swf", "pbs"],
)


@logs
@given(data=st.data())
def test_broken_logs_are_read_or_refused(
    log: str, read: Callable[[str], Workload], data: st.DataObject
) -> None:
    text = data.draw(broken(log.encode())).decode("utf-8", "replace")
    with contextlib.suppress(ValueError):
        read(text)


@logs
@pytest.mark.parametrize("how", WAYS)
def test_swollen_logs_are_read_or_refused(log: str, read: Callable[[str], Workload], how: str) -> None:
    with contextlib.suppress(ValueError):
        read(swollen(log.encode(), how).decode())
