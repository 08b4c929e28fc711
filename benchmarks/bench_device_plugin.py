"""A kubelet's question through the socket: `pytest benchmarks/bench_device_plugin.py --benchmark-enable`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from kubelet import Kubelet, PluginCalls
from topoplace import machines
from topoplace_hosts.kubernetes.device_plugin import DevicePlugin, PreferredAllocation

NAMES = ("dgx1-v100", "dgx-h100", "dgx2")


@pytest.fixture(params=NAMES)
def calls(request: pytest.FixtureRequest) -> Iterator[PluginCalls]:
    stop = Event()
    with tempfile.TemporaryDirectory() as name, Kubelet(name) as kubelet:
        plugin = DevicePlugin(machines.get(request.param), directory=Path(name))
        thread = Thread(target=plugin.run, args=(stop,))
        thread.start()
        kubelet.registrations.get(timeout=30)
        with kubelet.plugin("topoplace.sock") as connected:
            yield connected
        stop.set()
        thread.join()


def test_preferred_allocation_through_the_socket(benchmark: Any, calls: PluginCalls) -> None:
    available = [str(gpu) for gpu in range(8)]
    assert len(benchmark(calls.preferred, (available, [], 4))[0]) == 4


@pytest.mark.parametrize("name", NAMES)
def test_the_choice_alone(benchmark: Any, name: str) -> None:
    preferred = PreferredAllocation(machines.get(name))
    available = [str(gpu) for gpu in range(8)]
    assert len(benchmark(preferred.choose, available, [], 4)) == 4
