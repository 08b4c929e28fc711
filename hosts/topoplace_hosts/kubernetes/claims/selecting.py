"""Find the devices that selectors accept: another process evaluates, each namespace has limits, answers are cached."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from topoplace import _checks
from topoplace.engine.memo import Memo
from topoplace.errors import KubernetesError, require_package
from topoplace_hosts.kubernetes.claims.device import Device, DeviceId, Look
from topoplace_hosts.kubernetes.claims.evaluator import (
    EVALUATOR,
    EvaluationEndedError,
    Evaluator,
    UnreadableError,
)

BURST_S: Final = 0.2
"""Seconds for which the selectors of a namespace may hold up the scheduler at once."""
SHARE: Final = 0.25
"""The share of time that all selectors together may take in the long run."""
_MOST_CHARACTERS: Final = 10 << 10
"""The API's limit on the characters of an expression."""
_MOST_LOOKS: Final = 256
"""Different looks of devices whose answers are kept, of each expression."""
_MOST_EXPRESSIONS: Final = 1024
_BATCH: Final = 16
"""Devices that are asked about together, once the first one has left the others open."""
_AGAIN_S: Final = (10.0, 600.0)
"""Seconds until a stopped expression is tried again: after the first stop, and the cap on later pauses."""


class NotYetError(KubernetesError):
    """A namespace has used up its time; its selectors are evaluated later."""

    def __init__(self, message: str, after_s: float) -> None:
        super().__init__(message)
        self.after_s = after_s
        """Seconds until the next try."""


