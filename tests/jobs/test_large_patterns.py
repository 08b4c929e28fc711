"""Large objects are built in blocks: the interpreter, which handles Ctrl-C, runs between any two of them."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import topoplace as tp
from topoplace.topology import machine_links

LIBRARY = str(Path(tp.__file__).parent)
BLOCK_OF_EDGES = 1 << 16
BLOCK_OF_PAIRS = 1 << 20


def lines_run(build: Callable[[], object]) -> int:
    """Return how many lines of the library run while `build` does: between two of them, Ctrl-C is noticed."""
    lines = 0

    def count(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal lines
        lines += event == "line" and frame.f_code.co_filename.startswith(LIBRARY)
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        build()
    finally:
        sys.settrace(before)
    return lines


@pytest.mark.parametrize(
    "build",
    [
        lambda: tp.JobGraph.clique(1200),
        lambda: tp.JobGraph.mesh((60, 60, 60)),
        lambda: tp.JobGraph.torus((2,) * 16),
        lambda: tp.JobGraph.ring(1 << 20),
        lambda: tp.JobGraph.from_matrix(1.0 - np.eye(1200)),
    ],
    ids=["clique", "mesh", "torus", "ring", "matrix"],
)
def test_edges_are_built_in_blocks(build: Callable[[], tp.JobGraph]) -> None:
    num_edges = len(build().edges)
    lines = lines_run(build)
    assert num_edges / BLOCK_OF_EDGES < lines < num_edges / 1000


@pytest.mark.parametrize(
    "topology",
    [
        tp.Topology.from_links(4000, [(0, 1, 50.0)]),
        tp.Topology.cluster([tp.machines.get("dgx1-v100")] * 500),
    ],
    ids=["flat", "cluster"],
)
def test_matrices_are_filled_in_blocks(topology: tp.Topology, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_links, "_BLOCK", 4000)
    lines = lines_run(topology.bandwidth_matrix)
    assert lines > 4000


def test_grids_have_the_edges_that_they_always_had() -> None:
    for dims in itertools.product(range(1, 5), repeat=3):
        for closed, build in ((False, tp.JobGraph.mesh), (True, tp.JobGraph.torus)):
            assert {(a, b) for a, b, _ in build(dims).edges} == set(edges_by_definition(dims, closed))
            assert list(build(dims).edges) == sorted(set(build(dims).edges))


def edges_by_definition(dims: tuple[int, ...], closed: bool) -> list[tuple[int, int]]:
    number = {at: i for i, at in enumerate(itertools.product(*map(range, dims)))}
    pairs: list[tuple[int, int]] = []
    for at, i in number.items():
        for axis, size in enumerate(dims):
            step = (at[axis] + 1) % size if closed else at[axis] + 1
            other = number.get((*at[:axis], step, *at[axis + 1 :]))
            if other is not None and other != i:
                pairs.append((min(i, other), max(i, other)))
    return pairs


def test_graphs_of_large_jobs_have_their_edges() -> None:
    job = tp.JobGraph.mesh((300, 300))
    assert job.graph.num_edges == len(job.edges) == 2 * 300 * 299
    weighted = tp.JobGraph.from_edges(3, [(0, 1, 2.5), (2, 1)])
    assert weighted.graph.num_edges == 2
    assert weighted.edges == ((0, 1, 2.5), (1, 2, 1.0))
