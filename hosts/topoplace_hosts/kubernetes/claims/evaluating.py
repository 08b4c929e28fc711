"""The process that evaluates selectors of tenants, so that they can be stopped and do not slow down others.

The first process reads the libraries and forks; its child evaluates. The kernel kills the child when an evaluation
takes too much time or memory. Then the first one forks the next child, which takes a few milliseconds.
"""

from __future__ import annotations

import gc
import json
import os
import pickle
import resource
import signal
import time
from collections.abc import Sequence
from typing import BinaryIO, Final

from topoplace.engine.memo import Memo
from topoplace.errors import KubernetesError
from topoplace_hosts.kubernetes.claims.device import Device
from topoplace_hosts.kubernetes.claims.expressions import Expression

CPU_S: Final = 0.2
"""Limit on the CPU seconds of one evaluation; an expression's first one includes compiling it."""
WALL_S: Final = 0.5
"""Limit on the elapsed seconds of one evaluation, including waits."""
_MOST_BYTES: Final = 512 << 20
_MOST_EXPRESSIONS: Final = 256


def main() -> None:
    """Answer requests from file 0 on file 1 until file 0 ends; print nothing else."""
    requests, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(nothing, number)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started us ends, and then so does file 0
    gc.freeze()
    while True:
        child = os.fork()
        if child == 0:
            _evaluate(requests, answers)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
            return
        _write(answers, {"ended": _why(status)})


def _why(status: int) -> str:
    """Return in words why a child has ended."""
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if number in (signal.SIGPROF, signal.SIGALRM):
        return "takes too much time"
    return f"ends its evaluation ({signal.Signals(number).name if number else 'out of memory'})"


def _evaluate(requests: int, answers: int) -> None:
    """Evaluate until there are no more requests; the process ends here."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    expressions = Memo[str, Expression](_MOST_EXPRESSIONS)
    code = 1
    _write(answers, {"ready": True})
    try:
        with os.fdopen(requests, "rb", closefd=False) as given:
            while (request := _next(given)) is not None:
                _answer(expressions, *request, answers)
        code = 0
    finally:
        os._exit(code)


def _next(given: BinaryIO) -> tuple[str, Sequence[Device], float] | None:
    try:
        found: tuple[str, Sequence[Device], float] = pickle.load(given)
    except EOFError:
        return None
    return found


def _answer(
    expressions: Memo[str, Expression], text: str, devices: Sequence[Device], allowed_s: float, answers: int
) -> None:
    """Write the answer about each device, as far as there is time; then that there are no more."""
    end = time.monotonic() + allowed_s
    _limit(CPU_S, WALL_S)  # of compiling, and of the first evaluation
    try:
        found = expressions.get_or_build(text, lambda: Expression(text))
    except KubernetesError as error:
        _limit(0.0, 0.0)
        _write(answers, {"unreadable": str(error)})
        return
    for device in devices:
        value, looks = found.answer(device)
        _write(answers, {"value": value, "looks": looks})
        _limit(CPU_S, WALL_S)
        if time.monotonic() > end:
            break
    _limit(0.0, 0.0)
    _write(answers, {})


def _limit(cpu_s: float, wall_s: float) -> None:
    """Let the kernel end this process after so many seconds from now; 0 for no limit."""
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    signal.setitimer(signal.ITIMER_REAL, wall_s)


def _write(answers: int, value: object) -> None:
    left = memoryview(json.dumps(value).encode() + b"\n")
    while left:
        left = left[os.write(answers, left) :]


if __name__ == "__main__":
    main()
