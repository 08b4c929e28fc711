"""
Native core of topoplace: graphs and kernels. Use it through topoplace, not directly.
"""
from __future__ import annotations
import collections.abc
import numpy
import numpy.typing
import typing
__all__: list[str] = ['BipartitionAnswer', 'CapacityAnswer', 'CapacityTables', 'ChannelRules', 'ClusterState', 'CollectiveNetwork', 'ConditionSets', 'DomainFill', 'DomainTree', 'FlowAnswer', 'FlowCounts', 'FlowNetwork', 'Fragmentation', 'GangGroups', 'GangLevels', 'GangLimits', 'GangMachines', 'GangRoom', 'GangTopology', 'GpuDistances', 'Graph', 'JobCollectives', 'LeastTime', 'LinkCountScore', 'Machine', 'MachineConditions', 'MachineLimits', 'MachineRanking', 'PortNetwork', 'RatedSets', 'RingNetwork', 'RingRates', 'TargetDistance', 'TerminalGraph', 'Transaction', 'are_columns', 'best_channels', 'best_remainder', 'best_subgraph', 'bipartition', 'can_be_divided', 'can_place_gang', 'channel_rate', 'count_subgraphs', 'count_vectors', 'distribute', 'divide', 'divide_gang', 'divide_tasks', 'enumerate_subgraphs', 'exchanges_of', 'flows_of', 'free_offers', 'gang_tree', 'gang_units', 'grade', 'largest_flows', 'least_if_split', 'least_max_flow', 'least_seconds', 'least_seconds_of_one', 'list_nodes', 'map_gang', 'map_graph', 'map_to_tree', 'min_cost_flow', 'pack_groups', 'pack_rings', 'pack_tasks', 'pack_trees', 'place_gang', 'price_nodes', 'repack_groups', 'result_fields', 'search_capacity', 'seconds_of', 'set_deadline', 'solve_columns', 'task_forest', 'tasks_hosted', 'throughput_bound', 'traffic_times', 'tree_bound', 'verify_bipartition', 'verify_capacity', 'verify_distribution', 'verify_division', 'verify_embedding', 'verify_flow', 'verify_gang', 'verify_group_packing', 'verify_group_repacking', 'verify_infeasible', 'verify_least_flow', 'verify_rings', 'verify_task_mapping', 'verify_throughput', 'verify_tree_mapping', 'verify_trees', 'verify_unbounded']
class Graph:
    """
    An undirected, simple, weighted graph.
    """
    @typing.overload
    def __init__(self, num_vertices: typing.SupportsInt | typing.SupportsIndex, edges: numpy.typing.NDArray[numpy.int32], weights: numpy.typing.NDArray[numpy.float64]) -> None:
        ...
    @typing.overload
    def __init__(self, weights: numpy.typing.NDArray[numpy.float64]) -> None:
        ...
    def automorphisms_within(self, timeout: typing.SupportsFloat | typing.SupportsIndex | None) -> float | None:
        """
        The same, or None where `timeout` seconds are too short.
        """
    @property
    def num_automorphisms(self) -> float:
        """
        The number of permutations of the vertices that keep every edge, whatever its weight; exact up to 2**53. ValueError above 4,096 vertices.
        """
    @property
    def num_edges(self) -> int:
        """
        The number of edges.
        """
    @property
    def num_vertices(self) -> int:
        """
        The number of vertices.
        """
class LinkCountScore:
    """
    Scores by link counts, tabulated.
    """
    def __init__(self, target: Graph, link_class: numpy.typing.NDArray[numpy.uint8], num_classes: typing.SupportsInt | typing.SupportsIndex, num_edges: typing.SupportsInt | typing.SupportsIndex, scores: numpy.typing.NDArray[numpy.float64]) -> None:
        ...
class BipartitionAnswer:
    """
    The answer of `bipartition`.
    """
    @property
    def complete(self) -> bool:
        ...
    @property
    def cut(self) -> float:
        ...
    @property
    def moves(self) -> int:
        ...
    @property
    def nodes(self) -> int:
        ...
    @property
    def optimal(self) -> bool:
        ...
    @property
    def passes(self) -> int:
        ...
    @property
    def rollbacks(self) -> int:
        ...
    @property
    def side(self) -> numpy.typing.NDArray[numpy.int8]:
        ...
    @property
    def start_cut(self) -> float:
        ...
    @property
    def status(self) -> str:
        """
        optimal, feasible, infeasible or not_found.
        """
class PortNetwork:
    def __init__(self, num_vertices: typing.SupportsInt | typing.SupportsIndex, gb_per_s: numpy.typing.NDArray[numpy.float64], entry: numpy.typing.NDArray[numpy.int32], segment_of: numpy.typing.NDArray[numpy.int32], domain: numpy.typing.NDArray[numpy.int32], uplink: numpy.typing.NDArray[numpy.int32], links: numpy.typing.NDArray[numpy.int32], is_slower: numpy.typing.NDArray[numpy.uint8], access: numpy.typing.NDArray[numpy.int32], group: numpy.typing.NDArray[numpy.int32], lane: numpy.typing.NDArray[numpy.int32]) -> None:
        ...
    def best_orders(self, phase_ends: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], start: numpy.typing.NDArray[numpy.int32], end: numpy.typing.NDArray[numpy.int32], there: numpy.typing.NDArray[numpy.float64], back: numpy.typing.NDArray[numpy.float64], sets: numpy.typing.NDArray[numpy.int32]) -> tuple[numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]]:
        ...
    def max_min_times(self, jobs: collections.abc.Sequence[tuple[collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.float64], typing.Annotated[numpy.typing.ArrayLike, numpy.float64], typing.Annotated[numpy.typing.ArrayLike, numpy.float64]]], timeout: typing.SupportsFloat | typing.SupportsIndex | None, max_nodes: typing.SupportsInt | typing.SupportsIndex | None) -> tuple[list[tuple[float, int, float]], bool, int]:
        ...
    def phase_times(self, phase_ends: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], start: numpy.typing.NDArray[numpy.int32], end: numpy.typing.NDArray[numpy.int32], there: numpy.typing.NDArray[numpy.float64], back: numpy.typing.NDArray[numpy.float64]) -> list[tuple[float, int, float]]:
        ...
    def phase_times_beside(self, phase_ends: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], start: numpy.typing.NDArray[numpy.int32], end: numpy.typing.NDArray[numpy.int32], there: numpy.typing.NDArray[numpy.float64], back: numpy.typing.NDArray[numpy.float64], others: FlowCounts) -> list[tuple[float, int, float]]:
        ...
    def route(self, start: typing.SupportsInt | typing.SupportsIndex, end: typing.SupportsInt | typing.SupportsIndex) -> list[int]:
        """
        Hops, or [-1] without a path.
        """
class FlowCounts:
    def __init__(self, network: PortNetwork) -> None:
        ...
    def add(self, start: numpy.typing.NDArray[numpy.int32], end: numpy.typing.NDArray[numpy.int32], there: numpy.typing.NDArray[numpy.float64], back: numpy.typing.NDArray[numpy.float64]) -> None:
        ...
    def counted(self, hops: numpy.typing.NDArray[numpy.int32], most: typing.SupportsFloat | typing.SupportsIndex) -> numpy.typing.NDArray[numpy.float64]:
        ...
    def remove(self, start: numpy.typing.NDArray[numpy.int32], end: numpy.typing.NDArray[numpy.int32], there: numpy.typing.NDArray[numpy.float64], back: numpy.typing.NDArray[numpy.float64]) -> None:
        ...
class TerminalGraph:
    """
    A directed graph with capacities; its first vertices are terminals.
    """
    def __init__(self, num_vertices: typing.SupportsInt | typing.SupportsIndex, num_terminals: typing.SupportsInt | typing.SupportsIndex, arcs: collections.abc.Sequence[tuple[typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex]]) -> None:
        ...
class RingNetwork:
    """
    Links, and routes over them between terminals.
    """
    def __init__(self, num_terminals: typing.SupportsInt | typing.SupportsIndex, capacities: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], routes: collections.abc.Sequence[tuple[typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex, collections.abc.Sequence[tuple[typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex]]]], cuts: collections.abc.Sequence[tuple[typing.SupportsInt | typing.SupportsIndex, collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex]]]) -> None:
        """
        routes: (from, to, relay or -1, level, [(link, thousandths)]). cuts: (near, links).
        """
class ChannelRules:
    """
    How channels of the best rate are looked for.
    """
    def __init__(self, rates: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], max_channels: typing.SupportsInt | typing.SupportsIndex, slowest_thousandths: typing.SupportsInt | typing.SupportsIndex, split_rate: typing.SupportsInt | typing.SupportsIndex, whole_rate: typing.SupportsInt | typing.SupportsIndex, whole_count: typing.SupportsInt | typing.SupportsIndex, equal_level: typing.SupportsInt | typing.SupportsIndex, group_level: typing.SupportsInt | typing.SupportsIndex, max_nodes: typing.SupportsInt | typing.SupportsIndex) -> None:
        ...
