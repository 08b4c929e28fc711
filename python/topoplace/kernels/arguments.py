"""Checks of arguments that several kernels have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topoplace import _checks

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1


def vertices(values: Any, name: str, num_vertices: int, *, ordered: bool = False) -> list[int]:
    """Return vertex numbers as a list; ValueError names the first that is not an integer in 0..num_vertices - 1.

    ordered: refuse sets.
    """
    listed: Any = values.tolist() if hasattr(values, "tolist") else values
    items = _checks.ordered if ordered else _checks.sequence
    chosen: list[Any] = list(items(listed, name, ValueError))
    for i, v in enumerate(chosen):
        if type(v) is not int or not 0 <= v < num_vertices:
            chosen[i] = _checks.integer(v, f"{name}[{i}]", ValueError, low=0, high=num_vertices - 1)
    return chosen


def integers(values: ArrayLike, name: str, *, ndim: int = 1) -> NDArray[np.int32]:
    """Return an int32 array of `ndim` dimensions; ValueError names a number that is not an integer of -1 or more.

    An int32 array keeps its numbers; kernels check their range.
    """
    given = _checks.array_of(values, name, ValueError)
    if given.dtype == np.int32:
        return np.ascontiguousarray(_with_dimensions(given, name, ndim))
    numbers = _with_dimensions(_checks.numbers_of(given, name, ValueError), name, ndim)
    bad = ~((numbers >= -1) & (numbers <= INT32_MAX) & (numbers == np.floor(numbers)))
    for place in np.argwhere(bad)[:1].tolist():
        shown = f"{name}[{', '.join(map(str, place))}] = {numbers[tuple(place)]:g}"
        raise ValueError(f"{shown} is not an integer in -1..{INT32_MAX}")
    return np.ascontiguousarray(numbers.astype(np.int32))


def reals(values: ArrayLike, name: str, *, ndim: int = 1) -> NDArray[np.float64]:
    """Return a float64 array of `ndim` dimensions; kernels check the range of its numbers."""
    given = _checks.array_of(values, name, ValueError)
    numbers = given if given.dtype == np.float64 else _checks.numbers_of(given, name, ValueError)
    return np.ascontiguousarray(_with_dimensions(numbers, name, ndim))


def _with_dimensions(numbers: NDArray[Any], name: str, ndim: int) -> NDArray[Any]:
    if numbers.ndim != ndim:
        expected = "one dimension" if ndim == 1 else f"{ndim} dimensions"
        raise ValueError(f"{name} has shape {numbers.shape}; expected {expected}")
    return numbers


def seconds(timeout: float | None) -> float | None:
    """Check a timeout in seconds and return it, or None for no limit; ValueError if it is negative or not finite."""
    return None if timeout is None else _checks.real(timeout, "timeout", ValueError)


def node_limit(max_nodes: int | None) -> int | None:
    """Check a limit on search nodes and return it, or None for no limit; ValueError unless it is in 1..2**63 - 1."""
    return (
        None
        if max_nodes is None
        else _checks.integer(max_nodes, "max_nodes", ValueError, low=1, high=INT64_MAX)
    )


def random_seed(seed: int) -> int:
    """Check a seed and return it; ValueError unless it is in 0..2**64 - 1."""
    return _checks.integer(seed, "seed", ValueError, low=0, high=2**64 - 1)
