"""The toy cluster is a real Slurm: jobs get the exact devices that are asked for; nothing of it is left afterwards."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from topoplace import TopoplaceError
from topoplace.integrations.slurm import gres, shipped
from topoplace.testing.slurm import SlurmCluster, daemons

SEES = 'echo "$SLURMD_NODENAME $CUDA_VISIBLE_DEVICES" > seen.$SLURM_JOB_ID'


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
    assert seen(slurm, job) == f"n2 {','.join(map(str, sorted(numbers)))}"
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
    """Return the request, the mark and the reason of a new job, which is cancelled."""
    job = slurm.submit(*options, script="true", env=variables)
    found = slurm.run("squeue", "-h", "-j", job, "-O", "tres-per-node:|,admin_comment:|,Reason:|").strip()
    slurm.run("scancel", job)
    request, mark, reason = found.rstrip("|").split("|")
    return request, mark, reason


@pytest.mark.parametrize(
    ("options", "variables", "request_", "mark"),
    [
        (["--gres=gpu:2"], {}, "gres:gpu:2", "topoplace1 gpus=2"),
        (["--gres=gpu"], {}, "gres:gpu:1", "topoplace1 gpus=1"),
        (["--gpus-per-node=2"], {}, "gres:gpu:2", "topoplace1 gpus=2"),
        (["--gres=gpu:V100:2"], {}, "gres:gpu:2", "topoplace1 gpus=2 model=V100"),
        (["--gres=gpu:V100"], {}, "gres:gpu:1", "topoplace1 gpus=1 model=V100"),
        (
            ["--gres=gpu:2"],
            {"TOPOPLACE_PATTERN": "a b\n%|ü", "TOPOPLACE_SENSITIVE": "yes", "TOPOPLACE_OTHER": "x"},
            "gres:gpu:2",
            "topoplace1 gpus=2 pattern=a%20b%0A%25%7C%C3%BC sensitive=yes",
        ),
    ],
)
def test_jobs_are_held_with_what_they_ask(
    slurm: SlurmCluster, options: list[str], variables: dict[str, str], request_: str, mark: str
) -> None:
    assert held(slurm, *options, **variables) == (request_, mark, "JobHeldUser")


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


def test_the_task_prolog_orders_devices_as_they_were_asked_for(slurm: SlurmCluster, tmp_path: Path) -> None:
    prolog = tmp_path / "task_prolog.sh"
    prolog.write_text(shipped.text("task_prolog.sh"), "utf-8")
    prolog.chmod(0o755)
    with SlurmCluster(slurm.topology.machine("n0"), settings={"TaskProlog": str(prolog)}) as other:
        job = other.submit("--gres=gpu:3", script=SEES)
        other.run("scontrol", "update", f"JobId={job}", "TresPerNode=")
        other.run("scontrol", "update", f"JobId={job}", f"TresPerNode={gres.tres_of((6, 3, 4))}")
        other.run("scontrol", "release", job)
        assert seen(other, job) == "n0 6,3,4"


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
    with pytest.raises(TopoplaceError, match=r"sbatch: .*Invalid generic resource"):
        slurm.submit("--gres=gpu:9:9:9", script="true")


def test_a_wrong_setting_is_named(slurm: SlurmCluster) -> None:
    wrong = SlurmCluster(slurm.topology, settings={"SelectType": "select/none_such"})
    with pytest.raises(TopoplaceError, match=r"slurmctld has ended: .*select"), wrong:
        pass
