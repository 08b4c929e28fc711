"""Run the controllers of a simulation in this process, in worker processes, or on an engine such as Dask or Ray."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

Item = TypeVar("Item")
Done = TypeVar("Done")


def map_on(executor: Any, function: Callable[[Item], Done], items: Sequence[Item]) -> list[Done]:
    """Apply `function` to each item and return the results in the same order.

    executor: None to run in this process, or one of the following; ValueError for anything else.
    - A `dask.distributed.Client`, or the initialised module `ray`.
    - An object with `map(function, items)`, such as a `concurrent.futures.Executor` or a pool of `multiprocessing`.
    """
    if isinstance(executor, type):
        raise ValueError(f"executor = {executor.__name__} is a class; an object of it is needed")
    if executor is None:
        return [function(item) for item in items]
    if hasattr(executor, "gather") and hasattr(executor, "map"):
        return list(executor.gather(executor.map(function, items, pure=False)))
    if hasattr(executor, "remote") and hasattr(executor, "get"):

        def called(item: Item) -> Done:  # Ray takes functions only, no other callables
            return function(item)

        task = executor.remote(called)
        return list(executor.get([task.remote(item) for item in items]))
    if hasattr(executor, "map"):
        return list(executor.map(function, items))
    raise ValueError(f"executor = {executor!r} has no map, and is neither a Dask client nor ray")
