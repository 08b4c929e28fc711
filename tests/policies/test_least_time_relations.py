"""What must not make answers of the policy least-time slower: other numbers, more machines, faster links, weights."""

from __future__ import annotations

from collections.abc import Sequence

import hypothesis.strategies as st
import pytest
from hypothesis import assume, given

import topoplace as tp
from topoplace import LinkKind

Row = tuple[int, int, float, LinkKind]
KINDS = {LinkKind.SYSTEM: 6.0, LinkKind.HOST: 10.0, LinkKind.PCIE: 12.0, LinkKind.NVLINK2: 25.0}
SLACK = 1.0101
"""Times within 1 % count as equal."""


@st.composite
def links(draw: st.DrawFn, size: int) -> list[Row]:
    """Draw the class of each pair: the same PCIe switch, socket or neither, and NVLinks beside these."""
    switch = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    linked = draw(st.sets(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)), max_size=size))
    rows: list[Row] = []
    for v in range(size):
        for u in range(v):
            near = LinkKind.HOST if switch[u] // 2 == switch[v] // 2 else LinkKind.SYSTEM
            kind = LinkKind.PCIE if switch[u] == switch[v] else near
            kind = LinkKind.NVLINK2 if (u, v) in linked else kind
            rows.append((u, v, KINDS[kind], kind))
    return rows


@st.composite
def jobs(draw: st.DrawFn, most: int = 4, *, planned: bool = True) -> tp.JobGraph:
    """Jobs that send along edges, or whose library plans rings, of up to `most` tasks.

    planned: False for no rings, as those that the library plans on a machine depend on the numbers of its GPUs.
    """
    size = draw(st.integers(2, most))
    if planned and draw(st.booleans()):
        return draw(st.sampled_from([tp.JobGraph.ring, tp.JobGraph.allreduce, tp.JobGraph.chain]))(size)
    pairs = [(a, b) for b in range(size) for a in range(b)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, min_size=1))
    return tp.JobGraph.from_edges(size, [(a, b, draw(st.sampled_from([1.0, 2.0, 5.0]))) for a, b in chosen])


def time_of(job: tp.JobGraph, topology: tp.Topology, busy: Sequence[int] = ()) -> float | None:
    """Return the time of the placement; None if the job has to wait."""
    cluster = tp.Cluster(topology)
    if busy:
        cluster.allocate("busy", busy)
    placement = tp.place(job, cluster)
    return placement and placement.time


def is_no_slower(found: float | None, than: float | None) -> bool:
    return than is None or (found is not None and found <= than * SLACK)


def machine(rows: Sequence[Row], size: int, sockets: Sequence[int] | None = None) -> tp.Topology:
    return tp.Topology.from_links(size, rows, sockets=sockets)


@given(st.data(), jobs(planned=False), st.integers(2, 6))
def test_numbers_of_gpus_do_not_count(data: st.DataObject, job: tp.JobGraph, size: int) -> None:
    rows = data.draw(links(size))
    new = data.draw(st.permutations(range(size)))
    busy = data.draw(st.lists(st.integers(0, size - 1), unique=True, max_size=2))
    renumbered = [(*sorted((new[u], new[v])), gb, kind) for u, v, gb, kind in rows]
    one = time_of(job, machine(rows, size), busy)
    other = time_of(job, machine(renumbered, size), [new[gpu] for gpu in busy])  # type: ignore[arg-type]
    assert is_no_slower(one, other)
    assert is_no_slower(other, one)


@st.composite
def clusters(draw: st.DrawFn, most: int = 4) -> tuple[list[tp.Topology], list[str]]:
    """Two to `most` machines of two to as many GPUs, each in a rack."""
    sizes = draw(st.lists(st.integers(2, most), min_size=2, max_size=most))
    made = [machine(draw(links(size)), size) for size in sizes]
    return made, draw(st.lists(st.sampled_from("ab"), min_size=len(sizes), max_size=len(sizes)))


def joined(machines: Sequence[tp.Topology], racks: Sequence[str], uplink: float = 40.0) -> tp.Topology:
    names = tuple(f"m{i}" for i in range(len(machines)))
    fabric = tp.Fabric(
        names,
        (tp.Level("rack", tuple(racks), 50.0), tp.Level("spine", ("s",) * len(machines), uplink)),
    )
    return tp.Topology.cluster(dict(zip(names, machines, strict=True)), fabric=fabric)


