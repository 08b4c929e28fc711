"""Measured bandwidths of collectives, compared with plans; rates corrected by them; traffic of running jobs.

To change:

- Which sets are measured: `choice_of_sets.py`; runs: `runs.py`; factors for path types: `measurements.py`; how
  nccl-tests is started: `nccl_tests.py`.
- Counters of the traffic of running jobs: `counters.py`; the output of `dcgmi`: `dcgm_rates.py`.
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
