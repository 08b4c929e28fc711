"""A real Open MPI starts each rank where the placement says; its machines are names for this host."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

import topoplace as tp
from placed_ranks import PROBE, cluster, expected, machine, random_gpus, said, started

NAMES = ("n0", "n1", "n2")
PROGRAM = PROBE % ("OMPI_COMM_WORLD_RANK", "TOY_HOST")
AGENT = """\
#!/bin/sh
export TOY_HOST=$1
case $1 in n1) sleep 0.3 ;; n2) sleep 0.6 ;; esac
shift
exec sh -c "$*"
"""
"""In place of ssh: it runs the command of Open MPI's daemon here, and keeps the machine's name.

Daemons of one host that start at the same time may lose their connections to each other, and then wait for ever.
"""


@pytest.fixture
def environment(tmp_path: Path) -> Mapping[str, str]:
    if shutil.which("mpirun") is None:
        pytest.skip("this host has no mpirun (Debian: openmpi-bin)")
    agent = tmp_path / "agent.sh"
    agent.write_text(AGENT, "utf-8")
    agent.chmod(0o755)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("OMPI", "PMIX", "SLURM"))}
    return {
        **kept,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_plm_rsh_agent": str(agent),
        "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
        "OMPI_MCA_oob_tcp_if_include": "lo",
    }


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("launcher", ["mpirun", "rankfile"])
def test_ranks_run_where_the_placement_says(
    environment: Mapping[str, str], tmp_path: Path, launcher: str, seed: int
) -> None:
    topology = cluster(NAMES, "0", "0")
    placement = tp.Placement(random_gpus(topology, seed), topology=topology)
    assert said(started(placement.launch(launcher, PROGRAM), tmp_path, environment)) == expected(placement)


@pytest.mark.parametrize("gpus", [(9, 11, 0, 1, 2, 3, 5), (4, 8), (3, 2, 1, 0)])
def test_slots_of_a_host_file_fill_machine_after_machine(
    environment: Mapping[str, str], tmp_path: Path, gpus: tuple[int, ...]
) -> None:
    placement = tp.Placement(gpus, topology=cluster(NAMES))
    assert said(started(placement.launch("hostfile", PROGRAM), tmp_path, environment)) == expected(placement)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
@pytest.mark.parametrize("launcher", ["mpirun", "rankfile"])
def test_ranks_are_bound_to_the_cpus_near_their_gpus(
    environment: Mapping[str, str], tmp_path: Path, launcher: str
) -> None:
    near = [str(cpu) for cpu in sorted(os.sched_getaffinity(0))[:2]]
    placement = tp.Placement((4, 2, 6, 1), topology=cluster(NAMES, *near))
    program = "sh -c 'echo $OMPI_COMM_WORLD_RANK $(taskset -cp $$)'"
    done = started(placement.launch(launcher, program), tmp_path, environment)
    assert done.returncode == 0, done.stderr
    lines = sorted(line.split() for line in done.stdout.splitlines())
    assert [(line[0], line[-1]) for line in lines] == [
        ("0", near[0]),
        ("1", near[1]),
        ("2", near[1]),
        ("3", near[0]),
    ]


def test_cpus_that_the_machine_lacks_are_noted(environment: Mapping[str, str], tmp_path: Path) -> None:
    placement = tp.Placement((4, 2), topology=cluster(NAMES, "900-911", None))
    done = started(placement.launch("mpirun", PROGRAM), tmp_path, environment)
    assert said(done) == expected(placement)
    assert done.stderr.count("is not bound") == 1
    assert "rank 0 is not bound: this machine does not give it CPUs 900-911" in done.stderr


def test_a_machine_without_a_name_is_this_host(environment: Mapping[str, str], tmp_path: Path) -> None:
    launch = tp.Placement((3, 0), topology=machine()).launch("mpirun", PROGRAM)
    done = started(launch, tmp_path, {**environment, "TOY_HOST": "here"})
    assert said(done) == [(0, "here", "3"), (1, "here", "0")]


def test_the_script_refuses_a_rank_that_the_job_lacks(environment: Mapping[str, str], tmp_path: Path) -> None:
    launch = tp.Placement((3, 0), topology=machine()).launch("mpirun", PROGRAM)
    (tmp_path / "rank.sh").write_text(launch.files["rank.sh"], "utf-8")
    done = started(tp.Launch({}, "sh rank.sh true"), tmp_path, {**environment, "OMPI_COMM_WORLD_RANK": "2"})
    assert (done.returncode, done.stderr) == (
        1,
        "rank.sh: OMPI_COMM_WORLD_RANK=2 is none of the ranks 0 to 1\n",
    )
