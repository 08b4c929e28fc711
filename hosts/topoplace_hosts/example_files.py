"""The example files of topoplace-hosts, which `topoplace example` writes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from topoplace.cli.example_files import Files, cluster, lines, written

_START: Final = 1_767_225_600
"""The time of the first decision: 2026-01-01, in seconds since 1970."""


def _tree(_: str) -> bytes:
    """Return two leaf switches under a spine, as Slurm's topology.conf has them."""
    leaves = [f"SwitchName=leaf{i} Nodes=gpu{2 * i},gpu{2 * i + 1}" for i in range(2)]
    return lines(*leaves, "SwitchName=spine Switches=leaf0,leaf1")


def _scontrol(_: str) -> bytes:
    """Return the same jobs as Slurm shows them, and three that wait; docs/waiting.md shows what becomes of them."""
    nodes = [
        f"NodeName=gpu{node} Gres=gpu:v100:8 GresUsed=gpu:v100:2(IDX:0-1) State=MIXED Partitions=batch"
        for node in range(4)
    ]
    running = [
        f"JobId={17 + node} JobState=RUNNING RunTime=00:48:00 TimeLimit={2 + node:02}:00:00 NodeList=gpu{node}\n"
        f"     Nodes=gpu{node} CPU_IDs=0-7 Mem=0 GRES=gpu:v100:2(IDX:0-1)"
        for node in range(4)
    ]
    waiting = [
        f"JobId={21 + i} Priority={9 - i} JobState=PENDING TimeLimit={hours:02}:00:00 Partition=batch NumNodes=1 "
        f"TresPerNode=gres/gpu:{gpus}"
        for i, (gpus, hours) in enumerate(((8, 2), (8, 1), (4, 1)))
    ]
    return lines(*nodes, *running, *waiting)


def _journal(name: str) -> bytes:
    """Return a journal with one job that runs and one that was just decided."""
    from topoplace_hosts.journal import Entry, Journal, Stage
    from topoplace_hosts.journal.entry import named

    where = cluster()

    def save(path: Path) -> None:
        with Journal(path) as journal:
            journal.set_topology(where.digest())
            for stage, at in ((Stage.INTENT, 0), (Stage.TOLD, 1), (Stage.CONFIRMED, 5)):
                gpus = named(where, range(4))
                journal.append(Entry("4711", stage, gpus, "all links are NVLinks", _START + at))
            journal.append(Entry("4712", Stage.INTENT, named(where, (8, 9)), time=_START + 60.0))

    return written(save, name)


FILES: Final[Files] = {
    "topology.conf": ("a tree of switches with four nodes, as Slurm has it", _tree),
    "scontrol.txt": ("the nodes of cluster.json and their jobs, as Slurm's scontrol prints them", _scontrol),
    "decisions.journal": ("a journal with two jobs", _journal),
}
