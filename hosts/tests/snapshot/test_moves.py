"""Moves of running jobs that Slurm or Kubernetes can carry out: whole clusters as they print them, checked by hand.

What a scheduler can carry out is decided here from what the text was made of, by rules of its manual: scontrol(1)
`requeue`, sbatch(1) `--nodes`, `--gres` and `--constraint`, and the predicates of kube-scheduler.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from kubernetes_objects import node_json, pod_json
from scontrol_texts import node as slurm_node
from scontrol_texts import waiting
from topoplace.engine.plan import Plan
from topoplace.moving import MoveCosts, defragment, make_room
from topoplace.snapshot import Snapshot, when

SECONDS = 2.0
"""Limit on each search: a plan that is found must be right whether it is the best or not."""
SEEDS = st.integers(0, 1 << 32)
FEATURES, KINDS, PARTITIONS = ("", "ib"), ("a100", "h100"), ("batch", "long", "batch,long")


@dataclass(frozen=True)
class Node:
    """A node, and what may run there."""

    name: str
    gpus: int
    kind: str = "a100"
    feature: str = ""
    partitions: str = "batch"
    drained: bool = False
    tainted: bool = False


@dataclass(frozen=True)
class Job:
    """A job: its parts, which are nodes of Slurm or pods of Kubernetes, and what its host was told."""

    name: str
    sizes: tuple[int, ...]
    """GPUs of each part."""
    own: Mapping[str, Any] = field(default_factory=dict[str, Any])
    fixed: bool = False
    """True if its host starts it nowhere else."""


@dataclass
class Host:
    """A cluster as its scheduler knows it."""

    nodes: list[Node]
    jobs: list[Job]
    held: dict[str, list[tuple[str, tuple[int, ...]]]]
    """The node of each part of a running job, and its GPUs there."""
    wanted: Job

    def may_run(self, job: Job, node: Node) -> bool:
        raise NotImplementedError

    def text(self) -> str:
        raise NotImplementedError

    def faults(self, job: Job, parts: Sequence[Sequence[tuple[str, int]]]) -> Iterator[str]:
        """Yield why a job cannot have these GPUs, by node and number there, for its parts."""
        by_name = {node.name: node for node in self.nodes}
        for size, part in zip(job.sizes, parts, strict=True):
            names = {name for name, _ in part}
            if len(part) != size or len(names) != 1:
                yield f"a part of {size} GPUs gets {part}"
            for name in names:
                if by_name[name].drained or not self.may_run(job, by_name[name]):
                    yield f"{name} is not for it"


class Slurm(Host):
    """Slurm: parts are nodes, each another one; all of a partition, with the features and the type asked for."""

    def may_run(self, job: Job, node: Node) -> bool:
        own = job.own
        return (
            own["partition"] in node.partitions.split(",")
            and own["feature"] in ("", node.feature)
            and own["kind"] in ("", node.kind)
            and own["excluded"] != node.name
        )

    def text(self) -> str:
        used: dict[str, set[int]] = {}
        for parts in self.held.values():
            for name, gpus in parts:
                used.setdefault(name, set()).update(gpus)
        found = "".join(
            slurm_node(
                one.name,
                one.gpus,
                ",".join(map(str, sorted(used.get(one.name, ())))),
                kind=one.kind,
                more=f"ActiveFeatures={one.feature}" if one.feature else "",
                state="MIXED+DRAIN" if one.drained else "MIXED",
            ).replace("Partitions=batch", f"Partitions={one.partitions}")
            for one in self.nodes
        )
        found += "".join(self._running(job) for job in self.jobs)
        job, own = self.wanted, self.wanted.own
        more = f"NumNodes={len(job.sizes)} {_limits(own)}"
        text = waiting(job.name, _request(job), more=more)
        return found + text.replace("Partition=batch", f"Partition={own['partition']}")

    def _running(self, job: Job) -> str:
        kinds = {one.name: one.kind for one in self.nodes}
        held = self.held[job.name]
        return (
            f"JobId={job.name} JobName=train\n   UserId=ann(7) GroupId=ann(7)\n   Priority=10 Nice=0\n"
            f"   JobState=RUNNING Reason=None Requeue={int(job.own['requeue'])} BatchFlag={int(job.own['batch'])}\n"
            f"   RunTime=00:30:00 TimeLimit=02:00:00\n   Partition={job.own['partition']}\n"
            f"   NodeList={','.join(name for name, _ in held)} {_limits(job.own)}\n"
            f"   NumNodes={len(held)} NumCPUs=8 NumTasks=1\n"
            + "".join(
                f"     Nodes={name} CPU_IDs=0-7 Mem=0 "
                f"GRES=gpu:{kinds[name]}:{len(gpus)}(IDX:{','.join(map(str, gpus))})\n"
                for name, gpus in held
            )
            + f"   Command=run\n   {_request(job)}\n\n"
        )

    def faults(self, job: Job, parts: Sequence[Sequence[tuple[str, int]]]) -> Iterator[str]:
        yield from super().faults(job, parts)
        names = [name for part in parts for name in {name for name, _ in part}]
        if len(set(names)) != len(names):
            yield f"its {len(parts)} nodes are {names}"


def _limits(own: Mapping[str, Any]) -> str:
    shown = {"Features": own["feature"], "ExcNodeList": own["excluded"]}
    return " ".join(f"{name}={value}" for name, value in shown.items() if value)


def _request(job: Job) -> str:
    kind = f":{job.own['kind']}" if job.own["kind"] else ""
    if len(set(job.sizes)) == 1:
        return f"TresPerNode=gres/gpu{kind}:{job.sizes[0]}"
    return f"TresPerJob=gres/gpu{kind}:{sum(job.sizes)}"


class Kubernetes(Host):
    """Kubernetes: parts are pods, each on one node, which its selector, taints and other pods allow."""

    def may_run(self, job: Job, node: Node) -> bool:
        if job.own["zone"] not in ("", node.feature) or (node.tainted and not job.own["tolerates"]):
            return False
        return node.name not in self._repelling(job)

    def _repelling(self, job: Job) -> set[str]:
        """Return the nodes with a pod that lets no pod of the job's team near."""
        return {
            name
            for other in self.jobs
            if other.own["repels"] == job.own["team"]
            for name, _ in self.held[other.name]
        }

    def text(self) -> str:
        items: list[dict[str, Any]] = [{"kind": "Node", **self._node(one)} for one in self.nodes]
        for job in (*self.jobs, self.wanted):
            items += [{"kind": "Pod", **one} for one in self._pods(job)]
        return json.dumps({"kind": "List", "items": items})

    def _node(self, one: Node) -> dict[str, Any]:
        taints = [{"key": "own", "effect": "NoSchedule"}] if one.tainted else []
        taints += [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}] if one.drained else []
        found = node_json(one.name, one.gpus, labels={"zone": one.feature}, taints=taints)
        found["status"]["capacity"] = found["status"]["allocatable"]
        return found

    def _pods(self, job: Job) -> Iterator[dict[str, Any]]:
        own = job.own
        for i, size in enumerate(job.sizes):
            fields: dict[str, Any] = {"labels": {"team": own["team"]}}
            if len(job.sizes) > 1:
                fields["labels"]["scheduling.x-k8s.io/pod-group"] = job.name
            if job.name in self.held:
                name, gpus = self.held[job.name][i]
                fields["annotations"] = {"topoplace.io/gpus": json.dumps({"main": gpus})}
                fields |= {"nodeName": name, "phase": "Running"}
            if own["zone"]:
                fields["nodeSelector"] = {"zone": own["zone"]}
            if own["tolerates"]:
                fields["tolerations"] = [{"key": "own", "operator": "Exists"}]
            if own["repels"]:
                term = {
                    "labelSelector": {"matchLabels": {"team": own["repels"]}},
                    "topologyKey": "kubernetes.io/hostname",
                }
                rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
                fields["affinity"] = {"podAntiAffinity": rule}
            pod = pod_json(f"{job.name}-{i}", size, **fields)
            if own["daemon"]:
                pod["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "name": "all"}]
            yield pod


def slurm_host(random: Random) -> Slurm:
    """Return a cluster of Slurm with jobs wherever they fit."""
    nodes = [
        Node(
            f"n{i}",
            random.choice((4, 4, 4, 8)),
            random.choice(KINDS[: 1 + (random.random() < 0.3)]),
            random.choice(FEATURES),
            random.choice((*PARTITIONS, PARTITIONS[-1])),
            random.random() < 0.1,
        )
        for i in range(random.randint(3, 5))
    ]

    def job(name: str, sizes: tuple[int, ...]) -> Job:
        own = {
            "partition": random.choice(("batch", "long")),
            "feature": random.choice(("", "", "", *FEATURES)),
            "kind": random.choice(("", "", "", *KINDS)),
            "excluded": random.choice(("", "", "n0")),
            "requeue": random.random() < 0.9,
            "batch": random.random() < 0.9,
        }
        return Job(name, sizes, own, fixed=not (own["requeue"] and own["batch"]))

    return _filled(Slurm, nodes, job, random)


def kubernetes_host(random: Random) -> Kubernetes:
    """Return a cluster of Kubernetes with pods wherever they fit."""
    nodes = [
        Node(
            f"n{i}",
            random.choice((4, 4, 4, 8)),
            feature=random.choice(("a", "b")),
            drained=random.random() < 0.1,
            tainted=random.random() < 0.2,
        )
        for i in range(random.randint(3, 5))
    ]

    def job(name: str, sizes: tuple[int, ...]) -> Job:
        own = {
            "zone": random.choice(("", "", "a", "b")),
            "tolerates": random.random() < 0.5,
            "team": random.choice(("x", "y")),
            "repels": random.choice((*[""] * 8, "x", "z")),
            "daemon": random.random() < 0.1,
        }
        # Required anti-affinity is not honoured for the pod that has it, so it stays.
        return Job(name, sizes, own, fixed=bool(own["repels"] or own["daemon"]))

    return _filled(Kubernetes, nodes, job, random)


def _filled(
    kind: Callable[..., Any], nodes: list[Node], job: Callable[[str, tuple[int, ...]], Job], random: Random
) -> Any:
    def sizes(*, alike: float = 0.9) -> tuple[int, ...]:
        count = random.choice((1, 1, 1, 1, 2, 2, 3))
        return tuple([random.choice((1, 1, 1, 2, 4))] * count if random.random() < alike else [3, 1])

    # How Slurm will divide the GPUs of `--gpus` among nodes is not known before it starts a job.
    host = kind(nodes, [], {}, job("900", sizes(alike=1.0)))
    free = {one.name: list(range(one.gpus)) for one in nodes}
    apart = isinstance(host, Slurm)
    for number in range(random.randint(1, 12)):
        one, parts = job(str(100 + number), sizes()), list[tuple[str, tuple[int, ...]]]()
        left = {name: list(gpus) for name, gpus in free.items()}
        for size in one.sizes:
            open_ = [
                name
                for name, gpus in left.items()
                if len(gpus) >= size
                and not (apart and name in dict(parts))
                and host.may_run(one, next(node for node in nodes if node.name == name))
            ]
            if not open_:
                break
            name = random.choice(open_)
            parts.append((name, tuple(sorted(random.sample(left[name], size)))))
            left[name] = [gpu for gpu in left[name] if gpu not in parts[-1][1]]
        if len(parts) == len(one.sizes):
            free = left
            host.jobs.append(one)
            host.held[one.name] = parts
    return host


def check(host: Host, found: Snapshot, plan: Plan, start: Mapping[str, Job]) -> int:
    """Check that the host can carry out a plan, and return how many jobs it moves."""
    topology, jobs = found.cluster.topology, {one.name: one for one in host.jobs}
    now = {job_id: found.cluster.gpus_of(job_id) for job_id in found.running}
    for job_id, placement in (*plan.move, *plan.start):
        name = job_id.rpartition("/")[2].removesuffix("-0")
        job = jobs[name] if job_id in found.running else start.get(job_id)
        now[job_id] = placement.gpus
        if job is None:
            continue
        assert not (job_id in found.running and job.fixed), f"{job} is to move"
        places = [(topology.gpus[gpu].machine, int(topology.local_index[gpu])) for gpu in placement.gpus]
        ends = [sum(job.sizes[: i + 1]) for i in range(len(job.sizes))]
        parts = [places[end - size : end] for size, end in zip(job.sizes, ends, strict=True)]
        if isinstance(host, Slurm):  # its nodes are all alike: the sizes count
            names = dict.fromkeys(name for name, _ in places)
            by_node = [[one for one in places if one[0] == name] for name in names]
            parts = sorted(by_node, key=len, reverse=True)
            job = Job(job.name, tuple(sorted(job.sizes, reverse=True)), job.own)
            assert len(parts) == len(job.sizes), f"{job} gets {parts}"
        assert list(host.faults(job, parts)) == [], f"{job} gets {parts}"
    assert max(Counter(gpu for gpus in now.values() for gpu in gpus).values(), default=1) == 1
    return len(plan.move)


def proposed(host: Host) -> int:
    """Check everything that is proposed for a cluster; return how many moves that is."""
    found = tp.snapshot.read(host.text())
    assert sum(map(len, found.cluster.allocations.values())) == sum(sum(job.sizes) for job in host.jobs)
    moves = 0
    waits = {one.job_id: host.wanted for one in found.waiting}
    for one in found.waiting:
        if (room := when(found, one.job_id, timeout=SECONDS).room) is not None:
            moves += check(host, found, room, waits)
    how: dict[str, Any] = {
        "movable": found.movable(),
        "policy": found.policy(tp.policies.get(tp.policies.DEFAULT)),
        "excluded": found.excluded(),
        "timeout": SECONDS,
    }
    moves += check(host, found, defragment(found.cluster, **how), {})
    for size in (3, 4):
        job = tp.JobGraph.ring(size).with_(single_machine=True)
        room = make_room(job, found.cluster, job_id="new", cost=MoveCosts(preempt=math.inf), **how)
        moves += check(host, found, room, {})
    return moves


@pytest.mark.parametrize("host", [slurm_host, kubernetes_host])
@given(seed=SEEDS)
def test_a_scheduler_can_carry_out_every_move(host: Callable[[Random], Host], seed: int) -> None:
    proposed(host(Random(seed)))


@pytest.mark.parametrize("host", [slurm_host, kubernetes_host])
def test_moves_are_proposed_at_all(host: Callable[[Random], Host]) -> None:
    assert sum(proposed(host(Random(seed))) for seed in range(20)) >= 5
