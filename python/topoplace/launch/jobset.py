"""Start a placed job in Kubernetes: a JobSet with a pod on each machine, in which torchrun starts the ranks."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from topoplace.binding import Launch
from topoplace.errors import AllocationError
from topoplace.launch.environment import makers_of
from topoplace.launch.ranks import Ranks
from topoplace.launch.torchrun import PORT, Node, nodes, started_ranks
from topoplace.topology.makers import Maker

_RESOURCE: Final = {Maker.NVIDIA: "nvidia.com/gpu", Maker.AMD: "amd.com/gpu"}
_RANKED: Final = (
    'RANK=$(echo $TOPOPLACE_RANKS | cut -d" " -f$((LOCAL_RANK + 1))); ROLE_RANK=$RANK; '
    'export RANK ROLE_RANK; exec "$@"'
)
"""The shell command that gives process i of a pod the i-th rank of TOPOPLACE_RANKS, and starts the program after it."""
_NAME_LENGTH: Final = 30
"""Limit on the JobSet's name: a pod's name, which extends it, may have 63 characters."""


def jobset(ranks: Ranks, program: str) -> Launch:
    """Return a JobSet; AllocationError if a pod could get other GPUs than those of the placement.

    A device plugin chooses the GPUs of a pod that does not request all GPUs of its machine.
    """
    (maker,) = makers_of(ranks.placement.topology, ranks.placement.gpus)
    if maker not in _RESOURCE:
        raise AllocationError(f'launcher = "jobset": the resource of {maker.value} devices is not known')
    job = ranks.placement.job
    if job is not None and job.takes_parts:
        raise AllocationError('launcher = "jobset": a pod gets whole GPUs, the job takes shares of them')
    machines = nodes(ranks)
    for node in machines:
        _refuse_part(ranks, node)
    name = _name(ranks)
    words = shlex.split(program)
    is_ordered = not any(started_ranks(machines))
    if not is_ordered:
        words = ["sh", "-c", _RANKED, "rank", *words]
    pods: list[dict[str, Any]] = []
    for number, node in enumerate(machines):
        container = {
            "name": "main",
            "image": "IMAGE",
            "command": [*_torchrun(machines, number, f"{name}-m0-0-0.{name}"), *words],
            "env": [{"name": key, "value": value} for key, value in _variables(node, is_ordered).items()],
            "resources": {"limits": {_RESOURCE[maker]: len(node.tasks)}},
        }
        where = {} if ranks.is_unnamed else {"nodeSelector": {"kubernetes.io/hostname": node.machine}}
        pods.append({"restartPolicy": "Never", **where, "containers": [container]})
    return Launch({"jobset.yaml": _written(name, pods)}, "kubectl apply -f jobset.yaml")


def _refuse_part(ranks: Ranks, node: Node) -> None:
    have = ranks.placement.topology.gpus_of[node.machine]
    own = {ranks.placement.gpus[task] for task in node.tasks}.intersection(have)
    if not len(own) == len(have) == len(node.tasks):
        raise AllocationError(
            f'launcher = "jobset": the job has {len(own)} of the {len(have)} GPUs of {node.machine}, and Kubernetes '
            "chooses which; topoplace's scheduler and device plugin give exact ones (docs/integrations/kubernetes.md)"
        )


def _name(ranks: Ranks) -> str:
    """Return a name that Kubernetes allows, with the name of the job in it."""
    job = ranks.placement.job
    own = re.sub(r"[^a-z0-9]+", "-", "" if job is None else job.name.lower())[:_NAME_LENGTH].strip("-")
    return f"topoplace-{own}" if own else "topoplace"


def _torchrun(machines: Sequence[Node], number: int, first: str) -> list[str]:
    return [
        "torchrun",
        f"--nnodes={len(machines)}",
        f"--node-rank={number}",
        f"--nproc-per-node={len(machines[number].tasks)}",
        f"--master-addr={first}",
        f"--master-port={PORT}",
        "--no-python",
    ]


def _variables(node: Node, is_ordered: bool) -> dict[str, str]:
    ranks = {} if is_ordered else {"TOPOPLACE_RANKS": " ".join(map(str, node.tasks))}
    return {**node.variables, **ranks}


def _written(name: str, pods: Sequence[Mapping[str, Any]]) -> str:
    jobs = [
        {
            "name": f"m{i}",
            "replicas": 1,
            "template": {
                "spec": {"parallelism": 1, "completions": 1, "backoffLimit": 0, "template": {"spec": pod}}
            },
        }
        for i, pod in enumerate(pods)
    ]
    body = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name},
        "spec": {"network": {"enableDNSHostnames": True}, "replicatedJobs": jobs},
    }
    lines = "".join(f"{line}\n" for line in _yaml(body, ""))
    return f"# Put the name of your container image in place of IMAGE. Written by topoplace.\n{lines}"


def _yaml(value: Mapping[str, Any], indent: str) -> Iterator[str]:
    """Yield the lines of a mapping in YAML; texts are written as in JSON, which YAML contains."""
    for key, item in value.items():
        if isinstance(item, dict) and item:
            yield f"{indent}{key}:"
            yield from _yaml(cast("dict[str, Any]", item), f"{indent}  ")
        elif isinstance(item, list) and item and isinstance(item[0], dict):
            yield f"{indent}{key}:"
            for one in cast("list[dict[str, Any]]", item):
                first, *rest = _yaml(one, f"{indent}  ")
                yield f"{indent}- {first.lstrip()}"
                yield from rest
        else:
            yield f"{indent}{key}: {json.dumps(item)}"
