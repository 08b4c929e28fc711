"""Measured bandwidths next to planned ones, and the share of its plan that each path type reaches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median
from types import MappingProxyType

from topoplace._lazy import above
from topoplace.topology.links.nccl_rates import PathType, Rates
from topoplace.topology.topology import Topology

_DIGITS = 4
_parsed: Callable[[str], Measurements] = above("parsed_measurements")
_written: Callable[[Measurements], str] = above("written_measurements")


@dataclass(frozen=True, slots=True)
class MeasuredSet:
    """One set of GPUs, as planned and as measured."""

    gpus: tuple[int, ...]
    """The GPUs in the order of a ring, which is the order of the benchmark."""
    path_type: str
    """The worst type of path that the planned rings use."""
    planned_gb_per_s: float
    """`ring_bandwidth` without any correction."""
    measured_gb_per_s: float | None
    """Bus bandwidth in GB/s; None if the benchmark failed."""
    failure: str = ""
    """Why the benchmark failed; "" if it did not."""


@dataclass(frozen=True, slots=True)
class Efficiency:
    """The share of their plans that sets with one worst path type reach."""

    path_type: str
    factor: float
    """The median of measured over planned bandwidth."""
    least: float
    most: float
    num_sets: int


@dataclass(frozen=True, slots=True)
class Measurements:
    """The measurements of one machine."""

    topology: Topology
    rates: Rates
    """The rates of the plans, without achieved shares."""
    sets: tuple[MeasuredSet, ...]

    @classmethod
    def from_json(cls, text: str) -> Measurements:
        """Read measurements that `to_json` wrote; ValueError names the fault of any other text."""
        return _parsed(text)

    def to_json(self) -> str:
        """Return the measurements as JSON with their topology, which `from_json` reads."""
        return _written(self)

    def efficiencies(self) -> tuple[Efficiency, ...]:
        """Return the efficiency of each path type that was measured, nearest type first."""
        shares: dict[str, list[float]] = {name: [] for name in PathType.__members__}
        for one in self.sets:
            if one.measured_gb_per_s is not None:
                shares[one.path_type].append(one.measured_gb_per_s / one.planned_gb_per_s)
        return tuple(
            Efficiency(name, round(median(found), _DIGITS), min(found), max(found), len(found))
            for name, found in shares.items()
            if found
        )

    def corrected_rates(self) -> Rates:
        """Return the rates with the factor of each path type that was measured; all others keep the factor 1."""
        achieved = {one.path_type: one.factor for one in self.efficiencies()}
        name = f"{self.rates.name} as measured on {self.topology.name}"
        return replace(self.rates, name=name, achieved=MappingProxyType(achieved))

    def median_error(self, *, corrected: bool) -> float:
        """Return the median distance of measured bandwidths from plans, as a share of the plan.

        corrected: compare with the planned bandwidth times the factor of its path type. NaN without measured sets.
        """
        factors = {one.path_type: one.factor if corrected else 1.0 for one in self.efficiencies()}
        errors = [
            abs(one.measured_gb_per_s / (one.planned_gb_per_s * factors[one.path_type]) - 1.0)
            for one in self.sets
            if one.measured_gb_per_s is not None
        ]
        return median(errors) if errors else float("nan")
