"""Machines in NCCL's XML form, written from a few facts: CPUs, what hangs below them, and NVLinks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import topoplace as tp

CPUS = {
    "broadwell": 'arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="79"',
    "skylake": 'arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="106"',
    "sapphire-rapids": 'arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143"',
    "amd": 'arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49"',
    "power9": 'arch="ppc64"',
}
SPEEDS = {3: "8 GT/s", 4: "16 GT/s", 5: "32 GT/s"}
SWITCH, CPU = "0x068000", "0x068001"


def machine(
    cpu: str,
    sockets: Sequence[Sequence[int]],
    *,
    sm: int = 80,
    pcie: int = 4,
    nvlinks: Mapping[tuple[int, int | str], int] | None = None,
) -> tp.Topology:
    """Build a machine of GPUs 0, 1, ... in order.

    sockets: for each CPU, the numbers of GPUs below each of its ports; more than one share a PCIe switch. nvlinks: the
    links of each pair (u, v), or of a GPU and `SWITCH` or `CPU`.
    """
    links: dict[int, list[str]] = {}
    for (u, target), count in (nvlinks or {}).items():
        ends = ((u, target), (target, u)) if isinstance(target, int) else ((u, target),)
        for a, b in ends:
            to = f"0000:{b + 1:02x}:00.0" if isinstance(b, int) else f"0000:f{b[-1]}:00.0"
            kind = "0x030200" if isinstance(b, int) else b
            links.setdefault(int(a), []).append(f'<nvlink target="{to}" count="{count}" tclass="{kind}"/>')
    speed = f'link_speed="{SPEEDS[pcie]}" link_width="16"'
    lines: list[str] = []
    gpu = 0
    for number, ports in enumerate(sockets):
        lines.append(f'<cpu numaid="{number}" affinity="ffff" {CPUS[cpu]}>')
        for port, below in enumerate(ports):
            if below > 1:
                lines.append(
                    f'<pci busid="0000:{0x80 + 16 * number + port:02x}:00.0" class="0x060400" {speed}>'
                )
            for _ in range(below):
                inside = "".join(links.get(gpu, []))
                lines.append(
                    f'<pci busid="0000:{gpu + 1:02x}:00.0" class="0x030200" {speed}>'
                    f'<gpu dev="{gpu}" sm="{sm}" rank="{gpu}" gdr="1">{inside}</gpu></pci>'
                )
                gpu += 1
            lines += ["</pci>"] * (below > 1)
        lines.append("</cpu>")
    return tp.Topology.from_nccl_xml(f'<system version="1">{"".join(lines)}</system>')
