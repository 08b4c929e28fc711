"""`topoplace place` shows a prediction of eq. 2 only where it is a bandwidth, whichever policy decides."""

from __future__ import annotations

import pytest

import topoplace as tp
from command_line import Call
from topoplace.objectives.effective_bandwidth import OUTSIDE_ITS_RANGE, is_outside_range

COLUMNS = ("aggregated", "effective", "bottleneck", "preserved")


def shown(out: str) -> dict[str, str]:
    """The scores of the first candidate, by the head of their column."""
    row = out.splitlines()[2].split()
    return dict(zip(COLUMNS, row[-5:-1], strict=True))


@pytest.mark.parametrize("policy", tp.policies.names())
@pytest.mark.parametrize(
    ("machine", "gpus", "predicts"), [("dgx1-v100", 3, True), ("dgx1-v100", 1, False), ("dgx-h100", 2, False)]
)
def test_effective_bandwidth_of_every_policy(
    call: Call, policy: str, machine: str, gpus: int, predicts: bool
) -> None:
    done = call("place", machine, "--gpus", gpus, "--policy", policy)
    assert (shown(done.out)["effective"] != "-") is predicts
    assert (f"- in effective: {OUTSIDE_ITS_RANGE}" in done.out) is not predicts
    assert "inf" not in done.out.split()
    assert ("- in bottleneck: the job's tasks use no link" in done.out) is (gpus == 1)


def test_the_model_of_a_policy_says_whether_it_extrapolates() -> None:
    """A fit to other machines is no extrapolation there; only the policy that has it knows."""
    cluster = tp.Cluster(tp.machines.get("dgx-a100"))
    own = tp.policies.get("mapa-preserve", coefficients=[1.0] * 14)
    for policy, outside in ((own, False), (tp.policies.get("mapa-preserve"), True)):
        placement = policy.place(tp.JobGraph.ring(3).with_(bandwidth_sensitive=True), cluster)
        assert isinstance(placement, tp.Placement)
        assert is_outside_range(placement) is outside
