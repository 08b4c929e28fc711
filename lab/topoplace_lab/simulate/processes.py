"""Many simulations, one after another or in several processes, with a progress bar."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from typing import TypeVar

from topoplace import _checks
from topoplace._progress import Progress

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs simulations: in a number of processes, with or without a progress bar.

    processes: more than 1 starts processes that import the main module again, as `multiprocessing` does with "spawn".
    Your own script then needs `if __name__ == "__main__":`. Raises ValueError unless it is 1 to 1024.
    """

    processes: int = 1
    progress: bool = False

    def __post_init__(self) -> None:
        _checks.integer(self.processes, "jobs", ValueError, low=1, high=1024)

    def results(self, function: Callable[..., Result], calls: Sequence[tuple[object, ...]]) -> list[Result]:
        """Return the results of `function` with each tuple of arguments, in their order.

        With several processes, the function must be at the top of a module, and arguments and results must be
        picklable.
        """
        found: dict[int, Result] = {}
        with Progress("simulating", fraction=lambda: len(found) / max(1, len(calls)), enabled=self.progress):
            found.update(self.completed(function, calls))
        return [found[call] for call in range(len(calls))]

    def completed(
        self, function: Callable[..., Result], calls: Sequence[tuple[object, ...]]
    ) -> Generator[tuple[int, Result]]:
        """Yield the index of each tuple of arguments with the result of `function`, as soon as it is finished.

        The processes end with this iterator, and with the process that called it, even if that is killed.
        """
        if self.processes == 1 or len(calls) <= 1:
            yield from ((index, function(*call)) for index, call in enumerate(calls))
            return
        others = multiprocessing.active_children()
        pool = ProcessPoolExecutor(
            self.processes, mp_context=multiprocessing.get_context("spawn"), initializer=_end_with_parent
        )
        try:
            with _interrupts_held():
                futures = {pool.submit(function, *call): index for index, call in enumerate(calls)}
            for future in as_completed(futures):
                yield futures.pop(future), future.result()
        except BaseException:
            # No future is cancelled: Python 3.11 fails with a traceback if a worker ends while some are.
            for worker in set(multiprocessing.active_children()).difference(others):
                worker.terminate()
            raise
        finally:
            pool.shutdown()


def _end_with_parent() -> None:
    """End this worker when the process that started it is gone, even one that was killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _interrupts_held() -> Generator[None]:
    """Hold back Ctrl-C until the end of the `with` block, and for ever in the processes that it starts.

    The terminal sends it to every process. Workers that get it while they import print tracebacks, and so do those
    whose start it cuts short. So it is left to this process to end them. Where signals cannot be held back (Windows,
    or outside the main thread), nothing is done.
    """
    if not hasattr(signal, "pthread_sigmask") or threading.current_thread() is not threading.main_thread():
        yield
        return
    resource_tracker.ensure_running()  # its start would let interrupts through again
    interrupted: list[int] = []
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    # Threads of numpy do not hold it back, so this process may get it all the same.
    handler = signal.signal(signal.SIGINT, lambda number, _: interrupted.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if interrupted:
            signal.raise_signal(signal.SIGINT)
