"""The built-in placement policies, as classes and by name. Your own policy implements `Policy`.

See `examples/own_policy.py`.

To change:

- Which policies there are: `_POLICIES` here, a line each; policies of other packages: `installed.py`. Which is the
  default: `topoplace.DEFAULT_POLICY`, which the command line reads without loading policies.
- Several jobs at once, together or spread over domains: `several_jobs.py`.
- How ties break: after the policy's `order`, the smallest GPU list. In a search `cpp/src/match/canonical.hpp`; between
  searches `engine/policy.py`; SC'17 `engine/machine_policy.py`; TSUBAME `policies/tsubame/node_machines.py`;
  DRMaestro `policies/drmaestro/phases.py`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from topoplace import DEFAULT_POLICY as DEFAULT
from topoplace import _checks
from topoplace._similar_names import did_you_mean
from topoplace.policies import installed

if TYPE_CHECKING:  # for type checkers; `_HOME` says the same to the interpreter
    from topoplace.engine.admission import GpuSet as GpuSet
    from topoplace.engine.machine_policy import MachinePolicy as MachinePolicy
    from topoplace.engine.plan import Explanation as Explanation
    from topoplace.engine.plan import Plan as Plan
    from topoplace.engine.plan import QueuedJob as QueuedJob
    from topoplace.engine.policy import Policy as Policy
    from topoplace.engine.policy import SearchPolicy as SearchPolicy
    from topoplace.policies.drmaestro.inference import InferenceEngine as InferenceEngine
    from topoplace.policies.drmaestro.policy import DRMaestro as DRMaestro
    from topoplace.policies.drmaestro.service import DRMaestroService as DRMaestroService
    from topoplace.policies.fragmentation.chance import RandomFit as RandomFit
    from topoplace.policies.fragmentation.chance import TwoChoices as TwoChoices
    from topoplace.policies.fragmentation.clustering import GpuClustering as GpuClustering
    from topoplace.policies.fragmentation.fgd import (
        FragmentationGradientDescent as FragmentationGradientDescent,
    )
    from topoplace.policies.fragmentation.fgd import LeastStranded as LeastStranded
    from topoplace.policies.fragmentation.vector_rules import DotProduct as DotProduct
    from topoplace.policies.fragmentation.vector_rules import GpuPacking as GpuPacking
    from topoplace.policies.fragmentation.vector_rules import VectorBestFit as VectorBestFit
    from topoplace.policies.fragmentation.vector_rules import VectorWorstFit as VectorWorstFit
    from topoplace.policies.least_time.policy import LeastTime as LeastTime
    from topoplace.policies.mapa.baseline import Baseline as Baseline
    from topoplace.policies.mapa.greedy import Greedy as Greedy
    from topoplace.policies.mapa.preserve import Preserve as Preserve
    from topoplace.policies.mapa.topo_aware import MapaTopoAware as MapaTopoAware
    from topoplace.policies.nvidia_allocator import NvidiaAllocator as NvidiaAllocator
    from topoplace.policies.sc17.best_fit import BestFit as BestFit
    from topoplace.policies.sc17.costs import UtilityPolicy as UtilityPolicy
    from topoplace.policies.sc17.first_come import FirstComeFirstServed as FirstComeFirstServed
    from topoplace.policies.sc17.topo_aware import TopoAware as TopoAware
    from topoplace.policies.sc17.topo_aware import TopoAwareP as TopoAwareP
    from topoplace.policies.schedulers.balanced import KueueBalanced as KueueBalanced
    from topoplace.policies.schedulers.kueue import KueueBestFit as KueueBestFit
    from topoplace.policies.schedulers.kueue import KueueLeastFree as KueueLeastFree
    from topoplace.policies.schedulers.pods import KubernetesDefault as KubernetesDefault
    from topoplace.policies.schedulers.pods import VolcanoBinpack as VolcanoBinpack
    from topoplace.policies.schedulers.slurm import SlurmBlock as SlurmBlock
    from topoplace.policies.schedulers.slurm import SlurmTree as SlurmTree
    from topoplace.policies.tsubame.g_queue import GQueue as GQueue
    from topoplace.policies.tsubame.node_queue import NodeQueue as NodeQueue
    from topoplace.policies.tsubame.r_queue import RQueue as RQueue

__all__ = [
    "DEFAULT",
    "Baseline",
    "BestFit",
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
    "KubernetesDefault",
    "KueueBalanced",
    "KueueBestFit",
    "KueueLeastFree",
    "LeastStranded",
    "LeastTime",
    "MachinePolicy",
    "MapaTopoAware",
    "NodeQueue",
    "NvidiaAllocator",
    "Plan",
    "Policy",
    "Preserve",
    "QueuedJob",
    "RQueue",
    "RandomFit",
    "SearchPolicy",
    "SlurmBlock",
    "SlurmTree",
    "TopoAware",
    "TopoAwareP",
    "TwoChoices",
    "UtilityPolicy",
    "VectorBestFit",
    "VectorWorstFit",
    "VolcanoBinpack",
    "get",
    "installed",
    "names",
]

_HOME = {
    "Baseline": "policies.mapa.baseline",
    "BestFit": "policies.sc17.best_fit",
    "DRMaestro": "policies.drmaestro.policy",
    "DRMaestroService": "policies.drmaestro.service",
    "DotProduct": "policies.fragmentation.vector_rules",
    "Explanation": "engine.plan",
    "FirstComeFirstServed": "policies.sc17.first_come",
    "FragmentationGradientDescent": "policies.fragmentation.fgd",
    "GQueue": "policies.tsubame.g_queue",
    "GpuClustering": "policies.fragmentation.clustering",
    "GpuPacking": "policies.fragmentation.vector_rules",
    "GpuSet": "engine.admission",
    "Greedy": "policies.mapa.greedy",
    "InferenceEngine": "policies.drmaestro.inference",
    "KubernetesDefault": "policies.schedulers.pods",
    "KueueBalanced": "policies.schedulers.balanced",
    "KueueBestFit": "policies.schedulers.kueue",
    "KueueLeastFree": "policies.schedulers.kueue",
    "LeastStranded": "policies.fragmentation.fgd",
    "LeastTime": "policies.least_time.policy",
    "MachinePolicy": "engine.machine_policy",
    "MapaTopoAware": "policies.mapa.topo_aware",
    "NodeQueue": "policies.tsubame.node_queue",
    "NvidiaAllocator": "policies.nvidia_allocator",
    "Plan": "engine.plan",
    "Policy": "engine.policy",
    "Preserve": "policies.mapa.preserve",
    "QueuedJob": "engine.plan",
    "RQueue": "policies.tsubame.r_queue",
    "RandomFit": "policies.fragmentation.chance",
    "SearchPolicy": "engine.policy",
    "SlurmBlock": "policies.schedulers.slurm",
    "SlurmTree": "policies.schedulers.slurm",
    "TopoAware": "policies.sc17.topo_aware",
    "TopoAwareP": "policies.sc17.topo_aware",
    "TwoChoices": "policies.fragmentation.chance",
    "UtilityPolicy": "policies.sc17.costs",
    "VectorBestFit": "policies.fragmentation.vector_rules",
    "VectorWorstFit": "policies.fragmentation.vector_rules",
    "VolcanoBinpack": "policies.schedulers.pods",
}
"""The module of each class, below `topoplace`; it is loaded on first use."""

_POLICIES = {
    "baseline": "Baseline",
    "mapa-topo-aware": "MapaTopoAware",
    "mapa-greedy": "Greedy",
    "mapa-preserve": "Preserve",
    "least-time": "LeastTime",
    "fcfs": "FirstComeFirstServed",
    "best-fit": "BestFit",
    "topo-aware": "TopoAware",
    "topo-aware-p": "TopoAwareP",
    "drmaestro": "DRMaestro",
    "g-queue": "GQueue",
    "r-queue": "RQueue",
    "fgd": "FragmentationGradientDescent",
    "least-stranded": "LeastStranded",
    "dot-product": "DotProduct",
    "vector-best-fit": "VectorBestFit",
    "vector-worst-fit": "VectorWorstFit",
    "gpu-packing": "GpuPacking",
    "gpu-clustering": "GpuClustering",
    "random-fit": "RandomFit",
    "two-choices": "TwoChoices",
    "kueue-best-fit": "KueueBestFit",
    "kueue-least-free": "KueueLeastFree",
    "kueue-balanced": "KueueBalanced",
    "slurm-tree": "SlurmTree",
    "slurm-block": "SlurmBlock",
    "volcano-binpack": "VolcanoBinpack",
    "kubernetes-default": "KubernetesDefault",
    "nvidia-allocator": "NvidiaAllocator",
}
"""The class of each built-in policy."""

_SHARING = frozenset(
    {
        "fgd",
        "least-stranded",
        "dot-product",
        "vector-best-fit",
        "vector-worst-fit",
        "gpu-packing",
        "gpu-clustering",
        "random-fit",
        "two-choices",
    }
)
"""The policies that let jobs share GPUs."""

USUAL = ("baseline", "least-time", "kueue-best-fit", "slurm-tree", "kubernetes-default")
"""What most readers want to see side by side: the lowest free ids, the default, and three schedulers in use."""
USUAL_FOR_SHARES = ("fgd", "least-stranded")
"""What to compare besides if jobs take shares of GPUs."""


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"topoplace.{_HOME[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})


def names(*, sharing: bool | None = None) -> tuple[str, ...]:
    """Return the names of all built-in policies, as accepted by `get`.

    Args:
        sharing: True for the policies that let jobs share GPUs, which fill clusters and look at no links; False for
            the other policies; None for all.
    """
    wanted = (True, False) if sharing is None else (sharing,)
    return tuple(name for name in _POLICIES if (name in _SHARING) in wanted)


def get(name: str, **options: Any) -> Policy:
    """Create the policy called `name`, with `options` as arguments of its class.

    Args:
        name: The name of a built-in policy, of one that an installed package offers (`installed.names`), or
            `package.module:Class` for a class of your own in a module that Python finds.

    Raises:
        ValueError: For an unknown name; the message suggests names that contain it or are similar, or else lists all.
            Also for an unknown option, or a value that the class does not accept.
    """
    own = _checks.text(name, "name", ValueError) not in _POLICIES
    policy: Callable[..., Policy] | None = None if own else __getattr__(_POLICIES[name])
    if own:
        policy = _class_of(name) if ":" in name else installed.find(name)
    if policy is None:
        raise ValueError(f"name = {_checks.shown(name)}: no such policy; {_hint(name.lower())}")
    try:
        made = policy(**options)
        missing = [part for part in ("name", "place", "explain", "plan") if not hasattr(made, part)]
    except TypeError as error:
        shown = f"name = {_checks.shown(name)}" if own else name
        raise ValueError(f"{shown}: {str(error).partition('() ')[2] or error}") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if not own or isinstance(error, ValueError):
            raise
        what = installed.failure(error, "making it")
        raise ValueError(f"name = {_checks.shown(name)}: {what}") from error
    if missing:
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