class RingRates:
    """
    What rings among any terminals carry.
    """
    def __init__(self, network: RingNetwork, class_of: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], rules: collections.abc.Sequence[ChannelRules], slower: collections.abc.Sequence[ChannelRules], per_unit: collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex]) -> None:
        ...
class JobCollectives:
    """
    What the tasks of a job exchange.
    """
    @staticmethod
    def of_batches(phases: collections.abc.Sequence[collections.abc.Sequence[tuple[typing.SupportsInt | typing.SupportsIndex, typing.Annotated[numpy.typing.ArrayLike, numpy.int64], typing.Annotated[numpy.typing.ArrayLike, numpy.float64], typing.Annotated[numpy.typing.ArrayLike, numpy.float64] | None]]]) -> JobCollectives:
        """
        phases: of each phase its batches: kind, (c, n) tasks, (c,) GB, and (c, n) GB received or None.
        """
    @staticmethod
    def of_sends(edges: collections.abc.Sequence[tuple[typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex, typing.SupportsFloat | typing.SupportsIndex]]) -> JobCollectives:
        """
        edges: (a, b, GB) of each send; all run at the same time.
        """
    def __init__(self, phase_ends: numpy.typing.NDArray[numpy.int64], kinds: numpy.typing.NDArray[numpy.uint8], ends: numpy.typing.NDArray[numpy.int64], tasks: numpy.typing.NDArray[numpy.int32], gigabytes: numpy.typing.NDArray[numpy.float64], received: numpy.typing.NDArray[numpy.float64], batch_ends: numpy.typing.NDArray[numpy.int64]) -> None:
        ...
    def only_ring(self, num_tasks: typing.SupportsInt | typing.SupportsIndex) -> tuple[int, list[int], float] | None:
        """
        The kind, the tasks, and GB between neighbours of the only collective if that is a ring of all tasks; else None.
        """
class CollectiveNetwork:
    """
    Ports, and the rings among their vertices.
    """
    def __init__(self, network: PortNetwork, places: collections.abc.Sequence[typing.Annotated[numpy.typing.ArrayLike, numpy.int32]], rings: collections.abc.Sequence[typing.Annotated[numpy.typing.ArrayLike, numpy.float64]], has_links: numpy.typing.NDArray[numpy.uint8], rates_of: numpy.typing.NDArray[numpy.int32], rates: collections.abc.Sequence[RingRates]) -> None:
        ...
class ClusterState:
    """
    Which job holds which GPU; see topoplace.Cluster.
    """
    @staticmethod
    def restore(snapshot: bytes, num_gpus: typing.SupportsInt | typing.SupportsIndex, first_gpu: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex] = [], capacity: collections.abc.Sequence[typing.Annotated[collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], "FixedSize(3)"]] = []) -> ClusterState:
        """
        ValueError for bytes that are no snapshot of a cluster of that size.
        """
    def __init__(self, num_gpus: typing.SupportsInt | typing.SupportsIndex, first_gpu: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex] = [], capacity: collections.abc.Sequence[typing.Annotated[collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], "FixedSize(3)"]] = []) -> None:
        """
        first_gpu: a GPU of each machine; capacity: its CPUs, MB and drives, or none for no limits.
        """
    def accepts_processes(self, machine: typing.SupportsInt | typing.SupportsIndex) -> bool:
        ...
    def allocate(self, job: str, gpus: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], processes: collections.abc.Sequence[tuple[typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex]] = [], drives: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex] = [], note: typing.Any = None, kind: typing.SupportsInt | typing.SupportsIndex = 0, share: typing.SupportsInt | typing.SupportsIndex = 1000, slices: collections.abc.Sequence[tuple[typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex]] = [], may_reslice: bool = False, runs: bool = False) -> tuple[str, int]:
        """
        (status, position of the first GPU refused or -1); the state changes only where the status is ok. share: thousandths of each GPU. slices: the parts and compute slices of one slice of each GPU, or none. may_reslice: its GPUs may be sliced otherwise, idle slices given up. runs: it runs already, so that GPUs and machines may be out of service. processes: machine, CPUs and MB of each. drives: the machine of each.
        """
    def allocations(self) -> dict[str, tuple[int, ...]]:
        """
        GPUs in task order by job, in the order of allocation.
        """
    def attach(self, job: str, processes: collections.abc.Sequence[tuple[typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex]], drives: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], note: typing.Any, kind: typing.SupportsInt | typing.SupportsIndex = 0) -> str:
        """
        Gives a job of a restored state its host resources and note; returns a status.
        """
    def changed_since(self, position: typing.SupportsInt | typing.SupportsIndex) -> tuple[int, ...] | None:
        """
        GPUs that may have changed since `num_changes` was `position`, and one of each machine whose hosts did, oldest first and repeated; None if so many have changed that the first are forgotten.
        """
    def copy(self) -> ClusterState:
        ...
    def drain(self, gpus: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], machines: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex] = []) -> bool:
        ...
    def drained_gpus(self) -> tuple[int, ...]:
        ...
    def drained_machines(self) -> list[int]:
        """
        Ascending.
        """
    def free_gpus(self) -> tuple[int, ...]:
        ...
    def gpus_of(self, job: str) -> tuple[int, ...]:
        """
        The GPUs of a job in task order; () where it holds none.
        """
    def gpus_with(self, share: typing.SupportsInt | typing.SupportsIndex) -> tuple[int, ...]:
        """
        GPUs with this many thousandths left, ascending.
        """
    def held(self) -> tuple[dict[int, str], dict[int, str]]:
        """
        The reasons to hold GPUs by GPU, and those to hold machines by machine.
        """
    def hold(self, reason: str, gpus: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], machines: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex] = []) -> bool:
        ...
    def job_ids(self) -> list[str]:
        """
        All jobs, in the order of allocation.
        """
    def note(self, job: str) -> typing.Any:
        """
        The object kept with the job, or None.
        """
    def occupants(self, gpus: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex]) -> tuple[tuple[int, ...], dict[str, tuple[int, ...]]]:
        """
        Of these GPUs, the free ones, and those that jobs hold by job, jobs in the order of their ids.
        """
    def out_of_service(self) -> tuple[int, ...]:
        """
        The GPUs that no new job gets: drained, held or unhealthy; ascending.
        """
    def owner(self, gpu: typing.SupportsInt | typing.SupportsIndex) -> str | None:
        """
        The job that holds the whole GPU, or None.
        """
    def release(self, job: str) -> str:
        ...
    def set_slices(self, gpu: typing.SupportsInt | typing.SupportsIndex, slices: collections.abc.Sequence[tuple[typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex]]) -> str:
        """
        Cuts a GPU into slices, or makes it whole; returns a status.
        """
    def set_unhealthy(self, gpus: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], unhealthy: bool) -> bool:
        ...
    def share_left(self, gpu: typing.SupportsInt | typing.SupportsIndex) -> int:
        """
        The thousandths of the GPU that a new job can get.
        """
    def shares_of(self, gpu: typing.SupportsInt | typing.SupportsIndex) -> dict[str, int]:
        """
        Thousandths of the GPU by job, in order of allocation.
        """
    def sliced_gpus(self) -> tuple[int, ...]:
        """
        The GPUs that are cut into slices, ascending.
        """
    def slices(self, gpu: typing.SupportsInt | typing.SupportsIndex) -> list[tuple[int, int, str | None]]:
        """
        (parts, compute slices, job or None) of each slice of the GPU; parts: bit i for the i-th eighth of its memory, bit 8 for the media engines.
        """
    def slices_of(self, job: str) -> list[tuple[int, int]]:
        """
        (parts, compute slices) of each of its GPUs, or none.
        """
    def snapshot(self) -> bytes:
        ...
    def undrain(self, gpus: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], machines: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex] = []) -> bool:
        ...
    def unhold(self, gpus: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], machines: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex] = []) -> bool:
        ...
    def withdrawn_machines(self) -> list[int]:
        """
        Machines that accept no processes, ascending.
        """
    @property
    def host_free(self) -> numpy.typing.NDArray[numpy.int64]:
        """
        (machines, 3) CPUs, MB and drives; a view.
        """
    @property
    def num_changes(self) -> int:
        """
        Rises with every change, also when it is undone.
        """
    @property
    def num_divided(self) -> int:
        """
        The number of GPUs that jobs share or that are cut into slices.
        """
    @property
    def num_free(self) -> int:
        ...
    @property
    def num_gpus(self) -> int:
        ...
    @property
    def num_jobs(self) -> int:
        ...
    @property
    def num_processes(self) -> numpy.typing.NDArray[numpy.int64]:
        """
        (machines,) processes; a view.
        """
class Transaction:
    """
    A block whose changes to a cluster are undone.
    """
    def __enter__(self) -> typing.Any:
        ...
    def __exit__(self, kind: typing.Any, value: typing.Any, traceback: typing.Any) -> None:
        ...
    def __init__(self, cluster: typing.Any, state: ClusterState, always_undo: bool) -> None:
        """
        always_undo: also where the block ends without an exception.
        """
