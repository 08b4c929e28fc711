"""topoplace: which accelerators should this job get, now, on this machine or cluster?

Everything public is reachable from here and loaded on first use, so that importing the package costs
milliseconds and never loads plotting, networkx or the simulator.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from topoplace import capacity, discovery, kernels, links, machines, objectives, policies, testing
    from topoplace.cluster import Cluster
    from topoplace.devices import Component, ComponentKind, Gpu, Nic
    from topoplace.engine.plan import Plan
    from topoplace.engine.policy import Policy
    from topoplace.errors import AllocationError, JobGraphError, SnapshotError, TopologyError, TopoplaceError
    from topoplace.fabric import Fabric, Level
    from topoplace.hosts import HostResources, HostShare
    from topoplace.jobgraph import JobGraph
    from topoplace.links import DistanceWeights, Link, LinkKind
    from topoplace.placement import Placement, Refusal
    from topoplace.profiles import PerformanceProfile
    from topoplace.simulate import simulate
    from topoplace.topology import Topology

__version__ = "0.1.0"

# Public name -> module that defines it; a name equal to its module's last part is the module itself.
_HOME = {
    "AllocationError": "topoplace.errors",
    "Cluster": "topoplace.cluster",
    "Component": "topoplace.devices",
    "ComponentKind": "topoplace.devices",
    "DistanceWeights": "topoplace.links",
    "Fabric": "topoplace.fabric",
    "Gpu": "topoplace.devices",
    "HostResources": "topoplace.hosts",
    "HostShare": "topoplace.hosts",
    "JobGraph": "topoplace.jobgraph",
    "JobGraphError": "topoplace.errors",
    "Level": "topoplace.fabric",
    "Link": "topoplace.links",
    "LinkKind": "topoplace.links",
    "Nic": "topoplace.devices",
    "PerformanceProfile": "topoplace.profiles",
    "Placement": "topoplace.placement",
    "Plan": "topoplace.engine.plan",
    "Policy": "topoplace.engine.policy",
    "Refusal": "topoplace.placement",
    "SnapshotError": "topoplace.errors",
    "Topology": "topoplace.topology",
    "TopologyError": "topoplace.errors",
    "TopoplaceError": "topoplace.errors",
    "capacity": "topoplace.capacity",
    "discovery": "topoplace.discovery",
    "kernels": "topoplace.kernels",
    "links": "topoplace.links",
    "machines": "topoplace.machines",
    "objectives": "topoplace.objectives",
    "policies": "topoplace.policies",
    "simulate": "topoplace.simulate",
    "testing": "topoplace.testing",
}

__all__ = [
    "AllocationError",
    "Cluster",
    "Component",
    "ComponentKind",
    "DistanceWeights",
    "Fabric",
    "Gpu",
    "HostResources",
    "HostShare",
    "JobGraph",
    "JobGraphError",
    "Level",
    "Link",
    "LinkKind",
    "Nic",
    "PerformanceProfile",
    "Placement",
    "Plan",
    "Policy",
    "Refusal",
    "SnapshotError",
    "Topology",
    "TopologyError",
    "TopoplaceError",
    "capacity",
    "discovery",
    "kernels",
    "links",
    "machines",
    "objectives",
    "policies",
    "simulate",
    "testing",
]

# Modules that are public as modules; `simulate` is one that can be called.
_MODULES = {
    "capacity",
    "discovery",
    "links",
    "kernels",
    "machines",
    "objectives",
    "policies",
    "simulate",
    "testing",
}


# Deprecated name -> the name it has now.
_RENAMED = {"Deferred": "Refusal"}


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        warnings.warn(f"topoplace.{name} is now called {_RENAMED[name]}", DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[__name__], _RENAMED[name])
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'topoplace' has no attribute {name!r}")
    module = importlib.import_module(home)
    value = module if name in _MODULES else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
