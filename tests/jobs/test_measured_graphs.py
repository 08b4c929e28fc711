"""Job graphs from what a job did: the traffic between its tasks, and NCCL's log."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp

Ring = list[int]


def whole(rings: list[Ring], ranks: int) -> str:
    """What rank 0 prints."""
    lines = [f"host:7:9 [0] NCCL INFO comm 0x7f00 rank 0 nranks {ranks} cudaDev 0 nvmlDev 0 - Init COMPLETE"]
    for channel, ring in enumerate(rings):
        shown = "".join(f"{rank:4d}" for rank in ring[:20])
        lines.append(f"host:7:9 [0] NCCL INFO Channel {channel:02d}/{len(rings):02d} : {shown}")
    return "\n".join(lines)


def by_rank(rings: list[Ring]) -> str:
    """What every rank prints about its neighbours."""
    lines = []
    for channel, ring in enumerate(rings):
        for i, rank in enumerate(ring):
            before, after = ring[i - 1], ring[(i + 1) % len(ring)]
            lines.append(
                f"host:{rank}:9 [{rank}] NCCL INFO Ring {channel:02d} : {before} -> {rank} -> {after}"
            )
    return "\n".join(lines)


@st.composite
def rings(draw: st.DrawFn) -> list[Ring]:
    ranks = draw(st.integers(2, 33))
    return draw(st.lists(st.permutations(range(ranks)), min_size=1, max_size=4))


@given(rings())
def test_rings_of_a_log_are_edges_weighted_by_channels(given_rings: list[Ring]) -> None:
    ranks = len(given_rings[0])
    expected: dict[tuple[int, int], float] = {}
    for ring in given_rings:
        for a, b in {(min(a, b), max(a, b)) for a, b in zip(ring, [*ring[1:], ring[0]], strict=True)}:
            expected[a, b] = expected.get((a, b), 0.0) + 1.0
    job = tp.JobGraph.from_nccl_log(by_rank(given_rings))
    assert job.num_tasks == ranks
    assert {(a, b): weight for a, b, weight in job.edges} == expected
    log = whole(given_rings, ranks)
    if ranks <= 20:
        assert tp.JobGraph.from_nccl_log(log.encode()) == job
    else:  # rank 0 prints 20 ranks of a ring
        with pytest.raises(tp.JobGraphError, match="no rings of NCCL that are complete"):
            tp.JobGraph.from_nccl_log(log)
        assert tp.JobGraph.from_nccl_log(f"{log}\n{by_rank(given_rings)}") == job


TREES = """
a:1:1 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1 [1] -1/-1/-1->0->3
a:2:1 [1] NCCL INFO Trees [0] 2/3/-1->1->0 [1] -1/-1/-1->1->2
a:3:1 [2] NCCL INFO Trees [0] -1/-1/-1->2->1 [1] 1/3/-1->2->-1
a:4:1 [3] NCCL INFO Trees [0] -1/-1/-1->3->1 [1] 0/-1/-1->3->2
"""
OLD_TREES = """
a:1:1 [0] NCCL INFO Trees [0] -1->0->1/-1/-1
a:2:1 [1] NCCL INFO Trees [0] 0->1->2/-1/-1
a:3:1 [2] NCCL INFO Trees [0] 1->2->-1/-1/-1
"""


def test_trees_of_a_log() -> None:
    job = tp.JobGraph.from_nccl_log(TREES, pattern="tree")
    assert job.edges == ((0, 1, 1.0), (0, 3, 1.0), (1, 2, 2.0), (1, 3, 1.0), (2, 3, 1.0))
    assert tp.JobGraph.from_nccl_log(OLD_TREES, pattern="tree").edges == tp.JobGraph.chain(3).edges


@pytest.mark.parametrize(
    ("text", "pattern", "message"),
    [
        ("x", "ring", "text has no rings of NCCL: NCCL_DEBUG=INFO prints them"),
        (TREES, "ring", "text has no rings"),
        (by_rank([[0, 1]]), "tree", "text has no trees"),
        (by_rank([[0, 1]]), "star", "pattern = 'star'"),
        (
            by_rank([[0, 1, 2]]) + "\n" + by_rank([[0, 2, 1]]),
            "ring",
            "line 4: rank [012] has other neighbours than before",
        ),
        (whole([[0, 1, 2]], 3) + "\n" + whole([[0, 2, 1]], 3), "ring", "line 4: channel 0 has another ring"),
        (whole([[0, 1]], 2) + "\n" + whole([[0, 1]], 4), "ring", "communicators of 2, 4 ranks"),
        (by_rank([[0, 1, 2, 3]]).rsplit("\n", 2)[0] + "\nx nranks 5", "ring", "text lacks rank 4 of 5"),
        (by_rank([[0, 7]]), "ring", "text lacks rank 1 of 8"),
        (whole([[0, 1]], 999_999_999), "ring", "a communicator of 999999999 ranks"),
        (by_rank([[0, 1, 2, 3]]).rsplit("\n", 2)[0], "ring", "channel 0 is not one ring of 4 ranks"),
        (
            "x NCCL INFO Ring 00 : 0 -> 1 -> 2\nx NCCL INFO Ring 00 : 3 -> 1 -> 2",
            "ring",
            "line 2|channel 0 is not",
        ),
        ("\n".join(TREES.split("\n")[2:4]), "tree", r"channel \d is not one tree of 4 ranks"),
        ("x NCCL INFO Trees [0] " + "1" * 5000, "tree", "text has no trees"),
        (by_rank([[0, 7]]) + "\nx nranks 2", "ring", "rank 7 is not below the number of ranks, 2"),
    ],
)
def test_what_a_log_lacks_is_named(text: str, pattern: str, message: str) -> None:
    with pytest.raises(tp.JobGraphError, match=message):
        tp.JobGraph.from_nccl_log(text, pattern=pattern)


@given(st.text(alphabet="NCL INFO:->/-0123456789[]Treesing\n", max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    for pattern in ("ring", "tree"):
        with pytest.raises(tp.JobGraphError):
            tp.JobGraph.from_nccl_log(f"x NCCL INFO {text}", pattern=pattern)


def test_traffic_in_both_directions_adds_up() -> None:
    sent = np.array([[9e9, 3e6, 0.0], [1e6, 0.0, 8e6], [0.0, 0.0, 0.0]])
    job = tp.JobGraph.from_traffic(sent)
    assert job.edges == ((0, 1, 0.5), (1, 2, 1.0))
    assert tp.JobGraph.from_traffic(sent, least_share=0.6).edges == ((1, 2, 1.0),)
    assert tp.JobGraph.from_traffic(np.zeros((2, 2))).edges == ()
    assert tp.JobGraph.from_traffic(sent * 1e290).edges == job.edges


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        ([[0.0, -1.0], [0.0, 0.0]], r"sent\[0, 1\] = -1 is negative"),
        ([[0.0, 1.0]], r"sent has shape \(1, 2\)"),
        ([[0.0, float("nan")], [0.0, 0.0]], r"sent\[0, 1\] = nan"),
        (np.zeros((0, 0)), "the size of sent = 0"),
    ],
)
def test_traffic_that_makes_no_sense_is_refused(sent: object, message: str) -> None:
    with pytest.raises(tp.JobGraphError, match=message):
        tp.JobGraph.from_traffic(sent)  # type: ignore[arg-type]
    with pytest.raises(tp.JobGraphError, match="least_share = 2"):
        tp.JobGraph.from_traffic([[0.0]], least_share=2.0)


def test_trees_that_nccl_cut_off_are_left_out() -> None:
    """A list of trees ends after about a thousand characters, perhaps within a number."""

    def line(rank: int, up: int, down: int) -> str:
        entries = "".join(f" [{channel}] {down}/-1/-1->{rank}->{up}" for channel in range(100))
        return f"x NCCL INFO Trees{entries}"[: 1040 + rank]

    job = tp.JobGraph.from_nccl_log(
        "\n".join([line(0, -1, 1), line(1, 0, 2), line(2, 1, -1)]), pattern="tree"
    )
    assert [(a, b) for a, b, _ in job.edges] == [(0, 1), (1, 2)]
    weights = {weight for *_, weight in job.edges}
    assert len(weights) == 1
    assert 30 < weights.pop() < 60
    both = "x NCCL INFO Trees [0] 1/-1/-1->0->-1|-1->0->1/-1/-1\nx NCCL INFO Trees [0] -1/-1/-1->1->0|0->1->-1/-1/-1"
    assert tp.JobGraph.from_nccl_log(both, pattern="tree").edges == ((0, 1, 1.0),)


def test_a_cut_ring_is_refused_by_channel_and_rank() -> None:
    ring = " ".join(map(str, range(20)))
    with pytest.raises(
        tp.JobGraphError, match="channel 0 shows 20 ranks and ends at rank 19: NCCL cuts it off after"
    ):
        tp.JobGraph.from_nccl_log(f"h:1:2 [0] NCCL INFO Channel 00/01 : {ring}\n")
    with pytest.raises(
        tp.JobGraphError, match="channel 0 shows 3 ranks of 4 and ends at rank 2: it is cut off"
    ):
        tp.JobGraph.from_nccl_log("NCCL INFO comm rank 0 nranks 4\nNCCL INFO Channel 00/01 : 0 1 2\n")


def operation(rank: int, name: str, count: int, datatype: int, *, ranks: int = 3, root: int = 0) -> str:
    """What a rank prints about an operation, with NCCL_DEBUG_SUBSYS=COLL."""
    return (
        f"host:{rank}:9 [{rank}] NCCL INFO {name}: opCount 1a sendbuff 0x7f00 recvbuff (nil) count {count} datatype "
        f"{datatype} op 0 root {root} comm 0x55{rank} [nranks={ranks}] stream 0x1"
    )


def test_operations_of_a_log_are_collectives() -> None:
    rings = by_rank([[0, 1, 2]])
    everyone = (0, 1, 2)
    lines = [
        *(operation(rank, "AllReduce", 10**9, 7) for rank in everyone for _ in range(2)),  # float
        *(operation(rank, "AllGather", 10**8, 9) for rank in everyone),  # bfloat16, of each rank's part
        *(operation(rank, "ReduceScatter", 10**8, 6) for rank in everyone),
        *(operation(rank, "AlltoAll", 10**8, 0) for rank in everyone),
        *(operation(rank, "Broadcast", 10**9, 8, root=2) for rank in everyone),
        operation(1, "AllReduce", 10**9, 7),  # only one rank's log goes so far
        operation(1, "Broadcast", 0, 8),
    ]
    job = tp.JobGraph.from_nccl_log("\n".join([rings, *lines]))
    assert job.edges == tp.JobGraph.from_nccl_log(rings).edges
    assert set(job.collectives) == {
        tp.Collective("all_reduce", everyone, 12.0),
        tp.Collective("all_gather", everyone, 0.6),
        tp.Collective("reduce_scatter", everyone, 0.6),
        tp.Collective("all_to_all", everyone, 0.3),
        tp.Collective("broadcast", (2, 0, 1), 8.0),
    }
    assert tp.JobGraph.from_json(job.to_json()) == job


def test_operations_that_are_not_read_are_noted() -> None:
    lines = [by_rank([[0, 1, 2]]), operation(0, "Send", 8, 0, root=1), operation(1, "Recv", 8, 0)]
    lines.append("host:0:9 [0] NCCL INFO AllReduce: opCount 3 in another form")
    with pytest.warns(
        UserWarning, match="operations of the log that are not read: 1 AllReduce, 1 Recv, 1 Send"
    ):
        job = tp.JobGraph.from_nccl_log("\n".join(lines))
    assert {one.kind for one in job.collectives} == {"send"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (operation(0, "AllReduce", 8, 12), r"line 4: datatype 12 is none of NCCL's 0\.\.11"),
        (
            operation(0, "AllReduce", 8, 7, ranks=2),
            "line 4: a communicator of 2 ranks, not 3; the text must be",
        ),
        (operation(0, "Broadcast", 8, 7, root=3), r"line 4: root 3 is not in 0\.\.2"),
    ],
)
def test_operations_that_make_no_sense_are_refused_by_line(line: str, message: str) -> None:
    with pytest.raises(tp.JobGraphError, match=message):
        tp.JobGraph.from_nccl_log(f"{by_rank([[0, 1, 2]])}\n{line}")
