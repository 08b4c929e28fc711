"""JobGraph: the tasks of a job, how much each pair of them communicates, and the job's requirements."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, SupportsIndex

import numpy as np

from topoplace import _checks
from topoplace._lazy import above
from topoplace.errors import JobGraphError
from topoplace.jobs import collectives
from topoplace.jobs.collectives import PATTERN_KINDS, Batch, Collective
from topoplace.jobs.groups import INNER_LEVELS, MACHINE, Group, blocks, checked_groups
from topoplace.jobs.patterns import PATTERN_EDGES, Edges, edge_array, edge_tuples
from topoplace.jobs.requirements import FIELDS, MAX_EDGES, MAX_TASKS, REQUIREMENTS, WHOLE_GPU
from topoplace.mig import compute_share

if TYPE_CHECKING:
    import networkx as nx
    from numpy.typing import ArrayLike, NDArray

    from topoplace.jobs.parallel import Degrees
    from topoplace.jobs.parallel_traffic import Traffic
    from topoplace.kernels import Graph, JobCollectives

EdgeSpec = tuple[int, int] | tuple[int, int, float]
"""An edge as an argument: (a, b) of weight 1, or (a, b, weight)."""
_parsed: Callable[[str | bytes], JobGraph] = above("parsed_job")
_written: Callable[[JobGraph], str] = above("written_job")
_resized: Callable[[JobGraph, int], JobGraph] = above("resized_job")
_sizes_of: Callable[[JobGraph], tuple[int, ...]] = above("sizes_of_job")


@dataclass(frozen=True)
class JobGraph:
    """A job: its tasks, each of which needs one GPU, and how much each pair of tasks communicates.

    Patterns with edges of weight 1 are `ring`, `chain`, `star`, `tree`, `clique`, `mesh`, `torus`, `allreduce` and
    `independent`. `parallel` and `from_collectives` build training jobs; `joined` combines the jobs of several roles.
    `from_edges`, `from_matrix` and `from_networkx` read any graph; `from_traffic` and `from_nccl_log` read what a job
    did. Add requirements with `with_`, and change the number of tasks with `with_tasks`. Job graphs are immutable,
    hashable and picklable.

    Raises:
        JobGraphError: Names the invalid argument, index and value.
    """

    num_tasks: int
    edges: tuple[tuple[int, int, float], ...] = ()
    """(a, b, weight) for each pair of communicating tasks, a < b, sorted; weights are positive, in any unit."""
    name: str = "custom"
    bandwidth_sensitive: bool = False
    """True if the job runs slower on slower links (MAPA's distinction)."""
    min_utility: float = 0.0
    """Minimum utility, 0..1: under `LeastTime` and `TopoAwareP`, the job waits for a placement with at least this
    utility.
    """
    gpu_memory_gb: float | None = None
    """Memory needed on each GPU, GB; None if unknown."""
    gpu_model: str | tuple[str, ...] | None = None
    """Required model of every GPU, or a tuple of accepted models; None for any."""
    gpu_fraction: float = 1.0
    """Share of each GPU that the job uses: 0.001 to 1, in steps of 0.001. Below 1, other jobs may share its GPUs."""
    cpus: float | None = None
    """CPUs needed by the whole job, in steps of 0.001, counted like `HostResources.cpus`."""
    memory_gb: float | None = None
    """Host memory needed by the whole job, GB."""
    single_machine: bool = False
    """True if all tasks must be on one machine."""
    anti_affinity: bool = False
    """True if no two tasks may share a machine."""
    profile: str | None = None
    """Name of the job's performance profile, such as "alexnet/1"."""
    memory_bandwidth: float | None = None
    """Bandwidth of host memory needed by the whole job, GB/s (SC'17's t_bw); None if unknown."""
    processes: int = 1
    """Number of host processes that drive the GPUs, each with an equal share of `cpus` and `memory_gb`. They get tasks
    in blocks: task i belongs to process i * processes // num_tasks."""
    drives: int = 0
    """Number of storage devices that the job needs exclusively."""
    within: str | None = None
    """Level of the fabric, such as "nvlink_domain": all machines of the job must be in one domain of this level.
    "machine" becomes `single_machine`, and "socket" a group of all tasks.
    """
    prefer: str | None = None
    """Level of the fabric: one domain of this level is preferred for the job, even if that takes more machines.
    "machine" and "socket" become a group of all tasks.
    """
    spread: str | None = None
    """Level of the fabric, such as "rack": no two machines of the job may be in one domain of this level. With "gpu", a
    job that shares GPUs gets the emptiest ones.
    """
    max_machines: int | None = None
    """Limit on the number of machines of the job; None for no limit."""
    same_gpus: bool = False
    """True if every machine of the job must give GPUs with the same local numbers, such as those of one rail."""
    priority: int = 0
    """Priority in queues that use one: jobs with a higher number come first. A job below 0 is pre-emptible."""
    group: str | None = None
    """The user or group whose share and quota count in queues."""
    mig: str | None = None
    """MIG profile, such as "1g.10gb": each task gets a slice of this profile, on its own GPU; None for no slices. Links
    between slices count as those between their GPUs.
    """
    groups: tuple[Group, ...] = ()
    """Groups of tasks that must or should be in one domain of a level; see `grouped`. Required groups are nested or
    disjoint.
    """
    balanced: str | None = None
    """"machine" or a level of the fabric: the fewest possible domains of this level share the job, as evenly as
    possible.
    """
    stated_collectives: tuple[Collective, ...] = ()
    """The collectives, if they are not those that the name and the edges imply; () if they are. Read `collectives`,
    which has either. The edges are the sums of the collectives' GB, unless other edges are given.
    """
    roles: tuple[tuple[str, int], ...] = ()
    """The name and the number of tasks of each role of a job from `joined`; `dimensions` has the tasks themselves."""
    tflop: float | None = None
    """10¹² floating-point operations in a step of the task that computes most; None if unknown."""
    degrees: Degrees | None = None
    """How `parallel` divides the job, from which its collectives follow; None for other jobs."""
    elastic: tuple[int, int] | None = None
    """The least and the largest number of tasks with which the job can run, see `sizes`; None for its own number."""

    @property
    def gpu_thousandths(self) -> int:
        """Return `gpu_fraction` in thousandths, the unit in which clusters count shares."""
        return round(self.gpu_fraction * WHOLE_GPU)

    @property
    def is_preemptible(self) -> bool:
        """Return True if `priority` is below 0: the job may run on lent spares, and stops when a repair needs them."""
        return self.priority < 0

    @property
    def takes_parts(self) -> bool:
        """Return True if the job takes shares or MIG slices of GPUs, not whole ones."""
        return self.mig is not None or self.gpu_fraction < 1

    @property
    def gpu_share(self) -> float:
        """Return the share of each GPU that the job uses: that of the compute slices for `mig`, else `gpu_fraction`."""
        return self.gpu_fraction if self.mig is None else compute_share(self.mig)

    def __post_init__(self) -> None:
        keep = object.__setattr__  # only this method may write: it brings the fields to canonical form
        least = 0 if self.cpus or self.memory_gb else 1  # a job without GPUs must need something else
        size = _checks.integer(self.num_tasks, "num_tasks", JobGraphError, low=least, high=MAX_TASKS)
        keep(self, "num_tasks", size)
        keep(self, "edges", _checked_edges(self.edges, self.num_tasks))
        for field, check in FIELDS.items():
            keep(self, field, check(getattr(self, field), field))
        self._keep_inner_levels()
        if self.degrees is not None:
            self._keep_degrees(self.degrees)
        elif self.stated_collectives != ():
            self._keep_collectives(self.stated_collectives)
        if self.roles != ():
            stated = {one.dimension for one in self.collectives}
            from topoplace.jobs import roles

            keep(self, "roles", roles.checked_roles(self.roles, self.num_tasks, stated))
        self._refuse_contradiction()
        self._refuse_other_sizes()

    # ---- patterns ------------------------------------------------------------------------------------------

    @classmethod
    def ring(cls, k: int) -> Self:
        """Build k tasks in a ring: task i communicates with task i + 1, and the last task with the first.

        `ring(2)` has one edge, `ring(1)` none.
        """
        return cls._pattern("ring", _checked_size(k, "k"))

    @classmethod
    def chain(cls, k: int) -> Self:
        """Build k tasks in a chain: task i communicates with task i + 1."""
        return cls._pattern("chain", _checked_size(k, "k"))

    @classmethod
    def star(cls, k: int) -> Self:
        """Build k tasks in a star: task 0 communicates with every other task."""
        return cls._pattern("star", _checked_size(k, "k"))

    @classmethod
    def tree(cls, k: int) -> Self:
        """Build k tasks in a binary tree in heap order: task i communicates with its parent (i - 1) // 2."""
        return cls._pattern("tree", _checked_size(k, "k"))

    @classmethod
    def clique(cls, k: int) -> Self:
        """Build k tasks that all communicate with each other; JobGraphError for more than 2**23 edges."""
        if (k := _checked_size(k, "k")) * (k - 1) // 2 > MAX_EDGES:
            raise JobGraphError(f"k = {k}: a clique must have at most {MAX_EDGES} edges")
        return cls._pattern("clique", k)

    @classmethod
    def mesh(cls, dims: Sequence[int]) -> Self:
        """Build a grid of tasks in which each task communicates with its neighbours along every axis.

        Tasks are numbered in row-major order.

        Args:
            dims: Length of each axis, for any number of axes.
        """
        return cls._pattern("mesh", *_checked_grid(dims))

    @classmethod
    def torus(cls, dims: Sequence[int]) -> Self:
        """Build a grid of tasks like `mesh`, in which the first and the last task along every axis also communicate.

        Args:
            dims: Length of each axis. Along an axis of length 2, each pair of tasks has one edge, not two.
        """
        return cls._pattern("torus", *_checked_grid(dims))

    @classmethod
    def allreduce(cls, k: int) -> Self:
        """Build k tasks with the edges of both `ring(k)` and `tree(k)`, the patterns of ring and tree all-reduce."""
        return cls._pattern("allreduce", _checked_size(k, "k"))

    @classmethod
    def independent(cls, k: int) -> Self:
        """Build k tasks that do not communicate."""
        return cls._pattern("independent", _checked_size(k, "k"))

    @classmethod
    def without_gpus(cls, *, cpus: float | None = None, memory_gb: float | None = None) -> Self:
        """Build a job without tasks, which needs only CPUs or memory (GB); for clusters with known host resources.

        Raises:
            JobGraphError: Neither `cpus` nor `memory_gb` is above 0.
        """
        return cls(0, (), "without_gpus", cpus=cpus, memory_gb=memory_gb)

    # ---- any graph -----------------------------------------------------------------------------------------

    @classmethod
    def from_edges(cls, k: int, edges: Iterable[EdgeSpec], *, name: str = "custom") -> Self:
        """Build a job graph of k tasks from edges (a, b), which have weight 1, or (a, b, weight).

        A pair of tasks may occur only once, in either order. All edges are sends that run at the same time, in one
        phase; use `from_collectives` for rings and phases.

        Raises:
            JobGraphError: Names a wrong edge.
        """
        return cls(k, _checks.sequence(edges, "edges", JobGraphError), name)

    @classmethod
    def from_matrix(cls, weights: ArrayLike, *, name: str = "custom") -> Self:
        """Build a job graph from a symmetric (k, k) matrix of weights; 0 means no communication, as on the diagonal."""
        matrix = _checks.symmetric_matrix(weights, "weights", JobGraphError)
        a, b = np.nonzero(np.triu(matrix))
        return cls._trusted(len(matrix), edge_tuples(a, b, matrix[a, b]), name)

    @classmethod
    def from_traffic(cls, sent: ArrayLike, *, least_share: float = 0.0, name: str = "custom") -> Self:
        """Build a job graph from measured traffic: `sent[a][b]` bytes, in any unit, go from task a to task b.

        All pairs communicate at the same time, in one phase. The source is MAPA (SC'21), section 3.1.

        Args:
            sent: (k, k), not necessarily symmetric; the diagonal is ignored. An edge's weight is the traffic of the
                pair, both directions, divided by that of the busiest pair: 0..1.
            least_share: Pairs with a lower weight are left out, such as those that only exchange control messages.

        Raises:
            JobGraphError: Names a wrong argument.
        """
        matrix = _checks.square_matrix(sent, "sent", JobGraphError)
        np.fill_diagonal(matrix, 0.0)
        least = _checks.real(least_share, "least_share", JobGraphError, high=1.0)
        scaled = matrix / (matrix.max(initial=0.0) or 1.0)  # sums of large numbers stay finite
        both = np.triu(scaled + scaled.T, 1)
        share = both / (both.max(initial=0.0) or 1.0)
        a, b = np.nonzero((share > 0) & (share >= least))
        return cls(_checked_size(len(matrix), "the size of sent"), edge_tuples(a, b, share[a, b]), name)

    @classmethod
    def from_nccl_log(cls, text: str | bytes, *, pattern: str = "ring", name: str = "nccl") -> Self:
        """Build a job graph from what NCCL prints about a communicator with NCCL_DEBUG=INFO; task i is rank i.

        Rings of more than 20 ranks are complete only with NCCL_DEBUG_SUBSYS=INIT,GRAPH. An edge's weight is the number
        of channels that join the two ranks. With COLL in that list, `collectives` has the GB of all operations in the
        log, by kind.

        The source is MAPA (SC'21), section 3.1.

        Args:
            pattern: "ring" or "tree", the algorithm whose edges count.
            text: The log of one communicator.

        Raises:
            JobGraphError: Names a line that contradicts another, or says what the log lacks.
        """
        from topoplace.jobs import nccl_log

        ranks, counts = nccl_log.edges_of(text, pattern)
        edges = tuple((a, b, float(count)) for (a, b), count in sorted(counts.items()))
        return cls(ranks, edges, name, stated_collectives=nccl_log.collectives_of(text, ranks))

    @classmethod
    def from_collectives(
        cls, num_tasks: int, collectives: Iterable[Collective], *, name: str = "custom"
    ) -> Self:
        """Build a job graph from groups of tasks that communicate; an edge's weight is the GB that its tasks exchange.

        Raises:
            JobGraphError: Names a wrong collective, or a task that is not below `num_tasks`.
        """
        return cls(
            num_tasks, (), name, stated_collectives=_checks.ordered(collectives, "collectives", JobGraphError)
        )

    @classmethod
    def parallel(
        cls,
        *,
        tensor: int = 1,
        pipeline: int = 1,
        data: int | tuple[int, int] = 1,
        context: int = 1,
        expert: int = 1,
        traffic: Traffic | None = None,
        order: str = "tensor-context-data-pipeline",
        name: str = "parallel",
    ) -> Self:
        """Build a training job of tensor x context x data x pipeline tasks; task i is rank i, as Megatron-LM counts.

        Args:
            tensor: Number of tasks among which each layer is divided.
            pipeline: Number of stages into which the layers are divided.
            data: Number of tasks that do the same with other data. (4, 12) makes an elastic job of 12 that can run with
                4 or more, see `sizes`.
            context: Number of tasks among which each sequence is divided.
            expert: Number of consecutive data ranks among which the experts are divided; a divisor of `data`.
            traffic: What the model moves and computes in a step; None means 1 GB for each collective.
            order: The dimensions; the first one has neighbouring ranks.

        Raises:
            JobGraphError: Names a wrong argument, or a dimension for which `traffic` says nothing.
        """
        from topoplace.jobs import parallel

        least, most = parallel.data_range(data)
        degrees, smallest = (
            parallel.Degrees(
                tensor=tensor,
                pipeline=pipeline,
                data=degree,
                context=context,
                expert=expert,
                traffic=traffic,
                order=order,
            )
            for degree in (most, least)
        )
        return cls(
            degrees.num_tasks,
            (),
            name,
            tflop=degrees.tflop,
            degrees=degrees.without_tflop(),
            elastic=(smallest.num_tasks, degrees.num_tasks),
        )

    @classmethod
    def joined(
        cls,
        roles: Sequence[JobGraph],
        traffic: Mapping[tuple[str | int, str | int], float] | None = None,
        *,
        name: str = "joined",
    ) -> Self:
        """Build one job of several roles, such as the prefill and decode instances of a model.

        The tasks are numbered role after role. A role has the name of its job, with its index if several have that
        name. `dimensions` has the tasks of each role by name, so `grouped("decode", prefer="rack")` groups one role.
        Edges, collectives and groups of each role stay; a role that is itself joined counts as one. A role's `within`,
        `prefer` or `single_machine` becomes a group. CPUs, host memory and its bandwidth, and drives add up; each task
        must need the same. `tflop` is the largest of any role, if all state it. Other requirements must be equal, and
        hold for the joined job.

        Args:
            roles: The job of each role.
            traffic: GB in each step between two roles, both directions together, by pairs of names or indices:
                `{("prefill", "decode"): 8.0}`. Every task of one role sends an equal share to every task of the other.

        Raises:
            JobGraphError: Names a wrong pair of roles, or a requirement in which the roles differ.
        """
        from topoplace.jobs.roles import joined_fields

        jobs = _checks.ordered(roles, "roles", JobGraphError)
        for i, job in enumerate(jobs):
            _checks.instance(job, JobGraph, f"roles[{i}]", JobGraphError)
        return cls(name=name, **joined_fields(jobs, traffic))

    @classmethod
    def from_networkx(cls, g: nx.Graph[Any], weight: str = "weight", *, name: str = "custom") -> Self:
        """Build a job graph from an undirected networkx graph, whose i-th node becomes task i.

        Args:
            weight: The edge attribute with the weights, 1 if missing.
        """
        _checks.simple_graph(g, "g", JobGraphError)
        index = {node: i for i, node in enumerate(g.nodes)}
        edges = tuple((index[a], index[b], value) for a, b, value in g.edges(data=weight, default=1.0))
        return cls(len(index), edges, name)

    @classmethod
    def from_json(cls, text: str | bytes) -> JobGraph:
        """Read a job graph from JSON that `to_json` wrote, or that names a pattern, such as
        `{"pattern": "ring", "num_tasks": 4, "bandwidth_sensitive": true}`.

        A text with a pattern may have any field of this class except edges. A mesh or torus has `dims` instead of
        `num_tasks`.

        Raises:
            JobGraphError: Says what is wrong with the text.
        """
        return _parsed(text)

    # ---- use -----------------------------------------------------------------------------------------------

    def with_(self, **requirements: Any) -> Self:
        """Return a copy with some fields changed, by name: any field after `edges` except `stated_collectives`, `roles`
        and `degrees`.

        Raises:
            JobGraphError: Names an unknown field, an invalid value, or requirements that exclude each other.
        """
        for field, value in requirements.items():
            if field not in FIELDS:
                raise JobGraphError(f"{field} is not a requirement; known: {', '.join(FIELDS)}")
            requirements[field] = FIELDS[field](value, field)
        copy = object.__new__(type(self))
        vars(copy).update(vars(self) | requirements)
        for kept in ("requirements", "sizes", "_hash"):
            vars(copy).pop(kept, None)
        copy._keep_inner_levels()
        if copy.name != self.name and not PATTERN_KINDS.keys().isdisjoint((copy.name, self.name)):
            copy._keep_collectives(self.collectives)  # another name does not change what the tasks do
        copy._refuse_contradiction()
        copy._refuse_other_sizes()
        return copy

    def grouped(
        self,
        groups: SupportsIndex | Sequence[int] | str,
        *,
        within: str | None = None,
        prefer: str | None = None,
    ) -> Self:
        """Return a copy with groups of tasks, each of which must or should be in one domain of a level.

        Call it again for groups inside groups: `job.grouped(8, within="machine").grouped(64, prefer="leaf")`.

        Args:
            groups: The size of consecutive groups (the last may be smaller); a size for each; or the name of a
                dimension, for its groups.
            within: Level at which one domain must have all tasks of a group: "socket", "machine" or a level of the
                fabric. A group on one machine satisfies any level of the fabric.
            prefer: Level at which one domain should have all tasks of a group, if possible.

        Raises:
            JobGraphError: Names a wrong size or dimension, or required groups that cross.
        """
        if isinstance(groups, str):
            if groups not in self.dimensions:
                known = ", ".join(self.dimensions) or "none"
                raise JobGraphError(f"groups = {groups!r} is no dimension of the job; it has {known}")
            found: Sequence[tuple[int, ...]] = self.dimensions[groups]
        else:
            found = blocks(self.num_tasks, groups)
        return self.with_(groups=(*self.groups, *(Group(tasks, within, prefer) for tasks in found)))

    def with_tasks(self, num_tasks: int) -> JobGraph:
        """Return the job with another number of tasks: of a job of `parallel` only the data dimension changes.

        Other jobs are those of a pattern such as `ring`, or whose tasks do not communicate. CPUs, host memory and its
        bandwidth, and processes change in proportion; other requirements stay. Groups must be those of a dimension,
        consecutive blocks of one size, or of all tasks, and are made again.

        Args:
            num_tasks: For a job of `parallel`, a multiple of its tasks in a data rank, times `expert`; for an elastic
                job, one of `sizes`.

        Raises:
            JobGraphError: Names a wrong number, or says why the job has no other size.
        """
        size = _checked_size(num_tasks, "num_tasks")
        return self if size == self.num_tasks else _resized(self, size)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Return the numbers of tasks with which the job can run, the largest first; one, unless the job is elastic.

        A policy places a job as it is; `with_tasks` makes its smaller forms. In a queue (`Policy.plan`, `simulate`), an
        elastic job starts with the largest number that fits.
        """
        return _sizes_of(self)

    def to_json(self) -> str:
        """Return the job graph as canonical JSON: equal job graphs give equal text."""
        return _written(self)

    @cached_property
    def requirements(self) -> tuple[str, ...]:
        """Return the names of the requirement fields whose value is not the default, such as `cpus`.

        Zero CPUs do not count. Fields that only describe a job are no requirements: `name`, `bandwidth_sensitive`,
        `profile`, `priority`, `group`, `tflop` and `elastic`.
        """
        values = _required(self)
        if values == _DEFAULTS:
            return ()
        stated = zip(REQUIREMENTS, values, _DEFAULTS, strict=True)
        return tuple([name for name, value, default in stated if value and value != default])

    @property
    def gpu_models(self) -> tuple[str, ...]:
        """Return the models of GPU that the job accepts; () for any."""
        return (self.gpu_model,) if isinstance(self.gpu_model, str) else self.gpu_model or ()

    @cached_property
    def collectives(self) -> tuple[Collective, ...]:
        """Return the collectives of the job: those stated, or those that the name and the edges imply.

        The patterns `ring`, `tree` and `allreduce` imply an all-reduce of 1 GB among all tasks, `clique` an all-to-all.
        Other jobs without stated collectives send along their edges.
        """
        if self.stated_collectives:
            return self.stated_collectives
        if self.name in PATTERN_KINDS and vars(self).get("made_as") == self.name:
            return collectives.of_pattern(self.name, self.num_tasks)  # millions of edges need not be compared
        return collectives.implied(self.name, self.num_tasks, self.edges)

    @cached_property
    def dimensions(self) -> Mapping[str, tuple[tuple[int, ...], ...]]:
        """Return the groups of each dimension of parallelism, as tuples of tasks; read-only.

        A job without named dimensions has the dimension "all". Each role is a dimension with one group, its tasks.
        """
        found = collectives.dimensions(self.collectives)
        if not self.roles:
            return found
        from topoplace.jobs import roles

        return MappingProxyType({**found, **{name: (tasks,) for name, tasks in roles.tasks_of(self.roles)}})

    @cached_property
    def traffic(self) -> Mapping[str, tuple[Batch, ...]]:
        """Return the collectives of each dimension as arrays, in batches of one kind and size; read-only."""
        if not self.stated_collectives and self.name not in PATTERN_KINDS and self.edges:
            pairs, carried = self.edge_array[:, :2].astype(np.int64), self.edge_array[:, 2].copy()
            return MappingProxyType({"all": (Batch("send", pairs, carried),)})
        return collectives.batches(self.collectives)

    @cached_property
    def traffic_arrays(self) -> JobCollectives:
        """Return `traffic` for the kernels; it is built once and cached."""
        from topoplace.kernels.job_traffic import JobCollectives

        if self.stated_collectives or self.name in PATTERN_KINDS:
            return collectives.arrays_of(self.traffic)
        return JobCollectives.of_sends(self.edges)

    @cached_property
    def graph(self) -> Graph:
        """Return the tasks and edges as a graph for the kernels; it is built once and cached."""
        from topoplace import kernels

        return kernels.Graph.from_edges(self.num_tasks, self.edge_array)

    @cached_property
    def edge_array(self) -> NDArray[np.float64]:
        """Return (m, 3), read-only: a row (a, b, weight) for each edge."""
        array = edge_array(self.edges)
        array.setflags(write=False)
        return array

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Return the hash of all fields: they have thousands of entries, and memos ask for it often."""
        return hash(tuple(getattr(self, field.name) for field in fields(self) if field.compare))

    def __getstate__(self) -> dict[str, Any]:
        # The cached native graph and array are left out, and the hash, as texts have another one in each process.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def _pattern(cls, name: str, *sizes: int) -> Self:
        make: Callable[..., Self] = _kept_pattern if math.prod(sizes) <= _MAX_KEPT_TASKS else _made_pattern
        return make(cls, name, sizes)

    @classmethod
    def _trusted(cls, num_tasks: int, edges: tuple[tuple[int, int, float], ...], name: str) -> Self:
        """Build a job graph from edges without checking them: sorted, with a < b and weights above 0."""
        job = cls(num_tasks, (), name)
        vars(job)["edges"] = edges
        return job

    def _keep_degrees(self, degrees: Degrees) -> None:
        """Write the collectives and edges of a job that `parallel` divides; no others may be given."""
        from topoplace.jobs.parallel import Degrees

        _checks.instance(degrees, Degrees, "degrees", JobGraphError)
        if degrees.num_tasks != self.num_tasks:
            raise JobGraphError(f"degrees have {degrees.num_tasks} tasks, the job has {self.num_tasks}")
        if self.edges or self.stated_collectives:
            raise JobGraphError("degrees and other edges or collectives exclude each other")
        self._keep_collectives(degrees.collectives())

    def _keep_collectives(self, given: Iterable[Collective]) -> None:
        """Write the collectives, as () if they are implied, and without edges also what they carry."""
        stated = collectives.checked(given, self.num_tasks)
        edges = self.edges
        if not edges:
            edges = self._keep_edge_array(*collectives.summed(stated))
        may_be_implied = len(stated) in (1, len(edges))
        if may_be_implied and stated == collectives.implied(self.name, self.num_tasks, edges):
            stated = ()
        vars(self).update(edges=edges, stated_collectives=stated)

    def _keep_edge_array(
        self, a: NDArray[np.int64], b: NDArray[np.int64], weights: NDArray[np.float64]
    ) -> Edges:
        """Keep edges as an array, which takes seconds to make from millions of tuples; return these tuples."""
        array = np.column_stack((a, b, weights)) if len(a) else np.empty((0, 3))
        array.setflags(write=False)
        vars(self)["edge_array"] = array
        return edge_tuples(a, b, weights)

    def _keep_inner_levels(self) -> None:
        """Write a level inside the fabric's as what says the same: `single_machine`, or a group of all tasks."""
        stated = {
            name: level for name in ("within", "prefer") if (level := getattr(self, name)) in INNER_LEVELS
        }
        if stated.get("within") == MACHINE:
            vars(self).update(single_machine=True, within=None)
            del stated["within"]
        for name, level in stated.items():
            groups = list(self.groups)
            if self.num_tasks:
                groups.append(Group(tuple(range(self.num_tasks)), **{name: level}))
            vars(self).update({name: None, "groups": checked_groups(groups, "groups")})

    def _refuse_contradiction(self) -> None:
        if self.single_machine and self.anti_affinity and self.num_tasks > 1:
            raise JobGraphError("single_machine and anti_affinity exclude each other for more than one task")
        if not self.num_tasks and not (self.cpus or self.memory_gb):
            raise JobGraphError("a job without tasks needs cpus or memory_gb")
        if self.mig is not None and (self.gpu_fraction < 1 or not self.num_tasks):
            lack = f"gpu_fraction = {self.gpu_fraction:g}" if self.num_tasks else "a job without tasks"
            raise JobGraphError(f"mig = {self.mig!r} and {lack} exclude each other")
        if self.groups and (task := max(group.tasks[-1] for group in self.groups)) >= self.num_tasks:
            raise JobGraphError(f"groups: task {task} is in a group, the job has {self.num_tasks} tasks")
        if self.processes > (most := max(self.num_tasks, 1)):
            raise JobGraphError(f"processes = {self.processes}: must be at most {most}, the number of tasks")

    def _refuse_other_sizes(self) -> None:
        """Raise JobGraphError if an elastic job cannot have each of its sizes, such as for its groups."""
        if self.elastic is not None:
            self.with_tasks(self.sizes[-1])


def _made_pattern(cls: type[Any], name: str, sizes: tuple[int, ...]) -> Any:
    job = cls._trusted(math.prod(sizes), (), name)
    a, b = PATTERN_EDGES[name](*sizes)
    vars(job)["edges"] = job._keep_edge_array(a, b, np.ones(len(a)))
    vars(job)["made_as"] = name if len(a) else None
    return job


_required = attrgetter(*REQUIREMENTS)
_DEFAULTS: tuple[Any, ...] = _required(JobGraph)

_MAX_KEPT_TASKS = 256
_kept_pattern = lru_cache(maxsize=1024)(_made_pattern)  # job graphs are immutable, so callers can share one

PATTERNS: Mapping[str, Callable[[int], JobGraph]] = MappingProxyType(
    {name: getattr(JobGraph, name) for name in PATTERN_EDGES if name not in ("mesh", "torus")}
)
"""The constructors of all patterns that take a number of tasks, by pattern name."""


def _checked_grid(dims: Sequence[int]) -> tuple[int, ...]:
    given = _checks.sequence(dims, "dims", JobGraphError)
    if not given:
        raise JobGraphError("dims is empty")
    sizes = tuple(_checked_size(d, f"dims[{i}]") for i, d in enumerate(given))
    _checked_size(math.prod(sizes), f"the product of dims = {_checks.shown(given)}:")
    return tuple(size for size in sizes if size > 1) or (1,)


def _checked_size(value: object, what: str) -> int:
    return _checks.integer(value, what, JobGraphError, low=1, high=MAX_TASKS)


def _checked_edges(edges: Iterable[Sequence[Any]], num_tasks: int) -> tuple[tuple[int, int, float], ...]:
    place: dict[tuple[int, int], int] = {}
    checked: list[tuple[int, int, float]] = []
    for i, spec in enumerate(edges):
        parts = _checks.sequence(spec, f"edges[{i}]", JobGraphError)
        if len(parts) not in (2, 3):
            raise JobGraphError(f"edges[{i}] = {_checks.shown(parts)} is not (a, b[, weight])")
        a = _checks.integer(parts[0], f"edges[{i}][0]", JobGraphError, low=0, high=num_tasks - 1)
        b = _checks.integer(parts[1], f"edges[{i}][1]", JobGraphError, low=0, high=num_tasks - 1)
        weight = _checks.positive(parts[2] if len(parts) == 3 else 1.0, f"edges[{i}][2]", JobGraphError)
        if a == b:
            raise JobGraphError(f"edges[{i}] = ({a}, {b}) joins a task with itself")
        pair = (a, b) if a < b else (b, a)
        if (first := place.setdefault(pair, i)) != i:
            raise JobGraphError(f"edges[{i}] = ({a}, {b}) repeats edges[{first}]")
        checked.append((*pair, weight))
    return tuple(sorted(checked))
