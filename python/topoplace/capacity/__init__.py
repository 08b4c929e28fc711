"""Capacity planning with due dates: which virtual machines to let, and which jobs run there on how many GPUs.

After Filippini et al., "Hierarchical Scheduling in on-demand GPU-as-a-Service Systems": hours and $ throughout.
"""

from __future__ import annotations

from topoplace.capacity.audit import Audit, audit_events
from topoplace.capacity.catalogue import TABLE_II, Catalogue, VMType
from topoplace.capacity.controllers import simulate_online
from topoplace.capacity.dispatch import (
    ControllerView,
    DispatchRule,
    DueDateAware,
    LeastLoaded,
    RoundRobin,
    SizeAware,
)
from topoplace.capacity.first_principles import FirstPrinciplePlanner
from topoplace.capacity.generator import generate_jobs
from topoplace.capacity.jobs import CapacityJob, jobs_from_csv, time_table
from topoplace.capacity.milp import CapacityPlanner
from topoplace.capacity.plan import Cost, Node, Plan, Planner, plan_of
from topoplace.capacity.problem import Problem
from topoplace.capacity.result import CapacityResult
from topoplace.capacity.search import SearchPlanner
from topoplace.capacity.shares import SharePlanner

__all__ = [
    "TABLE_II",
    "Audit",
    "CapacityJob",
    "CapacityPlanner",
    "CapacityResult",
    "Catalogue",
    "ControllerView",
    "Cost",
    "DispatchRule",
    "DueDateAware",
    "FirstPrinciplePlanner",
    "LeastLoaded",
    "Node",
    "Plan",
    "Planner",
    "Problem",
    "RoundRobin",
    "SearchPlanner",
    "SharePlanner",
    "SizeAware",
    "VMType",
    "audit_events",
    "generate_jobs",
    "jobs_from_csv",
    "plan_of",
    "simulate_online",
    "time_table",
]
