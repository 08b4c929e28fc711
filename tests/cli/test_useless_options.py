"""Options that would change nothing are refused by their names, and what is assumed is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import Call, run_process
from distributions import whole
from topoplace import policies

SWF = "; MaxNodes: 4\n" + "".join(f"{i} {i} 0 60 1 -1 -1 1 60 -1 1 1 1 1 1 1 -1 -1\n" for i in range(1, 4))
PBS = (
    "01/07/2013 09:31:00;E;1.batch;queue=G ctime=1357549200 start=1357549800 end=1357551000 "
    "Resource_List.select=1:ncpus=4:ngpus=2:mem=8gb Resource_List.walltime=01:00:00\n"
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    texts = {
        "jobs.csv": "id,pattern,num_gpus,sensitive,submit,duration\n0,ring,2,1,0,30\n",
        "log.swf": SWF,
        "log.pbs": PBS,
        "topo.txt": "\tGPU0\tGPU1\nGPU0\t X \tNV2\nGPU1\tNV2\t X \n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@whole
@pytest.mark.parametrize("command", ["simulate summit", "simulate summit --policy fcfs"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--jobs jobs.csv --num-jobs 3", "--num-jobs is for the usual jobs, which --jobs replaces"),
        ("--jobs jobs.csv --num-jobs 300", "--num-jobs is for the usual jobs, which --jobs replaces"),
        (
            "--gpus-per-node 1",
            "--gpus-per-node is for logs in the Standard Workload Format, not for the usual jobs",
        ),
        (
            "--jobs jobs.csv --gpus-per-node 2",
            "jobs.csv: --gpus-per-node = 2: not for a CSV trace",
        ),
        (
            "--jobs log.pbs --gpus-per-node 2",
            "log.pbs: --gpus-per-node = 2: not for a PBS log, which has the GPUs of its jobs",
        ),
    ],
)
def test_options_that_would_change_nothing(call: Call, command: str, arguments: str, message: str) -> None:
    done = call(*command.split(), *arguments.split())
    assert (done.code, done.out, done.err) == (2, "", f"topoplace: {message}\n")


@whole
def test_gpus_per_node_is_for_logs(call: Call) -> None:
    assert call("simulate", "summit", "--jobs", "log.swf", "--gpus-per-node", 2).code == 0
    done = call("papers", "tsubame", "--quick", "--gpus-per-node", 2)
    assert done.err == "topoplace: --gpus-per-node needs --log, whose jobs get the GPUs\n"


@whole
def test_a_log_is_simulated_by_the_model_that_is_said(call: Call) -> None:
    common = ("simulate", "summit", "--jobs", "log.pbs", "--policies", "fcfs,least-time")
    said = "run times are those of copies to GPUs of other machines (remote-copies)"
    assert said in call(*common).err
    stated = call(*common, "--pattern", "ring", "--json")
    assert stated.err == ""
    assert stated.out == call(*common, "--pattern", "ring", "--performance", "step", "--json").out
    assert call(*common, "--performance", "remote-copies").err == ""


@whole
@pytest.mark.parametrize("command", ["show summit", "place summit", "simulate summit", "trace trace.csv"])
def test_an_empty_path_is_no_path(call: Call, here: Path, command: str) -> None:
    done = call(*command.split(), "-o", "")
    assert (done.code, done.out) == (2, "")
    assert "-o: '' is not a path; this directory is ." in done.err
    assert not list(here.glob("*.png"))


def test_place_says_what_is_assumed(call: Call) -> None:
    sentence = "the speed of NVLINK links is assumed; say the model with --gpu-model MODEL\n"
    assert sentence in call("place", "topo.txt", "--gpus", 2).out
    assert json.loads(call("place", "topo.txt", "--gpus", 2, "--json").out)["assumed"] == ["NVLINK"]
    known = ("place", "topo.txt", "--gpus", 2, "--assume", "gpu_model=V100")
    assert "assumed" not in call(*known).out
    assert json.loads(call(*known, "--json").out)["assumed"] == []


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("mapa", "did you mean mapa-topo-aware or mapa-greedy or mapa-preserve?"),
        ("preserve", "did you mean mapa-preserve?"),
        ("mapa-greedi", "did you mean mapa-greedy"),
        ("zzz", f"known: {', '.join(policies.names())}; package.module:Class names one of your own"),
    ],
)
def test_near_names_of_policies_are_suggested(name: str, hint: str) -> None:
    with pytest.raises(ValueError, match="no such policy; ") as caught:
        policies.get(name)
    assert str(caught.value).partition("; ")[2].startswith(hint)


def test_warnings_of_the_library_are_one_line(here: Path) -> None:
    done = run_process("place", "topo.txt", "--gpus", "2", "--policy", "mapa-topo-aware", cwd=here)
    assert done.returncode == 0
    assert (
        done.stderr
        == "topoplace: topology 'topo' has no sockets: mapa-topo-aware is the policy baseline on it\n"
    )


@whole
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("scheduler summit --namespace x", "--namespace has an effect only without TOPO"),
        ("extender summit --namespace x", "--namespace has an effect only without TOPO"),
        ("scheduler summit --token-file log.pbs", "--token-file has an effect only with --metrics"),
        ("scheduler --gpu-model V100", "--gpu-model has an effect only with TOPO"),
        ("extender --assume a=b", "--assume has an effect only with TOPO"),
        ("label summit --node a --print --every 3", "--every has no effect with --print"),
        ("label summit --node a --print --kubeconfig a.conf", "--kubeconfig has no effect with --print"),
    ],
)
def test_options_of_kubernetes_that_would_change_nothing(call: Call, arguments: str, message: str) -> None:
    done = call("kubernetes", *arguments.split())
    assert (done.code, done.out, done.err) == (2, "", f"topoplace: {message}\n")


@whole
def test_a_machine_is_printed_as_a_config_map(call: Call) -> None:
    done = call("kubernetes", "label", "summit", "--node", "n0", "--print")
    found = json.loads(done.out)
    assert (done.code, found["kind"], found["metadata"]["name"]) == (0, "ConfigMap", "machine.n0")
    assert found["metadata"]["namespace"] == "topoplace"
    done = call("kubernetes", "label", "summit", "--node", "n0", "--print", "--namespace", "gpus")
    assert json.loads(done.out)["metadata"]["namespace"] == "gpus"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "--assume gpu_model=V100 --gpu-model A100",
            "--gpu-model A100 and --assume gpu_model=V100 differ; give one of them",
        ),
        (
            "--assume-no-nvlink --assume assume_no_nvlink=false",
            "--assume-no-nvlink and --assume assume_no_nvlink=false contradict each other",
        ),
        (
            "--assume gpu_model=V100 --assume gpu_model=A100",
            "--assume gpu_model=A100: gpu_model is also V100",
        ),
    ],
)
def test_assumptions_that_contradict_each_other(call: Call, arguments: str, message: str) -> None:
    done = call("place", "topo.txt", "--gpus", 2, *arguments.split())
    assert (done.code, done.out, done.err) == (2, "", f"topoplace: topo.txt: {message}\n")
    assert call("show", "topo.txt", "--gpu-model", "V100", "--assume", "gpu_model=V100").code == 0
