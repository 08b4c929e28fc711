"""The page of published measurements: what the library says beside what others measured."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from published.machines import Row, cluster_of, machine_of

import topoplace as tp
from topoplace import collective

NOT_MODELLED = "not modelled"
OVER_MACHINES = "over machines"
BARS: Mapping[str, tuple[float, float]] = {
    "inside one machine, rings": (0.85, 1.15),
    "in NVSwitches (NVLS)": (0.85, 1.15),
    "over PCIe": (0.7, 1.3),
    OVER_MACHINES: (0.95, 1.1),
}
"""The kinds of measurements, with the least and the most that the median of planned / published should be."""
_GIGABYTES = 1.0
_ROUNDS = {"all_reduce": 2}


_INTRODUCTION = """# Planned beside published

Nobody here measured these bandwidths: people published them, with nccl-tests or rccl-tests, and described their
machines. Planned is what topoplace says of the same machines, by the code that decides about placements. One constant
is fitted to this table, the most that NVLS carries on Blackwell, from 72 GB200; all others are NCCL's own, or those
assumed of [paths whose speed no text tells](decisions.md#15-speeds-of-paths-that-no-text-tells).

`make docs` computes this page from [what was published](published/measurements.json). GB/s are those of bus bandwidth,
as nccl-tests print it; ratio is planned / published.
"""
_LEFT_OUT = """## What is not modelled

- Latency and congestion: the figures are those of large messages on a network that carries what its ports have. From 4
  to 32 machines of 8 H100, 360 GB/s decline to 300.
- Trees between machines, and NVLS inside them under a tree (NVLSTree): both exceed rings over two or three machines.
- What NCCL carries beyond its plan: across two sockets of Sapphire Rapids it plans 20 GB/s, and 28 are measured.
- Machines with a fault (ACS, no peer-to-peer), and machines that are not described. These were published, too:
"""


@dataclass(frozen=True, slots=True)
class Compared:
    """A measurement and what the library says of it, GB/s of bus bandwidth as nccl-tests print it."""

    row: Row
    planned: float

    @property
    def ratio(self) -> float:
        """Return planned / published."""
        return self.planned / float(self.row["gb_per_s"])


def facts() -> dict[str, Any]:
    """Return what was published."""
    found: dict[str, Any] = json.loads((Path(__file__).parent / "measurements.json").read_text("utf-8"))
    return found


def compared(published: Mapping[str, Any]) -> list[Compared]:
    """Return all measurements of machines that are modelled, with what the library says."""
    rows = [row for row in published["measurements"] if row["kind"] != NOT_MODELLED]
    return [Compared(row, planned(row, published["machines"])) for row in rows]


def planned(row: Row, machines: Mapping[str, Row]) -> float:
    """Return GB/s that the library says of a measurement: what the time of a job of this one collective comes to."""
    topology, gpus = cluster_of(row, machines)
    rates = "nccl-2.30-rings" if row["algorithm"] in ("Ring", "Tree") else "nccl-2.30"
    kind, count = row["collective"], len(gpus)
    one = tp.Collective(kind, tuple(range(count)), gigabytes=_GIGABYTES)
    job = tp.JobGraph.from_collectives(count, [one])
    seconds = tp.communication_time(job, gpus, topology, rates=rates).seconds
    return _ROUNDS.get(kind, 1) * (count - 1) / count * _GIGABYTES / seconds


def median(rows: Sequence[Compared], kind: str) -> float:
    """Return the median of planned / published of a kind."""
    return statistics.median(one.ratio for one in rows if one.row["kind"] == kind)


def near(rows: Sequence[Compared], kind: str, share: float = 0.2) -> float:
    """Return how many of a kind are within `share` of what is published, as a share of all of it."""
    ratios = [one.ratio for one in rows if one.row["kind"] == kind]
    return sum(abs(ratio - 1) <= share for ratio in ratios) / len(ratios)


def orders_agree(published: Mapping[str, Any]) -> list[tuple[Row, bool]]:
    """Return the printed orders of rings, and whether the planned rings are the same."""
    found: list[tuple[Row, bool]] = []
    for row in published["orders"]:
        machine = machine_of(published["machines"][row["machine"]])
        rings = collective.rings(machine, row["gpus"]).rings
        own = sorted(list(ring.gpus) for ring in rings for _ in range(ring.channels))
        found.append((row, own == sorted(row["rings"])))
    return found


def page() -> str:
    """Return the page."""
    published = facts()
    rows = compared(published)
    return (
        "\n".join([*_introduction(rows), *_tables(rows), *_orders(published), *_left_out(published)]) + "\n"
    )


def _introduction(rows: Sequence[Compared]) -> Iterator[str]:
    yield _INTRODUCTION
    yield "| kind | measurements | median ratio | should be | within 20 % |"
    yield "| --- | --- | --- | --- | --- |"
    for kind, (least, most) in BARS.items():
        count = sum(one.row["kind"] == kind for one in rows)
        inside = f"{100 * near(rows, kind):.0f} %"
        yield f"| {kind} | {count} | {median(rows, kind):.2f} | {least:g} to {most:g} | {inside} |"
    yield ""


def _tables(rows: Sequence[Compared]) -> Iterator[str]:
    for kind in BARS:
        yield f"## {kind[0].upper()}{kind[1:]}"
        yield ""
        yield "| machines | GPUs of each | collective | algorithm | published | planned | ratio | error | source |"
        yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
        yield from (_line(one) for one in rows if one.row["kind"] == kind)
        yield ""


def _line(one: Compared) -> str:
    row = one.row
    gpus, ports = ",".join(map(str, row["gpus"])), row.get("adapters")
    where = f"{row['machines']} x ({row['machine']})" if row["machines"] > 1 else row["machine"]
    if ports:
        where += f", {len(ports['slots'])} adapters of {ports['gb_per_s']:g}"
    note = f"; {row['note']}" if "note" in row else ""
    cells = (
        where,
        gpus,
        row["collective"],
        row["algorithm"],
        f"{row['gb_per_s']:g}",
        f"{one.planned:.4g}",
        f"{one.ratio:.2f}",
        f"{100 * (one.ratio - 1):+.0f} %",
        f"{_source(row['source'])}{note}",
    )
    return f"| {' | '.join(cells)} |"


def _source(source: str) -> str:
    """Return a link with the end of an address as its text, such as "nccl-tests/issues/290"; other text as it is."""
    if not source.startswith("https://github.com/"):
        return f"<{source}>" if source.startswith("https://") else source
    _, name = source.removeprefix("https://github.com/").split("/", 1)
    return f"[{name}]({source})"


def _orders(published: Mapping[str, Any]) -> Iterator[str]:
    yield "## Orders of rings"
    yield ""
    yield "| machine | NCCL printed | planned | source |"
    yield "| --- | --- | --- | --- |"
    for row, same in orders_agree(published):
        yield f"| {row['machine']} | {row['printed']} | {'the same' if same else 'others'} | {_source(row['source'])} |"
    yield ""


def _left_out(published: Mapping[str, Any]) -> Iterator[str]:
    yield _LEFT_OUT
    yield "| machines | published | why it is not compared | source |"
    yield "| --- | --- | --- | --- |"
    for row in published["measurements"]:
        if row["kind"] == NOT_MODELLED:
            where = f"{row['machines']} x ({row['machine']})" if row["machines"] > 1 else row["machine"]
            yield f"| {where} | {row['gb_per_s']:g} | {row['note']} | {_source(row['source'])} |"
