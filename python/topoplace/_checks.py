"""Checks of single argument values; every error message names the argument, the index and the value.

A check refuses a value by raising the exception class it is given: for the same mistake a topology raises TopologyError
and a job graph JobGraphError.
"""

from __future__ import annotations

import math
import numbers
import operator
import os
import re
from collections.abc import Collection, Mapping, Set
from itertools import islice
from typing import TYPE_CHECKING, Any, SupportsIndex, cast

import numpy as np

from topoplace._similar_names import not_one_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

Error = type[ValueError]
_FILE_NAME = re.compile(r"[^\s<>{}=|*?\",]{1,4000}\.(?:txt|json|xml|log|csv|conf|ya?ml|out|tar)(?:\.gz)?")
"""A line that ends like a file name and has none of the characters of texts about machines."""
MAX_ITEMS = 1 << 24
"""Limit on the items of a sequence; a longer one, such as range(10**9), is refused as a mistake."""


def shown(value: object, limit: int = 60) -> str:
    """Return `value` for an error message: its repr (a number as printed), on one line of up to `limit` characters."""
    try:
        text = f"{value}" if isinstance(value, numbers.Number) else repr(value)
    except ValueError:  # Python refuses to print integers of more than 4300 digits
        text = "an integer of thousands of digits"
    except RecursionError:
        text = f"a {type(value).__name__} nested too deeply to show"
    if "\n" in text:  # of an array
        text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def bound(value: float) -> str:
    """Return a limit for an error message: a whole number with all its digits, other numbers with six."""
    return f"{value:.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:g}"


def names_file(text: object) -> bool:
    """Return True if `text` is a path, or looks like the name of a file and not like its content."""
    return isinstance(text, os.PathLike) or (isinstance(text, str) and bool(_FILE_NAME.fullmatch(text)))


def refuse_path(text: object, what: str, error: Error) -> None:
    """Raise `error` if `text`, the content of a file, is a path or looks like the name of a file."""
    if names_file(text):
        name = shown(os.fspath(cast("str", text)))
        raise error(
            f"{what} = {name} is the name of a file; give the text in it, such as Path({name}).read_text('utf-8')"
        )


def integer(value: object, what: str, error: Error, *, low: int, high: int) -> int:
    """Return `value` as an int within low..high; refuse bools, floats and anything else that is not an integer."""
    number = value if type(value) is int else _index(value)
    if number is None:
        raise error(f"{what} = {shown(value)} is not an integer")
    if not low <= number <= high:
        raise error(f"{what} = {shown(number)} is not in {shown(low)}..{shown(high)}")
    return number


