"""Checks of arguments that several kernels have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from topoplace import _checks

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1


def integers(values: ArrayLike, name: str) -> NDArray[np.int32]:
    """Return numbers of any shape as int32; ValueError names the first that is no integer in -1..2**31 - 1."""
    given = _checks.array_of(values, name, ValueError)
    if given.dtype == np.int32:
        return np.ascontiguousarray(given)
    numbers = _checks.numbers_of(given, name, ValueError)
    flat = numbers.reshape(-1)
    for i in np.flatnonzero(~((flat >= -1) & (flat <= INT32_MAX) & (flat == np.floor(flat))))[:1]:
        raise ValueError(f"{name}[{i}] = {flat[i]:g} is not an integer in -1..{INT32_MAX}")
    return np.ascontiguousarray(numbers, np.int32)


def reals(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return numbers as one row of float64; ValueError for anything that is no number."""
    given = _checks.array_of(values, name, ValueError)
    row = given if given.dtype == np.float64 else _checks.numbers_of(given, name, ValueError)
    return np.ascontiguousarray(row).reshape(-1)


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
