"""What the layouts of a drawing share: the place they draw in, states, lines, and what the job uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from topoplace.drawing.scene import Line, Rect, Scene, Text, fitted
from topoplace.topology.links.link import PATH_KINDS, LinkKind

if TYPE_CHECKING:
    from topoplace.drawing.states import States
    from topoplace.drawing.wires import Wiring
    from topoplace.topology.devices import Nic


@dataclass
class Frame:
    """Where in a scene a topology is drawn: from (x, y) downwards, `width` wide."""

    scene: Scene
    states: States
    x: float
    y: float
    width: float
    pairs: frozenset[tuple[int, int]]
    """(u, v) with u < v: the GPUs that the job has communicate."""
    wiring: Wiring

    @cached_property
    def over_switches(self) -> frozenset[int]:
        """Return the GPUs that communicate over NVSwitches."""
        return frozenset(gpu for pair in self.pairs if self._kind(pair) is LinkKind.NVSWITCH for gpu in pair)

    @cached_property
    def over_hosts(self) -> frozenset[int]:
        """Return the GPUs that communicate over PCIe and CPUs."""
        return frozenset(gpu for pair in self.pairs if self._kind(pair) in PATH_KINDS for gpu in pair)

    def _kind(self, pair: tuple[int, int]) -> LinkKind:
        return self.states.topology.pairs.link(*pair).kind

    def draw_adapter(self, nic: Nic, box: Rect, lines: Sequence[Line]) -> None:
        """Draw a network adapter in `box`, with its lines to the nearest GPUs."""
        self.scene.explain("adapter", f"network adapter{_speeds(self.states.topology.nics)}")
        middle = box.x + box.width / 2, box.y + box.height / 2 + 3.2
        label = Text(*middle, fitted(nic.name, box.width - 4, 9), 9)
        title = f"{nic.name}{_speeds([nic])}"
        self.scene.add(*lines, box, label, classes="adapter", data={"adapter": nic.name}, title=title)


def _speeds(nics: Sequence[Nic]) -> str:
    """Return the speeds of network adapters in words; "" if none is known."""
    known = sorted({nic.gb_per_s for nic in nics if nic.gb_per_s is not None})
    if not known:
        return ""
    return f", {known[0]:g} GB/s" if len(known) == 1 else f", {known[0]:g}–{known[-1]:g} GB/s"
