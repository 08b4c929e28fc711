"""`topoplace demo`: its sentences are about the figures in its tables."""

from __future__ import annotations

from demonstration import Demonstration
from topoplace.experiments.report import tables


def test_what_the_demonstration_shows(demonstration: Demonstration) -> None:
    shown = demonstration.printed
    rows = [line.split("  ") for line in shown.splitlines()]
    fields = [[field.strip() for field in row if field.strip()] for row in rows]
    assert {row[0] for row in fields if row and row[-1].endswith("kubernetes-default")} == {
        *("dgx1-v100", "torus2d-16", "cubemesh-16")
    }
    carried = {
        policy: float(row[2])
        for row in fields
        if len(row) == 5 and row[0] == "dgx1-v100" and row[2].isdecimal()
        for policy in row[4].split(", ")
    }
    lowest, best = carried["baseline"], carried["least-time"]
    assert lowest < best
    first, second, third = shown.splitlines()[:3]
    assert f"carry {lowest:g} GB/s on the lowest free ids, and {best:g} GB/s" in first
    assert f"{tables.number(best / lowest)} times as much" in first
    makespan = {row[1]: minutes(row[-1]) for row in fields if row[:1] == ["torus2d-16"] and len(row) == 6}
    saved = 100 * (1 - makespan["mapa-preserve"] / makespan["baseline"])
    assert f"{saved:.0f} % on torus2d-16" in second
    assert "3 of 6 jobs get less than they ask for under fcfs, 0 under topo-aware-p" in third
    assert sorted(path.name for path in (demonstration.folder / "out").iterdir()) == [
        "comparison.png",
        "dgx1-v100.png",
        "gantt.png",
        "report.html",
        "six-jobs.png",
    ]


def minutes(text: str) -> int:
    """Return a duration such as 7 h 25 min in minutes."""
    hours, _, rest = text.partition(" h ")
    return 60 * int(hours) + int(rest.removesuffix(" min"))