class MachineConditions:
    """
    Machines grouped by template, free GPUs and, if wanted, jobs.
    """
    def __init__(self, state: ClusterState, gpus_of: collections.abc.Sequence[collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex]], template_of: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], socket_of: collections.abc.Sequence[collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex]], sees_jobs: bool, shared: bool = True, sees_gpu_use: bool = False, sees_processes: bool = False, sees_shares: bool = False, sees_cpus: bool = False) -> None:
        """
        gpus_of, template_of: of each machine. socket_of: of each template, the socket of each GPU. sees_jobs: machines with other jobs are in another condition. shared: machines may share one. sees_gpu_use, sees_processes: machines with and without jobs on their GPUs, or processes, are in different ones. sees_shares, sees_cpus: so are machines with other amounts left of a GPU, or other free CPUs.
        """
    def condition_of(self, machine: typing.SupportsInt | typing.SupportsIndex) -> int:
        ...
    def describe(self, condition: typing.SupportsInt | typing.SupportsIndex) -> tuple[int, int, list[tuple[int, int, int]], bool, tuple[int, ...], int, list[tuple[int, int, int, bool]]]:
        """
        (template, mask of free GPUs, jobs, whether a job uses it); a job is its kind, number of GPUs and mask of sockets. Then the thousandths left of each GPU, () where shares are not seen, and the free thousandths of CPUs, 0 where these are not seen, and each slice: its GPU, parts, compute slices and whether a job holds it.
        """
    def left_of(self, conditions: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex]) -> tuple[numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int32]]:
        """
        Of each of these conditions: template, free thousandths of CPUs, and (conditions, GPUs) thousandths left of each GPU, 0 beyond the last; where the conditions do not see these, they are 0 or missing.
        """
    def machines(self, condition: typing.SupportsInt | typing.SupportsIndex, cpus: typing.SupportsInt | typing.SupportsIndex = -1, megabytes: typing.SupportsInt | typing.SupportsIndex = -1) -> list[int]:
        """
        The machines in this condition with at least these amounts free, ascending.
        """
    def of_machines(self) -> numpy.typing.NDArray[numpy.int32]:
        """
        (machines,) the condition of each machine.
        """
    def present(self) -> list[int]:
        """
        The conditions that have machines, ascending.
        """
    @property
    def generation(self) -> int:
        """
        Increases when all conditions are renumbered.
        """
class DomainFill:
    """
    How full the domains of each level are.
    """
    def __init__(self, conditions: MachineConditions, domain_of: collections.abc.Sequence[collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex]]) -> None:
        """
        domain_of: of each level, the outermost first, the domain of each machine.
        """
    def free_of_level(self, level: typing.SupportsInt | typing.SupportsIndex) -> list[int]:
        """
        The free GPUs of each domain of a level, by number.
        """
    def refresh(self) -> None:
        ...
class MachineRanking:
    """
    Machines in the order of their conditions' keys.
    """
    def __init__(self, conditions: MachineConditions) -> None:
        ...
    def best(self, cpus: typing.SupportsInt | typing.SupportsIndex = -1, megabytes: typing.SupportsInt | typing.SupportsIndex = -1) -> tuple[int, int]:
        """
        (machine, condition) of the smallest key among machines with these amounts free, or (-1, -1).
        """
    def best_by_domain(self, domains: DomainFill, prefix: typing.SupportsInt | typing.SupportsIndex, cpus: typing.SupportsInt | typing.SupportsIndex = -1, megabytes: typing.SupportsInt | typing.SupportsIndex = -1) -> tuple[int, int]:
        """
        As best, but of machines whose keys begin with the same `prefix` numbers, those in the fullest domains come first, and then those of the smallest key.
        """
    def counts(self) -> list[tuple[list[float], int]]:
        """
        (key, number of machines) of each key, ascending.
        """
    def first(self, count: typing.SupportsInt | typing.SupportsIndex, cpus: typing.SupportsInt | typing.SupportsIndex = -1, megabytes: typing.SupportsInt | typing.SupportsIndex = -1) -> list[tuple[int, int]]:
        """
        (machine, condition) for the first conditions: of each, the lowest machine with these amounts.
        """
    def in_order(self, count: typing.SupportsInt | typing.SupportsIndex, last: collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex], cpus: typing.SupportsInt | typing.SupportsIndex = -1, megabytes: typing.SupportsInt | typing.SupportsIndex = -1) -> list[tuple[int, int]]:
        """
        (machine, condition) of the first `count` machines with these amounts free and no key above `last`, by key, then by number.
        """
    def key(self, condition: typing.SupportsInt | typing.SupportsIndex) -> list[float] | None:
        """
        The key of a condition; None where it has none.
        """
    def known_best(self, cpus: typing.SupportsInt | typing.SupportsIndex, megabytes: typing.SupportsInt | typing.SupportsIndex) -> tuple[int, int] | None:
        """
        As best; None while a condition with machines has no key.
        """
    def known_best_by_domain(self, domains: DomainFill, prefix: typing.SupportsInt | typing.SupportsIndex, cpus: typing.SupportsInt | typing.SupportsIndex, megabytes: typing.SupportsInt | typing.SupportsIndex) -> tuple[int, int] | None:
        """
        As best_by_domain, and as known_best.
        """
    def set(self, condition: typing.SupportsInt | typing.SupportsIndex, key: collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex] | None) -> None:
        """
        Sets the key of a condition; None for machines that cannot take the job.
        """
    def unknown(self) -> list[int]:
        """
        The conditions that have machines, but no key yet.
        """
    def up_to(self, last: collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex], cpus: typing.SupportsInt | typing.SupportsIndex = -1, megabytes: typing.SupportsInt | typing.SupportsIndex = -1) -> numpy.typing.NDArray[numpy.int32]:
        """
        (n,) all machines with these amounts free and no key above `last`, ascending.
        """
class RatedSets:
    """
    What rings among sets of GPUs carry, with a bit for each.
    """
    def __init__(self, rates: RingRates, are_alike: bool, to_gpus: numpy.typing.NDArray[numpy.float64], to_others: numpy.typing.NDArray[numpy.float64]) -> None:
        ...
    def bounds(self, sets: numpy.typing.NDArray[numpy.uint64]) -> numpy.typing.NDArray[numpy.float64]:
        ...
    def fastest(self, sets: numpy.typing.NDArray[numpy.uint64]) -> numpy.typing.NDArray[numpy.float64]:
        ...
    def gb_per_s(self, sets: numpy.typing.NDArray[numpy.uint64]) -> numpy.typing.NDArray[numpy.float64]:
        ...
    def leading(self, sets: numpy.typing.NDArray[numpy.uint64], count: typing.SupportsInt | typing.SupportsIndex, share: typing.SupportsFloat | typing.SupportsIndex) -> numpy.typing.NDArray[numpy.float64]:
        ...
    def left(self, free: typing.SupportsInt | typing.SupportsIndex, taken: numpy.typing.NDArray[numpy.uint64]) -> numpy.typing.NDArray[numpy.float64]:
        ...
class Machine:
    """
    A machine before any job asks for its GPUs.
    """
    def __init__(self, far: numpy.typing.NDArray[numpy.int32], socket: numpy.typing.NDArray[numpy.int32], near: numpy.typing.NDArray[numpy.int32], degraded: numpy.typing.NDArray[numpy.float64], parts: collections.abc.Sequence[collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex]], are_alike: bool, rated: collections.abc.Sequence[RatedSets], network: CollectiveNetwork) -> None:
        ...
    def rank_sets(self, collectives: JobCollectives, size: typing.SupportsInt | typing.SupportsIndex, communicates: bool, takes_fullest: bool, regions: collections.abc.Sequence[collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex]], are_fixed: bool, required: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], free: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], left: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], slack: typing.SupportsFloat | typing.SupportsIndex, alternatives: typing.SupportsInt | typing.SupportsIndex, near_only: bool) -> tuple[list[tuple[tuple[int, ...], tuple[float, ...], float]], bool]:
        """
        Options, and whether all were compared.
        """
    def seconds_of_any(self, collectives: JobCollectives, size: typing.SupportsInt | typing.SupportsIndex, communicates: bool) -> float:
        ...
