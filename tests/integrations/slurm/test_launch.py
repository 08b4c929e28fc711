"""A real srun starts each rank on the node and the device of the placement."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import topoplace as tp
from placed_ranks import PROBE, cluster, expected, random_gpus, said, started
from topoplace.integrations.slurm.testing import SlurmCluster, missing_programs

TOPOLOGY = cluster(("n0", "n1", "n2"), "0", "0")


@pytest.fixture(scope="module")
def plain_slurm() -> Iterator[SlurmCluster]:
    if lacking := missing_programs():
        pytest.skip(f"needs Slurm's daemons, and this host has no {', '.join(lacking)}")
    with SlurmCluster(TOPOLOGY, types=False, job_submit=False, task_prolog=False) as slurm:
        yield slurm


@pytest.mark.parametrize("seed", range(6))
def test_ranks_run_where_the_placement_says(plain_slurm: SlurmCluster, seed: int) -> None:
    placement = tp.Placement(random_gpus(TOPOLOGY, seed), topology=TOPOLOGY)
    launch = placement.launch("srun", PROBE % ("SLURM_PROCID", "SLURMD_NODENAME"))
    done = started(launch, plain_slurm.folder / "out", plain_slurm.environment)
    assert said(done) == expected(placement)


def test_the_command_runs_inside_a_job(plain_slurm: SlurmCluster) -> None:
    placement = tp.Placement((8, 1, 9, 5, 0), topology=TOPOLOGY)
    launch = placement.launch("srun", "sh inside.sh")
    out = plain_slurm.folder / "out"
    (out / "inside.sh").write_text(
        'echo "rank $SLURM_PROCID $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES"\n', "utf-8"
    )
    (out / "job.sh").write_text(f"{launch.command}\n", "utf-8")
    asked = "salloc --quiet --nodes=3 --ntasks-per-node=4 --gres=gpu:4 sh job.sh"
    assert said(started(tp.Launch(launch.files, asked), out, plain_slurm.environment)) == expected(placement)
