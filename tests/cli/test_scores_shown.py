"""`topoplace place` shows a prediction of eq. 2 only where it is a bandwidth, whichever policy decides."""

from __future__ import annotations

import re

import pytest

import topoplace as tp
from command_line import Call
from topoplace.objectives.effective_bandwidth import is_outside_range


def heads(out: str) -> list[str]:
    """The heads of the table of candidates."""
    return re.split(r"  +", next(line for line in out.splitlines() if line.startswith("GPUs by task")))


@pytest.mark.parametrize(
    ("machine", "size", "shown", "by_switches"),
    [
        ("dgx-h100", 8, "476 NVLS   3.68 ms", True),
        ("dgx-h100", 3, "360   3.7 ms", False),
        ("dgx-a100", 8, "240  7.29 ms", False),
        ("gb200-nvl72", 8, "829 NVLS   2.11 ms", True),
    ],
)
def test_the_bandwidth_is_the_one_that_the_time_follows_from(
    call: Call, machine: str, size: int, shown: str, by_switches: bool
) -> None:
    """1.75 GB in 3.68 ms are 476 GB/s: an all-reduce of 1 GB by NVLS, and not by rings of 360."""
    done = call("place", machine, "--gpus", size, "--top", 1)
    assert re.sub(" +", " ", shown) in re.sub(" +", " ", done.out)
    assert ("NVLS: what the job's all-reduce carries" in done.out) is by_switches


@pytest.mark.parametrize("policy", tp.policies.names())
@pytest.mark.parametrize(
    ("machine", "gpus", "predicts"), [("dgx1-v100", 3, True), ("dgx1-v100", 1, False), ("dgx-h100", 2, False)]
)
def test_effective_bandwidth_of_every_policy(
    call: Call, policy: str, machine: str, gpus: int, predicts: bool
) -> None:
    done = call("place", machine, "--gpus", gpus, "--policy", policy)
    assert heads(done.out)[:3] == ["GPUs by task", "ring GB/s", "time"]
    assert ("effective GB/s" in heads(done.out)) is predicts
    assert ("effective: predicted all-reduce" in done.out) is predicts
    assert ("bottleneck GB/s" in heads(done.out)) is (gpus > 1)
    assert not {"inf", "nan"} & set(done.out.split())


def test_the_model_of_a_policy_says_whether_it_extrapolates() -> None:
    """A fit to other machines is no extrapolation there; only the policy that has it knows."""
    cluster = tp.Cluster(tp.machines.get("dgx-a100"))
    own = tp.policies.get("mapa-preserve", coefficients=[1.0] * 14)
    for policy, outside in ((own, False), (tp.policies.get("mapa-preserve"), True)):
        placement = policy.place(tp.JobGraph.ring(3).with_(bandwidth_sensitive=True), cluster)
        assert isinstance(placement, tp.Placement)
        assert is_outside_range(placement) is outside
