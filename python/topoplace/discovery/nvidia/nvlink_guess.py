"""Facts about the GPUs of a matrix in the rest of a text, mainly the speed of NVLinks of an unstated model.

The model may be named next to the matrix of `nvidia-smi topo -m`, by `nvidia-smi -L`, its table, or a report of an
environment. If it is not, the numbers of links, CPUs and adapters fit only some machines; such a speed is a guess.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from topoplace.discovery.nvidia.matrix_rows import CPUS, GPU_NUMA, NUMA, NVLINKS, Header, MatrixRow
from topoplace.topology.links.link_kinds import SPEEDS, models_in, nvlink_of

_NAMED = re.compile(
    r"\s*(?:GPU [0-9][0-9, ]{0,400}: |\|\s{1,8}[0-9]{1,3}\s+)((?:NVIDIA|Tesla|Quadro|GeForce) [^|(]{1,80}?)"
    r"\s*(?:\(UUID.*|(?:On|Off)\s+\|.*)?"
)
_FIRST_CPUS = re.compile(r"([0-9]{1,5})-([0-9]{1,5})")
_MAX_LINE = 1000
_OLD_LABEL = "SOC"

_GRACE_CPUS = 72
"""The CPUs of one Grace, and of the sockets next to which x86 machines have B300; machines of H100 have fewer."""
_MINSKY_CPUS = 80
_MANAGEMENT_PORTS = 4


@dataclass(frozen=True)
class Guess:
    """An assumed speed of one NVLink."""

    gb_per_s: float
    why: str = ""
    """The models that fit the text, and the reason, as the end of a sentence; "" if unknown."""


def surrounding(lines: Sequence[str], rows: Mapping[str, MatrixRow]) -> Iterator[str]:
    """Yield the lines that are not rows of the matrix; very long ones are left out."""
    own = {row.line for row in rows.values()}
    return (line for number, line in enumerate(lines, 1) if number not in own and len(line) <= _MAX_LINE)


def named_model(lines: Iterable[str]) -> str | None:
    """Return the GPU model that `lines` name; None if they name none or several."""
    found = {match[1].strip() for line in lines if (match := _NAMED.fullmatch(line))}
    return found.pop() if len(found) == 1 else None


def guessed(lines: Sequence[str], header: Header, rows: Mapping[str, MatrixRow]) -> Guess:
    """Return the likely speed of an NVLink in the matrix of `header` and `rows`, which stands in `lines`."""
    facts = _facts(lines, header, rows)
    model = _mentioned_model(surrounding(lines, rows))
    speed = nvlink_of(model) if model else None
    if speed and max(facts.per_pair, default=0) <= speed.most_links:
        return Guess(speed.gb_per_s, f"{model}, which the text mentions")
    found = ((speed, why) for fits, speed, why in _RULES if fits(facts))
    name, why = next(found, ("nvlink4", ""))
    return Guess(SPEEDS[name].gb_per_s, why)


@dataclass(frozen=True)
class _Facts:
    """What decides about the speed of NVLinks."""

    num_gpus: int
    links: Sequence[Sequence[int]]
    """For each GPU with NVLinks, their number to each of its peers."""
    first_cpus: Collection[int]
    """The numbers of CPUs in the first range of each GPU's affinity."""
    old_label: bool
    memory_nodes: bool
    management_ports: bool
    per_node: Sequence[int]
    """The numbers of GPUs near each NUMA node, in the order of their first GPU."""

    @property
    def per_gpu(self) -> set[int]:
        """Return the different numbers of NVLinks that GPUs have."""
        return set(map(sum, self.links))

    @property
    def per_pair(self) -> set[int]:
        """Return the different numbers of NVLinks between two GPUs."""
        return {count for counts in self.links for count in counts}

    @property
    def in_pairs(self) -> bool:
        """Return True if no GPU has NVLinks to more than one other."""
        return all(len(counts) == 1 for counts in self.links)


