"""Sweeps: policies × topologies × workloads × loads × seeds, one simulation a cell, each kept once it is finished.

`run` runs the cells that a directory lacks; `write_table` and `write_page` write the outcomes of all cells.

To change:

- Cells, and the digest of a plan: `plan.py`; digests of code: `code_digests.py`; finished cells: `finished_cells.py`;
  unfinished cells: `running.py`, on clusters `engines.py`.
"""

from __future__ import annotations

from topoplace_lab.report.comparison import ComparisonRow, Outcome, Scenario
from topoplace_lab.sweeps.code_digests import code_of, code_of_model
from topoplace_lab.sweeps.engines import DaskEngine, Engine, RayEngine
from topoplace_lab.sweeps.page import write_page
from topoplace_lab.sweeps.plan import Cell, Plan, rows_of
from topoplace_lab.sweeps.running import run
from topoplace_lab.sweeps.table import write_table

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
