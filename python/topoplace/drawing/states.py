"""The state of each GPU in a drawing: free, in use by a job, chosen for a task, unhealthy, degraded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from topoplace import _checks
from topoplace.drawing import style
from topoplace.drawing.scene import Line, Rect, Scene, Text, fitted
from topoplace.errors import TopologyError
from topoplace.jobs.job_graph import JobGraph
from topoplace.topology.device_numbers import device_numbers
from topoplace.topology.topology import Topology

if TYPE_CHECKING:
    from numpy.typing import NDArray

Busy = Iterable[int] | Mapping[str, Iterable[int]]
"""GPUs in use, or the GPUs of each job by its name."""
_MEANINGS: Final = {
    "free": "free",
    "busy": "in use",
    "chosen": "chosen",
    "unhealthy": "out of service",
    "other": "free or in use",
}
_TASK_SIZE: Final = 9.0
_LONGEST_NAME: Final = 110.0


@dataclass(frozen=True)
class States:
    """The state of each GPU of a topology, checked."""

    topology: Topology
    task_of: Mapping[int, int]
    """The task of each chosen GPU."""
    job_of: Mapping[int, str]
    """The job of each GPU in use; "" if unknown."""
    degraded: frozenset[int]
    is_use_known: bool = True
    """False if GPUs may be in use that are not in `job_of`."""

    @cached_property
    def unhealthy(self) -> frozenset[int]:
        """Return the GPUs that must not get jobs."""
        return frozenset(self.topology.unhealthy_gpus)

    @cached_property
    def colour_of(self) -> Mapping[str, int]:
        """Return the colour class of each named job, from 1 for the job with the most GPUs; jobs beyond the last class
        share 0.
        """
        sizes: dict[str, int] = {}
        for job in self.job_of.values():
            sizes[job] = sizes.get(job, 0) + 1
        ranked = sorted((job for job in sizes if job), key=lambda job: -sizes[job])
        return {job: i + 1 if i < style.JOBS else 0 for i, job in enumerate(ranked)}

    @cached_property
    def free_of(self) -> NDArray[np.int64]:
        """Return (m,) the number of free GPUs of each machine, without the chosen ones."""
        topology = self.topology
        taken = np.zeros(topology.num_gpus, dtype=bool)
        taken[[*self.job_of, *self.task_of, *self.unhealthy]] = True
        return np.bincount(topology.machine_of[~taken], minlength=topology.num_machines)

    def state(self, gpu: int) -> str:
        """Return the first of "chosen", "unhealthy", "busy" and "free" that is true; "other" if unknown."""
        if gpu in self.task_of:
            return "chosen"
        if gpu in self.unhealthy:
            return "unhealthy"
        if gpu in self.job_of:
            return "busy"
        return "free" if self.is_use_known else "other"

    def classes(self, gpu: int) -> str:
        """Return the classes of a GPU."""
        state = self.state(gpu)
        found = f"gpu {state}"
        if state == "busy" and (job := self.job_of[gpu]):
            found += f" of-job job-{self.colour_of[job]}"
        return f"{found} degraded" if gpu in self.degraded else found

    def explain(self, scene: Scene, classes: str) -> None:
        """Add an entry for the classes of a GPU to the legend."""
        names = classes.split()
        if names[-1] == "degraded":
            scene.explain("gpu free degraded", "degraded")
            names.pop()
        if "of-job" not in names:
            scene.explain(" ".join(names), _MEANINGS[names[1]])
            return
        scene.explain(" ".join(names), self.job_words(int(names[-1].removeprefix("job-"))))

    def job_words(self, number: int) -> str:
        """Return the text in the legend for the colour class of jobs with this number."""
        if not number:
            return f"{sum(not colour for colour in self.colour_of.values())} other jobs"
        own = next(job for job, colour in self.colour_of.items() if colour == number)
        return fitted(own, _LONGEST_NAME, 11.0)

    def title(self, gpu: int) -> str:
        """Return the tooltip of a GPU."""
        state = self.state(gpu)
        if state == "chosen":
            state = f"task {self.task_of[gpu]}"
        elif state == "busy":
            state = f"in use {self.job_of[gpu]}".strip()
        else:
            state = _MEANINGS[state]
        return f"{self.topology.derived(_in_words)[gpu]}, {state}"


def numbers_shown(topology: Topology) -> Sequence[int]:
    """Return the number that a picture shows for each GPU: on one machine, its device number; on several, its id."""
    return topology.derived(device_numbers) if topology.num_machines == 1 else range(topology.num_gpus)


def _in_words(topology: Topology) -> Sequence[str]:
    """Return what each GPU is: its number, model, name, machine and socket."""
    found: list[str] = []
    for gpu, number in zip(topology.gpus, numbers_shown(topology), strict=True):
        parts = [f"GPU {number}", gpu.model or "", gpu.name, gpu.machine]
        parts += [] if gpu.socket is None else [f"socket {gpu.socket}"]
        found.append(", ".join(filter(None, parts)))
    return found


def states_of(
    topology: Topology, busy: Busy | None, chosen: Sequence[int], degraded: Iterable[int]
) -> States:
    """Return the states of the GPUs; TopologyError names an argument with a number that is not a GPU's.

    busy: None if unknown.
    """
    _checks.instance(topology, Topology, "topology", TopologyError)
    last = topology.num_gpus - 1

    def numbers(given: object, what: str) -> list[int]:
        listed = _checks.sequence(given, what, TopologyError)
        return [
            _checks.integer(gpu, f"{what}[{i}]", TopologyError, low=0, high=last)
            for i, gpu in enumerate(listed)
        ]

    if isinstance(busy, Mapping):
        by_job = cast("Mapping[str, Iterable[int]]", busy)
        held = {
            gpu: _checks.text(job, "a job in busy", TopologyError)
            for job, gpus in by_job.items()
            for gpu in numbers(gpus, f"busy[{_checks.shown(job)}]")
        }
    else:
        held = dict.fromkeys(numbers(() if busy is None else busy, "busy"), "")
    tasks = numbers(chosen, "chosen")
    if len(set(tasks)) < len(tasks):
        raise TopologyError(f"chosen = {_checks.shown(tasks)} lists a GPU twice")
    task_of = {gpu: task for task, gpu in enumerate(tasks)}
    return States(topology, task_of, held, frozenset(numbers(degraded, "degraded")), busy is not None)


def check_job(job: JobGraph | None, states: States, what: str) -> None:
    """Raise TopologyError, naming `what`, unless `job` is None or has one task for each chosen GPU."""
    if job is None:
        return
    _checks.instance(job, JobGraph, "job", TopologyError)
    if states.task_of and len(states.task_of) != job.num_tasks:
        raise TopologyError(f"{what} has {len(states.task_of)} GPUs for {job.num_tasks} tasks of the job")


def draw_gpu(scene: Scene, states: States, gpu: int, box: Rect) -> None:
    """Draw a GPU with its number in the rectangle `box`; a chosen one with its task, if there is room."""
    classes = states.classes(gpu)
    states.explain(scene, classes)
    middle, number = box.x + box.width / 2, str(states.topology.derived(numbers_shown)[gpu])
    size = min(14.0, box.height * 0.62, (box.width - 2) / (0.66 * len(number)))
    task = f"task {states.task_of[gpu]}" if gpu in states.task_of else ""
    if box.height < 2.8 * _TASK_SIZE:
        task = ""
    shapes: list[Rect | Line | Text] = [box]
    if states.state(gpu) == "busy":
        shapes.append(replace(box, classes="taken"))
    if size >= 6:
        base = box.y + box.height / 2 + size * 0.36 - (5 if task else 0)
        shapes.append(Text(middle, base, number, size, classes="label strong"))
    if task := fitted(task, box.width, _TASK_SIZE):
        shapes.append(Text(middle, box.y + box.height - 5, task, _TASK_SIZE))
    scene.add(*shapes, classes=classes, data={"gpu": str(gpu)}, title=states.title(gpu))
