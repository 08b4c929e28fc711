"""Job requests: one object for all interchangeable jobs, so that work done for one job is reused for the others."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from topoplace import kernels
from topoplace.cluster.hosts import host_demand, needs_hosts, whole_job
from topoplace.engine.admission import memory_limits, suits_of
from topoplace.engine.machines.machine_class import MachineClass, MachineClasses, Mask, mask_of, members
from topoplace.engine.memo import Memo
from topoplace.jobs.collectives import PATTERN_KINDS
from topoplace.jobs.groups import GPU, SOCKET
from topoplace.jobs.requirements import WHOLE_GPU
from topoplace.mig import PresentSlice, Reslicing, parts_of, profiles_of_gpu, start_for, thousandths
from topoplace.objectives.links import scores_in
from topoplace.objectives.pair_links import communication_cost_from

if TYPE_CHECKING:
    from topoplace.engine.machines.machine_conditions import MachineState
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.topology import Topology

Built = TypeVar("Built")
_NO_SLICES: Final[Sequence[PresentSlice]] = ()
_MAX_COMPARED_EDGES = 256
_EXACT_GPUS = 8
"""Largest number of free GPUs for which the mapping is found by exact search, in microseconds; above it, by bisection.
"""


resource_key: Final = attrgetter(
    *(
        "num_tasks",
        "processes",
        "cpus",
        "memory_gb",
        "drives",
        "gpu_model",
        "gpu_memory_gb",
        "single_machine",
    ),
    *("gpu_fraction", "mig", "anti_affinity", "within", "prefer", "spread", "max_machines", "same_gpus"),
    *("groups", "balanced"),
)
"""Returns a key that is equal for jobs with equal resource needs and constraints; communication is ignored."""


def request_key(job: JobGraph) -> Hashable:
    """Return a key that is equal for jobs that have the same possible placements with the same scores.

    It contains the `resource_key`, the edges, collectives, roles and profile, the memory bandwidth, `tflop`,
    `bandwidth_sensitive`, and whether the job has a `min_utility`, but not which. Jobs of more than 256 edges have
    equal keys only if they share one tuple of edges, and with it their collectives. The caller must keep this tuple
    alive, as the key contains its id.
    """
    edges: Hashable = job.edges if len(job.edges) <= _MAX_COMPARED_EDGES else id(job.edges)
    sends = not (job.stated_collectives or job.name in PATTERN_KINDS) or isinstance(edges, int)
    collectives = () if sends else job.collectives
    return (
        *resource_key(job),
        *(edges, collectives, job.roles, job.profile, job.memory_bandwidth),
        *(job.bandwidth_sensitive, job.tflop, job.min_utility > 0),
    )


def exact_request_key(job: JobGraph) -> Hashable:
    """Return a key that is equal for jobs that no policy can distinguish: `request_key` and all fields that it leaves
    out.
    """
    return (request_key(job), job.name, job.min_utility)


def _most_thousandths(mig: str, topology: Topology) -> int:
    """Return the thousandths of memory of a slice of this profile, on the GPU where they are most; 1 if none has it."""
    some = (gpu for template in topology.templates for gpu in template.gpus)
    kinds = {(gpu.model, gpu.memory_gb): gpu for gpu in some}
    profiles = [profiles_of_gpu(gpu).get(mig) for gpu in kinds.values()]
    return max((thousandths(one.parts(one.starts[0])) for one in profiles if one is not None), default=1)


class JobRequest:
    """The request shared by all jobs with equal `request_key`, with cached tables derived from it.

    A `ClusterView` holds one such object per key. Every table is computed from the first job with that key and is valid
    for all others.
    """

    def __init__(self, job: JobGraph, topology: Topology) -> None:
        self.job = job
        """The first job with this request."""
        self.size = job.num_tasks
        """Number of GPUs the job needs."""
        self.share = job.gpu_thousandths if job.mig is None else _most_thousandths(job.mig, topology)
        """Thousandths of each GPU that the job needs; for a MIG slice, of the memory, where these are most."""
        self.takes_parts = job.takes_parts
        """True if the job needs shares or slices of GPUs."""
        self.profile = job.profile or ""
        """The name of the job's performance profile, "" for none."""
        self.anti_affine = job.anti_affinity and job.num_tasks > 1
        """True if no two tasks of the job may share a machine."""
        self.spread = None if job.spread == GPU else job.spread
        """The level of the fabric of which no two machines of the job share a domain."""
        self.limits_machines = bool(job.within or self.spread or job.max_machines or job.same_gpus)
        """True if not every choice of machines may share the job."""
        self.is_divided = bool(job.groups or job.balanced)
        """True if the job has groups, or equal shares, so that machines get certain tasks of it."""
        self.asks_utility = job.min_utility > 0
        """True if the job has a `min_utility`."""
        self.needs_sockets = any(SOCKET in (group.within, group.prefer) for group in job.groups)
        """True if a group asks for one socket, so that one machine with room is not enough."""
        self.fits_any_machine = not (self.anti_affine or self.needs_sockets)
        """True if any machine with room for all tasks serves the job."""
        self.in_one_socket = any(
            group.within == SOCKET and len(group.tasks) == job.num_tasks for group in job.groups
        )
        """True if one socket must have the whole job."""
        self.resource_key = resource_key(job)
        """Equal for requests with equal resource needs and constraints."""
        self._tables: Memo[Hashable, Any] = Memo()
        self._topology = topology
        self.needs_hosts = needs_hosts(job)
        """True if it asks for CPUs or host memory."""
        self.whole_job = whole_job(job) if self.needs_hosts else (-1, -1)
        """CPUs and MB that the whole job needs on one machine; (-1, -1) if it needs none."""
        self._link_scores: Memo[tuple[MachineClass, tuple[int, ...]], dict[str, float]] = Memo()
        self._mapped: Memo[tuple[MachineClass, Mask], tuple[int, ...]] = Memo()

    def table(self, key: Hashable, build: Callable[[], Built]) -> Built:
        """Return the result of `build`, which derives it from this request; it is cached under `key`."""
        found: Built = self._tables.get_or_build(key, build)
        return found

    @cached_property
    def host_demand(self) -> tuple[int, int, int, int, int, int, int] | None:
        """Return the CPUs and memory of the job, for the kernels; None if it needs none."""
        return host_demand(self.job) if self.needs_hosts else None

    @cached_property
    def weight(self) -> float:
        """Return the sum of the weights of the job graph's edges."""
        return sum(weight for _, _, weight in self.job.edges)

    @cached_property
    def mean_weight(self) -> float:
        """Return the mean weight of the job graph's edges; 0 without edges."""
        return self.weight / len(self.job.edges) if self.job.edges else 0.0

    @cached_property
    def classes_that_fit(self) -> list[MachineClass]:
        """Return the classes of machines whose GPUs can run the whole job when idle; CPUs and memory are not compared.

        Return [] if the job's tasks may not share a machine.
        """
        classes = [] if self.anti_affine else self._topology.derived(MachineClasses).classes
        return [one for one in classes if self._idle_regions(one)]

    @cached_property
    def communication_range(self) -> tuple[float, float]:
        """Return the lowest and the highest communication cost of the job on a single idle machine; (0, 0) if it fits
        none.

        Both are exact on machines of up to 8 GPUs in which every pair has a path; otherwise they are estimates.
        """
        places = [(one, region) for one in self.classes_that_fit for region in self._idle_regions(one)]
        least = (self.communication(one, self.mapped(one, region)) for one, region in places)
        most = (self._dearest(one, region) for one, region in places)
        lowest, highest = min(filter(math.isfinite, least), default=0.0), max(most, default=0.0)
        return lowest, max(lowest, highest)

    def _idle_regions(self, machine_class: MachineClass) -> list[Mask]:
        return self.regions(machine_class, self.suitable(machine_class) & machine_class.healthy)

    def _dearest(self, machine_class: MachineClass, region: Mask) -> float:
        gpus = self._map(machine_class.nearness, region)
        cost = self.communication(machine_class, gpus)
        return cost if math.isfinite(cost) else self.weight * machine_class.farthest

    @cached_property
    def memory_limits(self) -> Sequence[float]:
        """Return the limits on GPU memory (GB) to try for the job, in this order; see `memory_limits` in
        `engine.admission`.
        """
        return memory_limits(self.job, self._topology)

    def suitable(self, machine_class: MachineClass, most_memory_gb: float = math.inf) -> Mask:
        """Return the GPUs of a machine of this class with the model and memory that suit the job, as a bit mask.

        most_memory_gb: GPUs with more memory (GB) are left out.
        """
        job = self.job

        def find() -> Mask:
            suits = suits_of(job, most_memory_gb)
            return mask_of(local for local, gpu in enumerate(machine_class.gpus) if suits(gpu))

        key = job.gpu_model, job.gpu_memory_gb, job.mig, most_memory_gb
        return machine_class.suitable.get_or_build(key, find)

    @cached_property
    def whole(self) -> JobGraph:
        """Return the same job with whole GPUs, for searches that see only GPUs that can serve the job."""
        return self.job.with_(gpu_fraction=1.0, mig=None) if self.takes_parts else self.job

    def free_on(
        self, machine_class: MachineClass, state: MachineState, *, reslicing: Reslicing = Reslicing.NONE
    ) -> Mask:
        """Return the GPUs of a machine that can serve the job now; models and memory are not compared.

        state: a state that sees shares if the job takes parts of GPUs. reslicing: as for `left_on`.
        """
        if not (self.takes_parts or (reslicing and state.slices)):
            return state.free
        left = self.left_on(machine_class, state, reslicing=reslicing)
        return mask_of(gpu for gpu, share in enumerate(left) if share >= self.share)

    def left_on(
        self, machine_class: MachineClass, state: MachineState, *, reslicing: Reslicing
    ) -> tuple[int, ...]:
        """Return the thousandths of each GPU of a machine that are free for the job; 0 if they are not enough.

        state: a state that sees shares. For a MIG slice, the thousandths are those of memory in no job's slice, but at
        least those that the request needs. Models and memory are not compared.
        """
        if not state.slices and self.job.mig is None:
            return state.left
        slices: dict[int, list[PresentSlice]] = {}
        for gpu, one in state.slices:
            slices.setdefault(gpu, []).append(one)
        return tuple(
            [
                self._left(machine_class, gpu, left, slices.get(gpu, _NO_SLICES), reslicing)
                for gpu, left in enumerate(state.left)
            ]
        )

    def _left(
        self,
        machine_class: MachineClass,
        gpu: int,
        left: int,
        slices: Sequence[PresentSlice],
        reslicing: Reslicing,
    ) -> int:
        held = parts_of(one for one in slices if one.is_held)
        if self.job.mig is None:
            return WHOLE_GPU if slices and not held and reslicing is Reslicing.ALL_GPUS else left
        profiles = machine_class.mig_profiles[gpu]
        profile = profiles.get(self.job.mig)
        can_cut = slices or (left == WHOLE_GPU and reslicing is Reslicing.ALL_GPUS)
        if profile is None or not can_cut:
            return 0
        if start_for(profile, profiles, slices, may_reslice=bool(reslicing)) is None:
            return 0
        return max(self.share, WHOLE_GPU - thousandths(held))

    def regions(self, machine_class: MachineClass, free: Mask) -> list[Mask]:
        """Return the sets of GPUs of one machine from which the job may take its GPUs.

        The only set is `free`, if it is large enough. For a job in one socket, the sets are the free GPUs of each
        socket with enough of them. If the machine's GPUs are only allocated in fixed partitions, the sets are the free
        partitions of exactly the job's size.
        """
        parts, are_fixed = self._parts_of(machine_class)
        if are_fixed:
            return [part for part in parts if part & free == part and part.bit_count() == self.size]
        inside = [free & part for part in parts] or [free]
        return [part for part in inside if part.bit_count() >= self.size]

    def parts_of(self, machine_class: MachineClass) -> tuple[list[tuple[int, ...]], bool]:
        """Return the parts of a machine, and True if they are fixed.

        The job is inside one part; it gets all of it if the parts are fixed. Without parts, it may get any GPUs.
        """
        parts, are_fixed = self._parts_of(machine_class)
        return [tuple(members(part)) for part in parts], are_fixed

    def _parts_of(self, machine_class: MachineClass) -> tuple[Sequence[Mask], bool]:
        if machine_class.partitions:
            return machine_class.partitions, True
        return machine_class.sockets if self.in_one_socket else (), False

    def communication(self, machine_class: MachineClass, gpus: Sequence[int]) -> float:
        """Return the job's communication cost if task i runs on `gpus[i]` of one machine.

        The cost is infinite if two tasks that communicate have no path between their GPUs.
        """
        return communication_cost_from(self.job.edges, gpus, machine_class.rows)

    def link_scores(self, machine_class: MachineClass, gpus: tuple[int, ...]) -> dict[str, float]:
        """Return the link scores (`objectives.links.scores_from`) of the job if task i runs on `gpus[i]`."""
        key = (machine_class, gpus)
        if key not in self._link_scores:
            tables = machine_class.bandwidth, machine_class.classes
            self._link_scores[key] = scores_in(self.job.edges, gpus, *tables)
        return self._link_scores[key]

    def mapped(self, machine_class: MachineClass, region: Mask) -> tuple[int, ...]:
        """Return the GPU of each task in the mapping of lowest communication cost found within `region`.

        The region must have at least one GPU per task. The mapping is optimal if the region has at most 8 GPUs; among
        equal distances, it prefers faster links.
        """
        key = (machine_class, region)
        if key not in self._mapped:
            self._mapped[key] = self._map(machine_class.target, region)
        return self._mapped[key]

    def _map(self, target: kernels.TargetDistance, region: Mask) -> tuple[int, ...]:
        free = list(members(region))
        if self.size == 1:
            return (free[0],)
        method: Literal["exact", "drb"] = "exact" if len(free) <= _EXACT_GPUS else "drb"
        found = kernels.map_graph(self.job.graph, target, method=method, free=free)
        assert found is not None  # the region is large enough
        return tuple(found.target_of.tolist())
