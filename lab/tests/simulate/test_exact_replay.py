"""Replays of public traces have the waits, makespan and utilization of an independent simulator without topology.

Its results are in `oracle-dev.json`, which defines three disciplines. count-fifo: jobs take any free GPUs, and the
first job of the queue blocks the others. count-scan: at every event, each job that fits starts, oldest first.
node-fifo: a job of up to K GPUs is on the machine with the fewest free GPUs that suffice, a larger one holds whole
machines, and the first job blocks the others.
"""

from __future__ import annotations

import json
import math
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import topoplace as tp
from topoplace_lab.simulate import Result, Workload, read_workload

KEYS = [
    *(
        f"philly G={gpus} K=8 {rule}"
        for gpus in (256, 320)
        for rule in ("count-fifo", "count-scan", "node-fifo")
    ),
    *(f"nasa-ipsc-processors G=128 K=128 {rule}" for rule in ("count-fifo", "count-scan")),
    *(
        f"chronus-slo G={gpus} K=8 {rule}"
        for gpus in (640, 768)
        for rule in ("count-fifo", "count-scan", "node-fifo")
    ),
    *(
        f"sc17-workload-{size} G={gpus} K=4 {rule}"
        for size, gpus in ((100, 20), (1000, 240))
        for rule in ("count-fifo", "count-scan", "node-fifo")
    ),
]

ALWAYS = (
    "philly G=320 K=8 node-fifo",
    "nasa-ipsc-processors G=128 K=128 count-scan",
    "chronus-slo G=768 K=8 count-fifo",
    "sc17-workload-100 G=20 K=4 count-fifo",
    "sc17-workload-100 G=20 K=4 count-scan",
    "sc17-workload-100 G=20 K=4 node-fifo",
)

POLICIES: dict[str, Any] = {
    "count-fifo": lambda: tp.policies.get("fcfs"),
    "count-scan": lambda: tp.policies.get("best-fit"),
    "node-fifo": lambda: tp.policies.get("vector-best-fit", rounded=False, in_order=True),
}


@lru_cache(maxsize=1)
def trace(path: Path) -> Workload:
    return read_workload(path, pattern="independent")


def held(size: int, rule: str, per_node: int) -> tp.JobGraph:
    """Return a job of `size` GPUs with the GPUs that the discipline has it hold."""
    nodes = math.ceil(size / per_node)
    if rule != "node-fifo":
        return tp.JobGraph.independent(size)
    if nodes == 1:
        return tp.JobGraph.independent(size).with_(single_machine=True)
    return tp.JobGraph.independent(nodes * per_node).with_(max_machines=nodes)


def replay(workload: Workload, gpus: int, per_node: int, rule: str) -> tuple[Result, list[int]]:
    """Return the result, and the number of GPUs that each of its jobs asked for."""
    kept = [i for i, job in enumerate(workload.jobs) if job.num_tasks <= gpus]
    sizes = [workload.jobs[i].num_tasks for i in kept]
    ids = [workload.job_ids[i] for i in kept]
    jobs = [held(size, rule, per_node) for size in sizes]
    machine = tp.Topology.from_links(per_node, [])
    topology = tp.Topology.cluster(machine, gpus // per_node) if gpus > per_node else machine
    of_kept = Workload(jobs, workload.submit_time[kept], workload.base_time[kept], ids)
    return tp.simulate(topology, of_kept, POLICIES[rule]()), sizes


@pytest.mark.parametrize(
    "key", [pytest.param(key, marks=() if key in ALWAYS else pytest.mark.deep) for key in KEYS]
)
def test_a_replay_equals_an_independent_one(key: str, shared: Path) -> None:
    folder = shared / "data/traces"
    name, *numbers, rule = key.split()
    gpus, per_node = (int(number[2:]) for number in numbers)
    if not (folder / "oracle-dev.json").exists():
        pytest.skip("the results of the independent simulator are not on this machine")
    expected = json.loads((folder / "oracle-dev.json").read_text("utf-8"))[key]
    result, sizes = replay(trace(folder / f"{name}.csv.gz"), gpus, per_node, rule)
    summary, jobs = result.summary(), result.jobs
    assert len(jobs) == expected["jobs"]
    assert summary["rejected"] == 0
    assert (jobs["wait"] > 0).sum() == expected["waited"]
    assert summary["mean_wait"] == pytest.approx(expected["mean_wait_s"], abs=6e-4)
    for ours, theirs in (("p50", "p50"), ("p90", "p90"), ("p99", "p99"), ("max", "max_wait")):
        assert summary[f"wait_{ours}"] == pytest.approx(expected[theirs], rel=1e-9, abs=1e-9)
    assert summary["makespan"] == pytest.approx(expected["makespan_s"], rel=1e-12)
    used = float((jobs["run_time"] * np.array(sizes)).sum()) / summary["makespan"] / gpus
    assert used == pytest.approx(expected["gpu_util"], abs=6e-6)
    if sizes == jobs["num_gpus"].tolist():
        assert summary["utilization"] == pytest.approx(used)


def test_every_result_of_the_independent_simulator_is_compared(shared: Path) -> None:
    path = shared / "data/traces/oracle-dev.json"
    if not path.exists():
        pytest.skip("the results of the independent simulator are not on this machine")
    assert {key for key in json.loads(path.read_text("utf-8")) if key[0] != "_"} == set(KEYS)
