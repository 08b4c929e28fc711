"""Reproduction of Amaral et al., SC'17: the authors' measurements, their published simulator, and the paper's numbers.

The paper, the thesis that repeats it and the published code contradict each other in some points. Our choices:
- Jobs: Table 1 of the paper has six, the text five. The list published with the code differs from Table 1 in jobs 1
  and 2.
- Interference: pairs of 2-GPU jobs were measured with each job spread over both sockets; time lost by spreading is not
  interference.
- Simulated run times are those published with the code, which were measured later than the paper's figures.
- Scenario 2 (10,000 jobs on 1,000 machines) has one job per 10 s in the published generator, and 10 per minute in the
  paper. With neither does a job wait.
- The published code of the policy TOPO-AWARE may give a GPU to two jobs; our port repeats this and counts such cases.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from topoplace.jobs.performance_profile import PerformanceProfile
from topoplace.papers.claims import Claim
from topoplace.papers.sc17 import own, rows
from topoplace.papers.sc17.measured import authors_profile, check_complete
from topoplace.papers.sc17.scenarios import ideal_times
from topoplace.simulate import Workload

__all__ = ["authors_profile", "published_list", "reproduce"]

_LISTS: Final = {100: 5, 1000: 20}
"""Number of machines on which a published job list is simulated, by the list's number of jobs."""


def reproduce(
    *,
    quick: bool = False,
    seed: int = 0,
    profile: PerformanceProfile | None = None,
    lists: Path | None = None,
    output: Path | None = None,
) -> list[Claim]:
    """Compare the paper's numbers with measurements, the published simulator and our simulator, a row per quantity.

    quick: one generated job list instead of three, ten instead of 120 for averages, and none of the largest clusters.
    seed: seed of the first generated list.
    profile: measured run times that replace the published ones; raises ValueError naming the first one missing.
    lists: directory of published job lists to simulate as well; raises ValueError if it contains none.
    output: an existing directory for plots.
    """
    measured = profile or authors_profile()
    check_complete(measured)
    claims = list(rows.profile(measured))
    claims += rows.prototype()
    claims += rows.five_jobs_on_one_machine(measured)
    drawn = {
        f"drawn {seed + i}": (Workload.sc17(100, seed + i, profile=measured), 5)
        for i in range(1 if quick else 3)
    }
    published = dict(_published(lists, measured)) if lists else {}
    for jobs, _ in published.values():
        claims += rows.published_list(jobs, measured) if len(jobs) == 100 else ()
    claims += rows.scenarios(measured, published | drawn)
    claims.append(rows.load(Workload.sc17(10_000, seed, profile=measured), 1000))
    claims += own.prototype(measured)
    claims += own.scenario_1(measured, published | drawn)
    claims += own.scenario_1_on_average(measured, range(seed, seed + (10 if quick else 120)))
    claims += () if quick else own.scenario_2(measured, seed)
    if output:
        own.draw(measured, output)
    return claims


def _published(directory: Path, measured: PerformanceProfile) -> Iterator[tuple[str, tuple[Workload, int]]]:
    found = {size: published_list(directory, size, measured) for size in _LISTS}
    if not any(found.values()):
        raise ValueError(f"{directory}: has neither workloads-100.json nor sc17-workload-100.csv[.gz]")
    for size, workload in found.items():
        if workload is not None:
            yield f"published {size}", (workload, _LISTS[size])


def published_list(directory: Path, size: int, measured: PerformanceProfile) -> Workload | None:
    """Read the published list of `size` jobs from the file `workloads-SIZE.json` or `sc17-workload-SIZE.csv[.gz]`.

    measured: run times by application, which give each job's run time alone. Returns None if there is no such file.
    """
    jobs = _published_jobs(directory, size, measured)
    return jobs and jobs.without("cpus", "memory_gb")  # the published simulator counts neither


def _published_jobs(directory: Path, size: int, measured: PerformanceProfile) -> Workload | None:
    manifests = directory / f"workloads-{size}.json"
    if manifests.exists():
        return Workload.from_manifests(manifests.read_bytes(), measured)
    for suffix in (".csv", ".csv.gz"):
        trace = directory / f"sc17-workload-{size}{suffix}"
        if trace.exists():
            data = trace.read_bytes()
            text = gzip.decompress(data) if suffix == ".csv.gz" else data
            jobs = Workload.from_trace(text.decode(), bandwidth_sensitive=True)
            ideal = ideal_times(
                jobs.jobs, measured
            )  # the file's run times are those of the published profile
            return Workload(jobs.jobs, jobs.submit_time, ideal, jobs.job_ids)
    return None
