"""What no launcher can start is refused by name; a JobSet gives each pod the whole of its machine."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

import topoplace as tp
from placed_ranks import cluster, machine
from topoplace.mig import MigSlice

PAIR = cluster(("a", "b"))
LAUNCHERS = ("torchrun", "mpirun", "srun", "hostfile", "rankfile", "jobset")


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_gpus_that_a_rank_cannot_take_are_refused(launcher: str) -> None:
    hosts = (tp.HostShare(0),)
    unknown = tp.Topology([tp.Gpu(0, "GPU0", maker="Example")])
    mig = tp.Topology([tp.Gpu(0, "GPU0", "A100-40GB", memory_gb=40.0)])
    for placement, message in (
        (tp.Placement((0, 5), topology=PAIR, hosts=hosts, remote=(5,)), r"remote = \(5,\)"),
        (tp.Placement((), topology=PAIR, hosts=hosts), r"gpus = \(\)"),
        (tp.Placement((0,), topology=unknown), "no variable is printed"),
        (tp.Placement((0,), topology=mig, slices=(MigSlice("1g.5gb", 0),)), "slices: "),
        (tp.Placement((0,), topology=cluster(("a b",))), "machine 'a b': not the name of a host"),
    ):
        with pytest.raises(tp.AllocationError, match=message):
            placement.launch(launcher)


@pytest.mark.parametrize(
    ("launcher", "program", "message"),
    [
        ("mpi", "true", "launcher = 'mpi' is not one of torchrun, mpirun"),
        ("srun", "", "program = '' is not a non-empty string"),
        ("srun", "a 'b", "No closing quotation"),
        ("srun", "a\nb", "not a command on one line"),
        ("srun", "a\rb", "not a command on one line"),
        ("torchrun", "a\0b", "not a command on one line"),
        ("hostfile", "true", 'use "mpirun" or "rankfile"'),
        ("rankfile", "true", 'CPUs near the GPU of task 0 are unknown.*use "mpirun"'),
        ("jobset", "true", "has 2 of the 4 GPUs of a, and Kubernetes chooses which"),
    ],
)
def test_bad_arguments_are_named(launcher: str, program: str, message: str) -> None:
    with pytest.raises(tp.AllocationError, match=message):
        tp.Placement((0, 4, 1), topology=PAIR).launch(launcher, program)


def test_torchrun_refuses_several_slices_of_a_machine() -> None:
    parts = [tp.Gpu(i, f"MIG{i}", "H100", uuid=f"MIG-{i}", parent="GPU0", fraction=0.5) for i in (0, 1)]
    placement = tp.Placement((0, 1), topology=tp.Topology(parts))
    with pytest.raises(tp.AllocationError, match="only one MIG slice"):
        placement.launch("torchrun")
    assert "CUDA_VISIBLE_DEVICES=MIG-1" in placement.launch("mpirun").files["rank.sh"]


def test_a_jobset_gives_no_shares() -> None:
    gpus = tuple(range(8))
    job = tp.JobGraph.ring(8).with_(gpu_fraction=0.5)
    with pytest.raises(tp.AllocationError, match="a pod gets whole GPUs, the job takes shares"):
        tp.Placement(gpus, topology=PAIR, job=job).launch("jobset")


def test_a_jobset_has_a_pod_on_each_machine() -> None:
    gpus = (4, 0, 5, 1, 6, 2, 7, 3)
    launch = tp.Placement(gpus, topology=PAIR, job=tp.JobGraph.ring(8)).launch("jobset", "python -m train")
    found = yaml.safe_load(launch.files["jobset.yaml"])
    assert (found["kind"], launch.command) == ("JobSet", "kubectl apply -f jobset.yaml")
    pods = [one["template"]["spec"]["template"]["spec"] for one in found["spec"]["replicatedJobs"]]
    assert [pod["nodeSelector"] for pod in pods] == [{"kubernetes.io/hostname": name} for name in "ba"]
    for number, pod in enumerate(pods):
        (container,) = pod["containers"]
        assert container["resources"] == {"limits": {"nvidia.com/gpu": 4}}
        variables = {one["name"]: one["value"] for one in container["env"]}
        assert variables["CUDA_VISIBLE_DEVICES"] == "0,1,2,3"
        assert variables["TOPOPLACE_RANKS"] == ("0 2 4 6", "1 3 5 7")[number]
        first = f"--master-addr={found['metadata']['name']}-m0-0-0.{found['metadata']['name']}"
        assert container["command"][1:5] == [
            "--nnodes=2",
            f"--node-rank={number}",
            "--nproc-per-node=4",
            first,
        ]
        assert container["command"][-3:] == ["python", "-m", "train"]


def test_devices_that_are_listed_ascending_keep_their_ranks() -> None:
    gpus = [replace(gpu, model=None, maker="Ascend") for gpu in machine().gpus]
    launch = tp.Placement((3, 1), topology=tp.Topology(gpus)).launch("torchrun")
    assert "ASCEND_RT_VISIBLE_DEVICES=1,3" in launch.files["torchrun.sh"]
    assert "0) export RANK=1 " in launch.files["rank.sh"]


# ---- inside a Slurm job that numbers its devices from 0 ------------------------------------------------------------


@pytest.mark.parametrize(
    ("shown", "given", "device"),
    [
        ("1,3", "1,3", "3"),
        ("3,1", "1,3", "3"),
        ("0,1", "1,3", "1"),
        ("1,0", "1,3", "1"),
        ("0,1", "", "3"),
        ("", "1,3", "3"),
        ("3", "1,3", "3"),
    ],
    ids=[
        "numbers of the machine",
        "in another order",
        "hidden others",
        "in task order",
        "no Slurm",
        "not shown",
        "one",
    ],
)
@pytest.mark.parametrize("step", ["SLURM_STEP_GPUS", "SLURM_JOB_GPUS"])
def test_devices_have_the_numbers_that_slurm_shows(
    shown: str, given: str, device: str, step: str, tmp_path: Path
) -> None:
    """Task 1 is on device 3, of a job that has devices 1 and 3 of the machine."""
    topology = cluster(("n0", "n1"))
    environment = {
        "PATH": os.environ["PATH"],
        "SLURM_PROCID": "1",
        step: given,
        "CUDA_VISIBLE_DEVICES": shown,
    }
    (tmp_path / "torchrun").write_text('#!/bin/sh\necho "$CUDA_VISIBLE_DEVICES"\n', "utf-8")
    (tmp_path / "torchrun").chmod(0o755)
    environment |= {"PATH": f"{tmp_path}:{os.environ['PATH']}", "TOPOPLACE_MACHINE": "n0"}
    both = {"3": "1,3", "1": "0,1"}[device]
    for launcher, script, wanted in (("srun", "rank.sh", device), ("torchrun", "torchrun.sh", both)):
        launch = tp.Placement((1, 3, 4), topology=topology).launch(launcher)
        (tmp_path / script).write_text(launch.files[script], "utf-8")
        command = ["sh", script, "sh", "-c", 'echo "$CUDA_VISIBLE_DEVICES"']
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == wanted, launcher


@pytest.mark.parametrize("launcher", ["torchrun", "srun", "mpirun", "hostfile", "jobset"])
def test_each_role_starts_as_a_job_of_its_own(launcher: str) -> None:
    prefill = tp.JobGraph.ring(4).with_(name="prefill")
    decode = tp.JobGraph.allreduce(8).with_(name="decode")
    job = tp.JobGraph.joined([prefill, decode], {("prefill", "decode"): 8.0})
    topology = tp.machines.get("gb200-nvl72")
    gpus = (0, 1, 2, 3, *range(8, 12), *range(4, 8))
    programs = {"prefill": "python p.py --port 1", "decode": "python d.py"}
    found = tp.Placement(gpus, topology=topology, job=job).launch(launcher, programs)
    commands = found.command.splitlines()
    assert len(commands) == 2
    for number, (part, name) in enumerate(((gpus[:4], "prefill"), (gpus[4:], "decode"))):
        alone = tp.JobGraph.independent(len(part)).with_(name=name)
        own = tp.Placement(part, topology=topology, job=alone).launch(launcher, programs[name])
        files = {file.partition("/")[2]: text for file, text in found.files.items() if file.startswith(name)}
        assert files == own.files
        port = "MASTER_PORT=29501 " if launcher == "torchrun" and number else ""
        assert commands[number] == f"(cd {name} && {port}{own.command})"


def test_wrong_roles_and_programs_are_named() -> None:
    one = tp.JobGraph.ring(2).with_(name="a")
    topology = tp.machines.get("gb200-nvl72")
    joined = tp.Placement(
        (0, 1, 2, 3), topology=topology, job=tp.JobGraph.joined([one, one.with_(name="../b")])
    )
    plain = tp.Placement((0, 1), topology=topology, job=one)
    for placement, programs, message in (
        (joined, {"a": "x"}, "program: '../b' is not a role of both; the job has a, ../b"),
        (joined, {"a": "x", "c": "y", "../b": "x"}, "program: 'c' is not a role of both"),
        (joined, {"a": "x", "../b": "y"}, "program: role '../b': not the name of a folder"),
        (plain, {"a": "x"}, "program: 'a' is not a role of both; the job has none"),
        (joined, {"a": "x\ny", "../b": "y"}, "program['a'] = "),
    ):
        with pytest.raises(tp.AllocationError, match=re.escape(message)):
            placement.launch("srun", programs)
