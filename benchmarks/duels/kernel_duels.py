"""Every kernel next to the library that one would otherwise use."""

from __future__ import annotations

import importlib
import importlib.util
import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import igraph
import networkx as nx
import numpy as np

import bench_collective
import bench_match_peers as match_peers
import topoplace as tp
from bench_capacity import problem
from bench_flow import kept, powers, schedules
from bench_partition import QUICK as GRAPHS
from duels.duel import OURS, Case, Duel
from instances.flow_instances import FAMILIES, LOADS
from instances.flow_live import SEED, Live
from libraries import flow_libraries, partition_libraries
from timing.measure import Contender, Prepared
from topoplace import collective, kernels
from topoplace_lab.capacity import CapacityPlanner

ENUMERATED = (
    *match_peers.QUICK,
    match_peers.Case("clique", 4, "16 GPUs complete"),
    match_peers.Case("star", 4, "dgx1-v100 NVLink"),
    match_peers.Case("ring", 6, "cubemesh-16 NVLink"),
)
SMALL = match_peers.Case("ring", 4, "torus2d-16 NVLink")
BISECTORS = ("pymetis", "KaHIP fast", "mt-kahypar")


def duels() -> list[Duel]:
    """Return all duels of kernels."""
    return [*subgraphs(), *splits(), *flows(), *others()]


def split_by(names: Iterable[str], is_there: Callable[[str], bool]) -> tuple[list[str], list[str]]:
    """Return the libraries that are installed, and those that are not."""
    listed = list(names)
    return [name for name in listed if is_there(name)], [name for name in listed if not is_there(name)]


def fixed(run: Callable[[], Any], answer: Callable[[Any], Any]) -> Contender:
    """Return a contender that does the same in each round."""
    return Contender(lambda _: Prepared(run, answer))


# ---- subgraphs ---------------------------------------------------------------------------------------------------


def subgraphs() -> list[Duel]:
    """Return the duels of enumeration, counting and the best subgraph."""
    two, none = ["igraph", "rustworkx"], list[str]()
    listed = partial(enumerated, match_peers.ENUMERATE, len)
    counted = partial(enumerated, match_peers.COUNT, int)
    return [
        Duel("enumerate_subgraphs", f"all mappings of {len(ENUMERATED)} patterns", two, none, listed),
        Duel("count_subgraphs", "their number", two, none, counted),
        Duel("enumerate_subgraphs", f"all mappings, {SMALL}", ["networkx"], none, beside_networkx),
        Duel(
            "best_subgraph",
            "the best ring of 4 or 5, proven",
            ["a list by igraph, scored by numpy"],
            none,
            best,
        ),
    ]


def enumerated(libraries: dict[str, Callable[..., Any]], answer: Callable[[Any], int]) -> list[Case]:
    """Return the cases of patterns in targets."""
    cases = []
    for case in ENUMERATED:
        graphs = match_peers.graphs_of(case.pattern, case.size), match_peers.graphs_of(case.target)
        cases.append(Case({name: fixed(partial(run, *graphs), answer) for name, run in libraries.items()}))
    return cases


def beside_networkx() -> list[Case]:
    """Return the case that networkx can do in a second."""
    pattern, target = match_peers.PATTERNS[SMALL.pattern](SMALL.size), match_peers.targets()[SMALL.target]
    graphs = match_peers.graphs_of(SMALL.pattern, SMALL.size), match_peers.graphs_of(SMALL.target)

    def theirs() -> list[Any]:
        return list(nx.algorithms.isomorphism.GraphMatcher(target, pattern).subgraph_monomorphisms_iter())

    ours = partial(match_peers.ours_enumerate, *graphs)
    return [Case({OURS: fixed(ours, len), "networkx": fixed(theirs, len)})]


def best() -> list[Case]:
    """Return rings on machines whose GPUs are all joined."""
    return [best_ring(name, size) for name in ("dgx1-v100", "torus2d-16") for size in (4, 5)]


def best_ring(machine: str, size: int) -> Case:
    """Return the question for the ring of the largest sum of bandwidths."""
    topology = tp.machines.get(machine)
    weights = np.array(topology.bandwidth_matrix())
    ring, complete = igraph.Graph.Ring(size), igraph.Graph.Full(topology.num_gpus)
    pattern = kernels.Graph.from_edges(size, ring.get_edgelist())

    def theirs() -> float:
        found = np.array(complete.get_subisomorphisms_vf2(ring))
        return float(weights[found, np.roll(found, -1, axis=1)].sum(axis=1).max())

    def ours() -> float:
        found = kernels.best_subgraph(pattern, topology.graph)
        assert found is not None
        return found.score

    rounded = partial(round, ndigits=6)
    return Case({OURS: fixed(ours, rounded), "igraph": fixed(theirs, rounded)})


