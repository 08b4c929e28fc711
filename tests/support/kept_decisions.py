"""What each built-in policy decides in the streams of `decision_streams`, a short line for each decision."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, Final

import topoplace as tp
from decision_streams import STREAMS, Operation, Stream
from topoplace.engine.driver import queue_walk
from topoplace.engine.machine_policy import MachinePolicy
from topoplace.jobs.performance_profile import PerformanceProfile
from topoplace.moving import MakingRoom
from topoplace.placement import Placement, Refusal
from topoplace.policies import Policy, QueuedJob
from topoplace_lab.simulate.disciplines.live_queue import LiveQueue

_TOP: Final = 4

_PROFILE: Final = PerformanceProfile(
    {
        **{("alexnet/1", size, "intra-socket"): 100.0 for size in (1, 2, 3)},
        ("alexnet/1", 2, "inter-socket"): 130.0,
    },
    {("alexnet/1", a, "alexnet/1", b): 110.0 + 10 * a + b for a in (1, 2) for b in (1, 2)},
)


def _variants() -> dict[str, Callable[[], Policy]]:
    """Return what builds each policy: all by name, and some with options by which they decide otherwise."""
    get: Any = tp.policies.get
    reslicing = ("best-fit", "topo-aware", "fgd")
    return {
        **{name: partial(get, name) for name in tp.policies.names()},
        **{f"{name} reslicing": lambda name=name: get(name).with_reslicing() for name in reslicing},
        "best-fit with moves": lambda: MakingRoom("best-fit", timeout=60.0),
        "drmaestro without retry": partial(
            get, "drmaestro", retry=False, gpu_topology=True, disaggregate=False
        ),
        "topo-aware-p by profile": partial(
            get, "topo-aware-p", profile=_PROFILE, memory_bandwidth=50.0, max_postponements=3
        ),
        "topo-aware as printed": partial(get, "topo-aware", utility="printed", utility_in_bipartition=True),
    }


VARIANTS: Final = _variants()
FOLDER: Final = Path(__file__).parents[1] / "policies/kept"
ASKED: Final = "streams"
"""The name under which the operations are kept."""


@dataclass
class _Waiting:
    job_id: str
    job: tp.JobGraph
    postponed: int = 0
    submit_time: float = 0.0
    requested_time: float = math.nan


class Recording:
    """Carries out a stream under a policy, and yields a line for each decision."""

    def __init__(self, policy: Policy, stream: Stream) -> None:
        self._policy = policy
        self._cluster = stream.cluster()
        self._waiting: dict[str, _Waiting] = {}
        self._number = 0
        self._renew_queue()

    def lines(self, operation: Operation) -> list[str]:
        """Carry out an operation; return a numbered line for each of its decisions."""
        self._number += 1
        return [f"{self._number} {line}" for line in getattr(self, f"_{operation.kind}")(operation)]

    # ---- decisions -----------------------------------------------------------------------------------------

    def _place(self, operation: Operation) -> Iterator[str]:
        (job,) = operation.jobs
        try:
            placement = self._policy.place(job, self._cluster)
        except ValueError as error:
            yield str(error)
            return
        if placement is None:
            refusal = self._policy.explain(job, self._cluster, 1).refusal
            assert refusal is not None
            yield reason_text(refusal)
            return
        yield placement_text(placement)
        self._cluster.allocate(f"{self._number}", placement, job)

    def _explain(self, operation: Operation) -> Iterator[str]:
        (job,) = operation.jobs
        explained = self._policy.explain(job, self._cluster, _TOP)
        if explained.refusal:
            yield reason_text(explained.refusal)
        yield from map(placement_text, explained.candidates)
        if not explained.complete:
            yield "and more"
        if isinstance(self._policy, MachinePolicy) and not explained.refusal:
            yield f"machines {list(self._policy.ranked_machines(job, self._cluster))}"

    def _queue(self, operation: Operation) -> Iterator[str]:
        for i, job in enumerate(operation.jobs):
            one = _Waiting(f"{self._number}{'abcdefgh'[i]}", job)
            self._waiting[one.job_id] = one
            if self._live:
                self._live.submit(one)
        now = float(self._number)
        queue = [QueuedJob(one.job_id, one.job, 0.0, one.postponed) for one in self._waiting.values()]
        plan = self._policy.plan(queue, self._cluster, now)
        yield from (f"start {job_id} {placement_text(one)}" for job_id, one in plan.start)
        yield from (f"move {job_id} {placement_text(one)}" for job_id, one in plan.move)
        yield from (f"defer {job_id} {reason_text(why)}" for job_id, why in plan.defer)
        yield from (f"reject {job_id} {reason_text(why)}" for job_id, why in plan.reject)
        if self._live:
            done = self._live.decide(now)
            self._live.count_deferred()
            started = [(one.job_id, placement.gpus) for one, placement in done.start]
            assert started == [(job_id, placement.gpus) for job_id, placement in plan.start]
            assert [one.job_id for one, _ in done.reject] == [job_id for job_id, _ in plan.reject]
        else:
            plan.carry_out(self._cluster)
        for job_id, _ in (*plan.start, *plan.reject):
            one = self._waiting.pop(job_id)
            if one.postponed:
                yield f"{job_id} was deferred {one.postponed} times"

    # ---- changes of the cluster ----------------------------------------------------------------------------

    def _release(self, operation: Operation) -> Iterator[str]:
        running = [*self._cluster.allocations]
        places = {int(choice * len(running)) for choice in (operation.choice, 1 - operation.choice)}
        for job_id in [running[place] for place in sorted(places) if place < len(running)]:
            self._cluster.release(job_id)
            yield job_id

    def _drain(self, operation: Operation) -> Iterator[str]:
        self._cluster.drain(self._target(operation.choice))
        yield str(self._target(operation.choice))

    def _undrain(self, operation: Operation) -> Iterator[str]:
        for gpu in self._cluster.drained_gpus():
            self._cluster.undrain(gpu)
        for machine in self._cluster.topology.machine_names:
            self._cluster.undrain(machine)
        yield "all"

    def _slice(self, operation: Operation) -> Iterator[str]:
        """Make the last sliced GPU of which no job holds a slice whole again, or slice the first free A100."""
        cluster = self._cluster
        idle = [gpu for gpu in cluster.sliced_gpus if not cluster.shares_of(gpu)]
        able = [gpu for gpu in cluster.free_gpus() if cluster.topology.gpus[gpu].model == "A100"]
        if idle and operation.choice < 0.5:
            cluster.slice_gpu(idle[-1], ())
            yield f"{idle[-1]} no more"
        elif able:
            cluster.slice_gpu(able[0], ("3g.20gb", "2g.10gb", "1g.5gb"))
            yield str(able[0])

    def _restore(self, operation: Operation) -> Iterator[str]:
        """Go on with a restored cluster; the waiting jobs are given up."""
        self._cluster = tp.Cluster.restore(self._cluster.snapshot())
        self._renew_queue()
        yield f"{self._cluster.num_free} free"

    def _target(self, choice: float) -> int | str:
        """Return a machine, or more often a GPU."""
        names = self._cluster.topology.machine_names
        targets = [*range(self._cluster.topology.num_gpus), *names]
        return targets[int(choice * len(targets))]

    def _renew_queue(self) -> None:
        rule = queue_walk(self._policy, self._cluster)
        self._live = LiveQueue[_Waiting](rule) if rule else None
        self._waiting.clear()


def decisions(variant: str, stream: str) -> list[list[str]]:
    """Return the lines of one policy for each operation of a stream."""
    recording = Recording(VARIANTS[variant](), STREAMS[stream])
    return [recording.lines(operation) for operation in STREAMS[stream].operations(stream)]


def asked(stream: str) -> list[list[str]]:
    """Return a numbered line for each operation of a stream."""
    operations = enumerate(STREAMS[stream].operations(stream), 1)
    return [
        [f"{number} {one.kind} {'; '.join(map(job_text, one.jobs))}".strip()] for number, one in operations
    ]


def shortened(stream: str, lines: list[list[str]]) -> list[str]:
    """Return the lines of the first quarter of a stream, and a line of digests of later operations."""
    length = STREAMS[stream].length
    first, later = lines[: length // 4], lines[length // 4 :]
    digests = (sha256("\n".join(one).encode()).hexdigest()[:3] for one in later)
    return [*chain.from_iterable(first), " ".join(digests)]


# ---- files ---------------------------------------------------------------------------------------------------


def path_of(name: str) -> Path:
    """Return the file of a variant, or that of `asked`."""
    return FOLDER / f"{name.replace(' ', '-')}.txt"


def paths() -> set[Path]:
    """Return all files of kept decisions."""
    return {path_of(name) for name in (ASKED, *VARIANTS)}


def read(name: str) -> dict[str, list[str]]:
    """Return the kept lines of each stream."""
    parts = path_of(name).read_text("utf-8").split("# ")[1:]
    return {title: lines for title, *lines in map(str.splitlines, parts)}


def write(name: str, lines_of: Callable[[str], list[list[str]]]) -> None:
    """Write the lines of each stream, shortened, to the file of `name`."""
    parts = ("\n".join((f"# {stream}", *shortened(stream, lines_of(stream)))) for stream in STREAMS)
    path_of(name).write_text("\n".join(parts) + "\n", "utf-8")


# ---- texts ---------------------------------------------------------------------------------------------------

_SHORT: Final = {
    "cannot start now: ": "not now: ",
    "never fits: ": "never: ",
    ", as a policy with_reslicing() may, or --reslice": "",
}
_UNSAID: Final = {"num_tasks", "edges", "name", "bandwidth_sensitive"}


def job_text(job: tp.JobGraph) -> str:
    """Return a job's kind, size and requirements; `!` marks one that is sensitive to bandwidth."""
    wishes = [
        f"{field.name}={getattr(job, field.name)}"
        for field in fields(job)
        if field.name not in _UNSAID and getattr(job, field.name) != field.default
    ]
    return " ".join((f"{job.name} {job.num_tasks}{'!' * job.bandwidth_sensitive}", *wishes))


