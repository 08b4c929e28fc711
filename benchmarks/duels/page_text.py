"""The page of benchmarks: who wins, by how much, and on what machine."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import textwrap
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from duels.duel import Outcome
from duels.policy_times import COMPARED_WITH, Times
from timing.measure import Spread

PACKAGES = (
    "topoplace",
    "numpy",
    "igraph",
    "rustworkx",
    "networkx",
    "pymetis",
    "kahip",
    "mtkahypar",
    "ortools",
    "pylmcf",
    "highspy",
)
QUIET = 0.5  # load of a machine that does nothing else
WIDTH = 120  # of a line of prose
HEAD = """# Benchmarks

`make bench` wrote this page. One process runs our kernels and other libraries in turn, so that a busy machine slows all
of them alike. Times are CPU times through the Python interfaces, threads of a library included; graphs are built
beforehand. Brackets hold the quartiles over up to 15 rounds; over several cases, geometric means are taken.
[Measuring](measuring.md) has more cases, each with its own command.
"""
ALONE = "No library that we know answers these, or none was installed:"
POLICIES = """## Policies

Microseconds of a decision for a ring of 1 to 8 GPUs on one of the machines, which have 8 GPUs each; half of all GPUs
are busy. All policies decide about the same jobs on the same cluster, in an order that rotates, and each in turn has
its decision carried out. Brackets hold the quartiles of ten groups of 20 decisions; the factor compares with
`{compared_with}`, which takes the lowest free ids. No library decides on GPUs: what one would use inside stands above.
`highest-ids` is `examples/own_policy.py`.
"""


class Machine(NamedTuple):
    """Where the page was measured."""

    cores: int
    processor: str
    python: str
    compiler: str
    packages: dict[str, str]
    """Releases of the packages that are installed."""
    load: float | None
    """Processes that wanted to run when the measurement began, others' alone."""


def this_machine() -> Machine:
    """Return the facts about this machine."""
    return Machine(
        os.cpu_count() or 1,
        processor(),
        platform.python_version(),
        compiler(),
        dict(releases()),
        os.getloadavg()[0],
    )


def processor() -> str:
    """Return the processor's name, or else its architecture."""
    file = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*: (.+)$", file.read_text("utf-8"), re.M) if file.exists() else None
    return found[1] if found else platform.machine()


def compiler() -> str:
    """Return name and release of the C++ compiler."""
    text = subprocess.run(
        [os.environ.get("CXX", "c++"), "--version"], capture_output=True, text=True, check=True
    ).stdout
    kind = "clang" if "clang" in text else "gcc"
    found = re.search(r"\d+\.\d+\.\d+", text)
    return f"{kind} {found[0]}" if found else kind


def releases() -> Iterator[tuple[str, str]]:
    """Yield each of the packages that is installed, and its release."""
    for name in PACKAGES:
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            continue


def page(machine: Machine, outcomes: Sequence[Outcome], times: Sequence[Times]) -> str:
    """Return the whole page."""
    parts = [HEAD, facts(machine), kernels(outcomes), alone(outcomes), policies(times)]
    return "\n".join(parts)


def facts(machine: Machine) -> str:
    """Return the paragraph about the machine."""
    packages = ", ".join(f"{name} {release}" for name, release in machine.packages.items())
    built = f"Python {machine.python}, {machine.compiler}; {packages}"
    text = f"Measured on {machine.cores} cores ({machine.processor}), {built}."
    if machine.load is not None and machine.load > QUIET:
        text += (
            f" Other programs used the machine when the measurement began (load {machine.load:.1f}): single times are "
            "longer than on an idle one, and ratios are less certain."
        )
    return textwrap.fill(text, WIDTH, break_on_hyphens=False) + "\n"


def kernels(outcomes: Sequence[Outcome]) -> str:
    """Return the table of kernels next to other libraries."""
    return "## Kernels\n\n" + table(outcomes)


