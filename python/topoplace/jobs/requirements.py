"""The fields of a job besides its tasks and edges: which are requirements, and the values that each accepts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, cast

from topoplace import _checks
from topoplace.errors import JobGraphError
from topoplace.jobs.groups import checked_groups
from topoplace.mig import PROFILE_NAME

MAX_TASKS: Final = 1 << 20
"""Limit on tasks; more are refused as a mistake."""

MAX_EDGES: Final = 1 << 23
"""Maximum number of edges of a job; a larger number is refused as a mistake."""

MAX_TFLOP: Final = 1e15
"""Maximum 10¹² operations of a step; more are refused as a mistake, such as operations for 10¹² of them."""

WHOLE_GPU: Final = 1000
"""The thousandths of a GPU. Shares are counted in them, so that allocating and releasing is exact."""

Check = Callable[[Any, str], Any]
"""Return a value of the named field in canonical form, or raise JobGraphError."""


def _text(value: object, what: str) -> str:
    return _checks.text(value, what, JobGraphError)


def _flag(value: object, what: str) -> bool:
    return _checks.flag(value, what, JobGraphError)


def _positive(value: object, what: str) -> float:
    return _checks.positive(value, what, JobGraphError)


def tflop(value: object, what: str) -> float:
    """Return a number of 10¹² floating-point operations; JobGraphError unless it is above 0."""
    return _checks.positive(value, what, JobGraphError, high=MAX_TFLOP)


def _share(value: object, what: str) -> float:
    return float(_checks.thousandths(value, what, JobGraphError, low=0.001, high=1.0))


def _mig(value: object, what: str) -> str:
    if not PROFILE_NAME.fullmatch(name := _text(value, what)):
        raise JobGraphError(f"{what} = {name!r} is not the name of a MIG profile, such as '1g.10gb'")
    return name


def _utility(value: object, what: str) -> float:
    return _checks.real(value, what, JobGraphError, high=1.0)


def _cpus(value: object, what: str) -> float:
    return _checks.thousandths(value, what, JobGraphError, high=1 << 30)


def _priority(value: object, what: str) -> int:
    return _checks.integer(value, what, JobGraphError, low=-(1 << 30), high=1 << 30)


def _count(low: int, high: int) -> Check:
    return lambda value, what: _checks.integer(value, what, JobGraphError, low=low, high=high)


def _or_none(check: Check) -> Check:
    return lambda value, what: None if value is None else check(value, what)


def _elastic(value: object, what: str) -> tuple[int, int] | None:
    """Return the least and the largest number of tasks; None if they are equal."""
    pair = _checks.ordered(value, what, JobGraphError)
    if len(pair) != 2:
        raise JobGraphError(f"{what} = {_checks.shown(pair)} is not (least, most)")
    least, most = (_count(1, MAX_TASKS)(one, f"{what}[{i}]") for i, one in enumerate(pair))
    if least > most:
        raise JobGraphError(f"{what} = {(least, most)}: the least is above the most")
    return None if least == most else (least, most)


def _models(value: object, what: str) -> str | tuple[str, ...]:
    """Return one model as a string, and several different ones as a tuple; JobGraphError if there is none."""
    if isinstance(value, str):
        return _text(value, what)
    listed = _checks.sequence(cast("Iterable[object]", value), what, JobGraphError)
    first, *others = dict.fromkeys(_text(model, f"{what}[{i}]") for i, model in enumerate(listed)) or (None,)
    if first is None:
        raise JobGraphError(f"{what} is empty; None accepts every model")
    return (first, *others) if others else first


_DESCRIPTIONS: Final[Mapping[str, Check]] = {
    "name": _text,
    "bandwidth_sensitive": _flag,
    "profile": _or_none(_text),
    "priority": _priority,
    "group": _or_none(_text),
    "tflop": _or_none(tflop),
    "elastic": _or_none(_elastic),
}
_REQUIREMENTS: Final[Mapping[str, Check]] = {
    "min_utility": _utility,
    "gpu_memory_gb": _or_none(_positive),
    "gpu_model": _or_none(_models),
    "gpu_fraction": _share,
    "mig": _or_none(_mig),
    "cpus": _or_none(_cpus),
    "memory_gb": _or_none(_positive),
    "single_machine": _flag,
    "anti_affinity": _flag,
    "memory_bandwidth": _or_none(_positive),
    "processes": _count(1, MAX_TASKS),
    "drives": _count(0, MAX_TASKS),
    "within": _or_none(_text),
    "prefer": _or_none(_text),
    "spread": _or_none(_text),
    "max_machines": _or_none(_count(1, MAX_TASKS)),
    "same_gpus": _flag,
    "groups": checked_groups,
    "balanced": _or_none(_text),
}
REQUIREMENTS: Final = tuple(_REQUIREMENTS)
"""The names of the fields that a policy must honour, or refuse by name."""
FIELDS: Final[Mapping[str, Check]] = MappingProxyType({**_DESCRIPTIONS, **_REQUIREMENTS})
"""The check of every field that `JobGraph.with_` sets."""
