"""The placer as a service: cycle after cycle until it is stopped; failures of Slurm are logged and retried."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from topoplace.errors import SlurmError
from topoplace_hosts.log import Log
from topoplace_hosts.slurm.placer.placer import Placer

_SHARE = 0.2
"""Limit on the share of one CPU that cycles take: a long cycle is followed by a longer pause."""
_RETRY_S = (1.0, 2.0, 5.0, 10.0, 30.0)


def alive_file(journal: str | os.PathLike[str]) -> Path:
    """Return the file next to a journal that a running placer touches in each cycle."""
    return Path(f"{os.fspath(journal)}.alive")


def run(
    make: Callable[[], Placer],
    *,
    interval_s: float,
    alive: Path,
    write_log: Log,
    stopped: threading.Event | None = None,
    started: Callable[[Placer], None] = lambda _: None,
) -> None:
    """Make a placer and run its cycles until SIGTERM, SIGINT, or `stopped` is set.

    make: makes the placer; called again until Slurm answers. interval_s: seconds between the starts of cycles. alive:
    touched after each cycle. started: called with the placer before its first cycle.
    """
    end = stopped or threading.Event()
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda _number, _frame: end.set())
    placer: Placer | None = None
    failures = 0
    while not end.is_set():
        begin, used = time.monotonic(), time.process_time()
        try:
            if placer is None:
                placer = make()
                started(placer)
                write_log("started")
            placer.cycle()
            alive.touch()
            failures = 0
        except SlurmError as error:
            pause = _RETRY_S[min(failures, len(_RETRY_S) - 1)]
            failures += 1
            write_log("slurm_failed", error=str(error), retry_s=pause)
            end.wait(pause)
            continue
        busy = time.process_time() - used
        end.wait(max(interval_s - (time.monotonic() - begin), busy / _SHARE - busy, 0.0))
    write_log("ended")