def table(outcomes: Sequence[Outcome]) -> str:
    """Return a row for each outcome next to another library, and the names of those that were missing."""
    rows = [one for one in outcomes if one.peers]
    lines = [
        "| kernel | question | ours | next to others |\n|---|---|---|---|",
        *(f"| `{one.kernel}` | {one.what} | {figure(one)} | {verdict(one)} |" for one in rows),
    ]
    missing = sorted({name for one in outcomes for name in one.missing})
    if missing:
        lines.append(f"\nNot installed when this was measured, and left out: {', '.join(missing)}.")
    return "\n".join(lines) + "\n"


def alone(outcomes: Sequence[Outcome]) -> str:
    """Return the table of kernels for which there is no other library."""
    lines = [
        ALONE + "\n",
        "| kernel | question | ours |\n|---|---|---|",
        *(f"| `{one.kernel}` | {one.what} | {figure(one)} |" for one in outcomes if not one.peers),
    ]
    return "\n".join(lines) + "\n"


def policies(times: Sequence[Times]) -> str:
    """Return the table of decisions by policy and size of the cluster."""
    sizes = sorted({one.num_gpus for one in times})
    names = list(dict.fromkeys(one.policy for one in times))
    cell = {(one.policy, one.num_gpus): one for one in times}
    head = " | ".join(f"{size:,} GPUs" for size in sizes)
    rows = [
        f"| `{name}` | " + " | ".join(decision(cell[name, size]) for size in sizes) + " |" for name in names
    ]
    return (
        "\n".join(
            [
                POLICIES.format(compared_with=COMPARED_WITH),
                f"| policy | {head} |",
                "|---|" + "---|" * len(sizes),
                *rows,
            ]
        )
        + "\n"
    )


def decision(one: Times) -> str:
    """Return one cell of the table of policies."""
    times = f"{number(one.microseconds.median)} {brackets(one.microseconds)}"
    return times if one.policy == COMPARED_WITH else f"{times}, {number(one.ratio.median)} ×"


def verdict(one: Outcome) -> str:
    """Say who wins by how much."""
    if one.ratio is None:
        raise ValueError(f"{one.kernel}: no other library took part")
    turned = Spread(1 / one.ratio.median, 1 / one.ratio.high, 1 / one.ratio.low)
    if one.by_answer:
        return f"{number(turned.median)} × {brackets(turned)} that of {named('best', one.peers)}"
    others = named("faster" if len(one.peers) == 2 else "fastest", one.peers)
    if one.ratio.low > 1:
        return f"**{number(one.ratio.median)} ×** {brackets(one.ratio)} faster than {others}"
    if one.ratio.high < 1:
        return f"{others} is {number(turned.median)} × {brackets(turned)} faster"
    return f"as fast as {others}: {number(one.ratio.median)} × {brackets(one.ratio)}"


def named(superlative: str, names: Sequence[str]) -> str:
    """Return `the faster of A and B`, or the one name."""
    if len(names) == 1:
        return names[0]
    return f"the {superlative} of {', '.join(names[:-1])} and {names[-1]}"


def figure(one: Outcome) -> str:
    """Return our time with a unit, or our answer."""
    if one.by_answer:
        return f"{number(one.ours.median)} {brackets(one.ours)}"
    unit, factor = next(
        (unit, factor)
        for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6))
        if one.ours.median * factor >= 1 or unit == "µs"
    )
    scaled = Spread(*(value * factor for value in one.ours))
    return f"{number(scaled.median)} {brackets(scaled)} {unit}"


def brackets(spread: Spread) -> str:
    """Return the quartiles."""
    return f"[{number(spread.low)}, {number(spread.high)}]"


def number(value: float) -> str:
    """Return a number with two or three digits that count."""
    if value < 10:
        return f"{value:.2f}"
    digits = min(0, 3 - len(str(int(value))))
    return f"{round(value, digits):,.0f}"
