"""Where controllers work: here, in processes, or on an engine that is there already (Dask, Ray)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

Item = TypeVar("Item")
Done = TypeVar("Done")


def map_on(executor: Any, function: Callable[[Item], Done], items: Sequence[Item]) -> list[Done]:
    """`function` of each item, in their order.

    executor: None for here and now; a `dask.distributed.Client`; the module `ray`, initialised; or whatever has
    `map(function, items)`, as a `concurrent.futures.Executor` or a pool of `multiprocessing`. ValueError for others.
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
    raise ValueError(f"executor = {executor!r} has no map, and is neither Dask's client nor ray")
