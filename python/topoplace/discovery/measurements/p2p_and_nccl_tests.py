"""Reader of measured speeds between GPUs, as a matrix for `Topology.with_link_speeds`.

Two tools are read. `p2pBandwidthLatencyTest` of the CUDA samples prints matrices of copies between all GPUs, with and
without peer access. The tests of NCCL and RCCL (`all_reduce_perf`, `sendrecv_perf` and the others) print a bus
bandwidth by message size for the GPUs of a run: what each GPU sends per second in one direction. A text may hold the
runs of several groups of GPUs. A run of two GPUs measures that pair, a larger run measures all its pairs at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice
from typing import TYPE_CHECKING

import numpy as np

from topoplace import _checks
from topoplace.discovery.text import decode
from topoplace.errors import TopologyError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WHAT = "the measurement"
_TITLE = re.compile(
    r"\s*(Uni|Bi)directional P2P=(Enabled|Disabled) Bandwidth(?: \(P2P (Writes|Reads)\))?(?: Matrix)? \(GB/s\)\s*"
)
_HEADER = re.compile(r"\s*D\\D((?:\s+[0-9]{1,4})+)\s*")
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")

_MPI_TAG = re.compile(r"^\[[0-9]+,[0-9]+\]<std(?:out|err)>:")
_DEVICES = re.compile(r"#\s*Using devices\s*")
_RANK = re.compile(
    r"#\s*Rank\s+[0-9]+ (?:Group\s+[0-9]+ )?Pid\s+[0-9]+ on\s+(\S+) device\s+([0-9]{1,4}) \[[0-9a-fA-Fx:.]+\] .*"
)
_COLUMNS = re.compile(r"#\s+size\s.*\bbusbw\b.*")

_MAX_GPUS = 128
_MAX_LINE = 4096
_MAX_RUNS = 8192

Matrix = list[list[float]]


def recognised(text: str) -> bool:
    """Return True if `text` looks like the output of p2pBandwidthLatencyTest or of a test of NCCL or RCCL."""
    return any(_TITLE.fullmatch(line) or _RANK.fullmatch(line) for _, line in _lines(text[:262144]))


def parse(data: str | bytes, *, peer_access: bool = True) -> NDArray[np.float64]:
    """Return (n, n) GB/s in one direction between the GPUs measured in `data`: symmetric, 0 on the diagonal.

    peer_access: read the matrix of p2pBandwidthLatencyTest with peer access (True) or without (False). A pair has the
    slower of its two directions. Without a matrix of copies in one direction, it has half the speed of copies in both
    directions at the same time. In output of NCCL's tests, a pair has the speed of its own run of two GPUs. If there is
    none, it has that of the fastest run with both GPUs. Raise TopologyError naming the line, or a pair of GPUs that
    was not measured.
    """
    peer_access = _checks.flag(peer_access, "peer_access", TopologyError)
    text = decode.decoded(data, _WHAT)
    access = "Enabled" if peer_access else "Disabled"
    for way, share in (("Uni", 1.0), ("Bi", 0.5)):
        if matrices := _matrices(_lines(text), way):
            return share * _slower_way(_chosen(matrices, access))
    runs = _runs(_lines(text))
    if not runs:
        raise TopologyError(f"{_WHAT} is neither of p2pBandwidthLatencyTest nor of NCCL's tests")
    return _of_runs(runs)


def notes(data: str | bytes) -> tuple[str, ...]:
    """Return the assumptions of `parse` about `data`, one sentence each."""
    titles = [match for _, line in _lines(decode.decoded(data, _WHAT)) if (match := _TITLE.fullmatch(line))]
    if not titles or any(match[1] == "Uni" for match in titles):
        return ()
    return (
        "The measured speeds are of copies in both directions at once: half of each is taken as that of one direction.",
    )


def bus_bandwidth(data: str | bytes) -> tuple[int, float]:
    """Return the number of GPUs of a run of NCCL's or RCCL's tests, and its highest bus bandwidth, GB/s.

    Raise TopologyError naming a wrong line, or unless `data` is the output of one run with a bus bandwidth.
    """
    runs = _runs(_lines(decode.decoded(data, _WHAT)))
    if len(runs) != 1:
        raise TopologyError(f"{_WHAT} has {len(runs)} runs of NCCL's tests with several GPUs, not one")
    if not runs[0].gb_per_s:
        raise TopologyError(f"{_WHAT} has no bus bandwidth")
    return len(runs[0].gpus), runs[0].gb_per_s


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, line) without the prefix that mpirun adds."""
    return ((number, _MPI_TAG.sub("", line)) for number, line in decode.numbered_lines(text))


# ---- p2pBandwidthLatencyTest -----------------------------------------------------------------------------------


def _matrices(lines: Iterator[tuple[int, str]], way: str) -> dict[tuple[str, str], Matrix]:
    """Return the matrices of copies, GB/s, by (peer access, operation).

    way: "Uni" for those of copies in one direction, "Bi" for those in both directions at once. Peer access is "Enabled"
    or "Disabled"; the operation is "Writes" or "Reads".
    """
    found: dict[tuple[str, str], Matrix] = {}
    for number, line in lines:
        if (match := _TITLE.fullmatch(line)) and match[1] == way:
            key = (match[2], match[3] or "Writes")
            if key in found:
                raise TopologyError(f"line {number}: a second matrix of the same kind")
            found[key] = _matrix(number, lines)
    return found


