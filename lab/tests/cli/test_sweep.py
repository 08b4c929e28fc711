"""`topoplace sweep`: its file, what it writes, and that a killed sweep goes on."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import topoplace as tp
from command_line import Call, hear_interrupts
from topoplace import machines
from topoplace._file_lock import FileLock
from topoplace_lab.commands import sweep_cells, sweep_plan

PLAN = """
policies = ["baseline", "mapa-preserve", { name = "in order", policy = "vector-best-fit", in_order = true }]
topologies = ["minsky", { topology = "dgx1-v100", name = "dgx" }]
seeds = 2
num-jobs = 12
queue = "own"
"""
TRACE = "job_id,submit_s,num_gpus,duration_s\na,0,2,5\nb,1,2,5\nc,2,1,5\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "plan.toml").write_text(PLAN, "utf-8")
    (tmp_path / "trace.csv").write_text(TRACE, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_cell_has_the_figures_of_simulate(call: Call) -> None:
    done = call("sweep", "plan.toml", "-o", "out", "--workers", 1, "--json")
    assert done.code == 0, done.err
    rows = {(row["policy"], row["topology"]): row["figures"] for row in json.loads(done.out)}
    assert list(rows) == [
        (policy, topology)
        for topology in ("minsky", "dgx")
        for policy in ("baseline", "mapa-preserve", "in order")
    ]
    makespans = [
        json.loads(
            call(
                *("simulate", "dgx1-v100", "--num-jobs", 12, "--policy", "mapa-preserve"),
                *("--seed", seed, "--queue", "own", "--json"),
            ).out
        )["makespan"]
        for seed in (0, 1)
    ]
    found = rows["mapa-preserve", "dgx"]["makespan"]
    assert (found["mean"], found["seeds"]) == (pytest.approx(sum(makespans) / 2), 2)
    assert "out/sweep.html" in done.err


def test_arguments_of_a_policy_count(call: Call) -> None:
    """In order, the small job waits behind the one that needs the whole machine."""
    Path("two.toml").write_text(
        'policies = ["vector-best-fit", { policy = "vector-best-fit", name = "in order", in_order = true }]\n'
        'topologies = ["minsky"]\nworkloads = ["jobs.csv"]\nperformance = "fixed"\nqueue = "own"\n',
        "utf-8",
    )
    Path("jobs.csv").write_text(
        "job_id,submit_s,num_gpus,duration_s\na,0,3,9\nb,1,4,9\nc,2,1,9\n", encoding="utf-8"
    )
    done = call("sweep", "two.toml", "-o", "out", "--workers", 1, "--json")
    assert done.code == 0, done.err
    waits = {row["policy"]: row["figures"]["mean_wait"]["mean"] for row in json.loads(done.out)}
    assert waits == {"vector-best-fit": pytest.approx(10 / 3), "in order": pytest.approx((8 + 16) / 3)}


def test_an_argument_about_the_queue_is_refused_where_all_have_one(call: Call) -> None:
    Path("two.toml").write_text(
        'policies = ["baseline", { policy = "vector-best-fit", in_order = true }]\ntopologies = ["minsky"]\n',
        "utf-8",
    )
    done = call("sweep", "two.toml", "-o", "out", "--workers", 1)
    assert """policies[1].in_order: counts only in the policy's own queue, with queue = "own\"""" in done.err


def test_loads_stretch_submissions(call: Call) -> None:
    Path("loads.toml").write_text(
        'policies = ["baseline"]\ntopologies = ["minsky"]\nloads = [0.1, 2.0]\n'
        '[[workloads]]\njobs = "trace.csv"\npattern = "ring"\n[[workloads]]\nnum-jobs = 20\n',
        "utf-8",
    )
    done = call("sweep", "loads.toml", "-o", "out", "--workers", 1, "--json")
    assert done.code == 0, done.err
    rows = json.loads(done.out)
    assert [(row["workload"], row["load"]) for row in rows] == [
        *(("trace.csv", 0.1), ("trace.csv", 2.0), ("usual jobs", 0.1), ("usual jobs", 2.0))
    ]
    waits = [row["figures"]["mean_wait"]["mean"] for row in rows]
    assert waits[0] == 0.0
    assert waits[0] < waits[1]
    assert waits[2] < waits[3]
    assert rows[0]["figures"]["makespan"]["mean"] == pytest.approx(25 / (0.1 * 4) + 5)


