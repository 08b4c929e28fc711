"""The cells of the suite: every policy on every machine and cluster, with every workload and seed."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, Final

from topoplace import policies
from topoplace.engine.policy import Policy
from topoplace.policies.mapa.search import MapaPolicy
from topoplace_lab.simulate import Discipline, PerformanceModel, StepTime, Workload
from topoplace_lab.simulate import simulate as simulated
from topoplace_lab.simulate.performance import given_models
from topoplace_lab.suite import topologies, workloads
from topoplace_lab.suite.asking import as_asked
from topoplace_lab.suite.measures import figures
from topoplace_lab.sweeps import Cell, Outcome, Plan, Scenario, code_of, code_of_model

VERSION: Final = 3
"""Raised with every change of the measurements; results of different versions are not comparable."""
SEEDS: Final = 4
POLICIES: Final = (
    *("least-time", "topo-aware", "best-fit", "fcfs", "random-fit", "mapa-greedy", "mapa-preserve"),
    *("fgd", "two-choices", "drmaestro", "r-queue"),
    *(
        "kueue-best-fit",
        "kueue-balanced",
        "slurm-tree",
        "slurm-block",
        "volcano-binpack",
        "kubernetes-default",
    ),
    "nvidia-allocator",
)
"""The policies that the suite rates by default: for each kind, those that differ in it."""
QUEUE: Final = Discipline("submitted", "easy")
"""The queue of all policies, so that only placements differ."""
_QUICK_TOPOLOGIES: Final = ("dgx1-v100", "h100-leaves-x32")
_QUICK_WORKLOADS: Final = ("parallel", "serving")
_MAX_NODES: Final = 2_000
"""Limit on the search trees of MAPA's policies, which are for machines of up to 16 GPUs."""


def plan(
    names: Sequence[str], *, traces: Sequence[Path] = (), quick: bool = False, performance: str = ""
) -> Plan:
    """Return the suite's cells for policies by name, see `policies.get`.

    traces: files of jobs. Slices of them are held out: no figure includes them; they only check the order of the
    policies. quick: a machine, a cluster, two workloads and one seed, to check that a policy runs. performance:
    MODULE:OBJECT of a model of run times; "" for `StepTime`.

    ValueError for an unknown name, a wrong model, two traces of one name, and a file that is no trace or has too few
    jobs.
    """
    own = code_of_model(_model(performance))
    code = {name: code_of(name) + own for name in names}
    where = _QUICK_TOPOLOGIES if quick else topologies.NAMES
    what = _QUICK_WORKLOADS if quick else workloads.NAMES
    options = {"performance": performance}
    drawn = product((Scenario(*one, None) for one in product(where, what)), range(1 if quick else SEEDS))
    cells = [Cell(name, *one, options, code[name]) for one, name in product(drawn, names)]
    cells += [
        Cell(name, scenario, 0, options | {"trace": path}, code[name])
        for (path, scenario), name in product(_held_out(traces, where), names)
    ]
    about: dict[str, Any] = {"suite": VERSION}
    if performance:
        about["performance"] = performance
    if traces:
        about["traces"] = [hashlib.sha256(path.read_bytes()).hexdigest() for path in traces]
    return Plan(tuple(cells), about)


def _held_out(traces: Sequence[Path], where: Sequence[str]) -> list[tuple[str, Scenario]]:
    """Return the traces with the machines and clusters where they run; ValueError as for `plan`."""
    names = [path.name for path in traces]
    for path, name in product(traces, where):
        if names.count(path.name) > 1:
            raise ValueError(f"--traces: two files are called {path.name}")
        _of_trace(str(path), name)
    return [(str(path), Scenario(name, path.name, None)) for path, name in product(traces, where)]


def is_held_out(cell: Cell) -> bool:
    """Return True for a cell with the jobs of a trace."""
    return "trace" in cell.options


def simulate(cell: Cell) -> Outcome:
    """Return the measures of a cell, or the fault of the policy or the model of run times."""
    topology = topologies.built(cell.scenario.topology)
    workload = _workload(cell)
    policy = _policy(cell.policy)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "topology .* has no sockets")  # a policy that is another one there
        warnings.filterwarnings("ignore", "MapaSlowdown: job")  # the model that was asked for says it
        try:
            model = _model(cell.options.get("performance", ""))
            with policies.installed.faults_named(policy), given_models.faults_named(model):
                asked = as_asked(workload, _policy(cell.policy), topology)
                result = simulated(
                    topology, asked, policy, performance=model, seed=cell.seed, discipline=QUEUE
                )
        except ValueError as error:
            return str(error)
    return figures(result)


def _policy(name: str) -> Policy:
    policy = policies.get(name)
    return policies.get(name, max_nodes=_MAX_NODES) if isinstance(policy, MapaPolicy) else policy


@lru_cache(maxsize=1)
def _model(name: str) -> PerformanceModel:
    return given_models.model_named(name) if name else StepTime()


def _workload(cell: Cell) -> Workload:
    if is_held_out(cell):
        return _of_trace(cell.options["trace"], cell.scenario.topology)
    return _drawn(cell.scenario.workload, cell.scenario.topology, cell.seed)


@lru_cache(maxsize=8)
def _drawn(name: str, topology: str, seed: int) -> Workload:
    return workloads.drawn(name, topologies.built(topology), seed)


@lru_cache(maxsize=8)
def _of_trace(path: str, topology: str) -> Workload:
    return workloads.of_trace(Path(path), topologies.built(topology))