def _matrix(title: int, lines: Iterator[tuple[int, str]]) -> Matrix:
    _, header = next(lines, (0, ""))
    match = _HEADER.fullmatch(header) if len(header) <= _MAX_LINE else None
    if match is None:
        raise TopologyError(f"line {title}: must be followed by a header of columns D\\D 0 1 ...")
    columns = match[1].split()
    if columns != [str(i) for i in range(len(columns))] or len(columns) > _MAX_GPUS:
        raise TopologyError(f"line {title + 1}: the columns are not 0, 1, ..., at most {_MAX_GPUS - 1}")
    matrix: Matrix = []
    for i, (number, line) in enumerate(islice(lines, len(columns))):
        words = line.split()
        if words[:1] != [str(i)] or len(words) != 1 + len(columns):
            raise TopologyError(
                f"line {number}: {_checks.shown(line)} is not row {i} of {len(columns)} columns"
            )
        matrix.append([_gb_per_s(number, word) for word in words[1:]])
    if len(matrix) < len(columns):
        raise TopologyError(f"line {title}: {len(matrix)} rows follow, the header has {len(columns)} columns")
    return matrix


def _gb_per_s(number: int, word: str) -> float:
    if not _NUMBER.fullmatch(word):
        raise TopologyError(f"line {number}: {_checks.shown(word)} is not a speed")
    return float(word)


def _chosen(matrices: dict[tuple[str, str], Matrix], access: str) -> Matrix:
    for way in ("Writes", "Reads"):
        if (access, way) in matrices:
            return matrices[access, way]
    raise TopologyError(f"{_WHAT} has no matrix with P2P={access}")


def _slower_way(matrix: Matrix) -> NDArray[np.float64]:
    both = np.array(matrix)
    slower: NDArray[np.float64] = np.minimum(both, both.T)
    np.fill_diagonal(slower, 0.0)
    for u, v in np.argwhere((slower == 0.0) & ~np.eye(len(slower), dtype=bool))[:1]:
        raise TopologyError(f"from GPU {u} to GPU {v}, or back, {_WHAT} has 0 GB/s")
    return slower


# ---- the tests of NCCL and RCCL --------------------------------------------------------------------------------


@dataclass(slots=True)
class _BenchmarkRun:
    """One run of a test: its GPUs, and the highest bus bandwidth over all message sizes."""

    line: int
    gpus: set[int] = field(default_factory=set[int])
    columns: tuple[int, ...] = ()
    width: int = 0
    gb_per_s: float = 0.0


def _runs(lines: Iterator[tuple[int, str]]) -> list[_BenchmarkRun]:
    runs: list[_BenchmarkRun] = []
    hosts: set[str] = set()
    for number, line in lines:
        if _DEVICES.fullmatch(line):
            _add_run(number, runs)
        elif not runs:
            continue
        elif rank := _RANK.fullmatch(line):
            hosts.add(rank[1])
            if len(hosts) > 1:
                raise TopologyError(
                    f"line {number}: a second host; the speeds between hosts are not those of links"
                )
            _add_gpu(number, int(rank[2]), runs[-1])
        elif _COLUMNS.fullmatch(line):
            words = line.split()[1:]
            runs[-1].columns = tuple(i for i, word in enumerate(words) if word == "busbw")
            runs[-1].width = len(words)
        else:
            _add_speed(number, line, runs[-1])
    return [run for run in runs if len(run.gpus) > 1]


def _add_run(number: int, runs: list[_BenchmarkRun]) -> None:
    if len(runs) >= _MAX_RUNS:
        raise TopologyError(f"line {number}: more than {_MAX_RUNS} runs")
    runs.append(_BenchmarkRun(number))


def _add_gpu(number: int, gpu: int, run: _BenchmarkRun) -> None:
    if gpu in run.gpus:
        raise TopologyError(f"line {number}: device {gpu} has two ranks; their speed is not that of a link")
    if gpu >= _MAX_GPUS:
        raise TopologyError(f"line {number}: device {gpu} is not in 0..{_MAX_GPUS - 1}")
    run.gpus.add(gpu)


def _add_speed(number: int, line: str, run: _BenchmarkRun) -> None:
    words = line.split()
    if not run.columns or not words or not words[0].isdecimal():
        return
    if len(words) != run.width:
        raise TopologyError(f"line {number}: {len(words)} columns, the header has {run.width}")
    run.gb_per_s = max(run.gb_per_s, *(_gb_per_s(number, words[column]) for column in run.columns))


def _of_runs(runs: Sequence[_BenchmarkRun]) -> NDArray[np.float64]:
    n = 1 + max(max(run.gpus) for run in runs)
    matrix = np.zeros((n, n))
    for u, v, gb_per_s in _pairs(runs):
        matrix[u, v] = matrix[v, u] = gb_per_s
    for u, v in combinations(range(n), 2):
        if not matrix[u, v]:
            raise TopologyError(f"GPUs {u} and {v} were not measured: no run with a bus bandwidth has both")
    return matrix


def _pairs(runs: Sequence[_BenchmarkRun]) -> Iterator[tuple[int, int, float]]:
    """Yield (u, v, GB/s) for each pair of GPUs in each run; the last value of a pair is the one to use.

    Runs of more than two GPUs come first, slower runs before faster ones.
    """
    for run in sorted(runs, key=lambda run: (len(run.gpus) == 2, run.gb_per_s)):
        for u, v in combinations(sorted(run.gpus), 2):
            yield u, v, run.gb_per_s
