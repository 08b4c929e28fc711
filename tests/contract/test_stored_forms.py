"""Stored files of each format are read, and written to the same bytes: a format does not change unnoticed."""

from __future__ import annotations

from pathlib import Path

import topoplace as tp

STORED = Path(__file__).parents[1] / "support/stored"
TOPOLOGY = (STORED / "topology.json").read_text("utf-8")
JOB = (STORED / "job.json").read_text("utf-8")
SNAPSHOT = (STORED / "cluster.snapshot").read_bytes()


def test_a_topology() -> None:
    topology = tp.Topology.from_json(TOPOLOGY)
    assert topology.templates[0].nics == (tp.Nic("mlx5_0", ("PIX", "SYS"), 25.0, 1),)
    assert topology.fabric
    assert [(level.name, level.gb_per_s) for level in topology.fabric.levels] == [("rack", 25.0)]
    assert topology.to_json() == TOPOLOGY


def test_a_job_graph() -> None:
    job = tp.JobGraph.from_json(JOB)
    assert job == tp.JobGraph.ring(2).with_(single_machine=True, cpus=4, drives=1, profile="alexnet/1")
    assert job.to_json() == JOB


def test_a_snapshot() -> None:
    cluster = tp.Cluster.restore(SNAPSHOT)
    assert cluster.topology == tp.Topology.from_json(TOPOLOGY)
    assert cluster.allocations == {"job-7": (0, 1)}
    assert cluster.jobs["job-7"] == tp.JobGraph.from_json(JOB)
    assert cluster.hosts.held["job-7"].drives == (1,)
    assert cluster.drained_gpus() == (5,)
    assert cluster.snapshot() == SNAPSHOT
