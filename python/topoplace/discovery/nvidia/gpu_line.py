"""Reader of the line that introduces a GPU in `nvidia-smi`: "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5b...)"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from topoplace import _checks
from topoplace.errors import TopologyError
from topoplace.topology.devices import MISSING_GPU, Gpu

_LINE = re.compile(
    r"GPU ([0-9]{1,4}): ([^()]{1,100}?(?: \(nvgpu\))?)(?: \(UUID: ([^()\s]{1,100})\)(?:\s+(?:NVML:|Device\b).*)?)?"
)
_LOST = re.compile(
    r"\s*Unable to determine the device handle for gpu\s*([0-9a-f:.]{1,40}?)\s*:\s+(\S.{0,200})",
    re.IGNORECASE,
)
_MAX_LINE = 400
_BEGUN = re.compile(r"\s*GPU [0-9]{1,4}\s*(?::.*)?")
_ELIDED = re.compile(
    r"\s*(?:\[?\.\.\.+\]?|\[?…\]?|[\[<(]\.*\s*(?:snip(?:ped)?|truncated|omitted|cut)\b.{0,60}[\])>])\s*",
    re.IGNORECASE,
)

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


def refuse_cut_off(number: int, line: str) -> None:
    """Raise TopologyError if the line introduces a GPU but is cut off before its end."""
    if _BEGUN.fullmatch(line):
        raise TopologyError(
            f"line {number}: {_checks.shown(line.strip(), 80)} is cut off, or not as `nvidia-smi` prints it; "
            "give the complete line"
        )


def lost_gpu(line: str) -> str | None:
    """Return the note on a GPU that `line` reports as lost; None for any other line."""
    match = _LOST.fullmatch(line.rstrip()) if len(line) <= _MAX_LINE else None
    if match is None:
        return None
    named = f"GPU{match[1]}" if match[1].isdigit() else match[1]
    return f"{MISSING_GPU}{named}, of which the tool says {_checks.shown(match[2])}."


def missing_gpus(names: Iterable[str]) -> Iterator[str]:
    """Yield a note if the numbers in `names`, such as GPU0 and GPU2, have a gap or begin above 0."""
    numbers = {int(match[1]) for name in names if (match := re.fullmatch("GPU([0-9]{1,4})", name))}
    first = min(numbers, default=0)
    if first:  # the part of a machine that a job or a container has
        yield f"The numbers of GPUs begin with GPU{first}; those before it are not in the text."
    gaps = [number for number in range(first, max(numbers, default=0)) if number not in numbers]
    if gaps and len(gaps) <= MAX_GPUS:
        listed = ", ".join(f"GPU{number}" for number in gaps)
        yield f"{MISSING_GPU}{listed}, though GPU{max(numbers)} is there; its tool or the driver has lost it."


def with_distinct_uuids(gpus: Sequence[Gpu]) -> tuple[tuple[Gpu, ...], tuple[str, ...]]:
    """Return `gpus` without the UUIDs that several of them have, and a note on each such UUID."""
    owners: dict[str, list[str]] = {}
    for gpu in gpus:
        if gpu.uuid is not None:
            owners.setdefault(gpu.uuid, []).append(gpu.name)
    repeated = {uuid: names for uuid, names in owners.items() if len(names) > 1}
    notes = (
        f"One UUID, {_checks.shown(uuid)}, is given to {', '.join(names)}, and left out."
        for uuid, names in repeated.items()
    )
    return tuple(replace(gpu, uuid=None) if gpu.uuid in repeated else gpu for gpu in gpus), tuple(notes)
