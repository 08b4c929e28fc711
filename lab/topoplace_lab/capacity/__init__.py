"""Capacity planning for jobs with due dates: which VMs to rent, and which jobs run there on how many GPUs.

Based on Filippini et al., "Hierarchical Scheduling in on-demand GPU-as-a-Service Systems". Units are hours and $.

To change:

- Jobs, VM types, costs, plans: `problem/`; random jobs: `problem/generate.py`.
- A planner: its file in `planners/`; how HiGHS is called: `planners/highs_model.py`; costs of very different size:
  `planners/conditioning.py`.
- When a controller plans, and with which jobs: `online/controller.py`; which controller gets a job:
  `online/dispatch.py`.
"""

from __future__ import annotations

from topoplace_lab.capacity.online.audit import Audit, audit_events
from topoplace_lab.capacity.online.dispatch import (
    ControllerView,
    DispatchRule,
    DueDateAware,
    LeastLoaded,
    RoundRobin,
    SizeAware,
)
from topoplace_lab.capacity.online.result import CapacityResult
from topoplace_lab.capacity.online.simulation import simulate_online
from topoplace_lab.capacity.online.sizing import fewest_controllers
from topoplace_lab.capacity.planners.capacity_planner import CapacityPlanner
from topoplace_lab.capacity.planners.first_principles import FirstPrinciplePlanner
from topoplace_lab.capacity.planners.local_search import SearchPlanner
from topoplace_lab.capacity.planners.share_planner import SharePlanner
from topoplace_lab.capacity.planners.variant_planner import VariantPlanner
from topoplace_lab.capacity.problem.catalogue import TABLE_II, Catalogue, VMType
from topoplace_lab.capacity.problem.generate import generate_jobs
from topoplace_lab.capacity.problem.job import CapacityJob, jobs_from_csv, time_table
from topoplace_lab.capacity.problem.plan import Cost, Node, Plan, Planner, plan_of
from topoplace_lab.capacity.problem.problem import Problem

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
    "VariantPlanner",
    "audit_events",
    "fewest_controllers",
    "generate_jobs",
    "jobs_from_csv",
    "plan_of",
    "simulate_online",
    "time_table",
]
