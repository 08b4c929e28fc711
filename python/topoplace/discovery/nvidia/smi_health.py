"""The health of one GPU in `nvidia-smi -q`: why it cannot run jobs, and findings for an operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from topoplace import _checks

Get = Callable[..., str | None]
"""Function that returns the first value whose path ends with the given words; None without one."""

_OUT_OF_ORDER = frozenset(("Reset", "GPU Reset", "Reboot", "Node Reboot", "Drain and Reset"))
"""Actions of recovery before which a GPU gets no new jobs. `Drain P2P` stops only traffic between GPUs."""
_YES = ("Yes", "True")
_HEALTH = ("fabric", "health")
_UNCORRECTABLE = (
    ("sramuncorrectable",),
    ("sramuncorrectableparity",),
    ("sramuncorrectablesecded",),
    ("dramuncorrectable",),
    ("doublebit", "total"),
)
"""The counts of errors that ECC could not correct, below "volatile": of new and of old drivers."""
_SLOWDOWNS = {
    "hwthermalslowdown": "it is too hot, and its hardware slows it down",
    "swthermalslowdown": "it is too hot, and its driver slows it down",
    "hwpowerbrakeslowdown": "its power supply slows it down",
}
_OF_REASONS = ("", "clockseventreason", "clocksthrottlereason")
"""Prefixes of the name of a reason of low clocks: in the text, and in XML of new and of old drivers."""


def faults(get: Get) -> Iterator[str]:
    """Yield the reasons why a GPU cannot run jobs; none for one that can."""
    if get("remappingfailureoccurred") in _YES or get("remappedrowfailure") in _YES:
        yield "rows of its memory could not be remapped"
    if get(*_HEALTH, "routeunhealthy") in _YES:
        yield "its route in the NVLink fabric is unhealthy"
    if get(*_HEALTH, "accesstimeoutrecovery") in _YES:
        yield "it recovers from a timeout in the NVLink fabric"
    if (action := get("gpurecoveryaction")) in _OUT_OF_ORDER:
        yield f"it asks for a recovery: {action}"
    if get("computemode") == "Prohibited":
        yield "its compute mode is Prohibited"


def doubts(get: Get) -> Iterator[str]:
    """Yield the faults of a GPU that can still run jobs."""
    pending = (get("remappedrows", "pending"), get("remappedrowpending"))
    if any(value in _YES for value in pending):
        yield "rows of its memory wait for a reset to be remapped"
    if get("retiredpages", "pendingpageblacklist") in _YES or get("pendingretirement") in _YES:
        yield "pages of its memory wait for a restart to be retired"
    if errors := ecc_errors(sum(_count(get("volatile", *path)) for path in _UNCORRECTABLE)):
        yield errors
    for word, why in _SLOWDOWNS.items():
        if any(get(f"{before}{word}") == "Active" for before in _OF_REASONS):
            yield why
    yield from _fabric(get)
    action = get("gpurecoveryaction")
    if action is not None and action not in _OUT_OF_ORDER:
        yield f"it asks for a recovery: {_checks.shown(action)}"
    mode = get("computemode")
    if mode not in (None, "Default", "Prohibited"):
        yield f"its compute mode is {_checks.shown(mode)}"


def ecc_errors(number: int) -> str:
    """Return the words for uncorrectable ECC errors since the driver was loaded; "" for none."""
    return f"uncorrectable ECC errors since the driver was loaded: {number}" if number else ""


def _count(value: str | None) -> int:
    return int(value) if value is not None and value.isdecimal() else 0


def _fabric(get: Get) -> Iterator[str]:
    """Yield what the fabric's health says beyond `faults`."""
    if (bandwidth := get(*_HEALTH, "bandwidth")) not in (None, "Full"):
        yield f"the bandwidth of its NVLink fabric is {_checks.shown(bandwidth)}"
    if get(*_HEALTH, "routerecoveryinprogress") in _YES:
        yield "its route in the NVLink fabric is being recovered"
    if wrong := get(*_HEALTH, "incorrectconfiguration"):
        yield f"its NVLink fabric has an incorrect configuration: {_checks.shown(wrong)}"
    if (summary := get(*_HEALTH, "summary")) not in (None, "Healthy"):
        yield f"the health of its NVLink fabric is {_checks.shown(summary)}"
