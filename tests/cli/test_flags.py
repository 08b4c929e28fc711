"""A wrong value of an option is refused in one line that names the option, or the file that the value names."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import pytest

import fake_nccl_tests
from command_line import Call
from topoplace import cli
from topoplace_hosts.journal import Journal

# A command line of each command that works; `topo.txt` and the like are written by the fixture `here`.
BASES = {
    "show": "show topo.txt",
    "explore": "explore topo.txt --no-browser",
    "show --rates": "show summit --collective 4",
    "show --list": "show",
    "show measure": "show measure summit --program ./all_reduce_perf",
    "place": "place summit",
    "place --gpu-model": "place topo.txt",
    "place --assume": "place topo.txt",
    "place --from": "place",
    "place --role": "place summit",
    "place --between": "place summit --role a=1 --role b=1",
    **{
        f"place {option}": "place summit --parallel tensor=2,data=2"
        for option in ("--order", "--model", "--group", "--prefer-group")
    },
    **{
        f"place {option}": "place summit --parallel tensor=2 --model llama3-8b"
        for option in ("--micro-batches", "--zero-stage")
    },
    "make-room --gpu-model": "make-room topo.txt --running two.csv",
    "make-room --assume": "make-room topo.txt --running two.csv",
    "make-room --from": "make-room",
    "make-room": "make-room summit --running running.csv --gpus 4",
    "make-room --moves": "make-room summit --running running.csv",
    "reorder": "reorder summit --hosts machine0",
    "when": "when 21 --from scontrol.txt",
    "when --log": "when --from scontrol.txt",
    "simulate": "simulate summit --num-jobs 2 --policies baseline,fcfs",
    "simulate --jobs": "simulate summit",
    "simulate --from-live": "simulate --policies baseline,fcfs",
    "simulate --save": "simulate summit --num-jobs 2 --policy fcfs",
    **{
        f"simulate {option}": "simulate summit --jobs trace.csv"
        for option in ("--sensitive", "--duration", "--map")
    },
    "trace": "trace trace.csv",
    "sweep": "sweep plan.toml -o out",
    "sweep suite": "sweep suite --quick --policies fcfs --workers 1 -o out",
    "report": "report run.csv -o page.html",
    "profile build": "profile build runs.csv -o profile.json",
    "profile record": "profile record --seconds 0.1 -o traffic.json",
    "slurm gres": "slurm gres topo.txt",
    "slurm run": "slurm run topo.txt --journal new.journal",
    "slurm launch": "slurm launch topo.txt --job 7 -o out",
    "slurm release": "slurm release --journal new.journal",
    "state": "state decisions.journal",
    "capacity": "capacity jobs.csv times.csv",
    "papers mapa": "papers mapa --quick",
    "papers sc17": "papers sc17 --quick",
    "papers drmaestro": "papers drmaestro --quick",
    "papers gpuaas": "papers gpuaas --quick",
    "papers tsubame": "papers tsubame --quick",
    "example": "example",
    "kubernetes device-plugin": "kubernetes device-plugin summit --directory .",
    "kubernetes scheduler": "kubernetes scheduler summit",
    "kubernetes extender": "kubernetes extender summit",
    "kubernetes label": "kubernetes label summit --node n0",
    "kubernetes resource-slices": "kubernetes resource-slices summit --node n0 --driver gpu.example.com",
    "kubernetes scheduler --client-ca": "kubernetes scheduler summit --metrics 127.0.0.1:0 --tls topo.txt,topo.txt",
    "kubernetes scheduler --namespace": "kubernetes scheduler",
    "kubernetes extender --namespace": "kubernetes extender",
    "kubernetes extender --client-ca": "kubernetes extender summit --tls topo.txt,topo.txt",
}

NO_FILE = ("nowhere/none", "empty")
COUNT = ("0", "-1", "x", "1.5", "nan", "10000000", "9" * 5000)
SECONDS = ("-1", "nan", "inf", "x", "")
LONG = "a" * 300
DIRECTORY = ("", "topo.txt", "topo.txt/below", "/proc/none", LONG)
MODEL = ("V10",)
ASSUMED = ("x", "zz=1", "gpu_model=V10", "pcie_gb_per_s=-1")

# Wrong values of each option; `command --option` stands before `--option`.
WRONG = {
    "--from": NO_FILE,
    "--from-live": (*NO_FILE, "topo.txt"),
    "--machine": (*NO_FILE, "topo.txt"),
    "--numa": (*NO_FILE, "topo.txt"),
    "--measured": (*NO_FILE, "topo.txt"),
    "--speeds": ("x", "achievable"),
    "--gpu-model": MODEL,
    "--need-model": ("", ",", "V100,"),
    "--running": (*NO_FILE, "topo.txt"),
    "--drained": ("", "6", "3-0", "1,1", "a"),
    "--min-bandwidth": ("0", "-1", "nan", "inf", "x"),
    **{
        f"--{action}-cost{per}": ("-1", "nan", "inf", "x")
        for action in ("move", "preempt")
        for per in ("", "-per-gpu")
    },
    "make-room --timeout": (*SECONDS, "0"),
    "reorder --timeout": (*SECONDS, "0"),
    "--hosts": ("", "x", "machine0,machine0", "machine[0", "empty", "folder.json"),
    "when --timeout": (*SECONDS, "0"),
    "when --log": ("", "topo.txt", "folder.json"),
    "when --topology": (*NO_FILE, "folder.json"),
    "--moves": COUNT,
    "--resource": ("", "gpu", "a/", "/b", "a b/c"),
    "--passing": ("", "socket"),
    "--directory": NO_FILE,
    "--endpoint": ("", "a/b", "kubelet.sock"),
    "--engine": ("slurm", ""),
    "--address": ("a:1", ""),
    "--load": ("0", "-1", "nan", "inf", "x"),
    "--workers": COUNT,
    "--traces": (*NO_FILE, "topo.txt"),
    "suite --policy": ("best", "", ":", "json:loads", "no_module_here:Policy"),
    "--write": ("", "nowhere/none", "topo.txt", "topo.txt/x", "folder.json"),
    "--backfill": ("all", ""),
    "--make-room": ("-1", "nan", "inf", "x"),
    "--within": ("",),
    "--prefer": ("",),
    "--spread": ("",),
    "--balanced": ("",),
    "--parallel": (
        "",
        "4",
        "tensor",
        "tensor=x",
        "knot=2",
        "tensor=0",
        "tensor=2,tensor=2",
        "data=3,expert=2",
    ),
    "--role": ("", "a", "=1", "a=", "a=0", "a=x", "a=2:knot"),
    "--between": ("", "a+b", "a+b=x", "a+c=1", "a=1", "a+b=-1", "a+b=nan"),
    "--order": ("age", "", "tensor-tensor", "tensor"),
    "--micro-batches": ("0", "-1", "x", "1.5", "99999999"),
    "--zero-stage": ("4", "-1", "x"),
    **dict.fromkeys(
        ("--group", "--prefer-group"),
        ("", "4", "@machine", "2@", "0@machine", "9@machine", "2+3@machine", "knot@machine", "-1@machine"),
    ),
    "--assume": ASSUMED,
    "--port": ("-1", "x", "", "65536", "1.5"),
    "--one": ("x", ""),
    "--since": NO_FILE,
    "-o": DIRECTORY,
    "report -o": ("", "topo.txt/x.html", "folder.json", LONG),
    "--title": ("",),
    "profile build -o": ("", "profile.txt", "topo.txt/x.json", "folder.json"),
    "profile record -o": ("", "traffic.txt", "topo.txt/x.json", "folder.json"),
    "profile record --seconds": ("0", "-1", "nan", "inf", "x", ""),
    "profile record --interval": ("0", "-1", "nan", "61", "x"),
    "profile record --on": ("x", "", "0,0", "1-0", "-1", "99999"),
    "profile record --runs": ("", "runs.csv"),
    "profile record --name": ("", "net/1"),
    "--rates": ("", "nccl", "nccl-1", "topo.txt", "empty"),
    "--program": ("", "nowhere/none"),
    "--sizes": ("", "x", "1", "9", "2,", "2,2.5"),
    "--most": COUNT,
    "--message": COUNT,
    "show measure --on": ("", "x", "0", "0,0", "0,9", "1-0"),
    "show measure --timeout": (*SECONDS, "0"),
    "show measure -o": ("", "topo.txt/x", "folder.json", LONG),
    "--pattern": ("knot", ""),
    "--gpus": ("0", "-1", "x", "", "2x2", "1.5", "9999", "9" * 5000),
    "--gpu-memory-gb": ("0", "-1", "nan", "inf", "x"),
    "--gpu-fraction": ("0", "-1", "1.5", "0.0001", "nan", "x"),
    "--mig": ("", "g", "1g10gb", "8g.10gb"),
    "place --slice": ("", "0", "0=", "9=1g.10gb", "0=1g.10gb", "=1g.10gb"),
    "--min-utility": ("-1", "2", "nan", "x"),
    "--busy": ("", " ", "6", "0-6", "3-0", "1,1", "0-2,2", "a", "1,", "-1", "1--2", "9" * 5000),
    "--policy": ("best", ""),
    "--policies": ("best", "", "baseline,"),
    "--top": COUNT,
    "--jobs": (*NO_FILE, "topo.txt"),
    **{f"papers {name} --jobs": COUNT for name in ("mapa", "sc17", "drmaestro", "gpuaas", "tsubame")},
    "--num-jobs": COUNT,
    "--gpus-per-node": COUNT,
    "--cpus": COUNT,
    "--memory-gb": ("-1", "nan", "inf", "x", "1e30"),
    "--without": ("speed", "", "cpus,"),
    "--sensitive": ("vgg", "", "all,"),
    "--save": ("", "topo.txt", "topo.txt/x.csv", "folder.json", "result.json"),
    "--typical": (*NO_FILE, "topo.txt"),
    "--duration": ("-1", "nan", "x", ""),
    "--map": ("x", "=x", "x=", "size=num_gpus", "num_gpus=g", "cpus=a,cpus=b"),
    "--seed": ("-1", "x", "1.5"),
    "--model": ("x", ""),
    "--performance": ("x", "profile", "collective", "x:y", ":", "json:loads", "topoplace:no"),
    "--step": ("", "1", "x,1", "1,2,3", "-1,1", "1,-1", "nan,1", "0,0", "1,inf"),
    "--profile": (*NO_FILE, "topo.txt"),
    "--percentile": ("-1", "101", "nan", "x"),
    "--fraction": ("-1", "2", "nan", "x"),
    "--imbalance": ("-1", "nan", "inf", "x"),
    "--starts": COUNT,
    "--cycles": ("-1", "x", "1.5", "99999999999"),
    "--timeout": SECONDS,
    "--algorithm": ("x",),
    "--catalogue": (*NO_FILE, "topo.txt"),
    "capacity --nodes": (*COUNT, "1000000"),
    "papers tsubame --nodes": (*COUNT, "1000000"),
    "papers gpuaas --nodes": ("0", "7", "5,x", "", "5,1000000"),
    "--planner": ("x",),
    "--gap": ("-1", "2", "nan", "x"),
    "--times": (*NO_FILE, "topo.txt"),
    "--log": (*NO_FILE, "topo.txt"),
    "--lists": ("nowhere/none", "topo.txt"),
    "--job": ("", "9"),
    "slurm launch --job": ("", "x", "12_", "-1"),
    "--journal": ("",),
    "slurm run --journal": ("", "nowhere/none", "topo.txt"),
    "kubernetes scheduler --journal": ("nowhere/none", "topo.txt"),
    "--kubeconfig": (*NO_FILE, "topo.txt"),
    "--name": ("",),
    "--node": ("",),
    "--namespace": ("", "A", "a/b", "a" * 64),
    "--every": SECONDS,
    "--lease": ("", "a", "a/", "/b", "a/B"),
    "--driver": ("", "a/b", "A", "a" * 64),
    "--generation": ("0", "-1", "x", "1.5", "9" * 5000),
    "--clique": ("x" * 64, "a b", "-", "a\n"),
    "--listen": ("", "x", ":80", "a:", "a:x", "127.0.0.1:65536", "localhost:1", "0.0.0.0:0"),
    "--tls": ("", "topo.txt", "nowhere/none,empty", "empty,empty"),
    "--client-ca": NO_FILE,
    "--token-file": (*NO_FILE, "folder.json"),
    "--reserve": ("0", "-1", "nan", "inf", "x"),
    "--interval": ("-1", "nan", "inf", "x"),
    "--patience": ("-1", "nan", "inf", "x"),
    "kubernetes scheduler --metrics": ("", "x", ":80", "127.0.0.1:65536", "0.0.0.0:0"),
    "--metrics": ("0", "-1", "x", "", "65536", "1.5"),
    "--device-file": ("", "/dev/nvidia"),
    "--artifact": ("nowhere/none", "topo.txt"),
    "--all": DIRECTORY,
}
# `papers mapa` writes the log of its artifact only if all these are given.
ARTIFACT = "papers mapa --job-lines lines.txt --topology dgx-v --policy greedy --write log.txt"
ARTIFACT_WRONG = {
    "--job-lines": (*NO_FILE, "topo.txt"),
    "--topology": (*NO_FILE, "topo.txt"),
    "--policy": ("best",),
    "--rules": ("mine", "", "as published"),
    "--write": ("topo.txt/x", "folder.json"),
}


def options_of(parser: argparse.ArgumentParser, command: str = "") -> Iterator[tuple[str, str]]:
    """Yield each command and option that takes a value."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield from options_of(below, f"{command} {name}".strip())
        elif action.option_strings and action.nargs != 0:
            yield command, action.option_strings[-1]


