"""The rate of a topology's link: that of a preset if the link has the catalogue's speed, else the link's own speed.

A speed that differs from the catalogue is measured or given, and is not replaced.
"""

from __future__ import annotations

import math

from topoplace.topology.links.link import NVLINKS, Link, LinkKind
from topoplace.topology.links.link_catalogue import SPEEDS, nvlink_of
from topoplace.topology.links.rates import Rates

_WIDTHS = (16, 8, 4, 2, 1, 32)
_PCIE = tuple(name for name in SPEEDS if name.startswith("pcie"))


def nvlink_rate(link: Link, rates: Rates, model: str | None) -> float:
    """Return GB/s of a direct link of GPUs, or of NVLinks into a switch, all lanes together."""
    if link.kind not in NVLINKS and link.kind is not LinkKind.NVSWITCH:
        return link.gb_per_s
    known = nvlink_of(model) if model else None
    for name, speed in SPEEDS.items():
        suits = speed.kind in NVLINKS and (link.kind is speed.kind or link.kind not in NVLINKS)
        if suits and (known is None or known is speed) and _at_speed_of(name, link.gb_per_s / link.lanes):
            rate = rates.of(name)
            return link.gb_per_s if rate is None else link.lanes * rate
    return link.gb_per_s


def pcie_rate(gb_per_s: float, rates: Rates) -> float:
    """Return the rate, in GB/s, of a PCIe link whose speed the topology states."""
    for width in _WIDTHS:
        for name in _PCIE:
            rate = rates.of(name)
            if rate is not None and _at_speed_of(name, gb_per_s * 16 / width):
                return rate * width / 16
    return gb_per_s


def rate_between(cpu: str, rates: Rates) -> float:
    """Return the rate, in GB/s, between two CPUs of a make; that of the catalogue if `rates` has none."""
    return rates.of(cpu) or SPEEDS[cpu].gb_per_s


def socket_rate(gb_per_s: float, cpus: tuple[str | None, str | None], rates: Rates) -> float:
    """Return the rate, in GB/s, between two CPUs of these makes, if the topology states the speed `gb_per_s`."""
    known = [(SPEEDS[cpu].gb_per_s, rates.of(cpu)) for cpu in cpus if cpu]
    if len(known) == 2 and math.isclose(gb_per_s, min(speed for speed, _ in known)):
        return min(speed if rate is None else rate for speed, rate in known)
    return gb_per_s


def _at_speed_of(name: str, gb_per_s: float) -> bool:
    speed = SPEEDS[name]
    figures = (speed.nominal_gb_per_s, speed.achievable_gb_per_s)
    return any(figure is not None and math.isclose(figure, gb_per_s, rel_tol=1e-6) for figure in figures)
