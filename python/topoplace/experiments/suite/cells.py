"""The cells of the suite: every policy on every machine and cluster, with every workload and seed."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import Final

import numpy as np

from topoplace import policies
from topoplace.experiments.simulate import MapaSlowdown, PerformanceModel, Result, Workload
from topoplace.experiments.simulate import simulate as simulated
from topoplace.experiments.simulate.metrics import score_of
from topoplace.experiments.simulate.performance import given_models
from topoplace.experiments.suite import topologies, workloads
from topoplace.experiments.sweeps import Cell, Outcome, Plan, Scenario, code_of, code_of_model

VERSION: Final = 1
"""Raised with every change of what is measured; results of different versions are not comparable."""
SEEDS: Final = 10
QUICK_SEEDS: Final = 2
_QUICK_TOPOLOGIES: Final = ("cubemesh-16", "8-dgx1-v100")
_QUICK_WORKLOADS: Final = ("mapa", "shared")


def plan(names: Sequence[str], *, quick: bool = False, performance: str = "") -> Plan:
    """Return the suite's cells for policies by name, see `policies.get`.

    quick: a machine, a cluster, two workloads and two seeds, to see that a policy runs. performance: MODULE:OBJECT of
    another model of run times than MAPA's. ValueError for an unknown name, and for a model that is none.
    """
    own = code_of_model(_model(performance))
    code = {name: code_of(name) + own for name in names}
    where = _QUICK_TOPOLOGIES if quick else topologies.NAMES
    what = _QUICK_WORKLOADS if quick else workloads.NAMES
    seeds = range(QUICK_SEEDS if quick else SEEDS)
    cells = (
        Cell(name, Scenario(topology, workload, None), seed, {"performance": performance}, code[name])
        for topology, workload, seed, name in product(where, what, seeds, names)
    )
    return Plan(tuple(cells), {"suite": VERSION} | ({"performance": performance} if performance else {}))


def simulate(cell: Cell) -> Outcome:
    """Return the figures of a cell, or why the policy refuses: it cannot run the jobs, or rejects some of them.

    In addition to the figures of `Result.summary`: sensitive_slowdown, the mean run time of sensitive jobs over that at
    full speed; and the mean of their effective bandwidths in GB/s. Both are NaN without sensitive jobs.
    """
    topology = topologies.built(cell.scenario.topology)
    workload = _workload(cell.scenario.workload, topology.num_gpus, cell.seed)
    policy = policies.get(cell.policy)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "topology .* has no sockets")  # a policy that is another one there
        warnings.filterwarnings("ignore", "MapaSlowdown: job")  # the page says it
        try:
            model = _model(cell.options.get("performance", ""))
            with policies.installed.faults_named(policy), given_models.faults_named(model):
                result = simulated(topology, workload, policy, performance=model, seed=cell.seed)
        except ValueError as error:
            return str(error)
    return next(iter(result.rejections()), "") or _figures(result)


@lru_cache(maxsize=1)
def _model(name: str) -> PerformanceModel:
    return given_models.model_named(name) if name else MapaSlowdown()


@lru_cache(maxsize=1)
def _workload(name: str, num_gpus: int, seed: int) -> Workload:
    return workloads.drawn(name, num_gpus, seed)


def _figures(result: Result) -> dict[str, float]:
    sensitive = result.sensitive
    bandwidth = score_of(sensitive, "effective_bandwidth")
    return {
        **result.summary(),
        "sensitive_slowdown": float(sensitive["slowdown"].mean()) if len(sensitive) else np.nan,
        "sensitive_effective_bandwidth": float(bandwidth.mean()) if len(sensitive) else np.nan,
    }