class Allowances:
    """The seconds that each namespace's selectors may take now, so that no namespace delays others."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._at = now()
        self._spent: dict[str, float] = {}
        """Seconds that count against a namespace; those that have none are not there."""

    def left_s(self, namespace: str) -> float:
        """Return the seconds that a namespace has left; negative if the last evaluation took more."""
        at, self._at = self._at, self._now()
        if self._spent:
            back = (self._at - at) * SHARE / len(self._spent)
            self._spent = {name: spent - back for name, spent in self._spent.items() if spent > back}
        return BURST_S - self._spent.get(namespace, 0.0)

    def spend(self, namespace: str, seconds: float) -> None:
        """Count the seconds of an evaluation against a namespace."""
        if seconds > 0.0:
            self._spent[namespace] = self._spent.get(namespace, 0.0) + seconds

    def wait_s(self, namespace: str) -> float:
        """Return about how many seconds it takes until a namespace has half of its time again."""
        missing = BURST_S / 2 - self.left_s(namespace)
        return max(0.1, missing * max(1, len(self._spent)) / SHARE)


class _Selector:
    """What is known of an expression."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.unreadable = (
            f"has more than {_MOST_CHARACTERS} characters" if len(text) > _MOST_CHARACTERS else ""
        )
        self._known: list[tuple[Mapping[Look, object], bool | str]] = []
        self._stopped = ""
        self._stops = 0
        self._not_before = 0.0

    def answer(self, device: Device) -> bool | str | None:
        """Return what the expression says of a device, or why it says nothing; None if that is not known."""
        for known, value in self._known:
            if all(device.seen(look) == there for look, there in known.items()):
                return value
        return None

    def note(self, device: Device, looks: Iterable[Look], value: bool | str) -> None:
        """Remember an answer for all devices that look the same."""
        if len(self._known) == _MOST_LOOKS:
            del self._known[: _MOST_LOOKS // 2]
        self._known.append(({look: device.seen(look) for look in looks}, value))

    def note_stop(self, why: str) -> None:
        """Remember that an evaluation was stopped; each time it is longer until the next."""
        first, most = _AGAIN_S
        self._stopped = why
        self._not_before = time.monotonic() + min(most, first * 2 ** min(self._stops, 16))
        self._stops += 1

    def check(self) -> None:
        """Raise KubernetesError if the expression is not evaluated now."""
        shown = f"the expression {_checks.shown(self.text)}"
        if self.unreadable:
            raise KubernetesError(f"{shown} {self.unreadable}")
        if self._stopped and time.monotonic() < self._not_before:
            raise KubernetesError(f"{shown} {self._stopped}")

    def wrong(self, device: Device, why: str) -> KubernetesError:
        """Return the error that an expression has no answer about a device."""
        return KubernetesError(f"the expression {_checks.shown(self.text)} about device {device.id}: {why}")


_SELECTORS: Final = Memo[str, _Selector](_MOST_EXPRESSIONS)


class Selecting:
    """Evaluates selectors of devices on behalf of namespaces."""

    def __init__(self, evaluator: Evaluator = EVALUATOR, allowances: Allowances | None = None) -> None:
        self._evaluator = evaluator
        self.allowances = allowances or Allowances()

    def start(self) -> None:
        """Get ready to evaluate, so that the first selector does not wait for that."""
        with suppress(KubernetesError):
            _require_celpy()
            self._evaluator.start()

    def accepted(self, devices: Sequence[Device], selectors: Sequence[str], namespace: str) -> list[Device]:
        """Return the devices that all selectors accept.

        namespace: the one whose time is used. NotYetError if it has none left; KubernetesError if a selector cannot be
        read, says neither true nor false, or takes too long.
        """
        found = list(devices)
        if selectors:
            _require_celpy()
        for text in selectors:
            selector = _SELECTORS.get_or_build(text, lambda text=text: _Selector(text))  # type: ignore[misc]
            answers = self._answers(selector, found, namespace)
            wrong = next(((one, why) for one in found if isinstance(why := answers[one.id], str)), None)
            if wrong:
                raise selector.wrong(*wrong)
            found = [one for one in found if answers[one.id]]
        return found

    def check_time(self, namespace: str) -> float:
        """Return the seconds that a namespace has left; NotYetError if it has none."""
        left_s = self.allowances.left_s(namespace)
        if left_s <= 0.0:
            why = f"the claims of namespace {namespace} take long to search: they are tried again later"
            raise NotYetError(why, self.allowances.wait_s(namespace))
        return left_s

    def _answers(
        self, selector: _Selector, devices: Sequence[Device], namespace: str
    ) -> dict[DeviceId, bool | str]:
        answers: dict[DeviceId, bool | str] = {}
        count = 1
        while True:
            for device in devices:
                if device.id not in answers and (known := selector.answer(device)) is not None:
                    answers[device.id] = known
            left = [device for device in devices if device.id not in answers]
            if not left:
                return answers
            for device, value in self._evaluated(selector, left[:count], namespace):
                answers[device.id] = value
            count = _BATCH

    def _evaluated(
        self, selector: _Selector, devices: Sequence[Device], namespace: str
    ) -> list[tuple[Device, bool | str]]:
        """Return the answers about the first of these devices, as many as there was time for."""
        selector.check()
        left_s = self.check_time(namespace)
        self._evaluator.wait_until_ready()
        begin = time.monotonic()
        try:
            found = self._evaluator.answers(selector.text, devices, left_s)
        except EvaluationEndedError as error:
            selector.note_stop(str(error))
            raise KubernetesError(f"the expression {_checks.shown(selector.text)} {error}") from None
        except UnreadableError as error:
            selector.unreadable = str(error)
            raise KubernetesError(f"the expression {_checks.shown(selector.text)} {error}") from None
        finally:
            self.allowances.spend(namespace, time.monotonic() - begin)
        answered = list(zip(devices, found, strict=False))
        for device, answer in answered:
            selector.note(device, answer.looks, answer.value)
        return [(device, answer.value) for device, answer in answered]


def _require_celpy() -> None:
    try:
        require_package("celpy", "a selector of devices")
    except ModuleNotFoundError as error:
        raise KubernetesError(str(error)) from None
