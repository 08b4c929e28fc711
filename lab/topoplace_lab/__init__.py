"""topoplace-lab: the simulator, sweeps, the suite, reports, papers, the capacity planner, and rules to compare with.

No scheduler needs to embed this package. It depends on topoplace alone, and adds commands, policies, formats and
modules as
entry points: `lab/pyproject.toml`.

To change:

- The rules of other schedulers, and of fragmentation: `policies/`.
- Commands: `commands/`; the second tab of `topoplace explore`: `explore_queue.py`.
"""

from __future__ import annotations

from topoplace._lazy import offer

offer(
    __name__,
    {
        "as_html": "report.columns:as_html",
        "parsed_measurements": "measuring.measurements_json:parsed",
        "written_measurements": "measuring.measurements_json:written",
        "gantt": "report.plots:gantt",
        "load_result": "simulate.storage.results:load",
        "save_result": "simulate.storage.results:save",
    },
)
