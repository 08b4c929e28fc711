"""Jobs with `--segment` in a real Slurm with blocks: each segment is in one block, as the placer decides and Slurm."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slurm_jobs import given, states, wait_for
from topoplace import Topology, machines, policies
from topoplace.topology.fabric import Fabric, Level
from topoplace_hosts.journal import Journal
from topoplace_hosts.slurm.client.commands import SlurmCommands
from topoplace_hosts.slurm.client.jobs import by_id, listed
from topoplace_hosts.slurm.placer import Placer, PlacerSettings
from topoplace_hosts.slurm.testing import SlurmCluster, missing_programs

NODES = tuple(f"n{i}" for i in range(6))
BLOCK_OF = dict(zip(NODES, ("b0", "b0", "b0", "b1", "b1", "b1"), strict=True))
TOPOLOGY = Topology.cluster(
    machines.get("dgx1-v100"), fabric=Fabric(NODES, (Level("block", tuple(BLOCK_OF.values())),))
)


@pytest.fixture(scope="module")
def blocks() -> Iterator[SlurmCluster]:
    if lacking := missing_programs():
        pytest.skip(f"needs Slurm's daemons, and this host has no {', '.join(lacking)}")
    version = subprocess.run(["slurmctld", "-V"], capture_output=True, text=True, check=True).stdout.split()[
        -1
    ]
    if tuple(map(int, version.split(".")[:2])) < (25, 5):
        pytest.skip(f"needs Slurm 25.05, whose squeue shows segments; this host has {version}")
    with SlurmCluster(TOPOLOGY, settings={"TopologyPlugin": "topology/block"}) as cluster:
        yield cluster


def test_each_segment_is_in_one_block(blocks: SlurmCluster, tmp_path: Path) -> None:
    log: list[dict[str, Any]] = []
    with Journal(tmp_path / "journal") as journal:
        placer = Placer(
            TOPOLOGY,
            policies.get("topo-aware"),
            journal,
            commands=SlurmCommands(blocks.environment),
            settings=PlacerSettings(interval=0.05, patience=30.0, grace=10.0),
            write_log=lambda event, **fields: log.append({"event": event, **fields}),
        )

        def run(*options: str) -> str:
            job = blocks.submit("--gres=gpu:8", *options, script="sleep 60")
            wait_for(lambda: states(blocks).get(job, "").startswith("R"), placer.cycle, 60.0, lambda: log)
            return job

        single = run("-N1")
        segmented = run("-N4", "--segment=2")
        nodes = given(blocks, segmented)[0]
        assert sorted(BLOCK_OF[node] for node in nodes) == ["b0", "b0", "b1", "b1"]
        assert nodes.isdisjoint(given(blocks, single)[0])
        decided = {one["job"]: one["nodes"] for one in log if one["event"] == "decided"}
        assert [len({BLOCK_OF[node] for node in decided[segmented][i : i + 2]}) for i in (0, 2)] == [1, 1]
        assert by_id(listed(SlurmCommands(blocks.environment)))[segmented].segment == 2
    blocks.run("scancel", "--full", "--signal=KILL", "--user=root")
    blocks.wait_until_empty()


def test_how_segments_share_blocks_is_left_to_slurm(blocks: SlurmCluster) -> None:
    marks: list[bool] = []
    for options in ((), ("--spread-segments",), ("--consolidate-segments",)):
        job = blocks.submit("-N4", "--segment=2", *options, "--gres=gpu:8", script="true")
        marks.append("AdminComment=topoplace1" in blocks.run("scontrol", "-o", "show", "job", job))
        blocks.run("scancel", job)
        blocks.wait_until_empty()
    assert marks == [True, False, False]
