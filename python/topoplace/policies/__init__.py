"""Placement policies, by name or as classes; third parties write theirs against `Policy` (see `_template.py`)."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from topoplace import _checks
from topoplace.policies.base import Explanation, Plan, Policy, QueuedJob, SearchPolicy
from topoplace.policies.drmaestro import DRMaestro
from topoplace.policies.greedy import Baseline, Greedy
from topoplace.policies.greedy_fit import BestFit, FirstComeFirstServed
from topoplace.policies.machine_policy import MachinePolicy
from topoplace.policies.mapa import Preserve
from topoplace.policies.mapa_topo_aware import MapaTopoAware
from topoplace.policies.rcuda import GQueue, NodeQueue, RQueue
from topoplace.policies.topo_aware import TopoAware, TopoAwareP

__all__ = [
    "Baseline",
    "BestFit",
    "DRMaestro",
    "Explanation",
    "FirstComeFirstServed",
    "GQueue",
    "Greedy",
    "MachinePolicy",
    "MapaTopoAware",
    "NodeQueue",
    "Plan",
    "Policy",
    "Preserve",
    "QueuedJob",
    "RQueue",
    "SearchPolicy",
    "TopoAware",
    "TopoAwareP",
    "get",
    "names",
]

_POLICIES: dict[str, type[SearchPolicy | MachinePolicy | NodeQueue | DRMaestro]] = {
    policy.name: policy
    for policy in (
        *(Baseline, MapaTopoAware, Greedy, Preserve),
        *(FirstComeFirstServed, BestFit, TopoAware, TopoAwareP),
        *(DRMaestro, GQueue, RQueue),
    )
}


def names() -> tuple[str, ...]:
    """The names `get` knows."""
    return tuple(_POLICIES)


def get(name: str, **options: Any) -> Policy:
    """The policy called `name`; `options` go to its class. ValueError with the closest names for an unknown one."""
    policy = _POLICIES.get(_checks.text(name, "name", ValueError))
    if policy is None:
        close = get_close_matches(name, _POLICIES, n=2) or list(_POLICIES)
        raise ValueError(f"name = {_checks.shown(name)}: no such policy; did you mean {' or '.join(close)}?")
    try:
        return policy(**options)
    except TypeError as error:
        raise ValueError(f"{name}: {str(error).partition('() ')[2] or error}") from None