# ---- splitting and mapping ---------------------------------------------------------------------------------------


def splits() -> list[Duel]:
    """Return the duels of bipartition and mapping."""
    there, missing = split_by(BISECTORS, lambda name: partition_libraries.LIBRARIES[name].installed)
    halves = partial(halved, there)
    what = f"halves of {', '.join(GRAPHS)}, 3 % imbalance"
    cp_sat, no_cp_sat = split_by(
        ["OR-tools' CP-SAT"], lambda _: importlib.util.find_spec("ortools") is not None
    )
    return [
        Duel("bipartition", f"{what}: time", there, missing, halves),
        Duel("bipartition", f"{what}: cut", there, missing, halves, by_answer=True),
        Duel(
            "map_graph",
            "rings of 4 to 6 tasks on a DGX-1, proven",
            cp_sat,
            no_cp_sat,
            partial(mapped, cp_sat),
        ),
    ]


def halved(names: Sequence[str]) -> list[Case]:
    """Return graphs to split; each round has its own seed."""
    cases = []
    for build in GRAPHS.values():
        instance = build()

        def contender(name: str, instance: Any = instance) -> Contender:
            library = partition_libraries.LIBRARIES[name]

            def cut(side: Any) -> float:
                return instance.cut(np.asarray(side, dtype=np.int64))

            return Contender(
                lambda number: Prepared(library.prepare(instance, number + 1), cut), repeats=False
            )

        cases.append(Case({name: contender(name) for name in (OURS, *names)}, agree=False))
    return cases


def mapped(names: Sequence[str]) -> list[Case]:
    """Return rings to map with the least sum of distances."""
    distance = np.round(10 * tp.machines.get("dgx1-v100").distance_matrix()).astype(int)
    target = kernels.TargetDistance(distance.astype(float))
    cases = []
    for size in (4, 5, 6):
        job = tp.JobGraph.ring(size)

        def ours(job: tp.JobGraph = job) -> float:
            found = kernels.map_graph(job.graph, target, method="exact")
            assert found is not None
            assert found.optimal
            return found.cost

        contenders = {OURS: fixed(ours, round)}
        if names:
            contenders[names[0]] = fixed(partial(by_cp_sat, size, distance), round)
        cases.append(Case(contenders))
    return cases


def by_cp_sat(size: int, distance: np.ndarray) -> float:
    """Return the least cost of a ring of tasks: a variable for each task's GPU, a table for each edge's distance."""
    cp_model = importlib.import_module("ortools.sat.python.cp_model")
    model, gpus = cp_model.CpModel(), len(distance)
    place = [model.new_int_var(0, gpus - 1, f"task {task}") for task in range(size)]
    model.add_all_different(place)
    table = [(u, v, int(distance[u, v])) for u in range(gpus) for v in range(gpus) if u != v]
    costs = []
    for task in range(size):
        costs.append(model.new_int_var(0, int(distance.max()), f"edge {task}"))
        model.add_allowed_assignments([place[task], place[(task + 1) % size], costs[-1]], table)
    model.minimize(sum(costs))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model) == cp_model.OPTIMAL
    return float(solver.objective_value)


# ---- flows -------------------------------------------------------------------------------------------------------


def flows() -> list[Duel]:
    """Return the duels of flows of least cost."""
    there, missing = split_by(flow_libraries.PEERS, lambda name: flow_libraries.PEERS[name].installed)

    def solved(builds: Callable[[], list[Any]]) -> list[Case]:
        return [solve(build(), there) for build in builds()]

    scheduling = partial(
        solved, lambda: [b for load in LOADS for b in schedules("scheduling", load, (1_000,))]
    )
    general = partial(solved, lambda: [powers(family, 10)[-1] for family in FAMILIES])
    names = ", ".join(FAMILIES)
    return [
        Duel("min_cost_flow", "scheduling graphs, 1,000 machines, 3 loads", there, missing, scheduling),
        Duel("min_cost_flow", f"families of 2^10 nodes: {names}", there, missing, general),
        Duel(
            "FlowNetwork",
            "1,000 machines, 95 % load, after 1 % of tasks left and came; theirs from scratch",
            there,
            missing,
            lambda: [changed(there)],
        ),
    ]


def solve(instance: Any, peers: Sequence[str]) -> Case:
    """Return a network to solve; each round has a new solver."""

    def contender(name: str) -> Contender:
        library = flow_libraries.LIBRARIES["auto" if name == OURS else name]
        return Contender(lambda _: Prepared(*library.prepare(instance)), repeats=False)

    return Case({name: contender(name) for name in (OURS, *peers)})


