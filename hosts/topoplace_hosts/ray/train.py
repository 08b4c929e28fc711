"""Ray Train on the GPUs of a gang: a worker's rank is its task, so ranks follow the order of the ring."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from topoplace.errors import require_package
from topoplace_hosts.ray.package import ray

if TYPE_CHECKING:
    from topoplace.jobs.job_graph import JobGraph
    from topoplace_hosts.ray.gang import Gang

require_package("ray.train", "topoplace_hosts.ray.train")
_train: Final[Any] = import_module("ray.train")
_backend: Final[Any] = import_module("ray.train.backend")
_NODE_ID = "ray.io/node-id"
"""The label by which Ray lets a bundle ask for one node."""
_ONE_CPU: Mapping[str, float] = {"CPU": 1}


class TrainWorkers:
    """The arguments for a trainer of Ray Train whose workers are the tasks of a gang.

    The worker of rank r runs on the machine of task `tasks[r]`, and sees only the GPU that the policy chose for it.
    gang: has to stay reserved until `fit` returns. resources: what each worker reserves in Ray in addition to its GPU.
    Ray Train numbers workers machine by machine. ValueError if the job has no such order, such as a ring that comes
    back to a machine. `any_order` numbers the tasks of one machine together instead.
    """

    def __init__(
        self, gang: Gang, resources: Mapping[str, float] = _ONE_CPU, *, any_order: bool = False
    ) -> None:
        if "GPU" in resources:
            raise ValueError("resources['GPU']: the gang has the GPUs; leave it out")
        placement = gang.placement
        machines = [placement.topology.gpus[gpu].machine for gpu in placement.gpus]
        tasks = rank_order(gang.job, machines)
        if tasks is None and not any_order:
            raise ValueError(
                f"{gang.job.name} of {len(machines)} comes back to a machine, and Ray Train numbers workers machine "
                "by machine: any_order=True allows another order"
            )
        self.tasks = tuple(_by_machine(machines)) if tasks is None else tasks
        """The task of each rank."""
        self._gang = gang
        self._resources = dict(resources)

    def scaling_config(self) -> Any:
        """Return the trainer's `scaling_config`: a worker for each task, on the task's node.

        ValueError if a node is dead, or if Ray is too old to choose nodes for workers.
        """
        if "label_selector" not in getattr(_train.ScalingConfig, "__dataclass_fields__", {}):
            raise ValueError(f"Ray {ray.__version__} cannot choose nodes for workers of Ray Train: update it")
        nodes = self._gang.nodes()
        return _train.ScalingConfig(
            num_workers=len(self.tasks),
            resources_per_worker=self._resources,
            label_selector=[{_NODE_ID: nodes[task]} for task in self.tasks],
        )

    def backend_config(self, backend: Any = None) -> Any:
        """Return the trainer's `backend_config`; TorchTrainer calls it `torch_config`.

        This configuration gives each worker its GPU before the framework starts. backend: the framework's own
        configuration, such as TorchConfig(backend="nccl").
        """
        inner = _backend.BackendConfig() if backend is None else backend
        if getattr(inner.backend_cls, "has_replica_groups", False):
            raise ValueError(
                "backend: replica groups cannot be honoured, as their workers are replaced elsewhere"
            )
        nodes = self._gang.nodes()
        workers = [(nodes[task], self._gang.environment(task)) for task in self.tasks]
        return _GangConfig(inner, workers)


def rank_order(job: JobGraph, machines: Sequence[str]) -> tuple[int, ...] | None:
    """Return the task of each rank, with consecutive ranks for the tasks of each machine.

    Ranks communicate like the job's tasks of the same numbers. None if no such order is found.
    machines: the machine of each task.
    """
    for tasks in _orders(machines):
        named = [machines[task] for task in tasks]
        if _num_changes(named) == len(set(named)) - 1 and _keeps(job, tasks):
            return tuple(tasks)
    return None


def _orders(machines: Sequence[str]) -> Iterator[list[int]]:
    """Yield orders in which the tasks may be numbered: their own, that turned to the next machine, by machine."""
    count = len(machines)
    yield list(range(count))
    starts = [task for task in range(1, count) if machines[task] != machines[task - 1]]
    if len(starts) == len(set(machines)):  # the first machine is also the last
        yield from ([(start + rank) % count for rank in range(count)] for start in starts)
    yield _by_machine(machines)


def _by_machine(machines: Sequence[str]) -> list[int]:
    first = {name: task for task, name in reversed(list(enumerate(machines)))}
    return sorted(range(len(machines)), key=lambda task: (first[machines[task]], task))


def _num_changes(machines: Sequence[str]) -> int:
    return sum(one != other for one, other in pairwise(machines))


def _keeps(job: JobGraph, tasks: Sequence[int]) -> bool:
    """Return True if the tasks communicate in this order as in their own."""
    rank = {task: number for number, task in enumerate(tasks)}
    weights = {frozenset((u, v)): weight for u, v, weight in job.edges}
    return all(weights.get(frozenset((rank[u], rank[v]))) == weight for u, v, weight in job.edges)


class _GangConfig(_backend.BackendConfig):  # type: ignore[misc]
    """The configuration of a framework, with the node and the variables of each rank."""

    def __init__(self, inner: Any, workers: list[tuple[str, dict[str, str]]]) -> None:
        self.inner = inner
        self.workers = workers

    @property
    def backend(self) -> Any:
        """The communication library that the framework's configuration names; TorchTrainer looks at it."""
        return getattr(self.inner, "backend", None)

    @backend.setter
    def backend(self, name: Any) -> None:
        self.inner.backend = name

    @property
    def backend_cls(self) -> Any:
        return _GangBackend

    @property
    def train_func_context(self) -> Any:
        return self.inner.train_func_context

    @property
    def framework(self) -> Any:
        return self.inner.framework

    def to_dict(self) -> dict[str, Any]:
        return dict(self.inner.to_dict())


class _GangBackend(_backend.Backend):  # type: ignore[misc]
    """Gives workers their GPUs, then starts the framework's own backend."""

    def on_start(self, worker_group: Any, backend_config: _GangConfig) -> None:
        nodes = worker_group.execute(_node)
        for rank, (node, (expected, environment)) in enumerate(
            zip(nodes, backend_config.workers, strict=True)
        ):
            if node != expected:
                raise RuntimeError(f"rank {rank} is on node {node}, not on {expected}, which has its GPU")
            worker_group.execute_single(rank, _set, environment)
        inner = backend_config.inner
        inner.backend_cls().on_start(worker_group, inner)

    def on_training_start(self, worker_group: Any, backend_config: _GangConfig) -> None:
        inner = backend_config.inner
        inner.backend_cls().on_training_start(worker_group, inner)

    def on_shutdown(self, worker_group: Any, backend_config: _GangConfig) -> None:
        inner = backend_config.inner
        inner.backend_cls().on_shutdown(worker_group, inner)


def _node() -> str:
    node: str = ray.get_runtime_context().get_node_id()
    return node


def _set(environment: dict[str, str]) -> None:
    os.environ.update(environment)