def _index(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        return None
    try:
        return operator.index(value)
    except TypeError:  # numpy's bool and arrays have the method but refuse the call
        return None


def thousandths(value: object, what: str, error: Error, *, low: float = 0.0, high: float = math.inf) -> float:
    """Return `value` as a number of whole thousandths within low..high: an int if it is whole, else a float.

    Refuse what `real` refuses, and numbers with more than three decimals.
    """
    if type(value) is int and low <= value <= high:
        return value
    number = real(value, what, error, low=low, high=high)
    nearest = round(number * 1000)
    if not math.isclose(nearest, number * 1000, rel_tol=1e-12, abs_tol=1e-9):
        raise error(f"{what} = {shown(value)} has more than three decimals")
    return nearest // 1000 if nearest % 1000 == 0 else nearest / 1000


def real(value: object, what: str, error: Error, *, low: float = 0.0, high: float = math.inf) -> float:
    """Return `value` as a finite float within low..high; refuse bools, strings, NaN and infinities."""
    if type(value) is float and low <= value <= high and -math.inf < value < math.inf:
        return (
            value + 0.0
        )  # the usual case, kept fast: decisions that take microseconds check their arguments too
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise error(f"{what} = {shown(value)} is not a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise error(f"{what} = {shown(value)} is not a finite number")
    if not low <= number <= high:
        bounds = f"at least {bound(low)}" if high == math.inf else f"in {bound(low)}..{bound(high)}"
        raise error(f"{what} = {shown(value)} is not {bounds}")
    return number + 0.0  # no negative zero: it equals zero and is written differently


def positive(value: object, what: str, error: Error, *, high: float = math.inf) -> float:
    """Return `value` as a finite float above zero and at most `high`; refuse bools, strings, NaN and infinities."""
    number = real(value, what, error, low=-math.inf)
    if number <= 0.0:
        raise error(f"{what} = {shown(value)} is not above 0")
    if number > high:
        raise error(f"{what} = {shown(value)} is more than {bound(high)}")
    return number


def text(value: object, what: str, error: Error) -> str:
    """Return `value` as a non-empty string of valid Unicode; refuse anything else."""
    if not isinstance(value, str) or not value:
        raise error(f"{what} = {shown(value)} is not a non-empty string")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise error(f"{what} = {ascii(value)[:60]} is not valid Unicode") from None
    return value


def flag(value: object, what: str, error: Error) -> bool:
    """Return `value` if it is the bool True or False; refuse anything else, the numbers 0 and 1 included."""
    if not isinstance(value, bool):
        raise error(f"{what} = {shown(value)} is not True or False")
    return value


def one_of(value: object, what: str, known: Iterable[str], error: Error) -> str:
    """Return `value` if it is one of the `known` strings; refuse anything else with a list of them."""
    known = tuple(known)
    if not isinstance(value, str) or value not in known:
        raise error(
            f"{what} = {shown(value)} is {not_one_of(value if isinstance(value, str) else '', known)}"
        )
    return value


def instance(value: object, kind: Any, what: str, error: Error) -> None:
    """Raise `error` unless `value` is an instance of `kind`, which is a class or a runtime-checkable protocol."""
    if isinstance(value, type):  # a class also has the methods of a protocol
        raise error(f"{what} = {value.__name__} is a class; an object of it is needed")
    if not isinstance(value, kind):
        own = cast("Mapping[str, Any]", vars(kind))
        parts = [name for name in own if name[0] != "_" and getattr(value, name, None) is None]
        lacks = f", as it lacks {', '.join(parts)}" if parts and getattr(kind, "_is_protocol", False) else ""
        raise error(f"{what} = {shown(value)} is not a {kind.__name__}{lacks}")


def simple_graph(value: Any, what: str, error: Error) -> Any:
    """Return `value` if it is an undirected simple networkx graph; refuse anything else."""
    if not hasattr(value, "is_directed") or value.is_directed() or value.is_multigraph():
        raise error(f"{what} is a {type(value).__name__}; an undirected simple networkx graph is needed")
    return value


def sequence(value: Any, what: str, error: Error) -> tuple[Any, ...]:
    """Return the items of `value` as a tuple; refuse strings, mappings, and what is endless or no iterable."""
    if type(value) is tuple:
        return value  # pyright: ignore[reportUnknownVariableType]
    given: Any = value
    single = isinstance(given, str | bytes | Mapping) or getattr(given, "shape", None) == ()
    if single or not hasattr(value, "__iter__"):
        raise error(f"{what} = {shown(value)} is not a sequence")
    items: tuple[Any, ...] = tuple(islice(cast("Iterable[Any]", value), MAX_ITEMS + 1))
    if len(items) > MAX_ITEMS:
        raise error(f"{what} has more than {MAX_ITEMS} items")
    return items


def ordered(value: Any, what: str, error: Error) -> tuple[Any, ...]:
    """Return the items of `value` as a tuple; refuse sets, whose order means nothing, and what `sequence` refuses."""
    if type(value) is tuple:
        return value  # pyright: ignore[reportUnknownVariableType]
    given: Any = value
    if isinstance(given, Set):
        raise error(f"{what} = {shown(value)} is a set, which has no order; a list is needed")
    return sequence(value, what, error)


def array_of(value: object, what: str, error: Error) -> NDArray[Any]:
    """Return `value` as an array of any shape and dtype; refuse masked entries and rows of different lengths.

    (`numpy.asarray` would read masked entries as numbers.)
    """
    if np.ma.is_masked(value):
        raise error(f"{what} is an array with masked entries; numbers are needed")
    try:
        return np.asarray(value)
    except (ValueError, RecursionError):
        raise error(f"{what} has rows of different lengths") from None


def numbers_of(value: object, what: str, error: Error) -> NDArray[np.float64]:
    """Return `value` as a new float64 array of any shape; refuse bools, strings and anything else not a number."""
    array = array_of(value, what, error)
    if array.size and array.dtype.kind not in "iuf":
        raise error(f"{what} has dtype {array.dtype}; numbers are needed")
    return array.astype(np.float64)


def symmetric_matrix(value: object, what: str, error: Error) -> NDArray[np.float64]:
    """Return `value` as an (n, n) float64 array that is finite, not negative, symmetric, and 0 on the diagonal."""
    matrix = square_matrix(value, what, error)
    _refuse(np.diag(np.diagonal(matrix) != 0.0), matrix, what, "is on the diagonal and not 0", error)
    for u, v in np.argwhere(matrix != matrix.T)[:1]:
        raise error(f"{what}[{u}, {v}] = {matrix[u, v]:g} but {what}[{v}, {u}] = {matrix[v, u]:g}")
    return matrix


def square_matrix(value: object, what: str, error: Error) -> NDArray[np.float64]:
    """Return `value` as an (n, n) float64 array that is finite and not negative."""
    matrix = numbers_of(value, what, error)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise error(f"{what} has shape {matrix.shape}; an (n, n) matrix is needed")
    _refuse(~np.isfinite(matrix), matrix, what, "is not a finite number", error)
    _refuse(matrix < 0.0, matrix, what, "is negative", error)
    return matrix


def _refuse(bad: NDArray[np.bool_], matrix: NDArray[np.float64], what: str, why: str, error: Error) -> None:
    for u, v in np.argwhere(bad)[:1]:
        raise error(f"{what}[{u}, {v}] = {matrix[u, v]:g} {why}")


def some(names: Collection[str], limit: int = 5) -> str:
    """Return the names for a message: the first `limit` of them, and the number of the others."""
    listed = ", ".join(shown(name).strip("'") for name in islice(names, limit))
    return listed if len(names) <= limit else f"{listed} and {len(names) - limit} more"
