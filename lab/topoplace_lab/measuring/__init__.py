"""Bandwidths of collectives measured on a machine, compared with plans, and rates corrected by them.

To change:

- Which sets are measured: `choice_of_sets.py`; runs: `runs.py`; factors for path types: `measurements.py`; how
  nccl-tests is started: `discovery/live/nccl_tests.py`.
"""

from __future__ import annotations

from topoplace_lab.measuring.choice_of_sets import sets_to_measure
from topoplace_lab.measuring.measurements import Efficiency, MeasuredSet, Measurements
from topoplace_lab.measuring.measurements_json import rates_from_json
from topoplace_lab.measuring.runs import measured_sets, planning_rates

__all__ = [
    "Efficiency",
    "MeasuredSet",
    "Measurements",
    "measured_sets",
    "planning_rates",
    "rates_from_json",
    "sets_to_measure",
]
