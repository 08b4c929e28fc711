"""The state of the page of `topoplace explore`, as the browser sends it: texts of fields and a few numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, cast

from topoplace import DEFAULT_POLICY, _checks

MAX_TEXT: Final = 4 << 20
"""Limit on the characters of a pasted or dropped text."""
PARTS: Final = ("all", "choices", "detail")
_MAX_FIELD: Final = 400_000
"""Limit on the characters of other texts, enough for every second GPU of the largest cluster."""
_MAX_MACHINES: Final = 12_500
_PIXELS = (320, 1600)


class StateError(ValueError):
    """The browser sent data that are no state; the message states the fault."""


@dataclass(frozen=True, slots=True)
class State:
    """A request of the page: a machine, GPUs in use and faults, a job, and the policy whose choice is shown in detail.

    GPUs are lists such as "0-3,6". If the content of a text is wrong, `subject` names the field.
    """

    machine: str = ""
    """A built-in machine; "" for `text`, or else for the topology given to the command."""
    text: str = ""
    """The output of a tool, or the content of a file."""
    gpu_model: str = ""
    """The model of the GPUs, if `text` does not name it."""
    count: int = 1
    """Number of copies of the machine that form a cluster."""
    fabric: str = ""
    """The fabric that joins them, one of `subject.FABRICS`; "" for one network."""
    preset: str = ""
    """One of `presets.PRESETS`, in place of `busy` and `unhealthy`; "" for none."""
    busy: str = ""
    unhealthy: str = ""
    pinned: str = ""
    """GPUs that the job must get."""
    links: str = ""
    """Links that are slower or lost, such as "0-3=half, 1-nvswitch=lost"."""
    pattern: str = "ring"
    gpus: str = "4"
    """The size of the job; "2x4" for a mesh or a torus."""
    parallel: str = ""
    """Degrees such as "tensor=8,data=2", in place of `pattern` and `gpus`; "" for none."""
    sensitive: bool = True
    """True if the job runs slower on slower links."""
    groups: str = ""
    """Groups of tasks that must be together, such as "8@machine 16@rack"."""
    policy: str = DEFAULT_POLICY
    open: int = -1
    """The number of the machine that is drawn alone; -1 for all."""
    width: int = 800
    """Width of the drawing, in pixels."""
    height: int = 560
    """Limit on the height of a drawing with many machines, in pixels."""
    part: str = "all"
    """One of `PARTS`: the page requests the choices first, and the details once the choices are drawn."""

    @classmethod
    def of(cls, given: object) -> State:
        """Return the state that a JSON value describes; StateError names a field that is unknown or of another type."""
        if not isinstance(given, Mapping):
            raise StateError(f"a state is an object, not {_checks.shown(given)}")
        known = {one.name: one.default for one in fields(cls)}
        stated = cast("Mapping[str, object]", given)
        for name in stated:
            _checks.one_of(name, "a field of the state", known, StateError)
        return cls(**{name: _checked(name, value, known[name]) for name, value in stated.items()})


_RANGES: Final = {"count": (1, _MAX_MACHINES), "open": (-1, 1 << 20), "width": _PIXELS, "height": _PIXELS}


def _checked(name: str, value: object, default: object) -> Any:
    if isinstance(default, bool):
        return _checks.flag(value, name, StateError)
    if isinstance(default, int):
        low, high = _RANGES[name]
        return _checks.integer(value, name, StateError, low=low, high=high)
    if not isinstance(value, str):
        raise StateError(f"{name} = {_checks.shown(value)} is not a text")
    if name == "part":
        return _checks.one_of(value, name, PARTS, StateError)
    most = MAX_TEXT if name == "text" else _MAX_FIELD
    if len(value) > most:
        raise StateError(f"{name} has {len(value)} characters, more than {most}")
    return value
