"""The files that the examples of `--help` name: small ones, made from built-in machines and generators.

Each function returns the content of one file. Other distributions add files as entry points.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from topoplace import _installed

if TYPE_CHECKING:
    from topoplace.topology.topology import Topology

Files = Mapping[str, tuple[str, Callable[[str], bytes]]]
"""For each file: its description, and the function that returns its content."""
_POLICY: Final = '''\
"""A policy of your own: the free GPUs with the highest numbers. docs/policies.md says what more a policy can do."""

import topoplace as tp
from topoplace.policies import SearchPolicy


class Mine(SearchPolicy):
    name = "mine"

    def best(self, job, cluster, free, required=frozenset()):
        """Return the placement on `required` and the highest other GPUs of `free`."""
        others = sorted(free - required, reverse=True)[: job.num_tasks - len(required)]
        gpus = tuple(sorted((*required, *others)))
        scores = tp.objectives.scores_of(job, gpus, cluster.topology, cluster.free_gpus())
        return tp.Placement(gpus=gpus, scores=scores, topology=cluster.topology, job=job)

    def order(self, job, placement):
        """Return a sort key, smaller is better: the highest number first."""
        return tuple(sorted(-gpu for gpu in placement.gpus))
'''


@cache
def files() -> Files:
    """Return all example files, including those of installed distributions."""
    found = dict(_OWN)
    for added in _installed.loaded(_installed.EXAMPLES, dict):
        found |= added
    return found


def content(name: str) -> bytes:
    """Return the content of the example file called `name`, which is one of `files`."""
    return files()[name][1](name)


def _matrix(_: str) -> bytes:
    """Return a DGX-1 as `nvidia-smi topo -m` prints it."""
    from topoplace import machines
    from topoplace.topology.links.link_kinds import NVLINKS

    machine = machines.get("dgx1-v100")
    gpus = range(machine.num_gpus)
    rows = ["\t".join(("", *(f"GPU{gpu}" for gpu in gpus), "CPU Affinity", "NUMA Affinity"))]
    for u in gpus:
        links = [None if u == v else machine.link(u, v) for v in gpus]
        labels = [
            "X" if link is None else f"NV{link.lanes}" if link.kind in NVLINKS else "SYS" for link in links
        ]
        socket = 2 * u // machine.num_gpus
        rows.append("\t".join((f"GPU{u}", *labels, f"{20 * socket}-{20 * socket + 19}", str(socket))))
    return lines(*rows)


def cluster() -> Topology:
    """Return four DGX-1 in two racks."""
    from topoplace import Topology, machines

    return Topology.cluster(machines.get("dgx1-v100"), 4, racks=2, names=[f"gpu{i}" for i in range(4)])


def _cluster_json(_: str) -> bytes:
    return cluster().to_json().encode()


def _minsky(name: str) -> bytes:
    """Return a machine on Monday, and on a day after on which one NVLink is down."""
    from topoplace import Topology, machines

    machine = machines.get("minsky")
    links = [link for link in machine.links if name == "monday.json" or link[:2] != (0, 1)]
    model = machine.gpus[0].model
    return Topology.from_links(machine.num_gpus, links, model=model, name="minsky").to_json().encode()


def _running(_: str) -> bytes:
    """Return jobs of two GPUs on each of the four machines, so that no whole machine is free."""
    rows = (f"job{machine},{8 * machine}-{8 * machine + 1}" for machine in range(4))
    return lines("job_id,gpus", *rows)


def written(save: Callable[[Path], None], name: str) -> bytes:
    """Return the content of the file that `save` writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        save(path)
        return path.read_bytes()


def lines(*texts: str) -> bytes:
    """Return the lines of a file."""
    return "".join(f"{line}\n" for line in texts).encode()


_OWN: Final[Files] = {
    "topo.txt": ("a DGX-1 as `nvidia-smi topo -m` prints it", _matrix),
    "cluster.json": ("four DGX-1 in two racks", _cluster_json),
    "monday.json": ("a machine", _minsky),
    "today.json": ("the machine of monday.json without one of its links", _minsky),
    "running.csv": ("jobs that run on the machines of cluster.json", _running),
    "my_policies.py": ("a policy of your own", lambda _: _POLICY.encode()),
}
