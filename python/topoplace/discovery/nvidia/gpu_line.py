"""Reader of the line that introduces a GPU in `nvidia-smi`: "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5b...)"."""

from __future__ import annotations

import re
from dataclasses import dataclass

from topoplace.errors import TopologyError

_LINE = re.compile(
    r"GPU ([0-9]{1,4}): ([^()]{1,100}?(?: \(nvgpu\))?)(?: \(UUID: ([^()\s]{1,100})\)(?:\s+(?:NVML:|Device\b).*)?)?"
)
_MAX_LINE = 400
_ELIDED = re.compile(r"\s*(\[?\.\.\.+\]?|\[?…\]?)\s*")

MAX_GPUS = 128


@dataclass(frozen=True, slots=True)
class NamedGpu:
    """A GPU that a line of `nvidia-smi` introduces: its number, model, UUID, and the number of the line."""

    number: int
    model: str
    uuid: str | None
    line: int

    @property
    def name(self) -> str:
        """Return the GPU's name in a topology, such as "GPU0"."""
        return f"GPU{self.number}"


def named_gpu(number: int, line: str) -> NamedGpu | None:
    """Return the GPU that `line`, with the line number `number`, introduces; None for any other line."""
    plain = line.strip()
    match = _LINE.fullmatch(plain) if len(plain) <= _MAX_LINE else None
    return NamedGpu(int(match[1]), match[2].strip(), match[3], number) if match else None


def refuse_elided(number: int, line: str) -> None:
    """Raise TopologyError if the line marks omitted text, as "[...]" does."""
    if _ELIDED.fullmatch(line):
        raise TopologyError(f"line {number}: {line.strip()} marks omitted text; give the complete text")
