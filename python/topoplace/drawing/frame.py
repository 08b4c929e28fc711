"""The common base of layouts: the area of the drawing, states, lines, and the links that the job uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from topoplace.drawing.scene import Line, Rect, Scene, Text, fitted
from topoplace.topology.links.link_kinds import PATH_KINDS, LinkKind

if TYPE_CHECKING:
    from topoplace.drawing.states import States
    from topoplace.drawing.traffic import Pair, Traffic
    from topoplace.drawing.wires import Wiring
    from topoplace.topology.devices import Nic


@dataclass
class Frame:
    """The area of a scene in which a topology is drawn: from (x, y) downwards, `width` wide."""

    scene: Scene
    states: States
    x: float
    y: float
    width: float
    height: float
    """Limit on the height of many machines, which are drawn smaller to fit."""
    traffic: Traffic
    wiring: Wiring
    _over: dict[tuple[LinkKind, ...], dict[int, list[Pair]]] = field(
        default_factory=dict["tuple[LinkKind, ...]", "dict[int, list[Pair]]"]
    )

    def over_switches(self, gpu: int) -> str:
        """Return the classes that highlight the line of a GPU to its NVSwitches."""
        return self.traffic.classes(*self._pairs_over(LinkKind.NVSWITCH).get(gpu, ()))

    def over_hosts(self, gpu: int) -> str:
        """Return the classes that highlight the line of a GPU to its PCIe switch or CPU."""
        return self.traffic.classes(*self._pairs_over(*PATH_KINDS).get(gpu, ()))

    def _pairs_over(self, *kinds: LinkKind) -> Mapping[int, Sequence[Pair]]:
        """Return the pairs of each GPU that exchange data by a path of these kinds."""
        if kinds not in self._over:
            found = self._over.setdefault(kinds, {})
            for pair in self.traffic.pairs:
                if self.states.topology.pairs.link(*pair).kind in kinds:
                    for gpu in pair:
                        found.setdefault(gpu, []).append(pair)
        return self._over[kinds]

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