class ConditionSets:
    """
    The best sets of GPUs in each condition of machines.
    """
    def __init__(self, conditions: MachineConditions, templates: collections.abc.Sequence[tuple[Machine, bytes, collections.abc.Sequence[collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex]], bool]], collectives: JobCollectives, size: typing.SupportsInt | typing.SupportsIndex, communicates: bool, share: typing.SupportsInt | typing.SupportsIndex, takes_fullest: bool, slack: typing.SupportsFloat | typing.SupportsIndex, alternatives: typing.SupportsInt | typing.SupportsIndex, near_only: bool) -> None:
        """
        templates: of each its machine, the GPUs that suit the job as bits, the lowest byte first, regions (the job gets GPUs of one), and whether it gets a whole one. share: thousandths of a GPU for each task; 0 for whole GPUs.
        """
    def best(self, condition: typing.SupportsInt | typing.SupportsIndex) -> tuple[tuple[tuple[int, ...], tuple[float, ...], float], bool]:
        """
        The best option, and whether all sets were compared.
        """
    def options(self, condition: typing.SupportsInt | typing.SupportsIndex) -> tuple[list[tuple[tuple[int, ...], tuple[float, ...], float]], bool]:
        """
        Options, and whether all were compared.
        """
    def rank(self, ranking: MachineRanking) -> None:
        """
        Sets the keys that a ranking lacks.
        """
class GangMachines:
    """
    The machines of a topology as a gang sees them.
    """
    def __init__(self, gpu_ends: typing.Annotated[numpy.typing.ArrayLike, numpy.int64], gpus: typing.Annotated[numpy.typing.ArrayLike, numpy.int32], domain: typing.Annotated[numpy.typing.ArrayLike, numpy.int32], adapter: typing.Annotated[numpy.typing.ArrayLike, numpy.int32], way_out: typing.Annotated[numpy.typing.ArrayLike, numpy.float64], gb_per_s: typing.Annotated[numpy.typing.ArrayLike, numpy.float64]) -> None:
        """
        Of each machine the end of its GPUs, these, and of each GPU the domain of its rings, its adapter and GB/s into the network; then GB/s of each port.
        """
class GangRoom:
    """
    How many tasks domains take, and their adapters for rings.
    """
    def __init__(self, machines: GangMachines, offers: tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.uint8]], codes: collections.abc.Sequence[typing.Annotated[numpy.typing.ArrayLike, numpy.int64]], most: typing.SupportsInt | typing.SupportsIndex) -> None:
        """
        most: tasks on one machine.
        """
    def channels(self, size: typing.SupportsInt | typing.SupportsIndex, way_out: typing.SupportsFloat | typing.SupportsIndex = 0.0) -> float:
        """
        The most GB/s of a ring over several domains; way_out: that of all adapters.
        """
    def fit(self, size: typing.SupportsInt | typing.SupportsIndex) -> list[int]:
        """
        Groups of so many tasks that fit into domains of each depth.
        """
    def fit_rings(self, size: typing.SupportsInt | typing.SupportsIndex) -> int:
        """
        Groups of so many tasks that fit into domains of rings.
        """
    @property
    def has_adapters(self) -> bool:
        ...
    @property
    def most_of_adapters(self) -> float:
        """
        The most GB/s of all adapters of a domain together.
        """
    @property
    def most_tasks(self) -> list[int]:
        """
        The most tasks in a domain of each depth: of the whole, of each level, of machines.
        """
    @property
    def ring_tasks(self) -> numpy.typing.NDArray[numpy.int64]:
        """
        (d,) the most tasks in each domain of rings.
        """
class GangLimits:
    """
    What limits gangs on a topology.
    """
    def __init__(self, entries: typing.Annotated[collections.abc.Sequence[tuple[typing.SupportsFloat | typing.SupportsIndex, typing.SupportsFloat | typing.SupportsIndex]], "FixedSize(2)"], most_of_a_gpu: typing.SupportsFloat | typing.SupportsIndex, has_relays: bool, join_machines: bool, switched: tuple[typing.SupportsFloat | typing.SupportsIndex, bool], reducing: tuple[typing.SupportsFloat | typing.SupportsIndex, typing.SupportsFloat | typing.SupportsIndex], gpus: GangMachines, machines: collections.abc.Sequence[Machine], class_of: typing.Annotated[numpy.typing.ArrayLike, numpy.int32]) -> None:
        ...
class MachineLimits:
    """
    Bounds by what one machine has of a gang.
    """
    def __init__(self, limits: GangLimits, room: GangRoom, own_class: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], job: JobCollectives, units: typing.Annotated[numpy.typing.ArrayLike, numpy.int32], machine_groups: bool) -> None:
        ...
    def of_counts(self, most: typing.SupportsInt | typing.SupportsIndex) -> numpy.typing.NDArray[numpy.float64]:
        """
        The least seconds with 0..most units on a machine.
        """
    def of_sets(self, machine: typing.SupportsInt | typing.SupportsIndex) -> numpy.typing.NDArray[numpy.float64]:
        """
        The least seconds with tasks on each set of a machine's GPUs; empty if only their number counts.
        """
    @property
    def are_groups(self) -> bool:
        ...
    @property
    def are_rings(self) -> bool:
        ...
class GangTopology:
    """
    What is known of a topology before any gang asks.
    """
    def __init__(self, limits: GangLimits, network: CollectiveNetwork, adapter_speed: typing.Annotated[numpy.typing.ArrayLike, numpy.float64], nvlink_speed: typing.Annotated[numpy.typing.ArrayLike, numpy.float64]) -> None:
        """
        Speeds: (m,) mean GB/s per GPU of each machine, of adapters and of NVLinks into switches.
        """
class GangLevels:
    """
    The levels of domains around machines, and their uplinks.
    """
    def __init__(self, topology: GangTopology, levels: collections.abc.Sequence[tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int64], typing.Annotated[numpy.typing.ArrayLike, numpy.int64], typing.Annotated[numpy.typing.ArrayLike, numpy.float64], typing.Annotated[numpy.typing.ArrayLike, numpy.int64], bool]], meet_anywhere: bool) -> None:
        """
        The outermost level first, machines last. Of each: (m,) domains of machines in the tree, (m,) domains without cuts, (m,) GB/s of uplinks, (k, 2) machines and uplinks, and whether NVLinks join the machines of a domain.
        """
class GangGroups:
    """
    What binds the tasks of a gang to each other.
    """
    def __init__(self, num_tasks: typing.SupportsInt | typing.SupportsIndex, are_stated: bool, tree: GangLevels, level_of: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], required: tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int64], typing.Annotated[numpy.typing.ArrayLike, numpy.int32]], apart: tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int64], typing.Annotated[numpy.typing.ArrayLike, numpy.int32]], preferred: tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int64], typing.Annotated[numpy.typing.ArrayLike, numpy.int32]], balanced: typing.SupportsInt | typing.SupportsIndex, on_machine: bool, outermost: typing.SupportsInt | typing.SupportsIndex, roles: tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int64], typing.Annotated[numpy.typing.ArrayLike, numpy.int32]], distances: typing.Any) -> None:
        """
        tree: the levels that groups name by their numbers. level_of: each of these among the levels of the search. Groups: the level and the end of each, and the tasks of all.
        """
class LeastTime:
    """
    Decides jobs of equal needs.
    """
    def __init__(self, sets: ConditionSets, ranking: MachineRanking, domains: typing.Any, before_domains: typing.SupportsInt | typing.SupportsIndex, topology: GangTopology, levels: GangLevels, hosts: tuple[typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex] | None, most: typing.SupportsInt | typing.SupportsIndex, max_machines: typing.SupportsInt | typing.SupportsIndex, is_limited: bool, split: typing.SupportsFloat | typing.SupportsIndex, compact: typing.SupportsFloat | typing.SupportsIndex) -> None:
        """
        hosts: the CPUs and memory of a job. most: tasks on one machine. max_machines: 0 for no limit. is_limited: GPUs with more memory than those of `sets` may be faster. split: how many times faster several machines have to be than one; 0 never splits a job that fits one.
        """
    def on_one_machine(self, job: JobCollectives, timeout: typing.SupportsFloat | typing.SupportsIndex | None) -> tuple[int, tuple[int, ...], float, bool, float | None, bool] | None:
        """
        The machine, the GPU of each task, seconds, whether these are the least, a bound, and whether several machines may be much faster; None without room. DeadlineError after `timeout` seconds.
        """
    def on_several(self, job: JobCollectives, edges: typing.Annotated[numpy.typing.ArrayLike, numpy.float64], groups: GangGroups, tflop: typing.SupportsFloat | typing.SupportsIndex, tflop_per_s: typing.Annotated[numpy.typing.ArrayLike, numpy.float64], others: typing.Any, timeout: typing.SupportsFloat | typing.SupportsIndex | None) -> tuple[int, tuple[int, ...], float, bool, float | None, bool] | None:
        """
        The same; None also where some tasks have no path. timeout: exceeded only until there is a first mapping.
        """
class TargetDistance:
    """
    Distances between the vertices of a target.
    """
    def __init__(self, distance: numpy.typing.NDArray[numpy.float64]) -> None:
        ...
    @property
    def num_vertices(self) -> int:
        """
        The number of vertices.
        """
