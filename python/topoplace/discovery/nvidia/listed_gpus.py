"""Facts about the GPUs of a matrix in lines of `nvidia-smi -L` next to it, and notes on those that do not fit the
matrix.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from topoplace.discovery.nvidia import gpu_line
from topoplace.discovery.nvidia.gpu_line import NamedGpu

_SLICE = re.compile(r"\s*MIG\s+[1-7][gc]\.")


@dataclass(frozen=True)
class Listed:
    """The GPUs that a text lists, and the lines that list them or their MIG slices."""

    gpus: Sequence[NamedGpu]
    slices: Sequence[int]
    """The numbers of the lines of MIG slices."""

    @property
    def cut(self) -> dict[str, int]:
        """Return the number of MIG slices below each GPU that has some, by its name."""
        lines = [gpu.line for gpu in self.gpus]
        above = (bisect(lines, line) for line in self.slices)
        return Counter(self.gpus[place - 1].name for place in above if place)

    @property
    def lines(self) -> set[int]:
        """Return the numbers of all these lines."""
        return {*self.slices, *(gpu.line for gpu in self.gpus)}

    def models(self) -> dict[str, str]:
        """Return the models by the names of the GPUs, without contradictory ones."""
        return _agreed((gpu.name, gpu.model) for gpu in self.gpus)

    def uuids(self) -> dict[str, str]:
        """Return the UUIDs by the names of the GPUs, without contradictory ones."""
        return _agreed((gpu.name, gpu.uuid) for gpu in self.gpus if gpu.uuid is not None)

    def notes(self, known: Collection[str]) -> Iterator[str]:
        """Yield notes on the differences between the list and the GPUs called `known`, those of the matrix."""
        names = list(dict.fromkeys(gpu.name for gpu in self.gpus))
        if extra := [name for name in names if name not in known]:
            yield f"Listed without a row of the matrix, and left out: {', '.join(extra)}."
        if names and (missing := [name for name in known if name not in names]):
            yield f"In the matrix, and not listed next to it: {', '.join(missing)}."
        if self.slices:
            cut = ", ".join(f"{name} ({count})" for name, count in self.cut.items())
            yield (
                f"MIG slices, {len(self.slices)} from line {self.slices[0]} on, are left out: "
                "the matrix is of whole GPUs, and the output of `nvidia-smi -L` alone gives the slices"
                + (f"; no job can have these whole, and they are marked unhealthy: {cut}." if cut else ".")
            )


def read(lines: Sequence[str]) -> Listed:
    """Return the GPUs and the MIG slices that `lines` list."""
    named = (gpu_line.named_gpu(number, line) for number, line in enumerate(lines, 1) if "GPU" in line)
    slices = [number for number, line in enumerate(lines, 1) if "MIG" in line and _SLICE.match(line)]
    return Listed([gpu for gpu in named if gpu is not None], slices)


def _agreed(pairs: Iterator[tuple[str, str]]) -> dict[str, str]:
    """Return the second of each pair by the first; not where pairs with the same first differ."""
    found: dict[str, set[str]] = {}
    for name, value in pairs:
        found.setdefault(name, set()).add(value)
    return {name: value for name, (value, *others) in found.items() if not others}