def changed(peers: Sequence[str]) -> Case:
    """Return a network that changes each round, and is then solved again."""
    live = Live(kept(1_000, 0.95))

    def ours(number: int) -> Prepared:
        live.change(live.workload.churn(live.waiting(live.solve()), SEED + number))
        return Prepared(live.solve, lambda found: found.cost)

    def theirs(name: str) -> Contender:
        library = flow_libraries.PEERS[name]
        return Contender(lambda _: Prepared(*library.prepare(live.workload.instance())), repeats=False)

    return Case({OURS: Contender(ours, repeats=False), **{name: theirs(name) for name in peers}})


# ---- cuts, trees, rings, capacity --------------------------------------------------------------------------------


def others() -> list[Duel]:
    """Return the duel of cuts and of capacity, and kernels for which no library is known."""
    none = list[str]()
    return [
        Duel("least_max_flow", "4 boxes of 8 A100, all pairs of GPUs", ["igraph"], none, cuts),
        Duel(
            "CapacityPlanner",
            "5 nodes, 9 VM types, 10 jobs, to 5 %",
            ["HiGHS on the whole model"],
            none,
            planned,
        ),
        Duel("pack_trees", "8 boxes of 8 A100", none, none, trees),
        Duel("throughput_bound", "4 boxes of 16 MI250", none, none, throughput),
        Duel(
            "distribute",
            "a mesh of 8 by 16 tasks over 20 machines of 8 GPUs in 5 racks",
            none,
            none,
            distributed,
        ),
        Duel("best_channels", "rings through all 247 sets of a DGX-1's GPUs", none, none, rings),
        Duel("best_remainder", "ring of 4 on a torus of 16 GPUs", none, none, remainder),
    ]


def cuts() -> list[Case]:
    """Return the fabric whose least maximum flow between GPUs is asked for."""
    graph = bench_collective.boxes_of_a100(4)
    gpus = range(graph.num_terminals)
    links = [(gpu, 32 + gpu // 8, 300) for gpu in gpus] + [(gpu, 36, 25) for gpu in gpus]
    arcs = [arc for u, v, units in links for arc in ((u, v, units), (v, u, units))]
    theirs = igraph.Graph(37, [arc[:2] for arc in arcs], directed=True)
    units = [arc[2] for arc in arcs]

    def least() -> float:
        flow = partial(theirs.maxflow_value, capacity=units)
        return min(min(flow(0, gpu), flow(gpu, 0)) for gpu in gpus[1:])

    ours = partial(kernels.least_max_flow, graph, gpus)
    return [Case({OURS: fixed(ours, lambda found: found.value), "igraph": fixed(least, round)})]


def planned() -> list[Case]:
    """Return a plan of capacity; both are proven to 5 %, so that costs may differ."""
    asked = problem(10, 0)
    planners = {OURS: CapacityPlanner(), "HiGHS": CapacityPlanner("tight")}
    return [
        Case(
            {
                name: fixed(partial(one.plan, asked), lambda plan: plan.status)
                for name, one in planners.items()
            }
        )
    ]


def trees() -> list[Case]:
    """Return the fabric whose trees are packed."""
    graph = bench_collective.boxes_of_a100(8)
    packed = partial(kernels.pack_trees, graph, range(graph.num_terminals))
    return [Case({OURS: fixed(packed, lambda found: found.per_root)})]


def throughput() -> list[Case]:
    """Return the fabric whose throughput is bounded."""
    graph = bench_collective.boxes_of_mi250(4)
    bound = partial(kernels.throughput_bound, graph, range(graph.num_terminals))
    return [Case({OURS: fixed(bound, lambda found: (found.terminals, found.capacity))})]


def distributed() -> list[Case]:
    """Return a job that is too large for a machine."""
    rack = np.arange(20) // 4
    distance = np.where(rack[:, None] == rack, 3.0, 6.0)
    np.fill_diagonal(distance, 0.0)
    run = partial(kernels.distribute, tp.JobGraph.mesh((8, 16)).graph, [8] * 20, distance)
    return [Case({OURS: fixed(run, lambda found: found.cost)})]


def rings() -> list[Case]:
    """Return all sets of a machine's GPUs, of which none was rated before."""
    sets = [gpus for size in range(2, 9) for gpus in combinations(range(8), size)]

    def prepare(_: int) -> Prepared:
        topology = bench_collective.fresh("dgx1-v100")
        return Prepared(lambda: [collective.ring_bandwidth(topology, gpus) for gpus in sets], math.fsum)

    return [Case({OURS: Contender(prepare, repeats=False)})]


def remainder() -> list[Case]:
    """Return a machine and a ring that leaves the most bandwidth."""
    run = partial(kernels.best_remainder, tp.JobGraph.ring(4).graph, tp.machines.get("torus2d-16").graph)
    return [Case({OURS: fixed(run, lambda found: found.remainder)})]
