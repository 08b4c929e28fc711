"""topoplace: which accelerators should this job get, now, on this machine or cluster?

Every public name is an attribute of this package and is loaded on first use. Importing the package takes
milliseconds and loads neither plotting, networkx nor the simulator.

To change:

- Public names: `_HOME` and `_MODULES` here, and `CONTRACT` in `tests/house/test_house.py`.
- How a placed job starts, GPU numbers, remote GPUs' servers: `launch/`.
- What methods of the values ask of modules above them: `_OF_VALUES` here, `_above.py`.
- How the smallest number that suffices is searched: `_fewest.py`; the lock of a file's only writer: `_file_lock.py`;
  the bar with the time left: `_progress.py`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from topoplace import _above

if TYPE_CHECKING:  # for type checkers; `_HOME` says the same to the interpreter
    from topoplace import collective as collective
    from topoplace import discovery as discovery
    from topoplace import drawing as drawing
    from topoplace import kernels as kernels
    from topoplace import machines as machines
    from topoplace import mig as mig
    from topoplace import objectives as objectives
    from topoplace import policies as policies
    from topoplace import snapshot as snapshot
    from topoplace import testing as testing
    from topoplace.binding import Binding as Binding
    from topoplace.binding import Launch as Launch
    from topoplace.cluster.cluster import Cluster as Cluster
    from topoplace.cluster.hosts import HostResources as HostResources
    from topoplace.discovery.registry import read as read
    from topoplace.engine.plan import Plan as Plan
    from topoplace.engine.policy import Policy as Policy
    from topoplace.errors import AllocationError as AllocationError
    from topoplace.errors import JobGraphError as JobGraphError
    from topoplace.errors import JournalError as JournalError
    from topoplace.errors import SnapshotError as SnapshotError
    from topoplace.errors import TopologyError as TopologyError
    from topoplace.errors import TopoplaceError as TopoplaceError
    from topoplace.experiments import capacity as capacity
    from topoplace.experiments.simulate import simulate as simulate
    from topoplace.integrations import state as state
    from topoplace.jobs.collectives import Collective as Collective
    from topoplace.jobs.groups import Group as Group
    from topoplace.jobs.job_graph import JobGraph as JobGraph
    from topoplace.jobs.network_profile import NetworkProfile as NetworkProfile
    from topoplace.jobs.performance_profile import PerformanceProfile as PerformanceProfile
    from topoplace.jobs.traffic import Traffic as Traffic
    from topoplace.moving import MoveCosts as MoveCosts
    from topoplace.moving import defragment as defragment
    from topoplace.moving import make_room as make_room
    from topoplace.objectives.communication import CommunicationTime as CommunicationTime
    from topoplace.objectives.communication import communication_time as communication_time
    from topoplace.placement import HostShare as HostShare
    from topoplace.placement import Placement as Placement
    from topoplace.placement import Refusal as Refusal
    from topoplace.policies.least_time.policy import place as place
    from topoplace.policies.several_jobs import place_all as place_all
    from topoplace.topology.devices import Component as Component
    from topoplace.topology.devices import ComponentKind as ComponentKind
    from topoplace.topology.devices import Gpu as Gpu
    from topoplace.topology.devices import Nic as Nic
    from topoplace.topology.fabric import Fabric as Fabric
    from topoplace.topology.fabric import Level as Level
    from topoplace.topology.links import link_catalogue as links
    from topoplace.topology.links.distance import DistanceWeights as DistanceWeights
    from topoplace.topology.links.link import Link as Link
    from topoplace.topology.links.link import LinkKind as LinkKind
    from topoplace.topology.topology import Topology as Topology

    __all__ = ["links"]

__version__ = "0.1.0"
DEFAULT_POLICY: Final = "least-time"
"""The policy of whatever decides and is not asked for another; also `policies.DEFAULT`."""

_HOME = {
    "AllocationError": "errors",
    "Binding": "binding",
    "Cluster": "cluster.cluster",
    "Collective": "jobs.collectives",
    "CommunicationTime": "objectives.communication",
    "Component": "topology.devices",
    "ComponentKind": "topology.devices",
    "DistanceWeights": "topology.links.distance",
    "Fabric": "topology.fabric",
    "Gpu": "topology.devices",
    "Group": "jobs.groups",
    "HostResources": "cluster.hosts",
    "HostShare": "placement",
    "JobGraph": "jobs.job_graph",
    "JobGraphError": "errors",
    "JournalError": "errors",
    "Launch": "binding",
    "Level": "topology.fabric",
    "Link": "topology.links.link",
    "LinkKind": "topology.links.link",
    "MoveCosts": "moving",
    "NetworkProfile": "jobs.network_profile",
    "Nic": "topology.devices",
    "PerformanceProfile": "jobs.performance_profile",
    "Placement": "placement",
    "Plan": "engine.plan",
    "Policy": "engine.policy",
    "Refusal": "placement",
    "SnapshotError": "errors",
    "Topology": "topology.topology",
    "TopologyError": "errors",
    "TopoplaceError": "errors",
    "Traffic": "jobs.traffic",
    "communication_time": "objectives.communication",
    "defragment": "moving",
    "make_room": "moving",
    "place": "policies.least_time.policy",
    "place_all": "policies.several_jobs",
    "read": "discovery.registry",
}
"""The module below `topoplace` that defines each public class and function."""

_MODULES = {
    "capacity": "experiments.capacity",
    "collective": "collective",
    "discovery": "discovery",
    "drawing": "drawing",
    "kernels": "kernels",
    "links": "topology.links.link_catalogue",
    "machines": "machines",
    "mig": "mig",
    "objectives": "objectives",
    "policies": "policies",
    "simulate": "experiments.simulate",
    "snapshot": "snapshot",
    "state": "integrations.state",
    "testing": "testing",
}
"""The modules that are public as modules; `simulate` can be called."""

_OF_VALUES = {
    "bindings": "launch.bindings:bindings",
    "communication_time": "objectives.communication:communication_time",
    "discover": "discovery.live.discover:discover",
    "environment": "launch.environment:environment",
    "from_networkx": "topology.topology_networkx:from_networkx",
    "from_system_xml": "discovery.nccl.system_xml:parse",
    "from_topo_matrix": "discovery.nvidia.topo_matrix:parse",
    "join": "topology.assemble:join",
    "launched": "launch.launchers:launched",
    "numactl": "launch.environment:numactl",
    "parsed_job": "jobs.job_json:parsed",
    "parsed_measurements": "collective.measuring.measurements_json:parsed",
    "parsed_rates": "topology.links.rates_json:parsed",
    "parsed_topology": "topology.topology_json:parsed",
    "server_environment": "launch.environment:server_environment",
    "spread": "launch.bindings:spread",
    "svg": "drawing:svg",
    "to_networkx": "topology.topology_networkx:to_networkx",
    "written_job": "jobs.job_json:written",
    "written_measurements": "collective.measuring.measurements_json:written",
    "written_rates": "topology.links.rates_json:written",
    "written_topology": "topology.topology_json:written",
}
"""What methods of the values ask of modules above them, such as `Topology.cluster` of `topology.assemble`."""
_above.offer(__name__, _OF_VALUES)

if not TYPE_CHECKING:
    __all__ = sorted({**_HOME, **_MODULES})


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value = importlib.import_module(f"{__name__}.{_MODULES[name]}")
    elif name in _HOME:
        value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    else:
        raise AttributeError(f"module 'topoplace' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({**_HOME, **_MODULES})