def cases() -> Iterator[tuple[str, str, str]]:
    for command, option in options_of(cli.command_parser()):
        if command == "papers mapa" and option in ARTIFACT_WRONG:
            yield from ((ARTIFACT, option, value) for value in ARTIFACT_WRONG[option])
            continue
        for value in WRONG.get(f"{command} {option}", WRONG.get(option, ("an option without wrong values",))):
            yield BASES.get(f"{command} {option}", BASES[command]), option, value


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: small valid inputs, a file without content, and a directory."""
    texts = {
        "topo.txt": "\tGPU0\tGPU1\nGPU0\t X \tNV2\nGPU1\tNV2\t X \n",
        "empty": "",
        "jobs.csv": "job_id,due,weight\nvgg,3,0.5\n",
        "times.csv": "job_id,vm_type,gpus,hours\nvgg,NC6,1,4\n",
        "runs.csv": "kind,model,batch,gpus,placement,with_model,with_batch,with_gpus,seconds\n"
        "solo,net,1,1,intra-socket,,,,100\n",
        "running.csv": "job_id,gpus\na,0-2\nb,5\n",
        "two.csv": "job_id,gpus\na,0\n",
        "lines.txt": "2,ring,0,30,0,a\n",
        "sacct.txt": "JobID|Submit|Start|End|NNodes|ReqTRES\n1|0|1|9|1|gres/gpu=1\n",
        "plan.toml": 'policies = ["fcfs"]\ntopologies = ["summit"]\nnum-jobs = 2\n',
        "trace.csv": "job_id,submit_s,num_gpus,duration_s\na,0,2,5\n",
        "scontrol.txt": "NodeName=n1 Gres=gpu:2 State=IDLE\n\nJobId=21 JobState=PENDING TresPerNode=gres/gpu:2\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "folder.json").mkdir()
    fake_nccl_tests.install(tmp_path, {})
    Journal(tmp_path / "decisions.journal").close()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("base", "option", "value"), list(cases()), ids=lambda text: text[:40] or "nothing")
def test_the_option_or_its_file_is_named(here: Path, call: Call, base: str, option: str, value: str) -> None:
    given = [f"{option}={value}"] if option.startswith("--") else [option, value]
    done = call(*base.split(), *given)
    assert (done.code, done.out) == (2, "")
    assert len(done.err.splitlines()) == 1, done.err
    assert len(done.err) < 600
    file_named = value in (*NO_FILE, "topo.txt") and f"{value}: " in done.err
    assert option in done.err or file_named, done.err


@pytest.mark.parametrize(
    "option", [option for command, option in options_of(cli.command_parser()) if command == "place"]
)
def test_two_hyphens_are_no_value(call: Call, option: str) -> None:
    """Some Pythons read `--option=--` as a list without items."""
    done = call("place", "summit", f"{option}=--")
    assert (done.code, done.out) == (2, "")
    assert f"{option}: '--' is no value" in done.err


@pytest.mark.parametrize("base", [*dict.fromkeys(BASES.values()), ARTIFACT])
def test_every_command_line_above_is_understood(base: str) -> None:
    cli.command_parser().parse_args(base.split())


def test_every_command_with_an_option_is_tried() -> None:
    commands = {command for command, _ in options_of(cli.command_parser())}
    assert commands == {base.split(" --")[0] for base in BASES}


# ---- paths -----------------------------------------------------------------------------------------------------

NO_PATH = {
    "NUL": "a\0b",
    "long": LONG,
    "unreadable": "/proc/self/mem",  # opens, and cannot be read at its begin
    "folder": "folder.json",
    "TOML": "deep.toml",
    "JSON": "deep.json",
    "YAML": "deep.yaml",
}
READ = ("FILE", "FILE.toml", "FILE|NAME", "JOBS", "PROFILE", "TIMES", "TOPO", "A", "B")
NOT_PARSED = ("-o", "--write", "--save", "--token-file")
"""Options whose file is written, or may have any content."""
ASK_FIRST = ("profile record", "slurm run", "slurm release", "kubernetes device-plugin")
"""Commands that ask the host for devices or programs before they read a file."""
WITH_OTHERS = {
    "papers mapa --job-lines": ARTIFACT,
    "papers mapa --topology": ARTIFACT,
}
"""Command lines of options that are read only next to others."""


def read_paths(
    parser: argparse.ArgumentParser, command: str = ""
) -> Iterator[tuple[str, argparse.Action, int]]:
    """Yield each command with an argument that names a file to read, and its place among the positional arguments."""
    place = 0
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield from read_paths(below, f"{command} {name}".strip())
            continue
        parsed = not any(option in NOT_PARSED for option in action.option_strings)
        if action.metavar in READ and parsed and command not in ASK_FIRST:
            yield command, action, place
        place += not action.option_strings


def path_cases() -> Iterator[tuple[str, list[str], str]]:
    for command, action, place in read_paths(cli.command_parser()):
        option = action.option_strings[-1] if action.option_strings else ""
        key = f"{command} {option}"
        words = (WITH_OTHERS.get(key) or BASES.get(key) or BASES.get(command, command)).split()
        for kind, value in NO_PATH.items():
            if option:
                yield f"{command} {option} {kind}", [*words, option, value], value
            else:
                at = len(command.split()) + place
                yield f"{command} {action.metavar} {kind}", [*words[:at], value, *words[at + 1 :]], value


@pytest.fixture
def deep(here: Path) -> None:
    """Texts that are nested deeper than any reader follows."""
    (here / "deep.toml").write_text(f"a = {'[' * 5000}{']' * 5000}")
    (here / "deep.json").write_text('{"a":' * 100_000)
    (here / "deep.yaml").write_text("a:\n" + "- " * 5000 + "x")


@pytest.mark.parametrize(("words", "value"), [pytest.param(*case[1:], id=case[0]) for case in path_cases()])
def test_what_is_no_readable_file_is_refused_in_one_line(
    deep: None, call: Call, words: list[str], value: str
) -> None:
    done = call(*words)
    assert (done.code, done.out) == (2, "")
    assert len(done.err.splitlines()) == 1, done.err
    assert value.replace("\0", "\\x00") in done.err
