"""The built-in placement policies, as classes and by name. Your own policy implements `Policy`.

See `examples/own_policy.py`.

To change:

- Which policies there are: `_POLICIES` here, a line each; policies of other packages: `installed.py`. Which is the
  default: `topoplace.DEFAULT_POLICY`, which the command line reads without loading policies.
- Several jobs at once, together or spread over domains: `several_jobs.py`; the order of given hosts: `host_order.py`.
- How ties break: after the policy's `order`, the smallest GPU list. In a search `cpp/src/match/canonical.hpp`; between
  searches `engine/policy.py`; SC'17 `engine/machine_policy.py`; TSUBAME `policies/tsubame/node_machines.py`;
  DRMaestro `policies/drmaestro/phases.py`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from topoplace import DEFAULT_POLICY, _checks, _installed
from topoplace._lazy import lazily
from topoplace._similar_names import did_you_mean
from topoplace.policies import installed

if TYPE_CHECKING:
    from topoplace.deciding.least_time import LeastTime as LeastTime
    from topoplace.engine.admission import GpuSet as GpuSet
    from topoplace.engine.machine_policy import MachinePolicy as MachinePolicy
    from topoplace.engine.plan import Explanation as Explanation
    from topoplace.engine.plan import Plan as Plan
    from topoplace.engine.plan import QueuedJob as QueuedJob
    from topoplace.engine.policy import Policy as Policy
    from topoplace.engine.policy import SearchPolicy as SearchPolicy
    from topoplace.policies.drmaestro.policy import DRMaestro as DRMaestro
    from topoplace.policies.mapa.baseline import Baseline as Baseline
    from topoplace.policies.mapa.greedy import Greedy as Greedy
    from topoplace.policies.mapa.preserve import Preserve as Preserve
    from topoplace.policies.mapa.topo_aware import MapaTopoAware as MapaTopoAware
    from topoplace.policies.sc17.best_fit import BestFit as BestFit
    from topoplace.policies.sc17.costs import UtilityPolicy as UtilityPolicy
    from topoplace.policies.sc17.first_come import FirstComeFirstServed as FirstComeFirstServed
    from topoplace.policies.sc17.topo_aware import TopoAware as TopoAware
    from topoplace.policies.sc17.topo_aware import TopoAwareP as TopoAwareP
    from topoplace.policies.tsubame.g_queue import GQueue as GQueue
    from topoplace.policies.tsubame.node_queue import NodeQueue as NodeQueue
    from topoplace.policies.tsubame.r_queue import RQueue as RQueue

DEFAULT: Final = DEFAULT_POLICY
"""The name of the policy that decides unless another is named."""
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
}
"""The class of each policy of this package."""


_get, _, _own = lazily(__name__)
_FUNCTIONS = ("DEFAULT", "get", "installed", "names")
if not TYPE_CHECKING:
    __all__ = [*_own, *_FUNCTIONS]


def __getattr__(name: str) -> Any:
    """Return a policy class of this package or of topoplace-lab, loaded on first use."""
    if name in _own or name not in (classes := installed.classes_of_ours()):
        return _get(name)
    value = globals()[name] = classes[name].load()
    return value


def __dir__() -> list[str]:
    return sorted({*_own, *_FUNCTIONS, *installed.classes_of_ours()})


def names(*, sharing: bool | None = None) -> tuple[str, ...]:
    """Return the names of all policies of topoplace and topoplace-lab, which `get` accepts.

    Args:
        sharing: True for the policies that let jobs share GPUs, which fill clusters and ignore links; False for the
            other policies; None for all.
    """
    found = (*_POLICIES, *installed.names_of_ours())
    return (
        found if sharing is None else tuple(name for name in found if (name in _installed.SHARING) == sharing)
    )


def get(name: str, **options: Any) -> Policy:
    """Create the policy called `name`, with `options` as arguments of its class.

    Args:
        name: One of `names`, a policy that an installed package offers (`installed.names`), or `package.module:Class`
            for a class of your own in a module that Python finds.

    Raises:
        ValueError: The name is unknown (the message suggests similar names, or else lists all), an option is unknown,
            or the class does not accept its value.
    """
    policy = _built_in(_checks.text(name, "name", ValueError))
    own = policy is None
    if policy is None:
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


def _built_in(name: str) -> Callable[..., Policy] | None:
    """Return the class of a policy of topoplace; None for others."""
    if name in _POLICIES:
        return __getattr__(_POLICIES[name])  # type: ignore[no-any-return]
    return installed.find(name) if name in installed.names_of_ours() else None


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
    known = f"known: {', '.join(names())}; package.module:Class names one of your own"
    return _installed.how_to_get(name) or did_you_mean(name, (*names(), *installed.names())) or known
