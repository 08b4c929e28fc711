"""The toy cluster is a real Slurm: jobs get the exact devices that are asked for; nothing of it is left afterwards."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from slurm_jobs import make_eligible, states, wait_for
from topoplace import TopoplaceError
from topoplace_hosts.slurm import gres, shipped
from topoplace_hosts.slurm.client import nodes
from topoplace_hosts.slurm.client.commands import SlurmCommands
from topoplace_hosts.slurm.testing import SlurmCluster, daemons

SEES = 'echo "$SLURMD_NODENAME $CUDA_VISIBLE_DEVICES" >> seen.$SLURM_JOB_ID'


def seen(slurm: SlurmCluster, job: str) -> str:
    path = slurm.folder / "out" / f"seen.{job}"
    end = time.monotonic() + 30
    while not (path.exists() and path.read_text("utf-8")):
        assert time.monotonic() < end, slurm.run("squeue")
        time.sleep(0.02)
    return path.read_text("utf-8").strip()


def test_nodes_have_a_type_per_device(slurm: SlurmCluster) -> None:
    listed = slurm.run("sinfo", "-h", "-N", "-o", "%N %G").split()
    assert listed == [word for node, held in gres.node_gres(slurm.topology).items() for word in (node, held)]


@pytest.mark.parametrize("numbers", [(6, 3), (0,), (7, 0, 5, 2), tuple(range(8))])
def test_a_held_job_gets_exactly_the_devices_of_an_update(
    slurm: SlurmCluster, numbers: tuple[int, ...]
) -> None:
    job = slurm.submit(f"--gres=gpu:{len(numbers)}", script=SEES)
    assert slurm.run("squeue", "-h", "-j", job, "-o", "%r").strip() == "JobHeldUser"
    slurm.run("scontrol", "update", f"JobId={job}", "TresPerNode=")
    slurm.run("scontrol", "update", f"JobId={job}", "ReqNodeList=n2", f"TresPerNode={gres.tres_of(numbers)}")
    slurm.run("scontrol", "release", job)
    assert seen(slurm, job) == f"n2 {','.join(map(str, numbers))}"  # in this order, by the TaskProlog
    assert f"JOB_GRES={gres.tres_of(numbers).replace('gres:', '')}" in slurm.run(
        "scontrol", "-d", "show", "job", job
    )


def test_two_nodes_get_the_same_devices(slurm: SlurmCluster) -> None:
    job = slurm.submit(
        "-N2",
        "--gres=gpu:2",
        script='srun sh -c "echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES >> seen.$SLURM_JOB_ID"',
    )
    slurm.run("scontrol", "update", f"JobId={job}", "TresPerNode=")
    slurm.run(
        "scontrol", "update", f"JobId={job}", "ReqNodeList=n1,n3", "TresPerNode=gres:gpu:g4:1,gres:gpu:g5:1"
    )
    slurm.run("scontrol", "release", job)
    slurm.wait_until_empty()
    found = slurm.run("scontrol", "-d", "show", "job", job)
    assert "Nodes=n[1,3] CPU_IDs=0 Mem=0 GRES=" in found
    assert "JOB_GRES=gpu:g4:2,gpu:g5:2" in found


# ---- job_submit.lua ------------------------------------------------------------------------------------------------


def held(slurm: SlurmCluster, *options: str, **variables: str) -> tuple[str, str, str]:
    """Return the request, in the words of Slurm 22.05, the mark and the reason of a new job, which is cancelled."""
    job = slurm.submit(*options, script="true", env=variables)
    found = slurm.run("squeue", "-h", "-j", job, "-O", "tres-per-node:|,admin_comment:|,Reason:|").strip()
    slurm.run("scancel", job)
    request, mark, reason = found.rstrip("|").split("|")
    return request.replace("gres/", "gres:"), mark, reason


@pytest.mark.parametrize(
    ("options", "variables", "request_", "mark"),
    [
        (["--gres=gpu:2"], {}, "gres:gpu:2", "topoplace1;gpus=2"),
        (["--gres=gpu"], {}, "gres:gpu:1", "topoplace1;gpus=1"),
        (["--gpus-per-node=2"], {}, "gres:gpu:2", "topoplace1;gpus=2"),
        (["--gres=gpu:2", "-c", "4"], {}, "gres:gpu:2", "topoplace1;gpus=2"),
        (["--gpus-per-node=2", "-n", "4", "-c", "2"], {}, "gres:gpu:2", "topoplace1;gpus=2"),
        (["--gres=gpu:V100:2"], {}, "gres:gpu:2", "topoplace1;gpus=2;model=V100"),
        (["--gres=gpu:V100"], {}, "gres:gpu:1", "topoplace1;gpus=1;model=V100"),
        (
            ["--gres=gpu:2"],
            {"TOPOPLACE_PATTERN": "a b\n%|ü", "TOPOPLACE_SENSITIVE": "yes", "TOPOPLACE_OTHER": "x"},
            "gres:gpu:2",
            "topoplace1;gpus=2;pattern=a%20b%0A%25%7C%C3%BC;sensitive=yes",
        ),
    ],
)
def test_jobs_are_held_with_what_they_ask(
    slurm: SlurmCluster, options: list[str], variables: dict[str, str], request_: str, mark: str
) -> None:
    assert held(slurm, *options, **variables) == (request_, mark, "JobHeldUser")


def test_only_jobs_of_the_partitions_in_the_hook_are_held(slurm: SlurmCluster) -> None:
    hook = slurm.folder / "job_submit.lua"
    text, written = hook.read_text("utf-8"), hook.stat().st_mtime
    try:
        for later, (partitions, expected) in enumerate(
            (
                ("{ all = true }", [True, False]),
                ("{ pilot = true }", [False, False]),
            )
        ):
            hook.write_text(text.replace("PARTITIONS = {}", f"PARTITIONS = {partitions}"), "utf-8")
            os.utime(hook, (written, written + 10 * later + 10))  # by which slurmctld sees that it is new
            found = [held(slurm, "--gres=gpu:2", *named) for named in (("-p", "all"), ())]
            assert [mark == "topoplace1;gpus=2" for _, mark, _ in found] == expected
            assert [reason == "JobHeldUser" for *_, reason in found] == expected
    finally:
        hook.write_text(text, "utf-8")
        os.utime(hook, (written, written + 100))
    assert held(slurm, "--gres=gpu:2")[1:] == ("topoplace1;gpus=2", "JobHeldUser")


@pytest.mark.parametrize(
    ("options", "variables"),
    [
        ([], {}),
        (["--gres=gpu:g3:1"], {}),
        (["--gpus=2"], {}),
        (["--gres=gpu:2", "--gpus=2"], {}),
        (["--gres=gpu:2"], {"TOPOPLACE": "off"}),
        (["--gres=gpu:2"], {"TOPOPLACE_PATTERN": "x" * 65}),
    ],
)
def test_other_jobs_are_left_to_slurm(
    slurm: SlurmCluster, options: list[str], variables: dict[str, str]
) -> None:
    _, mark, reason = held(slurm, "--begin=now+100", *options, **variables)
    assert (mark, reason) == ("(null)", "BeginTime")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-c", "4"], ""),
        (["--gpus=2", "-c", "4"], "topoplace: Slurm chooses the GPUs of this job: only --gres=gpu:N"),
        (
            ["--gres=gpu:2", "--gpus=2"],
            "topoplace: Slurm chooses the GPUs of this job: it asks for GPUs in two ways",
        ),
    ],
)
def test_users_hear_only_about_gpus(slurm: SlurmCluster, options: list[str], said: str) -> None:
    done = slurm.try_run("sbatch", "--parsable", "-o", "/dev/null", "-H", *options, "--wrap", "true")
    assert done.returncode == 0
    assert said in done.stderr
    assert ("topoplace" in done.stderr) == bool(said)
    slurm.run("scancel", done.stdout.strip())


@pytest.mark.skipif(os.getuid() != 0, reason="only root can submit as another user")
def test_users_may_change_the_cpus_of_a_waiting_job(slurm: SlurmCluster) -> None:
    job = slurm.submit("--gres=gpu:2", "-c", "4", script="true", user="nobody")
    slurm.run("scontrol", "update", f"JobId={job}", "CPUsPerTask=2", user="nobody")
    slurm.run("scancel", job, user="nobody")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can submit as another user")
def test_users_cannot_decide_for_themselves(slurm: SlurmCluster) -> None:
    job = slurm.submit("--gres=gpu:2", script="true", user="nobody")
    for change in (
        ("release", job),
        *(("update", f"JobId={job}", what) for what in ("TresPerNode=gres:gpu:8", "ReqNodeList=n1")),
    ):
        assert slurm.try_run("scontrol", *change, user="nobody").returncode == 1
    assert (
        slurm.try_run(
            "scontrol", "update", f"JobId={job}", "AdminComment=topoplace1", user="nobody"
        ).returncode
        == 1
    )
    assert slurm.try_run("scontrol", "update", f"JobId={job}", "TimeLimit=5", user="nobody").returncode == 0
    slurm.run("scancel", job, user="nobody")


def told(cluster: SlurmCluster, job: str, numbers: tuple[int, ...], *more: str) -> None:
    """Let a held job ask for exact devices."""
    cluster.run("scontrol", "update", f"JobId={job}", "TresPerNode=")
    cluster.run("scontrol", "update", f"JobId={job}", f"TresPerNode={gres.tres_of(numbers)}", *more)


@pytest.mark.parametrize(
    ("given", "shown", "prints"),
    [
        ("3,4,6", "3,4,6", "export CUDA_VISIBLE_DEVICES=6,3,4"),
        ("3,4,6", "0,1,2", "export CUDA_VISIBLE_DEVICES=2,0,1"),
        ("3,4,6", "7", ""),
        (
            "0,1,2",
            "0,1,2",
            "print topoplace: this job was assigned GPUs 3,4,6, and Slurm has given it 0,1,2",
        ),
    ],
    ids=["numbers of the machine", "numbers of a cgroup", "unknown numbers", "other devices"],
)
def test_what_the_task_prolog_says(given: str, shown: str, prints: str, tmp_path: Path) -> None:
    for name, text in {
        "task_prolog.sh": shipped.text("task_prolog.sh"),
        "squeue": f"#!/bin/sh\necho {gres.tres_of((6, 3, 4))}\n",
        "scontrol": "#!/bin/sh\nexit 1\n",  # as for a job that must not be requeued
    }.items():
        (tmp_path / name).write_text(text, "utf-8")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        [tmp_path / "task_prolog.sh"],
        env={
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "SLURM_JOB_ID": "7",
            "SLURM_JOB_GPUS": given,
            "CUDA_VISIBLE_DEVICES": shown,
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == prints


def test_no_job_runs_on_other_devices_after_a_restart_of_the_controller(slurm: SlurmCluster) -> None:
    """On nodes that have not registered since the restart, Slurm gives the first free devices of whatever type."""
    with SlurmCluster(slurm.topology) as other:
        running: list[str] = []
        for node in other.topology.machine_names:
            running.append(other.submit("--gres=gpu:1", "-w", node, script="sleep 100"))
            told(other, running[-1], (5,))
        waiting = [
            other.submit("--gres=gpu:2", "-w", node, script=SEES) for node in other.topology.machine_names
        ]
        other.run("scontrol", "release", *running)
        wait_for(lambda: list(states(other).values()).count("R None") == len(running), lambda: None)
        for job in waiting:
            told(other, job, (1, 4), "StartTime=now+3")
            other.run("scontrol", "release", job)
        other.restart_controller()
        other.run("scancel", *running)  # each node answers, before or after it registers

        for node, job in zip(other.topology.machine_names, waiting, strict=True):
            wait_for((other.folder / "out" / f"seen.{job}").exists, lambda: make_eligible(other))
            assert seen(other, job) == f"{node} 1,4"


def test_a_node_that_has_not_registered_since_a_restart_is_not_usable(slurm: SlurmCluster) -> None:
    with SlurmCluster(slurm.topology.machine("n0")) as other:
        commands = SlurmCommands(other.environment)
        assert nodes.registered(commands) == {"n0"}
        assert nodes.listed(commands).nodes["n0"].usable
        other.pause_node("n0")
        other.restart_controller()
        assert nodes.registered(commands) == frozenset()
        assert not nodes.listed(commands).nodes["n0"].usable
        other.resume_node("n0")
        wait_for(lambda: nodes.listed(commands).nodes["n0"].usable, lambda: None)
        assert nodes.registered(commands) == {"n0"}


# ---- the cluster itself --------------------------------------------------------------------------------------------


def test_the_controller_restarts_on_its_state(slurm: SlurmCluster) -> None:
    job = slurm.submit("--gres=gpu:1", script="true")
    for stop in (lambda: None, slurm.kill_controller):
        time.sleep(0.2)
        stop()
        slurm.restart_controller()
    assert slurm.run("squeue", "-h", "-o", "%i %r").split() == [job, "JobHeldUser"]
    slurm.run("scancel", job)


def failing(cluster: SlurmCluster, folders: list[Path]) -> None:
    """Start a long job in the cluster, and fail while it runs."""
    with cluster as slurm:
        folders.append(slurm.folder)
        slurm.submit("--gres=gpu:1", script="sleep 1000")
        while slurm.run("squeue", "-h", "-o", "%t").strip() != "R":
            time.sleep(0.02)
        assert len(list(daemons.processes_with("SLURM_CONF", f"{slurm.folder}/slurm.conf"))) >= 3
        raise ZeroDivisionError


def test_nothing_is_left_after_an_error(slurm: SlurmCluster) -> None:
    other = SlurmCluster(slurm.topology.machine("n0"), job_submit=False)
    folders: list[Path] = []
    with pytest.raises(ZeroDivisionError):
        failing(other, folders)
    assert not list(daemons.processes_with("SLURM_CONF", f"{folders[0]}/slurm.conf"))
    assert not folders[0].exists()
    with pytest.raises(TopoplaceError, match="only inside its with block"):
        _ = other.folder


def test_errors_of_commands_are_raised(slurm: SlurmCluster) -> None:
    with pytest.raises(TopoplaceError, match=r"sbatch: .*invalid partition specified"):
        slurm.submit("--partition=none", script="true")


def test_a_wrong_setting_is_named(slurm: SlurmCluster) -> None:
    wrong = SlurmCluster(slurm.topology, settings={"SelectType": "select/none_such"})
    with pytest.raises(TopoplaceError, match=r"slurmctld has exited: .*select"), wrong:
        pass
