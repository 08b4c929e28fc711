"""Large topologies and texts: build and store 100,000 GPUs, read a megabyte in every format."""

from __future__ import annotations

import contextlib
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import topoplace as tp
from timing.measure import timed

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))
from mutations import FIXTURES, WAYS, format_of, refused_at_most, swollen

LEVELS = {"rack": 4, "leaf": 32, "spine": 512}


def cluster() -> tp.Topology:
    """Return 12,500 machines of 8 GPUs under three levels of a fabric."""
    return tp.Topology.cluster(tp.machines.get("dgx-h100"), fabric=tp.Fabric.regular(12_500, LEVELS))


def round_trip(topology: tp.Topology) -> tp.Topology:
    """Write a topology as JSON, read it back, compare the digests and return it."""
    again = tp.Topology.from_json(topology.to_json())
    assert again.digest() == topology.digest()
    return again


def megabytes_of_memory() -> float:
    """Return the peak memory of building the cluster, querying it and writing it."""
    tracemalloc.start()
    topology = cluster()
    round_trip(topology)
    assert topology.bandwidth(0, topology.num_gpus - 1) == 12.5
    assert len(topology.machine_of) == len(topology.local_index) == topology.num_gpus
    assert len(topology.gpus_of) == topology.num_machines
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def slowest_megabyte(path: Path) -> tuple[float, str]:
    """Return the CPU seconds of the slowest reading or refusal of an enlarged fixture, and how it was enlarged."""
    original, format = path.read_bytes(), format_of(path)
    refused_at_most(original, format)
    slowest = (0.0, "")
    for how in WAYS:
        data = swollen(original, how, 1 << 20)
        for parse in [tp.discovery.read] if format is None else [tp.discovery.read, format.parse]:

            def read(parse: Callable[[bytes], object] = parse, data: bytes = data) -> None:
                with contextlib.suppress(tp.TopologyError):
                    parse(data)

            slowest = max(slowest, (timed(read)[0], f"{path.name}, {how}"))
    return slowest


def test_build(benchmark: BenchmarkFixture) -> None:
    benchmark(cluster)


def test_json(benchmark: BenchmarkFixture) -> None:
    benchmark(round_trip, cluster())


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.name)
def test_read(benchmark: BenchmarkFixture, path: Path) -> None:
    benchmark(refused_at_most, path.read_bytes(), format_of(path))
