"""Selectors of devices in CEL: compiled once, bounded in their steps, asked once for devices that look the same.

The language is that of the package celpy, with the functions that Kubernetes adds for devices: quantities, semantic
versions, and a few of texts. Optional fields (`.?`) and `cel.bind` are not read.
"""

from __future__ import annotations

from typing import Any, Final

import celpy
from celpy import celtypes
from celpy.celparser import CELParseError
from celpy.evaluation import CELEvalError, Evaluator

from topoplace import _checks
from topoplace.engine.memo import Memo
from topoplace.errors import KubernetesError
from topoplace.integrations.kubernetes.claims.device import Device
from topoplace.integrations.kubernetes.claims.expression_device import Look, seen, variable
from topoplace.integrations.kubernetes.claims.expression_functions import FUNCTIONS

_MOST_CHARACTERS: Final = 10 << 10
"""Limit of the API on an expression."""
_MOST_STEPS: Final = 4_000
"""Steps of one evaluation; a step takes about 20 µs."""
_MOST_LOOKS: Final = 256
"""Different looks of devices whose answers are kept."""
_ENVIRONMENT: Final[Any] = celpy.Environment()
_FAILURES: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


class Expression:
    """An expression over one device. KubernetesError if it cannot be read."""

    def __init__(self, text: str) -> None:
        if len(text) > _MOST_CHARACTERS:
            raise KubernetesError(f"an expression has more than {_MOST_CHARACTERS} characters")
        self._text = text
        try:
            tree = _ENVIRONMENT.compile(text)
            activation = celpy.InterpretedRunner(_ENVIRONMENT, tree, FUNCTIONS).new_activation()
        except (CELParseError, RecursionError) as error:
            where = f" at column {error.column}" if isinstance(error, CELParseError) and error.column else ""
            raise KubernetesError(f"the expression {_checks.shown(text)} cannot be read{where}") from None
        self._evaluator = _Counted(tree, activation, [0])
        self._known: list[tuple[dict[Look, object], bool]] = []

    def accepts(self, device: Device, left: list[int]) -> bool:
        """Return True if the expression is true of a device; KubernetesError if it is neither true nor false.

        left: the number of steps that may be taken; it becomes smaller.
        """
        for known, answer in self._known:
            if all(seen(device, look) == value for look, value in known.items()):
                return answer
        looks: dict[Look, object] = {}
        answer = self._evaluated(device, looks, left)
        if len(self._known) == _MOST_LOOKS:
            del self._known[: _MOST_LOOKS // 2]
        self._known.append((looks, answer))
        return answer

    def _evaluated(self, device: Device, looks: dict[Look, object], left: list[int]) -> bool:
        what = f"the expression {_checks.shown(self._text)} about device {device.id}"
        allowed = min(_MOST_STEPS, left[0])
        steps = self._evaluator.steps
        steps[0] = allowed
        try:
            value = self._evaluator.evaluate({"device": variable(device, looks)})
        except _TooLongError as error:
            raise KubernetesError(f"{what} {error}") from None
        except (CELEvalError, *_FAILURES) as error:
            reason = error.args[0] if error.args else type(error).__name__
            raise KubernetesError(f"{what}: {_checks.shown(str(reason)[:200])}") from None
        finally:
            left[0] -= allowed - max(steps[0], 0)
        if not isinstance(value, celtypes.BoolType):
            raise KubernetesError(f"{what} is {_checks.shown(value)}, not true or false")
        return bool(value)


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


_EXPRESSIONS: Final = Memo[str, "Expression | KubernetesError"](1024)


def expression(text: str) -> Expression:
    """Return an expression, compiled once; KubernetesError if it cannot be read."""

    def build() -> Expression | KubernetesError:
        try:
            return Expression(text)
        except KubernetesError as error:
            return error

    found = _EXPRESSIONS.get_or_build(text, build)
    if isinstance(found, KubernetesError):
        raise KubernetesError(str(found))
    return found