class GpuDistances:
    """
    The distance between any two GPUs of a cluster.
    """
    def __init__(self, template_of: typing.Annotated[numpy.typing.ArrayLike, numpy.int32], sizes: typing.Annotated[numpy.typing.ArrayLike, numpy.int32], inside: collections.abc.Sequence[typing.Annotated[numpy.typing.ArrayLike, numpy.float64]], levels: collections.abc.Sequence[tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.uint8], typing.SupportsFloat | typing.SupportsIndex]], beyond: typing.SupportsFloat | typing.SupportsIndex) -> None:
        """
        The template of each machine, the GPUs of each template, (n, n) distances of each. Of each level, the innermost first: (m,) domains or -1; of GPUs of templates: rails or none, and ports; (p, p) 1 where ports are joined; the distance.
        """
    def between(self, u: typing.SupportsInt | typing.SupportsIndex, v: typing.SupportsInt | typing.SupportsIndex) -> float:
        ...
class DomainTree:
    """
    The domains of offered machines as a tree.
    """
    def __init__(self, levels: collections.abc.Sequence[tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int64], typing.Annotated[numpy.typing.ArrayLike, numpy.int64]]], machines: typing.Annotated[numpy.typing.ArrayLike, numpy.int32], sizes: typing.Annotated[numpy.typing.ArrayLike, numpy.int32], socket_ends: typing.Annotated[numpy.typing.ArrayLike, numpy.int32], socket_sizes: typing.Annotated[numpy.typing.ArrayLike, numpy.int32]) -> None:
        """
        levels: the outermost first, machines last; of each, (m,) domains in the tree, and without cuts. sizes: the most tasks of each machine. Sockets: none of both where machines are leaves.
        """
    def domains_of(self, level: typing.SupportsInt | typing.SupportsIndex) -> numpy.typing.NDArray[numpy.int32]:
        """
        The domain of each leaf, without cuts.
        """
    def first_of(self, depth: typing.SupportsInt | typing.SupportsIndex) -> int:
        ...
    def part_of(self, level: typing.SupportsInt | typing.SupportsIndex) -> numpy.typing.NDArray[numpy.int32]:
        """
        The domain of each leaf in the tree.
        """
    @property
    def first_leaf(self) -> int:
        ...
    @property
    def machine_of(self) -> numpy.typing.NDArray[numpy.int32]:
        """
        The place in this order of each leaf's machine.
        """
    @property
    def order(self) -> numpy.typing.NDArray[numpy.int32]:
        """
        The offers in the order of their machines in the tree.
        """
    @property
    def parent(self) -> numpy.typing.NDArray[numpy.int32]:
        ...
    @property
    def room(self) -> numpy.typing.NDArray[numpy.int32]:
        ...
class FlowAnswer:
    """
    The answer of `min_cost_flow`.
    """
    def __getstate__(self) -> tuple[int, numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], int, numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int32], int, int]:
        ...
    def __setstate__(self, arg0: tuple[typing.SupportsInt | typing.SupportsIndex, typing.Annotated[numpy.typing.ArrayLike, numpy.int64], typing.Annotated[numpy.typing.ArrayLike, numpy.int64], int, typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex]) -> None:
        ...
    @property
    def algorithm(self) -> str:
        ...
    @property
    def cost(self) -> int:
        ...
    @property
    def cut(self) -> numpy.typing.NDArray[numpy.int32]:
        ...
    @property
    def cycle(self) -> numpy.typing.NDArray[numpy.int32]:
        ...
    @property
    def flow(self) -> numpy.typing.NDArray[numpy.int64]:
        ...
    @property
    def potential(self) -> numpy.typing.NDArray[numpy.int64]:
        ...
    @property
    def status(self) -> str:
        """
        optimal, infeasible, unbounded or timeout.
        """
    @property
    def steps(self) -> int:
        ...
class FlowNetwork:
    """
    A network that is kept and changed between solutions.
    """
    def __init__(self) -> None:
        ...
    def add_arcs(self, arg0: typing.Annotated[numpy.typing.ArrayLike, numpy.int32], arg1: typing.Annotated[numpy.typing.ArrayLike, numpy.int32], arg2: typing.Annotated[numpy.typing.ArrayLike, numpy.int64], arg3: typing.Annotated[numpy.typing.ArrayLike, numpy.int64]) -> numpy.typing.NDArray[numpy.int32]:
        ...
    def add_nodes(self, arg0: typing.Annotated[numpy.typing.ArrayLike, numpy.int64]) -> numpy.typing.NDArray[numpy.int32]:
        ...
    def columns(self) -> tuple[numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64]]:
        ...
    def remove_arcs(self, arg0: typing.Annotated[numpy.typing.ArrayLike, numpy.int32]) -> None:
        ...
    def remove_nodes(self, arg0: typing.Annotated[numpy.typing.ArrayLike, numpy.int32]) -> None:
        ...
    def set_capacity(self, arg0: typing.Annotated[numpy.typing.ArrayLike, numpy.int32], arg1: typing.Annotated[numpy.typing.ArrayLike, numpy.int64]) -> None:
        ...
    def set_cost(self, arg0: typing.Annotated[numpy.typing.ArrayLike, numpy.int32], arg1: typing.Annotated[numpy.typing.ArrayLike, numpy.int64]) -> None:
        ...
    def set_supply(self, arg0: typing.Annotated[numpy.typing.ArrayLike, numpy.int32], arg1: typing.Annotated[numpy.typing.ArrayLike, numpy.int64]) -> None:
        ...
    def solve(self, arg0: str, arg1: typing.SupportsFloat | typing.SupportsIndex | None, arg2: typing.SupportsInt | typing.SupportsIndex | None) -> FlowAnswer:
        ...
    @property
    def num_arcs(self) -> int:
        ...
    @property
    def num_nodes(self) -> int:
        ...
    @property
    def version(self) -> int:
        ...
class CapacityTables:
    """
    What nodes and jobs cost, as searches read it.
    """
    def __init__(self, gpus: numpy.typing.NDArray[numpy.int32], open: numpy.typing.NDArray[numpy.float64], run: numpy.typing.NDArray[numpy.float64], pay: numpy.typing.NDArray[numpy.float64], wait: numpy.typing.NDArray[numpy.float64]) -> None:
        ...
class CapacityAnswer:
    """
    The answer of `search_capacity`.
    """
    @property
    def bound(self) -> float:
        ...
    @property
    def complete(self) -> bool:
        ...
    @property
    def cost(self) -> float:
        ...
    @property
    def improvements(self) -> int:
        ...
    @property
    def knapsacks(self) -> int:
        ...
    @property
    def nodes(self) -> list[tuple[int, list[tuple[int, int]]]]:
        ...
    @property
    def rounds(self) -> int:
        ...
class Fragmentation:
    """
    How much of machines' GPUs typical jobs could not use.
    """
    def __init__(self, jobs: collections.abc.Sequence[tuple[typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex, typing.SupportsFloat | typing.SupportsIndex, collections.abc.Sequence[bool]]], stranded: typing.SupportsFloat | typing.SupportsIndex = 0.0) -> None:
        """
        jobs: thousandths of CPUs, GPUs, thousandths of each GPU, weight, and which classes suit. stranded: the weight of GPUs that lack of CPUs strands.
        """
    def best_steps(self, classes: typing.Annotated[numpy.typing.ArrayLike, numpy.int32], cpus: typing.Annotated[numpy.typing.ArrayLike, numpy.int64], left: typing.Annotated[numpy.typing.ArrayLike, numpy.int32], needed_cpus: typing.SupportsInt | typing.SupportsIndex, tasks: typing.SupportsInt | typing.SupportsIndex, share: typing.SupportsInt | typing.SupportsIndex, rounded: bool) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.int32]]:
        """
        (machines,) scores of placing a job, -1 where it does not fit, and (machines,) the GPU of a job that shares one, else -1.
        """
    def expected(self, classes: typing.Annotated[numpy.typing.ArrayLike, numpy.int32], cpus: typing.Annotated[numpy.typing.ArrayLike, numpy.int64], left: typing.Annotated[numpy.typing.ArrayLike, numpy.int32]) -> numpy.typing.NDArray[numpy.float64]:
        """
        (machines,) thousandths of GPUs. classes, cpus: (machines,); left: (machines, GPUs) thousandths.
        """
def are_columns(num_nodes: typing.Any, tail: typing.Any, head: typing.Any, lower: typing.Any, capacity: typing.Any, cost: typing.Any, supply: typing.Any) -> bool:
    ...
def best_channels(network: RingNetwork, chosen: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], rules: ChannelRules) -> tuple[list[tuple[list[int], int]], int, int, int, bool, int]:
    """
    Rings with their numbers, count, rate, level, complete, nodes.
    """
def best_remainder(pattern: Graph, target: Graph, free: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex] | None, kept: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], required: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], timeout: typing.SupportsFloat | typing.SupportsIndex | None, max_nodes: typing.SupportsInt | typing.SupportsIndex | None) -> tuple[numpy.typing.NDArray[numpy.int32] | None, float, float, bool, int]:
    ...
