"""Traces on the command line: what no row says is stated by options, and nodes of a trace are machines."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from pathlib import Path

import pytest

from batch_logs import SACCT
from command_line import Call, run

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,8000,10000,2,T4\nn1,16000,10000,2,T4\nn2,8000,10000,0,\n"
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time,scheduled_time
a,4000,100,1,500,T4,0,100,0
b,4000,100,1,500,,0,100,0
c,12000,100,2,1000,,0,100,0
d,8000,100,0,0,,0,100,0
e,1000,100,1,1000,V100,0,100,0
"""
TRACE = "id,at,gpus,model\na,0,2,vgg\nb,1,2,lstm\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "nodes.csv.gz").write_bytes(gzip.compress(NODES.encode()))
    (tmp_path / "pods.csv").write_text(PODS)
    (tmp_path / "trace.csv").write_text(TRACE)
    with zipfile.ZipFile(tmp_path / "trace.zip", "w") as archive:
        archive.writestr("trace.csv", TRACE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_trace_of_pods_runs_on_its_nodes(call: Call) -> None:
    options = "--jobs pods.csv --policy fgd --with-cpu-jobs --performance fixed --json"
    found = json.loads(call("simulate", "nodes.csv.gz", *options.split()).out)
    assert found["topology"] == "nodes"
    assert found["rejected"] == 1  # no GPU is a V100
    assert found["rows"]["jobs"] == 5
    # n0 has 8 CPUs: the jobs that share a GPU fill it, and the whole GPUs and the CPUs go to n1, one after the other.
    assert found["makespan"] == 200.0
    less = json.loads(call("simulate", "nodes.csv.gz", *options.split(), "--cpus", 64).out)
    assert less["makespan"] == 100.0


def test_typical_jobs_are_those_of_the_trace(call: Call, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from topoplace import policies

    seen: list[int] = []
    known = policies.get

    def get(name: str, **options: object) -> object:
        if typical := options.get("typical"):
            seen.append(len(typical.weights))  # type: ignore[attr-defined]
        return known(name, **options)

    monkeypatch.setattr(policies, "get", get)
    (here / "half.csv").write_text("".join(PODS.splitlines(keepends=True)[:2]))
    command = "simulate nodes.csv.gz --jobs pods.csv --policies fgd,least-stranded,gpu-packing"
    assert call(*command.split()).code == 0
    assert seen == [4, 4]
    assert call(*command.split(), "--typical", "half.csv").code == 0
    assert seen[2:] == [1, 1]
    assert call("simulate", "summit", "--policy", "fgd", "--num-jobs", 3).code == 0
    assert len(seen) == 4


def test_options_say_what_rows_do_not(call: Call) -> None:
    base = ("simulate", "summit", "--map", "job_id=id,submit_s=at", "--map", "num_gpus=gpus")
    base += ("--policy", "fcfs", "--json")
    needs = call(*base, "--jobs", "trace.csv")
    assert needs.err == (
        "topoplace: trace.csv: line 2: duration_s is unknown: add it, or give a profile or a duration\n"
    )
    for name in ("trace.csv", "trace.zip"):
        rows = json.loads(call(*base, "--jobs", name, "--duration", 60).out)["rows"]
        assert rows["assumed"] == [
            "pattern clique",
            "jobs of several GPUs are bandwidth sensitive, others are not",
        ]
    stated = call(*base, "--jobs", "trace.csv", "--duration", 60, "--pattern", "ring", "--sensitive", "vgg")
    found = json.loads(stated.out)
    assert found["rows"]["assumed"] == []
    assert found["sensitive_run_time_min"] == found["sensitive_run_time_max"]
    none = json.loads(
        call(*base, "--jobs", "trace.csv", "--duration", 60, "--pattern", "ring", "--sensitive", "none").out
    )
    assert none["sensitive_run_time_min"] is None
    shown = call(*base[:-1], "--jobs", "trace.csv", "--duration", 60).out
    assert "assumed of the jobs: pattern clique, jobs of several GPUs are bandwidth sensitive" in shown


@pytest.mark.parametrize(
    "command",
    [
        ("simulate", "summit", "--policy", "fcfs"),
        ("simulate", "summit", "--json"),
        ("simulate", "summit", "--policies", "baseline,fcfs"),
    ],
    ids=" ".join,
)
def test_a_simulation_in_which_no_job_can_run_says_so_and_fails(
    call: Call, tmp_path: Path, command: tuple[str, ...]
) -> None:
    trace = tmp_path / "large.csv"
    trace.write_text("job_id,submit_s,num_gpus,duration_s\na,0,7,10\nb,1,99,4\n")
    done = call(*command, "--jobs", trace)
    assert done.code == 1
    assert "never fits" in done.out  # all that is printed otherwise
    told = "topoplace: no job ran: all 2 jobs were rejected; the first: never fits: needs 7 GPUs, the topology has 6\n"
    assert done.err == told
    trace.write_text("job_id,submit_s,num_gpus,duration_s\na,0,7,10\n")
    assert "no job ran: the only one was rejected: never fits" in call(*command, "--jobs", trace).err
    trace.write_text("job_id,submit_s,num_gpus,duration_s\na,0,7,10\nb,1,6,4\n")
    assert call(*command, "--jobs", trace).code == 0


def test_an_elastic_job_of_a_trace_does_not_wait(call: Call, here: Path) -> None:
    waits: dict[str, tuple[float, float]] = {}
    for least in ("", "2"):
        rows = f"a,0,6,3600,ring,\nb,60,8,36000,ring,{least}\n"
        (here / "elastic.csv").write_text("job_id,submit_s,num_gpus,duration_s,pattern,min_gpus\n" + rows)
        options = "--jobs elastic.csv --policy least-time --performance fixed --json"
        found = json.loads(call("simulate", "dgx1-v100", *options.split()).out)
        waits[least] = found["wait_max"], found["makespan"]
    # b does 3540 of 4 * 36000 s on 2 GPUs, restarts in 300 s, and goes on on all 8.
    assert waits == {"": (3540, 39600), "2": (0, 3600 + 300 + 36000 - 3540 / 4)}


def test_an_error_about_missing_columns_names_map(call: Call, tmp_path: Path) -> None:
    trace = tmp_path / "own.csv"
    trace.write_text("job_id,submit_s,gpus,duration_s\na,0,2,10\n")
    done = call("simulate", "summit", "--jobs", trace)
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith("num_gpus once; --map num_gpus=COLUMN names a column of another name\n")
    assert call("simulate", "summit", "--jobs", trace, "--map", "num_gpus=gpus").code == 0


def test_a_number_of_gpus_is_refused_with_whole_limits(call: Call, tmp_path: Path) -> None:
    trace = tmp_path / "huge.csv"
    trace.write_text("job_id,submit_s,num_gpus,duration_s\na,0,2000000,10\n")
    done = call("simulate", "summit", "--jobs", trace)
    assert done.err.endswith("line 2: num_gpus = '2000000', not a number 0..1048576\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--sensitive all", "--sensitive needs --jobs"),
        ("--duration 5", "--duration needs --jobs"),
        ("--map a=b", "--map needs --jobs"),
        ("--with-cpu-jobs", "--with-cpu-jobs needs --jobs"),
        ("--jobs pods.csv --sensitive vgg", "pods.csv: --sensitive = 'vgg': no job is of this model"),
    ],
)
def test_options_without_effect_are_refused(call: Call, options: str, message: str) -> None:
    done = call("simulate", "summit", *options.split())
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"topoplace: {message}")


