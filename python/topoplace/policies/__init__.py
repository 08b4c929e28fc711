"""The built-in placement policies, as classes and by name. Your own policy implements `Policy`.

See `examples/own_policy.py`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from topoplace import _checks
from topoplace._similar_names import did_you_mean
from topoplace.engine.admission import GpuSet
from topoplace.engine.machine_policy import MachinePolicy
from topoplace.engine.plan import Explanation, Plan, QueuedJob
from topoplace.engine.policy import Policy, SearchPolicy
from topoplace.engine.sharing.sharing_policy import SharingPolicy
from topoplace.policies import installed
from topoplace.policies.collective.ring import Collective
from topoplace.policies.drmaestro.inference import InferenceEngine
from topoplace.policies.drmaestro.policy import DRMaestro
from topoplace.policies.drmaestro.service import DRMaestroService
from topoplace.policies.fragmentation.chance import RandomFit, TwoChoices
from topoplace.policies.fragmentation.clustering import GpuClustering
from topoplace.policies.fragmentation.fgd import FragmentationGradientDescent, LeastStranded
from topoplace.policies.fragmentation.vector_rules import (
    DotProduct,
    GpuPacking,
    VectorBestFit,
    VectorWorstFit,
)
from topoplace.policies.mapa.baseline import Baseline
from topoplace.policies.mapa.greedy import Greedy
from topoplace.policies.mapa.preserve import Preserve
from topoplace.policies.mapa.topo_aware import MapaTopoAware
from topoplace.policies.sc17.best_fit import BestFit
from topoplace.policies.sc17.costs import UtilityPolicy
from topoplace.policies.sc17.first_come import FirstComeFirstServed
from topoplace.policies.sc17.topo_aware import TopoAware, TopoAwareP
from topoplace.policies.tsubame.g_queue import GQueue
from topoplace.policies.tsubame.node_queue import NodeQueue
from topoplace.policies.tsubame.r_queue import RQueue

__all__ = [
    "Baseline",
    "BestFit",
    "Collective",
    "DRMaestro",
    "DRMaestroService",
    "DotProduct",
    "Explanation",
    "FirstComeFirstServed",
    "FragmentationGradientDescent",
    "GQueue",
    "GpuClustering",
    "GpuPacking",
    "GpuSet",
    "Greedy",
    "InferenceEngine",
    "LeastStranded",
    "MachinePolicy",
    "MapaTopoAware",
    "NodeQueue",
    "Plan",
    "Policy",
    "Preserve",
    "QueuedJob",
    "RQueue",
    "RandomFit",
    "SearchPolicy",
    "TopoAware",
    "TopoAwareP",
    "TwoChoices",
    "UtilityPolicy",
    "VectorBestFit",
    "VectorWorstFit",
    "get",
    "installed",
    "names",
]

_POLICIES: dict[str, type[SearchPolicy | MachinePolicy | NodeQueue | DRMaestro]] = {
    policy.name: policy
    for policy in (
        *(Baseline, MapaTopoAware, Greedy, Preserve, Collective),
        *(FirstComeFirstServed, BestFit, TopoAware, TopoAwareP),
        *(DRMaestro, GQueue, RQueue),
        *(FragmentationGradientDescent, LeastStranded, DotProduct, VectorBestFit, VectorWorstFit, GpuPacking),
        *(GpuClustering, RandomFit, TwoChoices),
    )
}


def names(*, sharing: bool | None = None) -> tuple[str, ...]:
    """Return the names of all built-in policies, as accepted by `get`.

    sharing: True for those that let jobs share GPUs, which fill clusters and look at no links; False for the others.
    """
    wanted = (True, False) if sharing is None else (sharing,)
    return tuple(name for name, policy in _POLICIES.items() if issubclass(policy, SharingPolicy) in wanted)


def get(name: str, **options: Any) -> Policy:
    """Create the policy called `name`, with `options` as arguments of its class.

    name: of a built-in policy, of one that an installed package offers (`installed.names`), or `package.module:Class`
    for a class of your own in a module that Python finds.
    ValueError for an unknown name suggests those that contain it or are similar, or lists all if there are none.
    ValueError also for an unknown option or a value that the class does not accept.
    """
    own = _checks.text(name, "name", ValueError) not in _POLICIES
    policy = _POLICIES.get(name) or (_class_of(name) if ":" in name else installed.find(name))
    if policy is None:
        raise ValueError(f"name = {_checks.shown(name)}: no such policy; {_hint(name.lower())}")
    try:
        made = policy(**options)
    except TypeError as error:
        shown = f"name = {_checks.shown(name)}" if own else name
        raise ValueError(f"{shown}: {str(error).partition('() ')[2] or error}") from None
    except (Exception, SystemExit) as error:
        if not own or isinstance(error, ValueError):
            raise
        what = installed.failure(error, "making it")
        raise ValueError(f"name = {_checks.shown(name)}: {what}") from error
    if missing := [part for part in ("name", "place", "explain", "plan") if not hasattr(made, part)]:
        raise ValueError(f"name = {_checks.shown(name)}: not a policy, as it lacks {', '.join(missing)}")
    return made


def _class_of(name: str) -> Callable[..., Policy]:
    """Return the class that `name`, a module and a class separated by a colon, stands for."""
    module, _, attribute = name.partition(":")
    what = f"name = {_checks.shown(name)}"
    if module.startswith(".") or "/" in module:
        raise ValueError(f"{what}: {module} is not the name of a module, such as package.module")
    return installed.checked_class(
        lambda: getattr(importlib.import_module(module), attribute),
        what,
        f"{what}: {attribute} is not a class",
    )


def _hint(name: str) -> str:
    """Return which policies the unknown `name` may mean, as the end of a sentence."""
    known = f"known: {', '.join(_POLICIES)}; package.module:Class names one of your own"
    return did_you_mean(name, (*_POLICIES, *installed.names())) or known
