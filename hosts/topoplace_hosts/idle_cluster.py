"""The cluster of a snapshot without jobs: the nodes that a text describes, on the topology that the caller gives."""

from __future__ import annotations

from collections.abc import Callable

from topoplace import _checks
from topoplace.cluster.cluster import Cluster
from topoplace.errors import SnapshotError
from topoplace.snapshot.records import Gathered
from topoplace.topology.topology import Topology


def idle(described: Callable[[Topology | None], Topology], topology: Topology | None) -> Gathered:
    """Return the cluster without jobs; GPUs that get no jobs are unhealthy or drained.

    described: returns the nodes of the text; its argument is a template for each node, or None. topology: the cluster,
    or one machine as the template; None for neither. Raise SnapshotError if the topology and the text are about
    different machines.
    """
    nodes = described(None)
    if topology is None:
        return Gathered(Cluster(nodes))
    if not set(topology.machine_names).isdisjoint(nodes.machine_names):
        found = Gathered(Cluster(topology))
        _drain(found, nodes)
        return found
    if topology.num_machines > 1:
        listed, have = _checks.some(nodes.machine_names), _checks.some(topology.machine_names)
        raise SnapshotError(f"the text is about other machines ({listed}) than the topology ({have})")
    return Gathered(Cluster(described(topology)))


def _drain(found: Gathered, nodes: Topology) -> None:
    """Drain the GPUs that are unhealthy on their node, and machines that the text does not describe."""
    topology = found.cluster.topology
    for name, gpus in topology.gpus_of.items():
        theirs = nodes.gpus_of.get(name)
        if theirs is None:
            found.cluster.drain(name)
            continue
        if len(theirs) != len(gpus):
            raise SnapshotError(f"node {name} has {len(theirs)} GPUs, but {len(gpus)} in the topology")
        for mine, gpu in zip(gpus, theirs, strict=True):
            if not nodes.gpus[gpu].healthy:
                found.cluster.drain(mine)
    if missing := [name for name in topology.machine_names if name not in nodes.gpus_of]:
        found.notes.append(
            f"Machines that are no nodes of the text, and are drained: {_checks.some(missing)}."
        )
    if others := [name for name in nodes.machine_names if name not in topology.gpus_of]:
        found.notes.append(f"Nodes that the topology does not have, and left out: {_checks.some(others)}.")
    found.notes += [note for note in nodes.notes if note.startswith(("Nodes", "GPUs that Slurm"))]
