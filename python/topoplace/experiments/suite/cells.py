"""The cells of the suite: every policy on every machine and cluster, with every workload and seed."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import Final

from topoplace import policies
from topoplace.engine.policy import Policy
from topoplace.experiments.simulate import Discipline, PerformanceModel, StepTime, Workload
from topoplace.experiments.simulate import simulate as simulated
from topoplace.experiments.simulate.performance import given_models
from topoplace.experiments.suite import topologies, workloads
from topoplace.experiments.suite.measures import figures
from topoplace.experiments.sweeps import Cell, Outcome, Plan, Scenario, code_of, code_of_model
from topoplace.policies.mapa.search import MapaPolicy

VERSION: Final = 2
"""Raised with every change of what is measured; results of different versions are not comparable."""
SEEDS: Final = 2
HELD_OUT: Final = 20_261_128
"""A seed whose figures no table shows: it only says whether the order of the policies holds."""
QUEUE: Final = Discipline("submitted", "easy")
"""The queue of all policies, so that only placements differ."""
_QUICK_TOPOLOGIES: Final = ("dgx1-v100", "h100-x64")
_QUICK_WORKLOADS: Final = ("parallel", "serving")
_MAX_NODES: Final = 2_000
"""Limit on the search trees of MAPA's policies, which are for machines of up to 16 GPUs."""


def plan(names: Sequence[str], *, quick: bool = False, performance: str = "") -> Plan:
    """Return the suite's cells for policies by name, see `policies.get`.

    quick: a machine, a cluster, two workloads and one seed, to see that a policy runs. performance: MODULE:OBJECT of
    another model of run times than `StepTime`. ValueError for an unknown name, and for a model that is none.
    """
    own = code_of_model(_model(performance))
    code = {name: code_of(name) + own for name in names}
    where = _QUICK_TOPOLOGIES if quick else topologies.NAMES
    what = _QUICK_WORKLOADS if quick else workloads.NAMES
    seeds = (0,) if quick else (*range(SEEDS), HELD_OUT)
    cells = (
        Cell(name, Scenario(topology, workload, None), seed, {"performance": performance}, code[name])
        for topology, workload, seed, name in product(where, what, seeds, names)
    )
    return Plan(tuple(cells), {"suite": VERSION} | ({"performance": performance} if performance else {}))


def simulate(cell: Cell) -> Outcome:
    """Return the measures of a cell, or what is wrong with the policy or the model of run times."""
    topology = topologies.built(cell.scenario.topology)
    workload = _workload(cell.scenario.workload, cell.scenario.topology, cell.seed)
    policy = _policy(cell.policy)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "topology .* has no sockets")  # a policy that is another one there
        warnings.filterwarnings("ignore", "MapaSlowdown: job")  # the model that was asked for says it
        try:
            model = _model(cell.options.get("performance", ""))
            with policies.installed.faults_named(policy), given_models.faults_named(model):
                result = simulated(
                    topology, workload, policy, performance=model, seed=cell.seed, discipline=QUEUE
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


@lru_cache(maxsize=1)
def _workload(name: str, topology: str, seed: int) -> Workload:
    return workloads.drawn(name, topologies.built(topology), seed)
