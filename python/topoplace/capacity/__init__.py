"""Capacity planning with due dates: which virtual machines to let, and which jobs run there on how many GPUs.

After Filippini et al., "Hierarchical Scheduling in on-demand GPU-as-a-Service Systems": hours and $ throughout.
"""

from __future__ import annotations

from topoplace.capacity.catalogue import TABLE_II, Catalogue, VMType
from topoplace.capacity.jobs import CapacityJob, jobs_from_csv, time_table
from topoplace.capacity.plan import Cost, Node, Plan, Planner, plan_of
from topoplace.capacity.problem import Problem

__all__ = [
    "TABLE_II",
    "CapacityJob",
    "Catalogue",
    "Cost",
    "Node",
    "Plan",
    "Planner",
    "Problem",
    "VMType",
    "jobs_from_csv",
    "plan_of",
    "time_table",
]
