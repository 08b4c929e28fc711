"""Sweeps: policies × topologies × workloads × loads × seeds, one simulation a cell, each kept once it is finished.

`run` runs what is missing in a directory; `write_table` and `write_page` write what all cells gave.
"""

from __future__ import annotations

from topoplace.sweeps.code_digests import code_of
from topoplace.sweeps.comparison import Row, rows_of
from topoplace.sweeps.engines import DaskEngine, Engine, RayEngine
from topoplace.sweeps.page import Overview, write_page
from topoplace.sweeps.plan import Cell, Outcome, Plan, Scenario
from topoplace.sweeps.running import run
from topoplace.sweeps.table import write_table

__all__ = [
    "Cell",
    "DaskEngine",
    "Engine",
    "Outcome",
    "Overview",
    "Plan",
    "RayEngine",
    "Row",
    "Scenario",
    "code_of",
    "rows_of",
    "run",
    "write_page",
    "write_table",
]
