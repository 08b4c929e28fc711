"""Making room in large clusters: on the cheapest machine, or by the cheapest jobs if several machines must share the
new job.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from topoplace._fewest import fewest
from topoplace.errors import DeadlineError
from topoplace.kernels.limits import until_deadline
from topoplace.moving.cheapest_levels import CheapestLevels
from topoplace.moving.movers import MOVE, PREEMPT, Mover
from topoplace.moving.shortages import in_all, on_machines

if TYPE_CHECKING:
    from topoplace.moving.attempts import Attempts
    from topoplace.moving.exact_search import ExactSearch


def search_machines(search: ExactSearch) -> float:
    """Search the machines, cheapest first; return a lower bound on the cost of every arrangement."""
    attempts = search.attempts
    bound = _bound_across(attempts)
    excluded = attempts.excluded.get(attempts.job_id, ())
    machines = on_machines(attempts.job, attempts.cluster, attempts.movers, excluded)
    costs = [mover.costs for mover in attempts.movers]
    estimates = sorted(
        (CheapestLevels([costs[number] for number in numbers], [shortage]).bound(), machine)
        for machine, (numbers, shortage) in until_deadline(machines.items())
    )
    for estimate, machine in estimates:
        if estimate >= search.cost or search.is_over():
            bound = min(bound, estimate)
            break
        numbers, shortage = machines[machine]
        bound = min(bound, search.among(numbers, [shortage], alone=False))
    return min(bound, search.cost)


def search_across(search: ExactSearch) -> None:
    """Search the cheapest jobs over all machines, in two orders; this soon finds a plan, not always the best."""
    try:
        _search_across(search)
    except DeadlineError:
        search.end()


def _bound_across(attempts: Attempts) -> float:
    """Return a lower bound on the cost of room on several machines; infinite if the job must be on one."""
    job, movers = attempts.job, attempts.movers
    if job.single_machine or job.num_tasks == 1 or job.max_machines == 1:
        return math.inf
    in_part = CheapestLevels(
        [mover.costs for mover in movers], [in_all(job, attempts.cluster, movers)]
    ).bound()
    return max(in_part, min(mover.cheapest for mover in movers))


def _search_across(search: ExactSearch) -> None:
    """Try the fewest jobs in the order of their price, and of that of their machines, without which the job fits."""
    attempts = search.attempts
    for order in (_by_price(attempts.movers), _by_machine(attempts)):
        if search.best is not None and search.out_of_time():
            return
        leaving = attempts.needed(set(order[: _fewest(order, attempts)]), search.out_of_time)
        levels: dict[int, int] = {}
        for number in leaving:
            costs = attempts.movers[number].costs
            levels[number] = MOVE if costs[MOVE] <= costs[PREEMPT] else PREEMPT
        search.consider(attempts.arranged(levels)[0])


def _fewest(order: Sequence[int], attempts: Attempts) -> int:
    """Return the least number of jobs at the start of `order` without which the job fits; all of them suffice."""
    return fewest(len(order) - 1, lambda number: attempts.fits_without(order[:number])) or len(order)


def _price(movers: Sequence[Mover]) -> float:
    """Return the cost per thousandth that these jobs leave."""
    gain = sum(mover.healthy for mover in movers)
    return sum(mover.cheapest for mover in movers) / gain if gain else math.inf


def _by_price(movers: Sequence[Mover]) -> list[int]:
    prices = sorted((_price([mover]), number) for number, mover in enumerate(until_deadline(movers)))
    return [number for _, number in prices]


def _by_machine(attempts: Attempts) -> list[int]:
    """Return the numbers of the jobs, those of the machine that is cheapest to empty first."""
    machine_of = attempts.cluster.topology.machine_of.tolist()
    jobs_of: dict[int, set[int]] = defaultdict(set)
    for number, mover in enumerate(until_deadline(attempts.movers)):
        for gpu in mover.gpus:
            jobs_of[machine_of[gpu]].add(number)
    prices = sorted(
        (_price([attempts.movers[number] for number in numbers]), machine)
        for machine, numbers in until_deadline(jobs_of.items())
    )
    found = dict.fromkeys(number for _, machine in prices for number in sorted(jobs_of[machine]))
    return list(dict.fromkeys((*found, *range(len(attempts.movers)))))
