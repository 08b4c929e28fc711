"""Sweeps: policies × topologies × workloads × loads × seeds, one simulation a cell, each kept once it is finished.

`run` runs what is missing in a directory; `write_table` and `write_page` write what all cells gave.

To change:

- What a cell is, and the digest of a plan: `plan.py`; digests of code: `code_digests.py`; what ran already:
  `finished_cells.py`; the others: `running.py`, on clusters `engines.py`.
"""

from __future__ import annotations

from topoplace.experiments.report.comparison import ComparisonRow, Outcome, Scenario
from topoplace.experiments.sweeps.code_digests import code_of, code_of_model
from topoplace.experiments.sweeps.engines import DaskEngine, Engine, RayEngine
from topoplace.experiments.sweeps.page import write_page
from topoplace.experiments.sweeps.plan import Cell, Plan, rows_of
from topoplace.experiments.sweeps.running import run
from topoplace.experiments.sweeps.table import write_table

__all__ = [
    "Cell",
    "ComparisonRow",
    "DaskEngine",
    "Engine",
    "Outcome",
    "Plan",
    "RayEngine",
    "Scenario",
    "code_of",
    "code_of_model",
    "rows_of",
    "run",
    "write_page",
    "write_table",
]
