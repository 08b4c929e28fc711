"""A real srun starts each rank on the node and the device of the placement, also where topoplace has decided a job."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import topoplace as tp
from placed_ranks import PROBE, cluster, expected, random_gpus, said, started
from slurm_jobs import states, wait_for
from topoplace.engine.plan import Plan, QueuedJob
from topoplace.errors import SlurmError
from topoplace.policies import Baseline
from topoplace_hosts.journal import Journal
from topoplace_hosts.slurm.client.commands import SlurmCommands
from topoplace_hosts.slurm.placer import Placer, PlacerSettings
from topoplace_hosts.slurm.running_job import placement_of
from topoplace_hosts.slurm.testing import SlurmCluster, missing_programs

TOPOLOGY = cluster(("n0", "n1", "n2"), "0", "0")
TOPOPLACE = Path(sys.executable).with_name("topoplace")


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


# ---- in a job that topoplace has decided ---------------------------------------------------------------------------


class Fixed(Baseline):
    """A policy that gives every job the same GPUs."""

    gpus: tuple[int, ...] = ()

    def plan(self, queue: Sequence[QueuedJob], cluster: tp.Cluster, now: float) -> Plan:
        placement = tp.Placement(self.gpus, topology=cluster.topology, job=queue[0].job)
        return Plan(start=((queue[0].job_id, placement),))


@pytest.fixture(scope="module")
def decided_slurm() -> Iterator[SlurmCluster]:
    if lacking := missing_programs():
        pytest.skip(f"needs Slurm's daemons, and this host has no {', '.join(lacking)}")
    with SlurmCluster(TOPOLOGY) as slurm:
        (slurm.folder / "out" / "cluster.json").write_text(TOPOLOGY.to_json(), "utf-8")
        yield slurm


def decided(slurm: SlurmCluster, journal: Path, gpus: tuple[int, ...], script: str) -> str:
    """Run a script as a job on two nodes, two GPUs of each, whose tasks have these GPUs, and return what it prints."""
    policy = Fixed()
    policy.gpus = gpus
    commands = SlurmCommands(slurm.environment)
    out = slurm.folder / "out" / "printed"
    with Journal(journal) as open_journal:
        placer = Placer(
            TOPOLOGY, policy, open_journal, commands=commands, settings=PlacerSettings(interval=0.05)
        )
        slurm.submit("-N2", "--ntasks-per-node=2", "--gres=gpu:2", "-o", str(out), script=script)
        wait_for(lambda: not states(slurm), placer.cycle, 60.0, lambda: states(slurm))
    return out.read_text("utf-8")


ORDERS = [(11, 1, 9, 3), (11, 9, 3, 1), (1, 3, 5, 7), (7, 3, 1, 5)]
"""GPUs by task: nodes take turns, or come in any order; devices 1 and 3 of two nodes in any order."""


def launched(launcher: str, start: str, program: str) -> str:
    """Return a script that writes the files of a launcher into `start`, and types the printed command for a program."""
    write = f"{TOPOPLACE} slurm launch cluster.json --launch {launcher} -o {start}"
    command = f"$({write} | sed -n 's/^start it there: //p' | sed 's/ python train.py//')"
    return f'command={command}; cd {start} && eval "$command" {shlex.quote(program)}'


@pytest.mark.parametrize("gpus", ORDERS)
@pytest.mark.parametrize("launcher", ["srun", "mpirun"])
def test_a_job_starts_its_ranks_where_they_were_decided(
    decided_slurm: SlurmCluster, launcher: str, gpus: tuple[int, ...], tmp_path: Path
) -> None:
    if shutil.which(launcher) is None:
        pytest.skip(f"this host has no {launcher}")
    rank = {"srun": "SLURM_PROCID", "mpirun": "OMPI_COMM_WORLD_RANK"}[launcher]
    start = f"{launcher}-{'-'.join(map(str, gpus))}"
    script = "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; "
    script += launched(launcher, start, PROBE % (rank, "SLURMD_NODENAME"))
    printed = decided(decided_slurm, tmp_path / "journal", gpus, script)
    lines = sorted(line.split() for line in printed.splitlines() if line.startswith("rank "))
    found = [(int(rank), node, device) for _, rank, node, device in lines]
    assert found == expected(tp.Placement(gpus, topology=TOPOLOGY)), printed


@pytest.mark.parametrize("gpus", ORDERS)
def test_torchrun_starts_on_each_node_with_the_devices_of_its_ranks(
    decided_slurm: SlurmCluster, gpus: tuple[int, ...], tmp_path: Path
) -> None:
    """The nodes of the toy cluster have one host name, so each says its own; torchrun says what it is asked for."""
    start = f"torchrun-{'-'.join(map(str, gpus))}"
    stub = decided_slurm.folder / "out" / "torchrun"
    stub.write_text('#!/bin/sh\necho "$SLURMD_NODENAME $2 $3 $CUDA_VISIBLE_DEVICES"\n', "utf-8")
    stub.chmod(0o755)
    each = "srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --gpu-bind=none"
    one = "TOPOPLACE_MACHINE=$SLURMD_NODENAME sh torchrun.sh true"
    script = f"{TOPOPLACE} slurm launch cluster.json --launch torchrun -o {start} > /dev/null; export PATH=$PWD:$PATH; "
    script += f"cd {start} && {each} sh -c {shlex.quote(one)}"
    printed = decided(decided_slurm, tmp_path / "journal", gpus, script)
    nodes = list(dict.fromkeys(TOPOLOGY.machine_names[gpu // 4] for gpu in gpus))
    wanted = [
        f"{node} --node-rank={i} --nproc-per-node=2 "
        + ",".join(str(gpu % 4) for gpu in gpus if TOPOLOGY.machine_names[gpu // 4] == node)
        for i, node in enumerate(nodes)
    ]
    assert sorted(printed.splitlines()) == sorted(wanted)


@pytest.mark.parametrize("gpus", ORDERS)
def test_each_node_shows_its_devices_in_the_order_of_its_tasks(
    decided_slurm: SlurmCluster, gpus: tuple[int, ...], tmp_path: Path
) -> None:
    script = "srun --ntasks-per-node=1 -n2 sh -c 'echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES'"
    printed = decided(decided_slurm, tmp_path / "journal", gpus, script)
    names = TOPOLOGY.machine_names
    wanted = {names[gpu // 4]: ",".join(str(own % 4) for own in gpus if own // 4 == gpu // 4) for gpu in gpus}
    assert dict(line.split() for line in printed.splitlines()) == wanted


def test_a_job_whose_gpus_slurm_chose_is_refused(plain_slurm: SlurmCluster) -> None:
    job = plain_slurm.submit("--gres=gpu:1", script="sleep 60")
    commands = SlurmCommands(plain_slurm.environment)
    wait_for(lambda: states(plain_slurm).get(job, "").startswith("R"), lambda: None)
    with pytest.raises(
        SlurmError, match=f"job {job}: no places of its tasks are noted, since Slurm has chosen"
    ):
        placement_of(commands, job, TOPOLOGY)
    plain_slurm.run("scancel", job)
    plain_slurm.wait_until_empty()
    for other in (job, "999", f"{job}_3"):
        with pytest.raises(SlurmError, match=f"job {other} is not in the queue|squeue: "):
            placement_of(commands, other, TOPOLOGY)
    with pytest.raises(SlurmError, match="is not the id of a job"):
        placement_of(commands, "all; true", TOPOLOGY)
