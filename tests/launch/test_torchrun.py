"""A real torchrun, with gloo, starts each rank where the placement says; its machines are addresses of this host."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import topoplace as tp
from placed_ranks import cluster, expected
from topoplace_hosts.slurm.testing.daemons import free_ports

NAMES = ("127.0.0.1", "127.0.0.2")
PROBE = """\
import os
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
sum_of_ranks = torch.tensor([dist.get_rank()])
dist.all_reduce(sum_of_ranks)
device = os.environ["CUDA_VISIBLE_DEVICES"].split(",")[int(os.environ["LOCAL_RANK"])]
with open(f"rank{dist.get_rank()}", "w") as file:
    file.write(f"{os.environ['TOPOPLACE_MACHINE']} {device} {sum_of_ranks.item()} {dist.get_world_size()}")
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.parametrize("gpus", [(1, 6, 3), (2, 0, 5)], ids=["interleaved", "blocks"])
def test_ranks_run_where_the_placement_says(tmp_path: Path, gpus: tuple[int, ...]) -> None:
    if (torchrun := shutil.which("torchrun")) is None:
        pytest.skip("this host has no torchrun (the package torch)")
    placement = tp.Placement(gpus, topology=cluster(NAMES, "0", "0"))
    launch = placement.launch("torchrun", f"{Path(torchrun).with_name('python')} probe.py")
    for name, text in {**launch.files, "probe.py": PROBE}.items():
        (tmp_path / name).write_text(text, "utf-8")
    common = {**os.environ, "MASTER_PORT": str(free_ports(1)[0]), "GLOO_SOCKET_IFNAME": "lo"}
    agents = [
        subprocess.Popen(
            ["sh", "-c", launch.command], cwd=tmp_path, env={**common, "TOPOPLACE_MACHINE": name}
        )
        for name in NAMES
    ]
    try:
        assert [agent.wait(120) for agent in agents] == [0, 0]
    finally:
        for agent in agents:
            agent.kill()
            agent.wait()
    found = [(tmp_path / f"rank{rank}").read_text("utf-8").split() for rank in range(3)]
    assert [(rank, words[0], words[1]) for rank, words in enumerate(found)] == expected(placement)
    assert {tuple(words[2:]) for words in found} == {("3", "3")}


def test_the_script_refuses_a_machine_that_the_job_lacks(tmp_path: Path) -> None:
    launch = tp.Placement((1, 6, 3), topology=cluster(NAMES)).launch("torchrun")
    (tmp_path / "torchrun.sh").write_text(launch.files["torchrun.sh"], "utf-8")
    done = subprocess.run(
        ["sh", "torchrun.sh", "true"],
        cwd=tmp_path,
        env={**os.environ, "TOPOPLACE_MACHINE": "n7"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        1,
        "torchrun.sh: n7 is none of the job's 2 machines; set TOPOPLACE_MACHINE\n",
    )


@pytest.mark.parametrize("machine", ["esac", "in", "n0"])
def test_the_script_knows_a_machine_of_any_name(tmp_path: Path, machine: str) -> None:
    """A shell would take esac for the end of the list of machines."""
    launch = tp.Placement((1, 6, 3), topology=cluster(("n1", machine))).launch("torchrun")
    for name, text in {**launch.files, "torchrun": '#!/bin/sh\necho "$2" "$CUDA_VISIBLE_DEVICES"\n'}.items():
        (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / "torchrun").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "TOPOPLACE_MACHINE": machine}
    done = subprocess.run(
        ["sh", "torchrun.sh", "true"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("--node-rank=1 2\n", "")
