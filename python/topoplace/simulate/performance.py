"""How long a job runs where it was placed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from topoplace import _checks

if TYPE_CHECKING:
    import numpy as np

    from topoplace.placement import Placement
    from topoplace.simulate.workload import SubmittedJob


@runtime_checkable
class PerformanceModel(Protocol):
    """Says how long a job runs on a placement."""

    def run_time(self, job: SubmittedJob, placement: Placement, random: np.random.Generator) -> float:
        """Seconds, finite and not negative; `random` is the simulation's seeded generator."""
        ...


class FixedTime:
    """Every job runs its base time wherever it is placed, as in the simulator of MAPA's paper."""

    def run_time(self, job: SubmittedJob, placement: Placement, random: np.random.Generator) -> float:
        """The base time."""
        return job.base_time


class MapaSlowdown:
    """Run time that falls with effective bandwidth and is flat past `flat_gbps`, the shape of MAPA's Fig. 16.

    A bandwidth-insensitive job, and one whose tasks do not talk, runs its base time. Of a sensitive job the share
    `c` of its base time is communication, which takes `flat_gbps / B` times as long at an effective bandwidth of
    `B` GB/s: time = base * (1 - c + c * flat_gbps / clip(B, floor_gbps, flat_gbps)).

    flat_gbps: 50, the knee the paper names. floor_gbps: 10, what eq. 2 predicts for a pair on PCIe; eq. 2 goes
    below for some mixes, which no real all-reduce does. The figure prints no numbers, so the shares follow from
    the text: a factor 3 between PCIe and double NVLink for VGG-16 (Fig. 2b), 75th percentiles of Baseline over
    Topo-aware of 785/378 s for VGG-16 and 511/374 s for AlexNet, and hardly any for Inception (section 4.1).
    """

    SHARES: Final[Mapping[str, float]] = {
        "vgg16": 0.5,
        "alexnet": 0.2,
        "resnet-50": 0.1,
        "inception-v3": 0.05,
    }

    def __init__(
        self,
        shares: Mapping[str, float] = SHARES,
        *,
        default_share: float = 0.2,
        flat_gbps: float = 50.0,
        floor_gbps: float = 10.0,
    ) -> None:
        _checks.instance(shares, Mapping, "shares", ValueError)
        self.shares = dict(shares)
        for name, share in {**self.shares, "default_share": default_share}.items():
            _checks.real(share, f"share of {name}", ValueError, high=1.0)
        _checks.positive(flat_gbps, "flat_gbps", ValueError)
        _checks.positive(floor_gbps, "floor_gbps", ValueError, high=flat_gbps)
        self.default_share = default_share
        self.flat_gbps = flat_gbps
        self.floor_gbps = floor_gbps

    def run_time(self, job: SubmittedJob, placement: Placement, random: np.random.Generator) -> float:
        """Base time times the slowdown of the placement's effective bandwidth."""
        if not job.job.bandwidth_sensitive or not job.job.edges:
            return job.base_time
        share = self.shares.get((job.job.profile or "").removesuffix(".sh"), self.default_share)
        if "effective_bandwidth" not in placement.scores:
            raise ValueError(
                f"placement of {job.job_id!r} has no score effective_bandwidth, which MapaSlowdown needs"
            )
        bandwidth = min(max(placement.scores["effective_bandwidth"], self.floor_gbps), self.flat_gbps)
        return job.base_time * (1 - share + share * self.flat_gbps / bandwidth)