@typing.overload
def best_subgraph(pattern: Graph, target: Graph, objective: str, free: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex] | None, required: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], min_weight: typing.SupportsFloat | typing.SupportsIndex, timeout: typing.SupportsFloat | typing.SupportsIndex | None, max_nodes: typing.SupportsInt | typing.SupportsIndex | None, tolerance: typing.SupportsFloat | typing.SupportsIndex) -> tuple[numpy.typing.NDArray[numpy.int32] | None, float, float, bool, bool, int]:
    ...
@typing.overload
def best_subgraph(pattern: Graph, target: Graph, objective: LinkCountScore, free: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex] | None, required: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], min_weight: typing.SupportsFloat | typing.SupportsIndex, timeout: typing.SupportsFloat | typing.SupportsIndex | None, max_nodes: typing.SupportsInt | typing.SupportsIndex | None, tolerance: typing.SupportsFloat | typing.SupportsIndex) -> tuple[numpy.typing.NDArray[numpy.int32] | None, float, float, bool, bool, int]:
    ...
def bipartition(graph: Graph, fraction: typing.SupportsFloat | typing.SupportsIndex, imbalance: typing.SupportsFloat | typing.SupportsIndex, vertex_weights: numpy.typing.NDArray[numpy.int64] | None, fixed: numpy.typing.NDArray[numpy.int8] | None, starts: typing.SupportsInt | typing.SupportsIndex, cycles: typing.SupportsInt | typing.SupportsIndex, seed: typing.SupportsInt | typing.SupportsIndex, exact_up_to: typing.SupportsInt | typing.SupportsIndex, timeout: typing.SupportsFloat | typing.SupportsIndex | None) -> BipartitionAnswer:
    ...
def can_be_divided(tree: DomainTree, num_tasks: typing.SupportsInt | typing.SupportsIndex, required: tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int64], typing.Annotated[numpy.typing.ArrayLike, numpy.int32]], apart: tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int64], typing.Annotated[numpy.typing.ArrayLike, numpy.int32]]) -> bool:
    ...
def can_place_gang(topology: GangTopology, levels: GangLevels, conditions: MachineConditions, offers: tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.uint8]], job: JobCollectives, edges: typing.Annotated[numpy.typing.ArrayLike, numpy.float64], most: typing.SupportsInt | typing.SupportsIndex, groups: GangGroups, timeout: typing.SupportsFloat | typing.SupportsIndex | None) -> bool:
    ...
def channel_rate(network: RingNetwork, chosen: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], rules: ChannelRules) -> int:
    """
    The rate of the best channels together.
    """
def count_subgraphs(pattern: Graph, target: Graph, distinct: str, induced: bool, min_weight: typing.SupportsFloat | typing.SupportsIndex, limit: typing.SupportsInt | typing.SupportsIndex, candidates: numpy.typing.NDArray[numpy.uint8] | None, timeout: typing.SupportsFloat | typing.SupportsIndex | None) -> tuple[int, bool, int]:
    ...
def count_vectors(num_edges: typing.SupportsInt | typing.SupportsIndex, num_classes: typing.SupportsInt | typing.SupportsIndex) -> numpy.typing.NDArray[numpy.int32]:
    ...
def distribute(source: Graph, room: numpy.typing.NDArray[numpy.int32], distance: numpy.typing.NDArray[numpy.float64], starts: typing.SupportsInt | typing.SupportsIndex, seed: typing.SupportsInt | typing.SupportsIndex, timeout: typing.SupportsFloat | typing.SupportsIndex | None, max_nodes: typing.SupportsInt | typing.SupportsIndex | None) -> tuple[numpy.typing.NDArray[numpy.int32], float, float, bool, bool, int] | None:
    ...
def divide(units: tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32]], gpus: tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.uint8]], machines: tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.uint8], typing.Annotated[numpy.typing.ArrayLike, numpy.int32]], seconds: tuple[collections.abc.Sequence[typing.Annotated[numpy.typing.ArrayLike, numpy.float64]], typing.Annotated[numpy.typing.ArrayLike, numpy.float64]], limits: typing.Annotated[numpy.typing.ArrayLike, numpy.float64], below: typing.SupportsFloat | typing.SupportsIndex, fastest: bool, most_steps: typing.SupportsInt | typing.SupportsIndex, timeout: typing.SupportsFloat | typing.SupportsIndex | None, max_nodes: typing.SupportsInt | typing.SupportsIndex | None) -> tuple[list[tuple[int, float, numpy.typing.NDArray[numpy.int32]]], bool, bool, int]:
    ...
def divide_gang(of_machines: MachineLimits, units: tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32]], usable: typing.Annotated[numpy.typing.ArrayLike, numpy.uint8], most: typing.Annotated[numpy.typing.ArrayLike, numpy.int32], known: typing.Annotated[numpy.typing.ArrayLike, numpy.uint8], limits: typing.Annotated[numpy.typing.ArrayLike, numpy.float64], below: typing.SupportsFloat | typing.SupportsIndex, most_steps: typing.SupportsInt | typing.SupportsIndex) -> tuple[list[tuple[int, float, numpy.typing.NDArray[numpy.int32]]], bool, bool, int]:
    ...
def divide_tasks(tree: DomainTree, num_tasks: typing.SupportsInt | typing.SupportsIndex, required: tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int64], typing.Annotated[numpy.typing.ArrayLike, numpy.int32]], apart: tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int64], typing.Annotated[numpy.typing.ArrayLike, numpy.int32]], preferred: tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int64], typing.Annotated[numpy.typing.ArrayLike, numpy.int32]], balanced: typing.SupportsInt | typing.SupportsIndex, edges: typing.Annotated[numpy.typing.ArrayLike, numpy.float64], distances: typing.Any, gpus: typing.Annotated[numpy.typing.ArrayLike, numpy.int32], better_for: typing.SupportsFloat | typing.SupportsIndex | None) -> numpy.typing.NDArray[numpy.int32] | None:
    """
    The leaf of each task, from 0; None if there is no division, or none was found in time.
    """
def enumerate_subgraphs(pattern: Graph, target: Graph, distinct: str, induced: bool, min_weight: typing.SupportsFloat | typing.SupportsIndex, limit: typing.SupportsInt | typing.SupportsIndex, candidates: numpy.typing.NDArray[numpy.uint8] | None, timeout: typing.SupportsFloat | typing.SupportsIndex | None) -> tuple[numpy.typing.NDArray[numpy.int32], bool, int]:
    ...
def exchanges_of(job: JobCollectives, units: typing.Annotated[numpy.typing.ArrayLike, numpy.int32], rings: bool) -> tuple[list[int], numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.float64]]:
    ...
def flows_of(network: CollectiveNetwork, job: JobCollectives, vertex_of: numpy.typing.NDArray[numpy.int32], planned: bool) -> tuple[list[int], numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64], list[tuple[float, int, int, bool]]]:
    ...
def free_offers(conditions: MachineConditions, suitable: collections.abc.Sequence[bytes], most: typing.SupportsInt | typing.SupportsIndex) -> tuple[numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.uint8]]:
    """
    What machines offer to a job of whole GPUs. suitable: of each template, GPUs as bits, the lowest byte first. most: tasks on one machine.
    """
def gang_tree(machines: GangMachines, offers: tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.uint8]], codes: collections.abc.Sequence[typing.Annotated[numpy.typing.ArrayLike, numpy.int64]]) -> tuple[numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int32]]:
    """
    The offered machines as the leaves of a tree of domains; codes: of each level around machines, the outermost first.
    """
def gang_units(job: JobCollectives, groups: GangGroups, most: typing.SupportsInt | typing.SupportsIndex, sizes: typing.Annotated[numpy.typing.ArrayLike, numpy.int32]) -> numpy.typing.NDArray[numpy.int32]:
    """
    (u, t) the tasks of each unit; sizes: of machines, the most tasks.
    """
def grade(seconds: typing.SupportsFloat | typing.SupportsIndex, slack: typing.SupportsFloat | typing.SupportsIndex) -> float:
    ...
def largest_flows(job: JobCollectives, units: typing.Annotated[numpy.typing.ArrayLike, numpy.int32]) -> list[float]:
    ...
def least_if_split(limits: GangLimits, job: JobCollectives, size: typing.SupportsInt | typing.SupportsIndex, communicates: bool) -> float:
    ...
def least_max_flow(graph: TerminalGraph, chosen: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], relay_others: bool, timeout: typing.SupportsFloat | typing.SupportsIndex | None) -> tuple[int, list[int], bool, int]:
    """
    Value, side, complete, flows.
    """
def least_seconds(limits: GangLimits, room: GangRoom, own_class: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], job: JobCollectives, units: typing.Annotated[numpy.typing.ArrayLike, numpy.int32], machine_groups: bool) -> tuple[float, float]:
    ...
def least_seconds_of_one(limits: GangLimits, job: JobCollectives, size: typing.SupportsInt | typing.SupportsIndex, communicates: bool) -> float:
    ...
def list_nodes(problem: CapacityTables, price: numpy.typing.NDArray[numpy.float64], limit: typing.SupportsFloat | typing.SupportsIndex, most: typing.SupportsInt | typing.SupportsIndex, timeout: typing.SupportsFloat | typing.SupportsIndex | None) -> list[tuple[float, float, int, list[tuple[int, int]]]] | None:
    ...
