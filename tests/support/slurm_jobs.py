"""What a job in a toy Slurm cluster was decided, what Slurm gave it, and what it saw itself."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from topoplace_hosts.journal import Journal, Stage
from topoplace_hosts.slurm.client.jobs import node_names
from topoplace_hosts.slurm.testing import SlurmCluster

SEES = (
    'echo "$SLURMD_NODENAME $CUDA_VISIBLE_DEVICES"'
    " >> seen.${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}.$SLURM_ARRAY_TASK_ID; "
)
"""The first line of a job's script: it notes its first node and its devices; once more after each requeue."""

Held = tuple[frozenset[str], frozenset[int]]
"""Nodes, and the device numbers of each."""


class Mismatch(NamedTuple):
    """A job of which not all three say the same."""

    job_id: str
    decided: list[Held]
    slurm: Held
    job: list[tuple[str, frozenset[int]]]


def told(journal: Journal, job_id: str) -> list[Held]:
    """Return every place that was ever decided for the job."""
    return [
        (
            frozenset(machine for machine, _ in one.gpus),
            frozenset(int(gpu.removeprefix("GPU")) for _, gpu in one.gpus),
        )
        for one in journal.history(job_id)
        if one.stage is Stage.INTENT
    ]


def given(slurm: SlurmCluster, job_id: str) -> Held:
    """Return what `scontrol show job -d` says that the job got."""
    text = slurm.run("scontrol", "-d", "-o", "show", "job", job_id)
    nodes = re.search(r" NodeList=(\S*)", text)
    gres = re.search(r" JOB_GRES=(\S*)", text)
    devices = re.findall(r"gpu:g(\d+):[1-9]", gres[1] if gres else "")
    return frozenset(node_names(nodes[1] if nodes else "")), frozenset(map(int, devices))


def seen(slurm: SlurmCluster, job_id: str) -> list[tuple[str, frozenset[int]]]:
    """Return the first node and the devices that the job itself saw, each time that it started."""
    number, _, task = job_id.partition("_")
    path = slurm.folder / "out" / f"seen.{number}.{task}"
    lines = path.read_text("utf-8").split("\n")[:-1] if path.exists() else []
    rows = [line.partition(" ") for line in lines]
    return [(node, frozenset(map(int, filter(None, devices.split(","))))) for node, _, devices in rows]


def mismatch(slurm: SlurmCluster, journal: Journal, job_id: str) -> Mismatch | None:
    """Return how decision, Slurm and a job that has started differ; None if they agree."""
    places, gave, saw = told(journal, job_id), given(slurm, job_id), seen(slurm, job_id)
    agree = gave in places and all(
        any(node in nodes and numbers == devices for nodes, numbers in places) for node, devices in saw
    )
    last = not saw or saw[-1][1] == gave[1]
    return None if agree and last else Mismatch(job_id, places, gave, saw)


def wait_for(
    what: Callable[[], object],
    each: Callable[[], object],
    timeout_s: float = 60.0,
    instead: Callable[[], object] = lambda: "",
) -> None:
    """Call `each` until `what` returns something true; AssertionError with `instead()` after `timeout_s`."""
    end = time.monotonic() + timeout_s
    while not what():
        assert time.monotonic() < end, f"it did not happen in time: {instead()}"
        each()
        time.sleep(0.05)


def states(slurm: SlurmCluster) -> Mapping[str, str]:
    """Return the state and the reason of each job in the queue, by id."""
    rows = [line.split() for line in slurm.run("squeue", "-h", "-r", "-o", "%i %t %r").splitlines()]
    return {row[0]: " ".join(row[1:]) for row in rows}


def make_eligible(slurm: SlurmCluster) -> None:
    """Let requeued jobs start in two seconds, and not in two minutes.

    Within a second, Slurm takes the new start for the old one, whose credential is revoked, and ends the job.
    """
    for line in slurm.run("squeue", "-h", "-t", "PD", "-O", "JobID:|,EligibleTime:|").splitlines():
        job, eligible, *_ = line.split("|")
        if eligible.isdigit() and int(eligible) > time.time() + 10:
            slurm.try_run("scontrol", "update", f"JobId={job}", "StartTime=now+2")
