"""Run cells on an existing cluster of Dask or Ray whose workers have this library installed."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator, Sequence
from itertools import islice
from typing import Any, Final, Protocol, TypeVar

from topoplace.errors import require_package

Result = TypeVar("Result")
_MOST_WAITING: Final = 1000
"""Limit on the calls that Ray has at once; each finished call makes Ray report on all of them."""


class Engine(Protocol):
    """An interface for running many calls of a function; `Runner` has it, too."""

    def completed(
        self, function: Callable[..., Result], calls: Sequence[tuple[object, ...]]
    ) -> Generator[tuple[int, Result]]:
        """Yield the index of each tuple of arguments with the result of `function`, as soon as it is there."""
        ...


class DaskEngine:
    """Runs calls on the workers of Dask's scheduler at `address`; ImportError if `distributed` is missing."""

    def __init__(self, address: str) -> None:
        require_package("distributed", "the engine dask")
        self.address = address

    def completed(
        self, function: Callable[..., Result], calls: Sequence[tuple[object, ...]]
    ) -> Generator[tuple[int, Result]]:
        """Yield the index of each tuple of arguments with the result of `function`, as soon as it is there."""
        distributed: Any = importlib.import_module("distributed")
        with distributed.Client(self.address) as client:
            futures = {client.submit(function, *call, pure=False): index for index, call in enumerate(calls)}
            for future in distributed.as_completed(futures):
                yield futures.pop(future), future.result()


class RayEngine:
    """Runs calls on the cluster of Ray whose head is at `address`; ImportError if `ray` is missing."""

    def __init__(self, address: str) -> None:
        require_package("ray", "the engine ray")
        self.address = address

    def completed(
        self, function: Callable[..., Result], calls: Sequence[tuple[object, ...]]
    ) -> Generator[tuple[int, Result]]:
        """Yield the index of each tuple of arguments with the result of `function`, as soon as it is there."""
        ray: Any = importlib.import_module("ray")
        ray.init(address=self.address, log_to_driver=False)
        try:
            task = ray.remote(function)
            left = enumerate(calls)
            waiting = {task.remote(*call): index for index, call in islice(left, _MOST_WAITING)}
            while waiting:
                (done,), _ = ray.wait(list(waiting))
                waiting.update((task.remote(*call), index) for index, call in islice(left, 1))
                yield waiting.pop(done), ray.get(done)
        finally:
            ray.shutdown()