@given(clusters(), jobs(4), st.data())
def test_numbers_of_machines_do_not_count(
    cluster: tuple[list[tp.Topology], list[str]], job: tp.JobGraph, data: st.DataObject
) -> None:
    machines, racks = cluster
    order = data.draw(st.permutations(range(len(machines))))
    one = time_of(job, joined(machines, racks))
    other = time_of(job, joined([machines[i] for i in order], [racks[i] for i in order]))
    assert is_no_slower(one, other)
    assert is_no_slower(other, one)


@given(clusters(3), jobs(4), st.data())
def test_an_idle_machine_more_makes_no_job_slower(
    cluster: tuple[list[tp.Topology], list[str]], job: tp.JobGraph, data: st.DataObject
) -> None:
    machines, racks = cluster
    size = data.draw(st.integers(2, 3))
    more = machine(data.draw(links(size)), size)
    before = time_of(job, joined(machines, racks))
    is_split = all(one.num_gpus < job.num_tasks for one in machines)
    assume(not is_split or size < job.num_tasks)  # one machine that has room for the job has it whole
    at = data.draw(st.integers(0, len(machines)))
    added = joined(
        [*machines[:at], more, *machines[at:]],
        [*racks[:at], data.draw(st.sampled_from("abc")), *racks[at:]],
    )
    assert is_no_slower(time_of(job, added), before)


@given(st.data(), jobs(), st.integers(2, 6))
def test_a_faster_link_makes_no_job_slower(data: st.DataObject, job: tp.JobGraph, size: int) -> None:
    rows = data.draw(links(size))
    at = data.draw(st.integers(0, len(rows) - 1))
    u, v, gb_per_s, kind = rows[at]
    faster = [
        *rows[:at],
        (u, v, gb_per_s * data.draw(st.sampled_from([1.1, 2.0, 4.0])), kind),
        *rows[at + 1 :],
    ]
    assert is_no_slower(time_of(job, machine(faster, size)), time_of(job, machine(rows, size)))


@given(clusters(), jobs(5), st.sampled_from([1.1, 2.0, 10.0]))
def test_a_faster_uplink_makes_no_job_slower(
    cluster: tuple[list[tp.Topology], list[str]], job: tp.JobGraph, factor: float
) -> None:
    machines, racks = cluster
    slow, fast = (time_of(job, joined(machines, racks, 4.0 * times)) for times in (1.0, factor))
    assert is_no_slower(fast, slow)


@given(clusters(), jobs(5), st.sampled_from([0.001, 0.5, 3.0, 1000.0]))
def test_scaled_weights_scale_the_time(
    cluster: tuple[list[tp.Topology], list[str]], job: tp.JobGraph, factor: float
) -> None:
    topology = joined(*cluster)
    plain = tp.JobGraph.from_edges(job.num_tasks, job.edges)
    scaled = tp.JobGraph.from_edges(job.num_tasks, [(a, b, w * factor) for a, b, w in job.edges])
    one, other = time_of(plain, topology), time_of(scaled, topology)
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert other / factor == pytest.approx(one, rel=SLACK - 1)


@given(clusters(), st.integers(1, 6), st.data())
def test_the_answer_depends_on_the_state_alone(
    cluster: tuple[list[tp.Topology], list[str]], size: int, data: st.DataObject
) -> None:
    """However the cluster came to have these GPUs free."""
    topology = joined(*cluster)
    gpus = st.integers(0, topology.num_gpus - 1)
    taken = data.draw(st.lists(gpus, unique=True, max_size=5))
    one, other = tp.Cluster(topology), tp.Cluster(topology)
    for gpu in taken:
        one.allocate(str(gpu), [gpu])
    for gpu in data.draw(st.lists(gpus, unique=True, max_size=3)):
        other.allocate("for a while", [gpu])
        tp.place(tp.JobGraph.ring(size), other)
        other.release("for a while")
    for gpu in reversed(taken):
        other.allocate(str(gpu), [gpu])
        tp.place(tp.JobGraph.ring(size), other)
    for job in (tp.JobGraph.ring(size), tp.JobGraph.independent(size)):
        found = [tp.place(job, state) for state in (one, other)]
        assert [placement and placement.gpus for placement in found[:1]] == [
            placement and placement.gpus for placement in found[1:]
        ]