def test_without_pyarrow_the_table_is_csv(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    done = call("sweep", "plan.toml", "-o", "out", "--workers", 1)
    assert done.code == 0, done.err
    lines = Path("out/sweep.csv").read_text("utf-8").splitlines()
    assert lines[1].startswith("policy,topology,workload,load,seed,refused,makespan,")
    assert [line.split(",")[:5] for line in lines[2:4]] == [
        ["baseline", "minsky", "usual jobs", "", "0"],
        ["mapa-preserve", "minsky", "usual jobs", "", "0"],
    ]
    assert len(lines) == 2 + 12
    assert not Path("out/sweep.parquet").exists()


def test_a_policy_that_refuses_is_marked(call: Call) -> None:
    Path("shares.csv").write_text(
        "job_id,submit_s,num_gpus,duration_s,gpu_milli\na,0,1,5,500\n", encoding="utf-8"
    )
    Path("shares.toml").write_text(
        'policies = ["drmaestro", "fgd"]\ntopologies = ["minsky"]\nworkloads = ["shares.csv"]\n', "utf-8"
    )
    done = call("sweep", "shares.toml", "-o", "out", "--workers", 1)
    assert done.code == 0, done.err
    assert (
        "drmaestro refuses: gpu_fraction = 0.5 cannot be honoured: drmaestro gives whole GPUs only"
        in done.out
    )
    assert "drmaestro  refuses" in done.out


def test_a_changed_file_of_jobs_is_another_plan(call: Call) -> None:
    Path("one.toml").write_text(
        'policies = ["baseline"]\ntopologies = ["minsky"]\nworkloads = ["trace.csv"]\n', "utf-8"
    )
    assert call("sweep", "one.toml", "-o", "out", "--workers", 1).code == 0
    assert call("sweep", "one.toml", "-o", "out", "--workers", 1).code == 0
    Path("trace.csv").write_text(TRACE.replace("a,0,2,5", "a,0,2,6"), encoding="utf-8")
    done = call("sweep", "one.toml", "-o", "out", "--workers", 1)
    assert (done.code, done.out) == (2, "")
    assert "out/cells/000000.json: a cell of the plan" in done.err


WRONG = {
    'policies = ["best"]': "policies[0]: name = 'best': no such policy",
    "policies = []": "policies = []: must be a list with an entry or more",
    "policies = [3]": "policies[0] = 3: must be a text or a table",
    'policies = ["fcfs", "fcfs"]': "policies[1]: 'fcfs' is also policies[0]; give it a name",
    'policies = [{ policy = "fcfs", x = 1 }]': "policies[0]: fcfs: got an unexpected keyword argument 'x'",
    'policies = ["nowhere_at_all:Policy"]': "policies[0]: name = 'nowhere_at_all:Policy': No module named",
    'topologies = ["nowhere"]': "topologies[0].topology = 'nowhere': No such file or directory",
    "topologies = [{ cpus = 4 }]": "topologies[0]: has no topology",
    'topologies = [{ topology = "minsky", cpus = 0 }]': "topologies[0].cpus = 0: 0 is not at least 1",
    'topologies = [{ topology = "minsky", cpu = 1 }]': "topologies[0].cpu = 1: no such key; known: ",
    'topologies = ["trace.csv"]': "topologies[0] with workloads: ",
    "seeds = 0": "seeds = 0 is not in 1..",
    "seeds = [0, -1]": "seeds[1] = -1 is not in 0..",
    "seeds = []": "seeds = []: must have an entry or more",
    "loads = [0.5, 0]": "loads[1] = 0 is not above 0",
    "loads = []": "loads = []: must have an entry or more",
    'loads = "1"': "loads",
    "num-jobs = 1.5": "num-jobs = 1.5: '1.5' is not a whole number",
    "num-jobs = true": "num-jobs: True is neither a text nor a number",
    "num_jobs = 3": "num_jobs = 3: no such key; known: policies, topologies, ",
    "seed = 3": "seed = 3: no such key",
    'order = "age"': "order = 'age': invalid choice: 'age'",
    'workloads = [{ jobs = "nowhere.csv" }]': "workloads[0].jobs = 'nowhere.csv': No such file or directory",
    'workloads = [{ jobs = "-" }]': "workloads[0].jobs = '-': No such file or directory",
    'workloads = [{ jobs = "trace.csv", skip-bad-rows = 1 }]': "workloads[0].skip-bad-rows = 1 is not True",
    'workloads = [{ jobs = "trace.csv", map = ["x"] }]': "topologies[0] with workloads[0]: ",
    'workloads = [{ num-jobs = 4, cpus = 2 }]\ntopologies = [{ topology = "minsky", cpus = 4 }]': (
        "topologies[0].cpus = 4: also in workloads[0]; give it in one"
    ),
    "load = 0.5\nloads = [1.0]": "load = 0.5: there are loads too",
    "loads = [1.0]\nworkloads = [{ load = 0.5 }]": "workloads[0].load = 0.5: there are loads too",
    "policies = [": "Invalid value",
    f"load = {'[' * 5000}": "nested too deeply",
}


@pytest.mark.parametrize("line", WRONG)
def test_wrong_files_are_refused_by_key_and_value(call: Call, line: str) -> None:
    key = line.split(" =")[0]
    others = {"policies": '["fcfs"]', "topologies": '["minsky"]', "num-jobs": "4"}
    kept = [f"{name} = {value}" for name, value in others.items() if name != key and f"{name} = " not in line]
    Path("wrong.toml").write_text("\n".join([line, *kept]) + "\n", encoding="utf-8")
    done = call("sweep", "wrong.toml", "-o", "out", "--workers", 1)
    assert (done.code, done.out) == (2, "")
    assert f"wrong.toml: {WRONG[line]}" in done.err
    assert len(done.err.splitlines()) == 1


def killed_after(cells: int, command: list[str], folder: Path) -> None:
    """Run a sweep until `cells` more cells are finished, and kill it and nothing else."""
    before = len(list(folder.glob("cells/*.json")))
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while len(list(folder.glob("cells/*.json"))) < before + cells:
        assert process.poll() is None, "it ended before it was killed"
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills a process as no handler can notice")
def test_a_sweep_killed_twice_gives_the_same_bytes(here: Path) -> None:
    """TOPOPLACE_SWEEP_KILLS=10 TOPOPLACE_SWEEP_SEEDS=34 kills 204 cells ten times."""
    kills = int(os.environ.get("TOPOPLACE_SWEEP_KILLS", "2"))
    seeds = int(os.environ.get("TOPOPLACE_SWEEP_SEEDS", "8"))
    Path("plan.toml").write_text(PLAN.replace("seeds = 2", f"seeds = {seeds}"), encoding="utf-8")
    command = [sys.executable, "-m", "topoplace", "sweep", "plan.toml", "--workers", "2", "-o"]
    for _ in range(kills):
        killed_after(6 * seeds // (kills + 2), [*command, "killed"], here / "killed")
    assert 0 < len(list(Path("killed/cells").glob("*.json"))) < 6 * seeds
    for folder in ("killed", "whole"):
        subprocess.run([*command, folder], check=True, stdout=subprocess.DEVNULL)
    ending = "parquet" if Path("whole/sweep.parquet").exists() else "csv"
    killed, whole = (Path(folder, f"sweep.{ending}").read_bytes() for folder in ("killed", "whole"))
    assert killed == whole
    assert len(list(Path("killed/cells").iterdir())) == 6 * seeds


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="interrupts a group of processes, as a terminal does")
def test_an_interrupted_sweep_keeps_its_cells_and_is_quiet(here: Path) -> None:
    Path("plan.toml").write_text(PLAN.replace("seeds = 2", "seeds = 500"), encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "topoplace", "sweep", "plan.toml", "--workers", "2", "-o", "out"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=hear_interrupts,
    )
    while len(list(here.glob("out/cells/*.json"))) < 3:
        assert process.poll() is None, "it ended before it was interrupted"
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, "")
    assert 3 <= len(list(here.glob("out/cells/*.json"))) < 3000


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills a process as no handler can notice")
def test_a_second_sweep_in_a_folder_is_refused_until_the_first_has_ended(here: Path, call: Call) -> None:
    Path("plan.toml").write_text(PLAN.replace("seeds = 2", "seeds = 500"), encoding="utf-8")
    command = [sys.executable, "-m", "topoplace", "sweep", "plan.toml", "--workers", "2", "-o", "out"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while len(list(here.glob("out/cells/*.json"))) < 3:
        assert process.poll() is None, "it ended before it was killed"
        time.sleep(0.002)
    done = call("sweep", "plan.toml", "-o", "out", "--workers", 1)
    assert (done.code, done.out, process.poll()) == (2, "", None)
    assert re.fullmatch(
        rf"topoplace: out: process {process.pid} on \S+ runs a sweep here; wait for its end, or use another "
        r"directory\n",
        done.err,
    )
    process.send_signal(signal.SIGKILL)
    process.wait()
    FileLock(here / "out/.lock").close()  # it is free


def test_seeds_that_change_nothing_run_once(call: Call) -> None:
    Path("seeds.toml").write_text(
        'policies = ["baseline", "random-fit"]\ntopologies = ["minsky"]\nworkloads = ["trace.csv"]\nseeds = 5\n',
        "utf-8",
    )
    done = call("sweep", "seeds.toml", "-o", "out", "--workers", 1)
    assert done.code == 0, done.err
    unchanged = "the seeds change nothing, as the jobs are all in the file: 1 seed instead of 5\n"
    assert done.err.startswith(f"trace.csv on minsky: {unchanged}")
    assert ("2 cells of plan" in done.out, " [" in done.out, "interval" in done.out) == (True, False, False)


@pytest.mark.parametrize("drawn", ["loads = [0.5]", 'workloads = [{ num-jobs = 3, name = "mix" }]'])
def test_seeds_that_change_something_all_run(call: Call, drawn: str) -> None:
    trace = re.sub(r",[012],", ",0,", TRACE).replace(",2,5\n", ",4,5\n")  # whole machines, so that jobs wait
    Path("trace.csv").write_text(trace, encoding="utf-8")
    jobs = "" if "workloads" in drawn else 'workloads = ["trace.csv"]'
    Path("seeds.toml").write_text(
        f'policies = ["baseline"]\ntopologies = ["minsky"]\nseeds = 5\n{jobs}\n{drawn}\n', "utf-8"
    )
    done = call("sweep", "seeds.toml", "-o", "out", "--workers", 1)
    assert (done.code, "seeds change nothing" in done.err) == (0, False)
    assert ("5 cells of plan" in done.out, " [" in done.out) == (True, True)


@pytest.mark.filterwarnings("always:out. 1 cell")
def test_an_edited_policy_gets_new_figures_and_others_keep_theirs(
    here: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("edited.toml").write_text(
        'policies = ["baseline", "edited_policy:Mine"]\ntopologies = ["minsky"]\nworkloads = ["jobs.csv"]\n'
        'performance = "fixed"\nqueue = "own"\n',
        "utf-8",
    )
    Path("jobs.csv").write_text("job_id,submit_s,num_gpus,duration_s\na,0,3,9\nb,1,4,9\nc,2,1,9\n", "utf-8")
    monkeypatch.syspath_prepend(here)
    waits: list[float] = []
    written: list[int] = []
    for in_order in ("False", "True"):
        monkeypatch.delitem(sys.modules, "edited_policy", raising=False)
        Path("edited_policy.py").write_text(
            "from topoplace.policies import VectorBestFit\n\n\nclass Mine(VectorBestFit):\n"
            f"    def __init__(self):\n        super().__init__(in_order={in_order})\n",
            "utf-8",
        )
        done = call("sweep", "edited.toml", "-o", "out", "--workers", 1, "--json")
        assert done.code == 0, done.err
        waits.append(json.loads(done.out)[1]["figures"]["mean_wait"]["mean"])
        written.append(Path("out/cells/000000.json").stat().st_mtime_ns)
    assert waits == [pytest.approx(10 / 3), pytest.approx((8 + 16) / 3)]
    assert written[0] == written[1]
    again = "1 cell is simulated again, as the code of edited_policy:Mine has changed"
    assert f"topoplace: out: {again}\n" in done.err


def test_a_workload_whose_jobs_are_all_rejected_has_no_figures(call: Call) -> None:
    Path("large.csv").write_text(TRACE.replace(",2,5", ",9,5").replace(",1,5", ",9,5"), encoding="utf-8")
    Path("large.toml").write_text(
        'policies = ["baseline", "fcfs"]\ntopologies = ["minsky"]\nworkloads = ["large.csv"]\n', "utf-8"
    )
    done = call("sweep", "large.toml", "-o", "out", "--workers", 1)
    assert done.code == 0, done.err
    why = "refuses: no job ran: all 3 jobs were rejected; the first: never fits: needs 9 GPUs, the topology has 4\n"
    assert f"baseline {why}fcfs {why}" in done.out
    assert "makespan" not in done.out


@pytest.mark.filterwarnings("always:.*cannot be reached")
def test_a_load_that_cannot_be_reached_is_noted(call: Call) -> None:
    """One job lasts a thousand times as long as all submissions take."""
    Path("long.csv").write_text(TRACE.replace("c,2,1,5", "c,2,1,5000"), encoding="utf-8")
    Path("long.toml").write_text(
        'policies = ["baseline"]\ntopologies = ["8-dgx1-v100.json"]\nworkloads = ["trace.csv", "long.csv"]\n'
        'loads = [0.2, 0.9]\nperformance = "fixed"\n',
        "utf-8",
    )
    cluster = tp.Topology.cluster(tp.machines.get("dgx1-v100"), 8, name="8-dgx1-v100")
    Path("8-dgx1-v100.json").write_text(cluster.to_json(), encoding="utf-8")
    done = call("sweep", "long.toml", "-o", "out", "--workers", 1)
    assert done.code == 0, done.err
    where = "long.csv on 8-dgx1-v100.json, load 0.9"
    assert f"topoplace: {where}: load = 0.9: cannot be reached: jobs last long after " in done.err
    assert f"{where}: load 0.9 is not reached: jobs used of all GPU time 1.5" in done.out
    one = ("8-dgx1-v100.json", "--jobs", "long.csv", "--load", 0.9, "--performance", "fixed")
    for command in (
        ("simulate", *one, "--policy", "fcfs"),
        ("simulate", *one, "--policies", "fcfs,baseline"),
    ):
        done = call(*command)
        assert "topoplace: load = 0.9: cannot be reached" in done.err
        assert "load 0.9 is not reached: jobs used of all GPU time 1.5" in done.out


def test_an_option_of_a_table_replaces_the_common_one() -> None:
    Path("plan.toml").write_text(
        'policies = ["fcfs"]\ntopologies = ["minsky"]\nnum-jobs = 9\n'
        'workloads = [{ num-jobs = 3, name = "three" }, { name = "nine" }]\n',
        "utf-8",
    )
    cells = sweep_plan.read(Path("plan.toml")).cells
    sizes = {
        cell.scenario.workload: len(sweep_cells.study_of(cell.options["arguments"]).workload)
        for cell in cells
    }
    assert sizes == {"three": 3, "nine": 9}


@pytest.mark.filterwarnings("always:.*cannot be reached")
def test_the_documented_file_is_understood(
    here: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (toml,) = re.findall(
        r"^```toml\n(.*?)^```$", (repository / "docs/sweeps.md").read_text("utf-8"), re.M | re.S
    )
    Path("plan.toml").write_text(toml, encoding="utf-8")
    Path("cluster.json").write_text(machines.get("summit").to_json(), encoding="utf-8")
    rows = "job_id,submit_s,num_gpus,duration_s,model\na,0,2,5,vgg\nb,1,2,5,lstm\nc,2,2,5,alexnet\n"
    Path("trace.csv.gz").write_bytes(gzip.compress(rows.encode()))
    Path("my_package").mkdir()
    Path("my_package/my_module.py").write_text(
        "from topoplace.policies import Greedy\n\n\nclass MyPolicy(Greedy):\n    name = 'mine'\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(here)
    plan = sweep_plan.read(Path("plan.toml"))
    assert len(plan.cells) == 4 * 2 * 3 * (10 + 1)  # the file of jobs says all, so one seed is enough
    last = plan.cells[-1]
    assert (last.policy, last.seed) == ("my_package.my_module:MyPolicy", 0)
    assert tuple(last.scenario) == ("cluster.json", "trace.csv.gz", 1.1)
    study = sweep_cells.study_of((*last.options["arguments"], "--seed=0"))
    assert [job.bandwidth_sensitive for job in study.workload.jobs] == [True, False, True]
    assert study.hosts.cpus == 64
