"""The GPUs of one job in Ray, reserved together until they are released."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self
from weakref import finalize

from topoplace._checks import integer
from topoplace_hosts.ray.package import placement_groups, ray, strategies
from topoplace_hosts.ray.resources import nodes_by_resource

if TYPE_CHECKING:
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Placement


class Gang:
    """A job's GPUs, which nothing else gets in Ray; task i runs on the GPU that the policy chose for it.

    The GPUs are released by `release`, at the end of a `with` block, and when the driver ends. They are also released
    once all actors from `start` are dead, or nothing refers to the gang. Ray then kills what still runs on the GPUs.
    """

    def __init__(self, job: JobGraph, placement: Placement, resources: list[str], group: Any) -> None:
        self.job = job
        """The job that was placed."""
        self.placement = placement
        """The decision, with its scores."""
        self.actors: list[Any] = []
        """The actors that `start` made, by task."""
        self._resources = resources
        self._group = group
        self._devices = _devices_of(placement)
        self._release = finalize(self, _remove, group)

    def options(self, task: int) -> dict[str, Any]:
        """Return the arguments of the method `options` of the actor or remote function that runs a task.

        CUDA_VISIBLE_DEVICES of its process is the task's GPU. ValueError if there is no such task.
        """
        environment = self.environment(task)
        return {
            "resources": {self._resources[task]: 1.0},
            "num_gpus": 0,
            "scheduling_strategy": strategies.PlacementGroupSchedulingStrategy(
                self._group, placement_group_bundle_index=task
            ),
            "runtime_env": {"env_vars": environment},
        }

    def environment(self, task: int) -> dict[str, str]:
        """Return the variables by which a process sees only the GPU of its task; ValueError if there is none."""
        task = integer(task, "task", ValueError, low=0, high=len(self._resources) - 1)
        return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": self._devices[task]}

    def nodes(self) -> list[str]:
        """Return the id of each task's node in Ray; ValueError if one is dead."""
        alive = nodes_by_resource()
        for task, name in enumerate(self._resources):
            if name not in alive:
                raise ValueError(f"task {task}: the node of {name} is not alive")
        return [alive[name] for name in self._resources]

    def start(
        self, actor: Any, arguments: Callable[[int], Iterable[Any]] = lambda task: (task,)
    ) -> list[Any]:
        """Start an actor for each task, and return their handles in the order of tasks.

        actor: a class with `@ray.remote`. arguments: the arguments of the actor of each task; by default its number,
        which is its rank in the ring.
        """
        if self.actors:
            raise ValueError("the gang's actors have already started")
        self.actors = [
            actor.options(**self.options(task)).remote(*arguments(task))
            for task in range(len(self._resources))
        ]
        return self.actors

    @property
    def is_released(self) -> bool:
        """Return True if others may get the GPUs."""
        return not self._release.alive

    def release(self) -> None:
        """Release the GPUs, unless they are released already."""
        self._release()

    def release_if_dead(self) -> bool:
        """Release the gang if it has started actors, and all are dead; return True if it is released."""
        if self.actors and not self.is_released and all(map(_is_dead, self.actors)):
            self.release()
        return self.is_released

    def __enter__(self) -> Self:
        """Return the gang."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release the GPUs."""
        self.release()


def _remove(group: Any) -> None:
    if ray.is_initialized():
        placement_groups.remove_placement_group(group)


def _is_dead(actor: Any) -> bool:
    """Return True if an actor is dead; one that is busy or still starts is not."""
    asked = actor.__ray_ready__.remote()
    ready, _ = ray.wait([asked], timeout=0.05)
    if not ready:
        return False
    try:
        ray.get(asked)
    except ray.exceptions.RayActorError as error:
        error.__traceback__ = None  # its frames would keep a gang alive to which nothing else refers
        return not isinstance(error, ray.exceptions.ActorUnavailableError)
    return False


def _devices_of(placement: Placement) -> list[str]:
    """Return the device of each task, as CUDA_VISIBLE_DEVICES names it on its machine."""
    machines = [placement.topology.gpus[gpu].machine for gpu in placement.gpus]
    devices: dict[str, Iterator[str]] = {}
    for key, value in placement.env().items():
        if isinstance(value, dict):
            devices[key] = iter(value["CUDA_VISIBLE_DEVICES"].split(","))
        elif key == "CUDA_VISIBLE_DEVICES":
            devices[machines[0]] = iter(value.split(","))
    return [next(devices[machine]) for machine in machines]
