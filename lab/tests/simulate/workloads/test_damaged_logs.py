"""Logs of batch systems and traces, broken or swollen, are read or refused."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batch_logs import PBS, SACCT, SWF
from mutations import WAYS, broken, swollen
from thoroughness import thorough
from topoplace_lab.simulate import Workload
from traces import HELIOS, KALOS, OPENB, PAI, PHILLY

logs = pytest.mark.parametrize(
    ("log", "read"),
    [
        (SWF, Workload.from_swf),
        (PBS, partial(Workload.from_pbs, without_gpus=True)),
        (SACCT, partial(Workload.from_sacct, without_gpus=True)),
        (OPENB, partial(Workload.from_trace, without_gpus=True, pattern="ring")),
        (PAI, partial(Workload.from_trace, skip_bad_rows=True, pattern="ring")),
        (HELIOS, partial(Workload.from_trace, duration=1, pattern="ring")),
        (KALOS, partial(Workload.from_trace, skip_bad_rows=True, pattern="ring")),
        (json.dumps(PHILLY), partial(Workload.from_philly, skip_bad_rows=True, pattern="ring")),
    ],
    ids=["swf", "pbs", "sacct", "openb", "pai", "helios", "kalos", "philly"],
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
        read(swollen(log.encode(), how, thorough(1 << 20, 1 << 17)).decode())
