"""Selectors of devices in CEL: compiled once, bounded in their steps. Only the process of `evaluating` runs them.

The language is that of the package celpy, with the functions that Kubernetes adds for devices: quantities, semantic
versions, and a few of texts. Optional fields (`.?`) and `cel.bind` are not supported.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import celpy
from celpy import celtypes
from celpy.celparser import CELParseError
from celpy.evaluation import Evaluator

from topoplace import _checks
from topoplace.errors import KubernetesError
from topoplace_hosts.kubernetes.claims.device import ALL, Device, Look
from topoplace_hosts.kubernetes.claims.expression_device import variable
from topoplace_hosts.kubernetes.claims.expression_functions import FUNCTIONS

_MOST_STEPS: Final = 4_000
"""Limit on the steps of one evaluation; a step takes about 20 µs."""
_MOST_LOOKS: Final = 64
_MOST_NAME: Final = 256
_EVERYWHERE: Final[tuple[Look, ...]] = (
    ("driver", "", ""),
    ("allowMultipleAllocations", "", ""),
    ("attributes", ALL, ALL),
    ("capacity", ALL, ALL),
)
"""Stands for more looks than are worth keeping."""
_ENVIRONMENT: Final[Any] = celpy.Environment()


class Answer(NamedTuple):
    """The answer of an expression about a device."""

    value: bool | str
    """True or False; a text says why it is neither."""
    looks: tuple[Look, ...]
    """What the expression has read: devices with equal values there have the same answer."""


class Expression:
    """A compiled expression over one device. KubernetesError if it cannot be read."""

    def __init__(self, text: str) -> None:
        try:
            tree = _ENVIRONMENT.compile(text)
            activation = celpy.InterpretedRunner(_ENVIRONMENT, tree, FUNCTIONS).new_activation()
        except CELParseError as error:
            where = f" at column {error.column}" if error.column else ""
            raise KubernetesError(f"cannot be read{where}") from None
        except Exception as error:  # whatever a tenant's text does to the parser is a fault of the text
            raise KubernetesError(f"cannot be read ({type(error).__name__})") from None
        self._evaluator = _Counted(tree, activation, [0])

    def answer(self, device: Device) -> Answer:
        """Return whether the expression selects a device, and what it read there; an error is a text in the answer."""
        looks: dict[Look, None] = {}
        self._evaluator.steps[0] = _MOST_STEPS
        try:
            found = self._evaluator.evaluate({"device": variable(device, looks)})
            value = (
                bool(found)
                if isinstance(found, celtypes.BoolType)
                else f"is {_checks.shown(found)}, not true or false"
            )
        except Exception as error:  # functions of the language raise what they like
            value = _reason(error)
        return Answer(value, _worth_keeping(looks))


def _reason(error: Exception) -> str:
    if isinstance(error, _TooLongError):
        return str(error)
    if isinstance(error, MemoryError):
        return "takes too much memory"
    reason = error.args[0] if error.args else type(error).__name__
    return _checks.shown(reason[:200] if isinstance(reason, str) else type(error).__name__)


def _worth_keeping(looks: dict[Look, None]) -> tuple[Look, ...]:
    if len(looks) > _MOST_LOOKS or any(len(part) > _MOST_NAME for look in looks for part in look):
        return _EVERYWHERE
    return tuple(looks)


class _TooLongError(Exception):
    pass


class _Counted(Evaluator):
    """An evaluator that ends when it has taken its steps, together with those of macros inside."""

    def __init__(self, tree: Any, activation: Any, steps: list[int]) -> None:
        super().__init__(tree, activation)  # pyright: ignore[reportUnknownMemberType]
        self.steps = steps

    def _visit_tree(self, tree: Any) -> Any:
        self.steps[0] -= 1
        if self.steps[0] < 0:
            raise _TooLongError("takes too many steps")
        return super()._visit_tree(tree)

    def sub_evaluator(self, ast: Any) -> Evaluator:
        return _Counted(ast, self.activation, self.steps)

    def build_reduce_macro_eval(self, child: Any) -> Any:
        raise _TooLongError("has the macro reduce, which Kubernetes does not know")
