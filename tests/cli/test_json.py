"""Every command that prints results prints JSON as its schema in docs/schemas says; each schema is tried."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import fake_nccl_tests
import topoplace as tp
from command_line import Call
from fake_counters import Library, put_nvml
from topoplace import cli
from topoplace_hosts.journal import Entry, Journal, Stage
from topoplace_lab.papers.claims import ClaimedQuantity
from topoplace_lab.papers.rules import near

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from write_manual import command_tree, leaves

WITHOUT_RESULTS = {
    *("explore", "report", "help"),
    *("example", "completion", "slurm run", "slurm launch", "slurm file"),
    *("kubernetes device-plugin", "kubernetes scheduler", "kubernetes extender"),
    *("kubernetes label", "kubernetes resource-slices"),
}
"""Commands that run until they are ended, or print a file or a page for people."""
# The command lines for each schema, with their exit codes.
COMMANDS = {
    "show": {
        "show": 0,
        "show topo.txt": 0,
        "show hall.conf --machine summit": 0,
        "show topo.txt --check": 0,
        "show worn.json --check": 1,
        "show --list machines": 0,
        "show --list formats": 0,
        "show summit --collective 4": 0,
        "show l40s-8 --collective 2": 0,
        "show summit": 0,
        "show gb200-nvl72": 0,
        "show hall.conf": 0,
        "show minsky --since summit": 1,
        "show summit --since summit": 0,
    },
    "policies": {"policies": 0},
    "show-measure": {
        "show measure summit --program ./all_reduce_perf --on 0,1": 0,
        "show measure summit --program ./all_reduce_perf --on 0,5": 1,
    },
    "place": {
        "place summit --gpus 2": 0,
        "place summit --gpus 7": 1,
        "place gb200-nvl72 --gpus 6 --policy topo-aware": 0,
        "place dgx-a100 --gpus 2 --mig 1g.10gb --slice 0,1=1g.10gb --policy fgd": 0,
    },
    "make-room": {
        "make-room summit --running running.csv --gpus 4": 0,
        "make-room summit --running running.csv --gpus 6 --never-preempt": 1,
        "make-room --from scontrol.txt --gpus 1": 0,
        "make-room --running apart.csv summit --gpus 2 --single-machine --moves 8": 1,
        "make-room --from scontrol.txt": 1,
    },
    "reorder": {"reorder summit --hosts machine0": 0, "reorder gb200-nvl72 --hosts tray[03,01] --gpus 2": 0},
    "when": {
        "when --from scontrol.txt": 0,
        "when 21 --from scontrol.txt": 0,
        "when 22 --from scontrol.txt": 1,
    },
    "trace": {"trace trace.csv": 0},
    "simulate": {
        "simulate minsky --num-jobs 3 --policy fcfs": 0,
        "simulate summit --jobs trace.csv --policy topo-aware": 0,
        "simulate summit --num-jobs 3 --policies fcfs,mapa-greedy": 0,
        "simulate summit --num-jobs 3 --policy fcfs --seeds 2": 0,
        "simulate --from-live scontrol.txt --policies fcfs,mapa-greedy": 0,
    },
    "sweep": {"sweep plan.toml -o cells": 0},
    "sweep-suite": {"sweep suite --quick --policies fcfs --workers 1 -o suite": 0},
    "profile-build": {"profile build runs.csv -o profile.json": 0},
    "profile-show": {"profile show runs.csv": 0},
    "profile-record": {
        "profile record --seconds 0.05 --interval 0.02 -o job.json": 0,
        "profile record --interval 0.02 -o job.json --runs new.csv --name net/1 -- true": 0,
    },
    "slurm-gres": {"slurm gres topo.txt": 0},
    "slurm-release": {"slurm release --journal decisions.journal": 0},
    "state": {"state decisions.journal": 0, "state decisions.journal --job 7": 0},
    "capacity": {"capacity jobs.csv times.csv": 0, "capacity jobs.csv times.csv --planner edf --nodes 1": 0},
    "papers": {"papers mapa --quick": 0},
}
RUNS = (
    "kind,model,batch,gpus,placement,with_model,with_batch,with_gpus,seconds\n"
    "solo,net,1,1,intra-socket,,,,100\ncollocation,net,1,1,,net,1,1,150\n"
)
SCONTROL = (
    "NodeName=n1 Gres=gpu:a100:2 GresUsed=gpu:a100:1(IDX:0) State=MIXED\n\n"
    "JobId=17 JobState=RUNNING RunTime=00:01:00 TimeLimit=01:00:00 NodeList=n1\n"
    "     Nodes=n1 CPU_IDs=0 Mem=0 GRES=gpu:a100:1(IDX:0)\n\n"
    "JobId=21 JobState=PENDING TimeLimit=01:00:00 NumNodes=1 TresPerNode=gres/gpu:2\n\n"
    "JobId=22 JobState=PENDING TimeLimit=01:00:00 NumNodes=1 TresPerNode=gres/gpu:4\n"
)
FILES = {
    "scontrol.txt": SCONTROL,
    "topo.txt": "\tGPU0\tGPU1\nGPU0\t X \tNV2\nGPU1\tNV2\t X \n",
    "hall.conf": "SwitchName=a Nodes=n[1-2]\n",
    "running.csv": "job_id,gpus,movable\na,0-2,yes\nb,5,yes\n",
    "apart.csv": "job_id,gpus\na,0\nb,3\n",
    "trace.csv": "job_id,submit_s,num_gpus,duration_s\na,0,2,5\nb,1,1,9\n",
    "plan.toml": 'policies = ["fcfs"]\ntopologies = ["summit"]\nnum-jobs = 2\n',
    "runs.csv": RUNS,
    "sacct.txt": "JobID|Submit|Start|End|NNodes|ReqTRES\n1|0|1|9|1|gres/gpu=1\n",
    "jobs.csv": "job_id,due,weight\nvgg,3,0.5\nnet,2,0.5\n",
    "times.csv": "job_id,vm_type,gpus,hours\nvgg,NC6,1,4\nnet,NC6,1,1\n",
}


def schema(repository: Path, name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((repository / f"docs/schemas/{name}.json").read_text("utf-8"))
    return read


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    whole = tp.machines.get("dgx1-v100")
    worn = [entry for entry in whole.links if entry[:2] != (0, 3)]
    (tmp_path / "worn.json").write_text(tp.Topology.from_links(8, [(*e[:2], e[2]) for e in worn]).to_json())
    with Journal(tmp_path / "decisions.journal") as journal:
        journal.append(Entry("7", Stage.INTENT, gpus=(("n1", "g0"),), why="free"))
    fake_nccl_tests.install(tmp_path, {"0,1": 45.0, "else": "fail"})
    put_nvml(monkeypatch, Library())
    monkeypatch.setattr("topoplace.discovery.live.discover.discover", lambda: tp.machines.get("minsky"))
    monkeypatch.setattr("topoplace_hosts.slurm.fallback.release_waiting", lambda *_, **__: 2)
    row = ClaimedQuantity("3.2", "speedup", "1.2").judged("1.3", near(1.2, tolerance=0.2), 1.3)
    monkeypatch.setattr("topoplace_lab.papers.mapa.reproduce", lambda **_: [row])
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "command", "code"),
    [(name, command, code) for name, lines in COMMANDS.items() for command, code in lines.items()],
    ids=lambda value: str(value)[:60],
)
def test_the_output_is_as_documented(
    here: Path, call: Call, repository: Path, name: str, command: str, code: int
) -> None:
    before, program, after = command.partition(" -- ")
    done = call(*before.split(), "--json", *(program + after).split())
    assert done.code == code, done.err
    Draft202012Validator(schema(repository, name)).validate(json.loads(done.out))


def test_every_command_with_results_has_a_schema_that_is_tried(repository: Path) -> None:
    found = {" ".join(leaf.path): leaf for leaf in leaves(command_tree(cli.command_parser()))}
    with_json = {name for name, leaf in found.items() if any("--json" in one.flags for one in leaf.arguments)}
    assert set(found) - with_json == WITHOUT_RESULTS
    names = {"papers" if name.startswith("papers ") else name.replace(" ", "-") for name in with_json}
    assert names == COMMANDS.keys() == {path.stem for path in (repository / "docs/schemas").glob("*.json")}


@pytest.mark.parametrize("name", COMMANDS)
def test_schemas_are_valid_and_describe_every_field(repository: Path, name: str) -> None:
    found = schema(repository, name)
    Draft202012Validator.check_schema(found)

    def fields(part: Any, path: str = "") -> list[str]:
        if isinstance(part, list):
            return [one for item in part for one in fields(item, path)]
        if not isinstance(part, dict):
            return []
        named = part.get("properties", {})
        bare = [
            f"{path}.{key}" for key, value in named.items() if not (value.keys() & {"description", "const"})
        ]
        below = [one for key, value in named.items() for one in fields(value, f"{path}.{key}")]
        return (
            bare
            + below
            + [
                one
                for key in ("items", "oneOf", "anyOf", "additionalProperties")
                for one in fields(part.get(key), path)
            ]
        )

    assert [one for one in fields(found) if one.split(".")[-1] not in ("best", "median", "worst")] == []


def test_a_field_that_is_not_documented_is_found(repository: Path) -> None:
    validator = Draft202012Validator(schema(repository, "slurm-gres"))
    good = {"gres_conf": "NodeName=n0 Name=gpu", "node_gres": {"n0": "gpu:2"}}
    assert validator.is_valid(good)
    assert not validator.is_valid(good | {"more": 1})
    assert not validator.is_valid({key: value for key, value in good.items() if key != "gres_conf"})