def test_jobs_may_come_from_standard_input(here: Path) -> None:
    packed = io.BytesIO()
    with gzip.open(packed, "wb") as file:
        file.write(PODS.encode())
    done = run(
        "simulate",
        "nodes.csv.gz",
        "--jobs",
        "-",
        *("--policy", "fgd", "--json"),
        stdin=packed.getvalue(),
        cwd=here,
    )
    assert json.loads(done.stdout)["rows"]["jobs"] == 4


def test_a_trace_is_described(call: Call, here: Path) -> None:
    found = json.loads(call("trace", "pods.csv", "--with-cpu-jobs", "--json").out)
    assert (found["jobs"], found["without_gpus"], found["shared"], found["sensitive"]) == (5, 1, 2, 1)
    assert found["models"] == {"T4": 1, "V100": 1}
    assert (found["mean_gpus"], found["peak_gpus"], found["span"]) == (4.0, 4.0, 0.0)
    assert found["gpu_hours"] == pytest.approx(400 / 3600)
    assert found["sizes"]["2"] == {"jobs": 1, "gpu_hours": pytest.approx(200 / 3600)}
    assert found["rows"]["rows"] == 5
    shown = call("trace", "pods.csv", "-o", "pictures")
    assert shown.code == 0
    assert "jobs with shares of GPUs" in shown.out
    assert "wrote pictures" in shown.out
    assert (here / "pictures/trace.png").read_bytes().startswith(b"\x89PNG")


def test_a_dump_of_sacct_stands_beside_what_slurm_did(call: Call) -> None:
    Path("dump").write_text(SACCT, "utf-8")
    words = ("simulate", "dgx2", "--jobs", "dump", "--policies", "fcfs,mapa-preserve")
    *_, slurm = json.loads(call(*words, "--json").out)
    assert (slurm["policy"], slurm["mean_wait"], slurm["makespan"]) == ("Slurm, as recorded", 47.5, 660.0)
    assert "Slurm, as recorded: 4 jobs, mean wait 47.5 s, makespan 11 min" in call(*words).out
