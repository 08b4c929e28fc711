"""The example files of topoplace-lab, which `topoplace example` writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from topoplace.cli.example_files import Files, cluster, lines, written

if TYPE_CHECKING:
    from topoplace_lab.simulate import Workload

_NUM_JOBS: Final = 40
_NUM_DUE: Final = 6
_START: Final = 1_767_225_600
"""The time of the first submission: 2026-01-01, in seconds since 1970."""
_PLAN: Final = """\
policies = ["baseline", "mapa-preserve"]
topologies = ["dgx1-v100"]
loads = [0.7, 0.9]
seeds = 3

[[workloads]]
name = "mix"
num-jobs = 40
"""
_TRAINING: Final = '''\
"""Stands for a training script."""

import time

time.sleep(1)
'''


def _jobs(seed: int = 0) -> Workload:
    from topoplace_lab.simulate import Workload

    return Workload.mapa(_NUM_JOBS, seed).with_load(0.8, cluster().num_gpus, seed)


def _trace(_: str) -> bytes:
    rows = (f"{one.job_id},{one.submit_time:.0f},{one.job.num_tasks},{one.base_time:.0f}" for one in _jobs())
    return lines("job_id,submit_s,num_gpus,duration_s", *rows)


def _swf(_: str) -> bytes:
    """Return a log in the Standard Workload Format: 18 numbers for each job, -1 for those that are unknown."""
    rows = (
        f"{one.index + 1} {one.submit_time:.0f} 0 {one.base_time:.0f} {4 * one.job.num_tasks} -1 -1 "
        f"{4 * one.job.num_tasks} {2 * one.base_time:.0f} -1 1 1 1 1 1 1 -1 -1"
        for one in _jobs()
    )
    return lines("; MaxNodes: 4", "; MaxProcs: 64", *rows)


def _sacct(_: str) -> bytes:
    """Return what `sacct -a -X -P` prints of jobs that started when they were submitted."""
    heading = "JobIDRaw|Partition|Submit|Start|End|ElapsedRaw|TimelimitRaw|NNodes|AllocTRES|ReqTRES"
    rows: list[str] = []
    for one in _jobs():
        start, length = _START + round(one.submit_time), round(one.base_time)
        tres = f"cpu=8,gres/gpu={one.job.num_tasks},node=1"
        rows.append(f"{4711 + one.index}|gpu|{start}|{start}|{start + length}|{length}|60|1|{tres}|{tres}")
    return lines(heading, *rows)


def _due(_: str) -> bytes:
    return lines("job_id,due,weight", *(f"job{job},{6 + 3 * job},{1 + job % 3}" for job in range(_NUM_DUE)))


def _times(_: str) -> bytes:
    from topoplace_lab.capacity import TABLE_II

    rows = (
        f"job{job},{vm.name},{gpus},{(4 + job) / gpus:.2f}"
        for job in range(_NUM_DUE)
        for vm in TABLE_II
        for gpus in range(1, vm.num_gpus + 1)
    )
    return lines("job_id,vm_type,gpus,hours", *rows)


def _result(name: str) -> bytes:
    """Return what `topoplace simulate --save` writes for the policy, and the seed, that the file is called after."""
    from topoplace import policies
    from topoplace_lab.simulate import simulate

    policy, _, number = Path(name).stem.rpartition("-")
    seed = int(number) if number.isdecimal() else 0
    policy = policy if number.isdecimal() else Path(name).stem
    result = simulate(cluster(), _jobs(seed), policies.get(policy), seed=seed)
    return written(result.save, name)


def _runs(_: str) -> bytes:
    """Return run times: alone on one and on two sockets, and next to another job; a larger batch sends less."""
    rows: list[str] = []
    for batch in (16, 64):
        alone = 1000 / batch
        rows += [
            f"solo,vgg,{batch},2,intra-socket,,,,{alone:g}",
            f"solo,vgg,{batch},2,inter-socket,,,,{alone * (1 + 4 / batch):g}",
        ]
        rows += [
            f"collocation,vgg,{batch},2,inter-socket,vgg,{other},2,{alone * (1 + 6 / batch):g}"
            for other in (16, 64)
        ]
    return lines("kind,model,batch,gpus,placement,with_model,with_batch,with_gpus,seconds", *rows)


def _profile(_: str) -> bytes:
    from topoplace.jobs.performance_profile import PerformanceProfile

    return PerformanceProfile.from_csv(_runs("").decode()).to_json().encode()


FILES: Final[Files] = {
    "trace.csv": ("jobs: a CSV trace", _trace),
    "cluster.swf": ("jobs: a log in the Standard Workload Format", _swf),
    "sacct.txt": ("jobs: a dump of Slurm's sacct", _sacct),
    "jobs.csv": ("jobs with due times, for `topoplace capacity`", _due),
    "times.csv": ("run times of the jobs of jobs.csv", _times),
    "plan.toml": ("a sweep over two policies and two loads", lambda _: _PLAN.encode()),
    "train.py": ("a program to record, in place of your training", lambda _: _TRAINING.encode()),
    "topo-aware.csv": ("a result of `topoplace simulate --save`", _result),
    "topo-aware-1.csv": ("the same with seed 1", _result),
    "topo-aware-2.csv": ("the same with seed 2", _result),
    "fcfs.csv": ("a result of another policy", _result),
    "runs.csv": ("measured run times", _runs),
    "profile.json": ("the performance profile of runs.csv", _profile),
}