def map_gang(network: CollectiveNetwork, job: JobCollectives, tree: tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.float64], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.float64]], items: tuple[typing.SupportsInt | typing.SupportsIndex, typing.Annotated[numpy.typing.ArrayLike, numpy.int64], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.float64], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.float64]], gang: tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int64], typing.Annotated[numpy.typing.ArrayLike, numpy.int32]], others: typing.Any, least_seconds: typing.SupportsFloat | typing.SupportsIndex, seed: typing.SupportsInt | typing.SupportsIndex, work: typing.SupportsInt | typing.SupportsIndex, moves: typing.SupportsInt | typing.SupportsIndex, timeout: typing.SupportsFloat | typing.SupportsIndex | None) -> tuple[bool, numpy.typing.NDArray[numpy.int32], float, float, bool, int]:
    ...
def map_graph(source: Graph, target: TargetDistance, method: str, target_cost: numpy.typing.NDArray[numpy.float64] | None, free: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex] | None, regions: collections.abc.Sequence[collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex]], start: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], kicks: typing.SupportsInt | typing.SupportsIndex, proof_nodes: typing.SupportsInt | typing.SupportsIndex, seed: typing.SupportsInt | typing.SupportsIndex, timeout: typing.SupportsFloat | typing.SupportsIndex | None, max_nodes: typing.SupportsInt | typing.SupportsIndex | None) -> tuple[numpy.typing.NDArray[numpy.int32], float, float, bool, bool, int, int, int] | None:
    ...
def map_to_tree(tree: tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.float64], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.float64]], items: tuple[typing.SupportsInt | typing.SupportsIndex, typing.Annotated[numpy.typing.ArrayLike, numpy.int64], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.float64], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.float64]], seed: typing.SupportsInt | typing.SupportsIndex, moves: typing.SupportsInt | typing.SupportsIndex, timeout: typing.SupportsFloat | typing.SupportsIndex | None) -> tuple[bool, numpy.typing.NDArray[numpy.int32], float, float, float, bool, int]:
    ...
def min_cost_flow(num_nodes: typing.SupportsInt | typing.SupportsIndex, tail: typing.Annotated[numpy.typing.ArrayLike, numpy.int32], head: typing.Annotated[numpy.typing.ArrayLike, numpy.int32], lower: typing.Annotated[numpy.typing.ArrayLike, numpy.int64] | None, capacity: typing.Annotated[numpy.typing.ArrayLike, numpy.int64], cost: typing.Annotated[numpy.typing.ArrayLike, numpy.int64], supply: typing.Annotated[numpy.typing.ArrayLike, numpy.int64], algorithm: str, structure: bool, start_flow: typing.Annotated[numpy.typing.ArrayLike, numpy.int64] | None, start_potential: typing.Annotated[numpy.typing.ArrayLike, numpy.int64] | None, timeout: typing.SupportsFloat | typing.SupportsIndex | None, max_nodes: typing.SupportsInt | typing.SupportsIndex | None) -> FlowAnswer:
    ...
def pack_groups(parent: numpy.typing.NDArray[numpy.int32], room: numpy.typing.NDArray[numpy.int32], group_parent: numpy.typing.NDArray[numpy.int32], group_depth: numpy.typing.NDArray[numpy.int32], own_tasks: numpy.typing.NDArray[numpy.int32], balanced: typing.SupportsInt | typing.SupportsIndex, timeout: typing.SupportsFloat | typing.SupportsIndex | None, max_nodes: typing.SupportsInt | typing.SupportsIndex | None) -> tuple[bool, numpy.typing.NDArray[numpy.int32], bool, bool, int]:
    ...
def pack_rings(network: RingNetwork, chosen: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], rate: typing.SupportsInt | typing.SupportsIndex, level: typing.SupportsInt | typing.SupportsIndex, max_rings: typing.SupportsInt | typing.SupportsIndex, equal: bool, timeout: typing.SupportsFloat | typing.SupportsIndex | None, max_nodes: typing.SupportsInt | typing.SupportsIndex | None) -> tuple[list[tuple[list[int], int]], int, int, bool, bool, int]:
    """
    Rings with their numbers, count, bound, optimal, complete, nodes.
    """
def pack_tasks(tree: DomainTree, num_tasks: typing.SupportsInt | typing.SupportsIndex, tasks: typing.Annotated[numpy.typing.ArrayLike, numpy.int32], together: tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int64], typing.Annotated[numpy.typing.ArrayLike, numpy.int32]], apart: tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int64], typing.Annotated[numpy.typing.ArrayLike, numpy.int32]]) -> tuple[bool, tuple[numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int32]] | None]:
    ...
def pack_trees(graph: TerminalGraph, chosen: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], relay_others: bool, timeout: typing.SupportsFloat | typing.SupportsIndex | None) -> tuple[list[tuple[int, int, list[tuple[int, int, list[tuple[list[int], int]]]]]], int, int, int, bool, int]:
    """
    Trees, number per root, rate (two numbers), complete, flows.
    """
def place_gang(topology: GangTopology, levels: GangLevels, conditions: MachineConditions, offers: tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.uint8]], job: JobCollectives, edges: typing.Annotated[numpy.typing.ArrayLike, numpy.float64], most: typing.SupportsInt | typing.SupportsIndex, groups: GangGroups, may_divide: bool, others: typing.Any, times: tuple[typing.SupportsFloat | typing.SupportsIndex, bool], compact: tuple[typing.SupportsFloat | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex, typing.SupportsFloat | typing.SupportsIndex, typing.Annotated[numpy.typing.ArrayLike, numpy.float64]], timeout: typing.SupportsFloat | typing.SupportsIndex | None) -> tuple[numpy.typing.NDArray[numpy.int32], float, float] | None:
    """
    The GPU of each task, seconds beside the others, and the least seconds; None without room.
    """
def price_nodes(problem: CapacityTables, price: numpy.typing.NDArray[numpy.float64]) -> list[tuple[float, float, int, list[tuple[int, int]]]]:
    ...
def repack_groups(parent: numpy.typing.NDArray[numpy.int32], room: numpy.typing.NDArray[numpy.int32], group_parent: numpy.typing.NDArray[numpy.int32], group_depth: numpy.typing.NDArray[numpy.int32], own_tasks: numpy.typing.NDArray[numpy.int32], kept: numpy.typing.NDArray[numpy.int32], timeout: typing.SupportsFloat | typing.SupportsIndex | None, max_nodes: typing.SupportsInt | typing.SupportsIndex | None) -> tuple[bool, numpy.typing.NDArray[numpy.int32], bool, int, int, int]:
    ...
def result_fields() -> dict[str, tuple[str, ...]]:
    ...
def search_capacity(problem: CapacityTables, num_nodes: typing.SupportsInt | typing.SupportsIndex, start: collections.abc.Sequence[tuple[typing.SupportsInt | typing.SupportsIndex, collections.abc.Sequence[tuple[typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex]]]], price_steps: typing.SupportsInt | typing.SupportsIndex, rounds: typing.SupportsInt | typing.SupportsIndex, seed: typing.SupportsInt | typing.SupportsIndex, timeout: typing.SupportsFloat | typing.SupportsIndex | None, max_nodes: typing.SupportsInt | typing.SupportsIndex | None) -> CapacityAnswer:
    ...
def seconds_of(network: CollectiveNetwork, job: JobCollectives, vertex_of: numpy.typing.NDArray[numpy.int32], others: typing.Any) -> tuple[float, float]:
    """
    Seconds of the job alone, and beside others.
    """
def set_deadline(seconds: typing.SupportsFloat | typing.SupportsIndex | None) -> None:
    """
    Ends the searches of this thread by DeadlineError after these seconds from now; None: never.
    """
def solve_columns(num_nodes: typing.Any, tail: typing.Any, head: typing.Any, lower: typing.Any, capacity: typing.Any, cost: typing.Any, supply: typing.Any) -> FlowAnswer | None:
    ...
def task_forest(groups: tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int64], typing.Annotated[numpy.typing.ArrayLike, numpy.int32]], tasks: typing.Annotated[numpy.typing.ArrayLike, numpy.int32], num_tasks: typing.SupportsInt | typing.SupportsIndex) -> tuple[numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int32]]:
    ...
def tasks_hosted(job: tuple[typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex], free: typing.Annotated[numpy.typing.ArrayLike, numpy.int64], at_best: bool) -> numpy.typing.NDArray[numpy.int64]:
    """
    (machines,) the tasks for which free CPUs and memory suffice.
    """
def throughput_bound(graph: TerminalGraph, chosen: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], relay_others: bool, timeout: typing.SupportsFloat | typing.SupportsIndex | None) -> tuple[int, int, list[int], bool, int]:
    """
    Terminals, capacity, side, complete, flows.
    """
