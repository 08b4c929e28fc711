"""`topoplace place` states what the job requires, and what a text leaves open is an assumption of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import topoplace as tp
from command_line import Call

TOPO_M = "\tGPU0\tGPU1\nGPU0\t X \tNV2\nGPU1\tNV2\t X \n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    machines = {name: tp.machines.get(kind) for name, kind in (("old", "minsky"), ("new", "dgx-a100"))}
    (tmp_path / "both.json").write_text(tp.Topology.cluster(machines).to_json())
    (tmp_path / "topo.txt").write_text(TOPO_M)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def gpus_of(call: Call, *options: str) -> list[int] | None:
    answer = json.loads(call("place", "both.json", "--gpus", "2", *options, "--json").out)
    return None if answer["placement"] is None else answer["placement"]["gpus"]


@pytest.mark.parametrize(
    ("options", "machines"),
    [
        (["--need-model", "A100"], {"new"}),
        (["--need-model", "P100"], {"old"}),
        (["--need-model", "P100,V100"], {"old"}),
        (["--need-model", "H100 , A100"], {"new"}),
        (["--single-machine", "--need-model", "A100,H100"], {"new"}),
        (["--anti-affinity"], {"old", "new"}),
    ],
)
@pytest.mark.parametrize("policy", ["baseline", "mapa-preserve", "topo-aware"])
def test_requirements_are_honoured(call: Call, policy: str, options: list[str], machines: set[str]) -> None:
    gpus = gpus_of(call, "--policy", policy, *options)
    assert gpus is not None
    assert {"old" if gpu < 4 else "new" for gpu in gpus} == machines


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--need-model H100", "not placed: never fits: needs 2 H100 GPUs, the topology has 0\n"),
        (
            "--gpu-memory-gb 9999",
            "not placed: never fits: needs 2 GPUs of 9999 GB or more, the topology has 0\n",
        ),
        ("--single-machine --gpus 9", "not placed: never fits: "),
        ("--anti-affinity --gpus 3", "not placed: never fits: needs 3 GPUs on different machines"),
        ("--policy mapa-greedy --min-utility 0.5", "not placed: --min-utility = 0.5 cannot be honoured: "),
    ],
)
def test_what_cannot_be_had_is_named(call: Call, options: str, reason: str) -> None:
    done = call("place", "both.json", "--gpus", "2", *options.split())
    assert (done.code, done.err) == (1, "")
    assert done.out.startswith(reason)


def test_the_model_that_a_text_leaves_open_is_assumed_in_its_own_words(call: Call) -> None:
    done = call("place", "topo.txt", "--gpus", "2", "--need-model", "V100")
    assert done.code == 1
    assert "no GPU's model is known; say which it is with --gpu-model MODEL\n" in done.out
    command = ("place", "topo.txt", "--gpus", "2", "--gpu-model", "V100", "--need-model")
    assert call(*command, "V100").code == 0
    done = call(*command, "A100")
    assert done.out == "not placed: never fits: needs 2 A100 GPUs, the topology has 0\n"


@pytest.mark.parametrize("option", ["--gpu-model=V100", "--assume=gpu_model=V100", "--assume-no-nvlink"])
def test_nothing_is_assumed_about_a_built_in_machine(call: Call, option: str) -> None:
    flag = option.split("=")[0]
    done = call("show", "summit", option)
    assert (done.code, done.out) == (2, "")
    assert done.err == f"topoplace: {flag}: summit is a built-in machine, which leaves nothing open\n"
