"""topoplace: which accelerators should this job get, now, on this machine or cluster?

Every public name is an attribute of this package and is loaded on first use. Importing the package takes
milliseconds and loads neither plotting, networkx nor the simulator.

To change:

- Public names: the imports for type checkers here, which `_lazy.py` reads; `CONTRACT` in `tests/house/test_house.py`.
- How a placed job starts, GPU numbers, remote GPUs' servers: `launch/`.
- What methods of the values ask of modules above them: `_OF_VALUES` here, `_lazy.py`.
- How the smallest number that suffices is searched: `_fewest.py`; the lock of a file's only writer: `_file_lock.py`;
  the bar with the time left: `_progress.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from topoplace import _installed
from topoplace._lazy import lazily, offer

if TYPE_CHECKING:
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
    from topoplace.deciding.least_time import place as place
    from topoplace.discovery.registry import read as read
    from topoplace.engine.plan import Plan as Plan
    from topoplace.engine.policy import Policy as Policy
    from topoplace.errors import AllocationError as AllocationError
    from topoplace.errors import JobGraphError as JobGraphError
    from topoplace.errors import JournalError as JournalError
    from topoplace.errors import SnapshotError as SnapshotError
    from topoplace.errors import TopologyError as TopologyError
    from topoplace.errors import TopoplaceError as TopoplaceError
    from topoplace.jobs.collectives import Collective as Collective
    from topoplace.jobs.groups import Group as Group
    from topoplace.jobs.job_graph import JobGraph as JobGraph
    from topoplace.jobs.network_profile import NetworkProfile as NetworkProfile
    from topoplace.jobs.parallel_traffic import Traffic as Traffic
    from topoplace.jobs.performance_profile import PerformanceProfile as PerformanceProfile
    from topoplace.moving import MoveCosts as MoveCosts
    from topoplace.moving import defragment as defragment
    from topoplace.moving import make_room as make_room
    from topoplace.moving import repair as repair
    from topoplace.moving import resize as resize
    from topoplace.objectives.communication import CommunicationTime as CommunicationTime
    from topoplace.objectives.communication import communication_time as communication_time
    from topoplace.placement import HostShare as HostShare
    from topoplace.placement import Placement as Placement
    from topoplace.placement import Refusal as Refusal
    from topoplace.policies.host_order import reorder as reorder
    from topoplace.policies.several_jobs import place_all as place_all
    from topoplace.topology.devices import Component as Component
    from topoplace.topology.devices import ComponentKind as ComponentKind
    from topoplace.topology.devices import Gpu as Gpu
    from topoplace.topology.devices import Nic as Nic
    from topoplace.topology.fabric import Fabric as Fabric
    from topoplace.topology.fabric import Level as Level
    from topoplace.topology.links import link_kinds as links
    from topoplace.topology.links.distance import DistanceWeights as DistanceWeights
    from topoplace.topology.links.link_kinds import Link as Link
    from topoplace.topology.links.link_kinds import LinkKind as LinkKind
    from topoplace.topology.topology import Topology as Topology

    __all__ = ["links"]

__version__ = "0.1.0"
DEFAULT_POLICY: Final = "least-time"
"""The policy that decides unless another is named; also `policies.DEFAULT`."""

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
    "resized_job": "jobs.sizes:resized",
    "sizes_of_job": "jobs.sizes:sizes_of",
    "parsed_rates": "topology.links.nccl_rates_json:parsed",
    "parsed_topology": "topology.topology_json:parsed",
    "placed_again": "moving.staying:placed_again",
    "placed_beside": "moving.staying:placed_beside",
    "server_environment": "launch.environment:server_environment",
    "spread": "launch.bindings:spread",
    "svg": "drawing:svg",
    "to_networkx": "topology.topology_networkx:to_networkx",
    "with_degraded": "topology.changed_links:with_degraded",
    "with_links": "topology.changed_links:with_links",
    "written_job": "jobs.job_json:written",
    "written_rates": "topology.links.nccl_rates_json:written",
    "written_topology": "topology.topology_json:written",
}
"""What values and `place` call in modules above them: `Topology.cluster` calls `topology.assemble`."""
offer(__name__, _OF_VALUES)

_get, _names, _own = lazily(__name__)
if not TYPE_CHECKING:
    __all__ = _own


def __getattr__(name: str) -> Any:
    """Return a public name of this package, or a module that an installed distribution adds, such as `simulate`."""
    if name in _own:
        return _get(name)
    value = None if name.startswith("_") else _installed.module(name)
    if value is None:
        why = _installed.how_to_get(name)
        raise AttributeError(f"module 'topoplace' has no attribute {name!r}{why and f'; {why}'}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_names(), *_installed.entry_points(_installed.MODULES)})