def traffic_times(network: CollectiveNetwork, job: JobCollectives, vertex_of: numpy.typing.NDArray[numpy.int32], planned: bool, others: typing.Any) -> list[tuple[float, int, float, tuple[float, int, int, bool]]]:
    ...
def tree_bound(tree: tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.float64], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.float64]], items: tuple[typing.SupportsInt | typing.SupportsIndex, typing.Annotated[numpy.typing.ArrayLike, numpy.int64], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.float64], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.float64]]) -> tuple[float, numpy.typing.NDArray[numpy.float64]]:
    ...
def verify_bipartition(graph: Graph, side: numpy.typing.NDArray[numpy.int8], cut: typing.SupportsFloat | typing.SupportsIndex, fraction: typing.SupportsFloat | typing.SupportsIndex, imbalance: typing.SupportsFloat | typing.SupportsIndex, vertex_weights: numpy.typing.NDArray[numpy.int64] | None, fixed: numpy.typing.NDArray[numpy.int8] | None) -> str | None:
    """
    None where the bipartition is right, else the reason why it is not.
    """
def verify_capacity(gpus: numpy.typing.NDArray[numpy.int32], open: numpy.typing.NDArray[numpy.float64], run: numpy.typing.NDArray[numpy.float64], pay: numpy.typing.NDArray[numpy.float64], wait: numpy.typing.NDArray[numpy.float64], nodes: collections.abc.Sequence[tuple[typing.SupportsInt | typing.SupportsIndex, collections.abc.Sequence[tuple[typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex]]]], cost: typing.SupportsFloat | typing.SupportsIndex) -> str | None:
    """
    None where the plan is right, else the reason why it is not.
    """
def verify_distribution(source: Graph, room: numpy.typing.NDArray[numpy.int32], distance: numpy.typing.NDArray[numpy.float64], block_of: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], cost: typing.SupportsFloat | typing.SupportsIndex) -> str | None:
    """
    None where the distribution is right, else the reason why it is not.
    """
def verify_division(units: tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32]], gpus: tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.uint8]], machines: tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.uint8], typing.Annotated[numpy.typing.ArrayLike, numpy.int32]], seconds: tuple[collections.abc.Sequence[typing.Annotated[numpy.typing.ArrayLike, numpy.float64]], typing.Annotated[numpy.typing.ArrayLike, numpy.float64]], moves: typing.SupportsInt | typing.SupportsIndex, limit: typing.SupportsFloat | typing.SupportsIndex, placed: typing.Annotated[numpy.typing.ArrayLike, numpy.int32]) -> str | None:
    """
    None where the division is right, else the reason why it is not.
    """
def verify_embedding(pattern: Graph, target: Graph, vertices: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], induced: bool, min_weight: typing.SupportsFloat | typing.SupportsIndex) -> str | None:
    """
    None where the vertices are an embedding, else the reason why they are not.
    """
def verify_flow(num_nodes: typing.SupportsInt | typing.SupportsIndex, tail: typing.Annotated[numpy.typing.ArrayLike, numpy.int32], head: typing.Annotated[numpy.typing.ArrayLike, numpy.int32], lower: typing.Annotated[numpy.typing.ArrayLike, numpy.int64] | None, capacity: typing.Annotated[numpy.typing.ArrayLike, numpy.int64], cost: typing.Annotated[numpy.typing.ArrayLike, numpy.int64], supply: typing.Annotated[numpy.typing.ArrayLike, numpy.int64], flow: typing.Annotated[numpy.typing.ArrayLike, numpy.int64], potential: typing.Annotated[numpy.typing.ArrayLike, numpy.int64], total: int) -> bool:
    ...
def verify_gang(network: CollectiveNetwork, job: JobCollectives, tree: tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.float64], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.float64]], items: tuple[typing.SupportsInt | typing.SupportsIndex, typing.Annotated[numpy.typing.ArrayLike, numpy.int64], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.float64], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.float64]], gang: tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int64], typing.Annotated[numpy.typing.ArrayLike, numpy.int32]], others: typing.Any, vertex_of: numpy.typing.NDArray[numpy.int32], seconds: typing.SupportsFloat | typing.SupportsIndex, port_seconds: typing.SupportsFloat | typing.SupportsIndex) -> str | None:
    """
    None where the mapping is right, else the reason why it is not.
    """
def verify_group_packing(parent: numpy.typing.NDArray[numpy.int32], room: numpy.typing.NDArray[numpy.int32], group_parent: numpy.typing.NDArray[numpy.int32], group_depth: numpy.typing.NDArray[numpy.int32], own_tasks: numpy.typing.NDArray[numpy.int32], balanced: typing.SupportsInt | typing.SupportsIndex, shares: numpy.typing.NDArray[numpy.int32]) -> str | None:
    """
    None where the packing is right, else the reason why it is not.
    """
def verify_group_repacking(parent: numpy.typing.NDArray[numpy.int32], room: numpy.typing.NDArray[numpy.int32], group_parent: numpy.typing.NDArray[numpy.int32], group_depth: numpy.typing.NDArray[numpy.int32], own_tasks: numpy.typing.NDArray[numpy.int32], kept: numpy.typing.NDArray[numpy.int32], shares: numpy.typing.NDArray[numpy.int32], moved: typing.SupportsInt | typing.SupportsIndex) -> str | None:
    """
    None where the repacking is right, else the reason why it is not.
    """
def verify_infeasible(num_nodes: typing.SupportsInt | typing.SupportsIndex, tail: typing.Annotated[numpy.typing.ArrayLike, numpy.int32], head: typing.Annotated[numpy.typing.ArrayLike, numpy.int32], lower: typing.Annotated[numpy.typing.ArrayLike, numpy.int64] | None, capacity: typing.Annotated[numpy.typing.ArrayLike, numpy.int64], cost: typing.Annotated[numpy.typing.ArrayLike, numpy.int64], supply: typing.Annotated[numpy.typing.ArrayLike, numpy.int64], cut: typing.Annotated[numpy.typing.ArrayLike, numpy.int32]) -> bool:
    ...
def verify_least_flow(graph: TerminalGraph, chosen: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], relay_others: bool, value: typing.SupportsInt | typing.SupportsIndex, side: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex]) -> str | None:
    """
    The first fault, or None.
    """
def verify_rings(network: RingNetwork, chosen: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], rate: typing.SupportsInt | typing.SupportsIndex, level: typing.SupportsInt | typing.SupportsIndex, max_rings: typing.SupportsInt | typing.SupportsIndex, equal: bool, rings: collections.abc.Sequence[tuple[collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], typing.SupportsInt | typing.SupportsIndex]]) -> str | None:
    """
    The first fault, or None.
    """
def verify_task_mapping(source: Graph, target: TargetDistance, target_of: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], cost: typing.SupportsFloat | typing.SupportsIndex, target_cost: numpy.typing.NDArray[numpy.float64] | None, free: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex] | None) -> str | None:
    """
    None where the mapping is right, else the reason why it is not.
    """
def verify_throughput(graph: TerminalGraph, chosen: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], relay_others: bool, terminals: typing.SupportsInt | typing.SupportsIndex, capacity: typing.SupportsInt | typing.SupportsIndex, side: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex]) -> str | None:
    """
    The first fault, or None.
    """
def verify_tree_mapping(tree: tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.float64], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.float64]], items: tuple[typing.SupportsInt | typing.SupportsIndex, typing.Annotated[numpy.typing.ArrayLike, numpy.int64], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.float64], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.int32], typing.Annotated[numpy.typing.ArrayLike, numpy.float64]], leaf_of: numpy.typing.NDArray[numpy.int32], seconds: typing.SupportsFloat | typing.SupportsIndex, port_seconds: typing.SupportsFloat | typing.SupportsIndex) -> str | None:
    """
    None where the mapping is right, else the reason why it is not.
    """
def verify_trees(graph: TerminalGraph, chosen: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], relay_others: bool, trees: collections.abc.Sequence[tuple[typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex, collections.abc.Sequence[tuple[typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex, collections.abc.Sequence[tuple[collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], typing.SupportsInt | typing.SupportsIndex]]]]]], per_root: typing.SupportsInt | typing.SupportsIndex, rate_numerator: typing.SupportsInt | typing.SupportsIndex, rate_denominator: typing.SupportsInt | typing.SupportsIndex) -> str | None:
    """
    The first fault, or None.
    """
def verify_unbounded(num_nodes: typing.SupportsInt | typing.SupportsIndex, tail: typing.Annotated[numpy.typing.ArrayLike, numpy.int32], head: typing.Annotated[numpy.typing.ArrayLike, numpy.int32], lower: typing.Annotated[numpy.typing.ArrayLike, numpy.int64] | None, capacity: typing.Annotated[numpy.typing.ArrayLike, numpy.int64], cost: typing.Annotated[numpy.typing.ArrayLike, numpy.int64], supply: typing.Annotated[numpy.typing.ArrayLike, numpy.int64], cycle: typing.Annotated[numpy.typing.ArrayLike, numpy.int32]) -> bool:
    ...
