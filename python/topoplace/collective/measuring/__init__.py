"""What collectives among GPUs reached on a machine, next to what is planned; rates that are corrected by it.

To change:

- Which sets are measured: `choice_of_sets.py`; runs: `runs.py`; factors for path types: `measurements.py`; how
  nccl-tests is started: `discovery/live/nccl_tests.py`.
"""

from __future__ import annotations

from topoplace.collective.measuring.choice_of_sets import sets_to_measure
from topoplace.collective.measuring.measurements import Efficiency, MeasuredSet, Measurements
from topoplace.collective.measuring.measurements_json import rates_from_json
from topoplace.collective.measuring.runs import measured_sets, planning_rates

__all__ = [
    "Efficiency",
    "MeasuredSet",
    "Measurements",
    "measured_sets",
    "planning_rates",
    "rates_from_json",
    "sets_to_measure",
]
