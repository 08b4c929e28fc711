"""Experiments on the library: the simulator, sweeps, the suite, reports, papers, and the capacity planner.

A scheduler embeds nothing of this: no package outside `experiments` and `cli` imports it.
"""

from __future__ import annotations

from topoplace import _above

_above.offer(
    __name__,
    {
        "as_html": "report.measures:as_html",
        "gantt": "report.plots:gantt",
        "load_result": "simulate.storage.results:load",
        "save_result": "simulate.storage.results:save",
    },
)
