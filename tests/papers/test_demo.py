"""`topoplace demo`: its sentences are about the figures in its tables."""

from __future__ import annotations

from demonstration import Demonstration


def test_what_the_demonstration_shows(demonstration: Demonstration) -> None:
    shown = demonstration.printed
    assert "cubemesh-16" in shown
    rows = [line.split() for line in shown.splitlines()]
    bandwidth = {row[1]: row[6] for row in rows if row[:1] == ["dgx1-v100"] and len(row) == 9}
    lowest, best = bandwidth["baseline"], bandwidth["mapa-preserve"]
    first, second, third = shown.split("What to take home:\n")[1].splitlines()
    assert f"a ring of four {lowest} GB/s, and mapa-preserve finds {best} GB/s." in first
    makespan = {row[1]: float(row[-1]) for row in rows if row[:1] == ["torus2d-16"] and len(row) == 6}
    assert f"{1 - makespan['mapa-preserve'] / makespan['baseline']:.0%} on torus2d-16" in second
    assert "3 of 6 jobs get less than they ask for under fcfs, 0 under topo-aware-p" in third
    assert sorted(path.name for path in (demonstration.folder / "out").iterdir()) == [
        "comparison.png",
        "dgx1-v100.png",
        "gantt.png",
        "report.html",
        "six-jobs.png",
    ]