_Rule = tuple[Callable[[_Facts], bool], str, str]
# Whether it fits, a name in SPEEDS, and the models and reason; the first that fits decides.
_RULES: Sequence[_Rule] = (
    (
        lambda facts: facts.old_label and max(facts.per_gpu, default=0) <= 4,
        "nvlink1",
        "P100, by at most 4 NVLinks a GPU and the label SOC of old drivers",
    ),
    (
        lambda facts: facts.num_gpus == 8 and facts.per_gpu == {4} and facts.per_pair == {1},
        "nvlink1",
        "P100, by 4 single NVLinks of each of 8 GPUs",
    ),
    (
        lambda facts: (
            facts.num_gpus == 4
            and facts.in_pairs
            and facts.per_pair == {2}
            and facts.first_cpus == {_MINSKY_CPUS}
        ),
        "nvlink1",
        "P100, by pairs with 2 NVLinks and 80 CPUs",
    ),
    (
        lambda facts: facts.in_pairs and facts.per_pair == {4},
        "nvlink3-bridge",
        "A6000, A40, A5000 or RTX 3090, by pairs with 4 NVLinks",
    ),
    (
        lambda facts: facts.per_pair == {18} and (facts.memory_nodes or facts.first_cpus == {_GRACE_CPUS}),
        "nvlink5",
        "GB200, B200 or B300, by 18 NVLinks and 72 CPUs",
    ),
    (
        lambda facts: facts.per_pair == {18} and list(facts.per_node) == [2, 2],
        "nvlink5",
        "GB200 or GB300, by 4 GPUs with 18 NVLinks, two near each CPU",
    ),
    (
        lambda facts: facts.per_pair == {18} and facts.management_ports,
        "nvlink5",
        "B200, by 18 NVLinks and four adapters in one place, near no GPU",
    ),
)


def _facts(lines: Sequence[str], header: Header, rows: Mapping[str, MatrixRow]) -> _Facts:
    links = [_links_of(header, rows[gpu]) for gpu in header.gpus]
    return _Facts(
        len(header.gpus),
        [counts for counts in links if counts],
        {_first_cpus(rows[gpu].affinity.get(CPUS, "")) for gpu in header.gpus},
        any(_OLD_LABEL in lines[row.line - 1] for row in rows.values()),
        _has_memory_nodes(header, rows),
        _has_management_ports(header, rows),
        list(Counter(rows[gpu].affinity.get(NUMA, "") for gpu in header.gpus).values()),
    )


def _mentioned_model(lines: Iterable[str]) -> str | None:
    """Return the model with NVLinks that occurs in `lines`, prose included; None if there is none, or several."""
    found = models_in("\n".join(lines))
    return found.pop() if len(found) == 1 else None


def _links_of(header: Header, row: MatrixRow) -> list[int]:
    """Return the numbers of NVLinks from the GPU of `row` to each GPU that it has some to."""
    labels = (row.labels[header.column[gpu]] for gpu in header.gpus)
    return [int(match[1]) for label in labels if (match := NVLINKS.fullmatch(label))]


def _first_cpus(cell: str) -> int:
    """Return the number of CPUs in the first range of an affinity such as "0-71,144-215"; 0 if there is none."""
    found = _FIRST_CPUS.match(cell)
    return int(found[2]) - int(found[1]) + 1 if found else 0


def _has_memory_nodes(header: Header, rows: Mapping[str, MatrixRow]) -> bool:
    """Return True if a GPU's own memory is a NUMA node, as on Grace."""
    return any(rows[gpu].affinity.get(GPU_NUMA, "N/A").isdigit() for gpu in header.gpus)


def _has_management_ports(header: Header, rows: Mapping[str, MatrixRow]) -> bool:
    """Return True if four adapters share a PCIe switch with each other and with no GPU, as those of NVSwitches do."""
    far = [
        nic
        for nic in header.nics
        if nic in rows and not {"PIX", "PXB"} & {rows[nic].labels[header.column[gpu]] for gpu in header.gpus}
    ]
    near = list(_shared_switches(header, rows, far))
    return any(len(group) == _MANAGEMENT_PORTS for group in near)


def _shared_switches(
    header: Header, rows: Mapping[str, MatrixRow], nics: Sequence[str]
) -> Iterator[set[str]]:
    """Yield for each adapter in `nics` those behind the same PCIe switch, itself included."""
    pairs = [
        {one, other}
        for one, other in combinations(nics, 2)
        if rows[one].labels[header.column[other]] == "PIX"
    ]
    for nic in nics:
        yield {nic}.union(*(pair for pair in pairs if nic in pair))