def placement_text(placement: Placement) -> str:
    """Return GPUs, host resources and rounded scores."""
    shares = [f"{share.machine}:{share.cpus:g}/{share.memory_gb:g}" for share in placement.hosts]
    slices = [f"{one.profile}@{one.start}" for one in placement.slices]
    parts: Mapping[str, object] = {
        "hosts": shares,
        "remote": placement.remote,
        "drives": placement.drives,
        "slices": slices,
        "resliced": placement.resliced,
    }
    stated = [f"{name} {_listed(value)}" for name, value in parts.items() if value]
    scores = [number_text(value) for _, value in sorted(placement.scores.items())]
    proof = ["optimal"] if placement.optimal else []
    return " ".join((_listed(placement.gpus) or "no GPU", *stated, *proof, "|", *scores))


def reason_text(refusal: Refusal) -> str:
    """Return a reason in fewer words."""
    reason = refusal.reason
    for long, short in _SHORT.items():
        reason = reason.replace(long, short)
    return reason


def number_text(value: float) -> str:
    """Return four digits of a number; what lies between two roundings is rounded up, whatever its last bits are."""
    return f"{value + abs(value) * 1e-7 + 0.0:.4g}"


def _listed(values: object) -> str:
    return ",".join(map(str, values))  # type: ignore[call-overload]
