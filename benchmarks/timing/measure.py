"""CPU times of calls, and of contenders that take turns, so that a busy machine slows all of them alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

ROUNDS, FEWEST = 15, 3
LONGEST_REST = 0.5  # seconds
SHORTEST = 0.002  # CPU seconds of a batch; the clock is too coarse for less


class Prepared(NamedTuple):
    """A call to time, and what its answer says, which is not timed."""

    run: Callable[[], Any]
    answer: Callable[[Any], Any]


class Contender(NamedTuple):
    """One library on one case."""

    prepare: Callable[[int], Prepared]
    """A function that gets the number of the round, from which seeds are drawn."""
    repeats: bool = True
    """Whether a prepared call does the same work each time."""


class Measured(NamedTuple):
    """CPU seconds and answers of one contender, an entry for each round."""

    seconds: list[float]
    answers: list[Any]


class Spread(NamedTuple):
    """The median and the quartiles of some numbers."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, numbers: Sequence[float]) -> Spread:
        """Return the spread of at least two numbers."""
        low, median, high = statistics.quantiles(numbers, n=4, method="inclusive")
        return cls(median, low, high)


def group_means(numbers: Sequence[float], groups: int = 10) -> list[float]:
    """Return the mean of each of ten groups of consecutive numbers."""
    size = len(numbers) // groups
    return [statistics.fmean(numbers[at * size : (at + 1) * size]) for at in range(groups)]


def alternate(contenders: Mapping[str, Contender], seconds: float) -> dict[str, Measured]:
    """Let all contenders run in turn for up to 15 rounds, or fewer if these take more than `seconds` together."""
    found = {name: Measured([], []) for name in contenders}
    batches = {name: warmed_up(contender) for name, contender in contenders.items()}
    began = time.process_time()
    for number in range(ROUNDS):
        if number >= FEWEST and time.process_time() - began > seconds:
            break
        for name, contender in contenders.items():
            prepared = contender.prepare(number)
            # After a sleep of 20 ms, the processor is slow for some milliseconds; a batch does not notice.
            wait_for_rest(0.02 if contender.repeats else 0.002)
            spent, answer = timed(prepared.run, batches[name])
            found[name].seconds.append(spent)
            found[name].answers.append(prepared.answer(answer))
    return found


def wait_for_rest(pause: float) -> None:
    """Wait until the threads of the contender before sleep: its idle workers spin for a while, on our account.

    pause: seconds in which they must be idle; workers that spin and sleep in turn seem idle in short ones.
    """
    ends = time.monotonic() + LONGEST_REST
    busy = True
    while busy and time.monotonic() < ends:
        before = time.process_time()
        time.sleep(pause)
        busy = time.process_time() - before > pause / 10


def warmed_up(contender: Contender) -> int:
    """Run a contender once, and return how many of its calls make a batch."""
    prepared = contender.prepare(0)
    prepared.run()
    return batch_of(prepared.run) if contender.repeats else 1


def batch_of(run: Callable[[], Any], shortest: float = SHORTEST) -> int:
    """Return how many calls take at least `shortest` CPU seconds."""
    spent, _ = timed(run, 1)
    return max(1, int(shortest / max(spent, 1e-7)))


def microseconds(run: Callable[[], Any], rounds: int = 9) -> float:
    """Return the median CPU time of a call that was made before; short calls are timed in batches."""
    run()
    batch = batch_of(run, 0.0005)
    return 1e6 * statistics.median(timed(run, batch)[0] for _ in range(rounds))


def timed(run: Callable[[], Any], batch: int = 1) -> tuple[float, Any]:
    """Return the CPU seconds of a call, threads of its library included, and its answer."""
    before = time.process_time()
    for _ in range(batch):
        answer = run()
    return (time.process_time() - before) / batch, answer
