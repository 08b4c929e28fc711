"""Models of run times on the command line: the machine's own seconds by default, and models of one's own."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

from command_line import Call

MODULE = """
class Doubled:
    def run_time(self, job, placement, random):
        return 2 * job.base_time


class Answers:
    def __init__(self, answer):
        self.answer = answer

    def run_time(self, job, placement, random):
        return self.answer if job.job_id == "7" else job.base_time


class Raises:
    def run_time(self, job, placement, random):
        return {}["x"]


class Empty:
    pass


class Draws:
    def run_time(self, job, placement, random):
        return job.base_time * random.uniform(1, 3)


class Exits:
    def run_time(self, job, placement, random):
        raise SystemExit(0)


class Unasked:
    def run_time(self, job):
        return job.base_time


class Ports(Doubled):
    def __init__(self, running=None):
        self._running = running

    def running(self, topology):
        return self._running


no_ports = Ports()
doubled, nan, negative, nothing = Doubled(), Answers(float("nan")), Answers(-1.0), Answers(None)
"""
MACHINES = ("dgx-h100", "mi300x", "l40s-8", "gb200-nvl72")


@pytest.fixture
def own(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    (tmp_path / "own_models.py").write_text(MODULE, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    return call


def compared(call: Call, machine: str, *more: str) -> dict[str, dict[str, float]]:
    done = call("simulate", machine, "--policies", "baseline,least-time", "--json", *more)
    assert done.code == 0, done.err
    return {row["policy"]: row for row in json.loads(done.out)}


def test_each_machine_has_its_own_table(call: Call) -> None:
    tables = [compared(call, machine) for machine in MACHINES]
    for policy in ("baseline", "least-time"):
        assert len({table[policy]["makespan"] for table in tables}) == len(MACHINES)


def test_faster_links_end_sooner(call: Call) -> None:
    h100, mi300x, l40s = (compared(call, machine)["baseline"]["makespan"] for machine in MACHINES[:3])
    assert h100 < mi300x < l40s


@pytest.mark.parametrize("name", ["Doubled", "doubled"])
def test_own_models(own: Call, name: str) -> None:
    simulated = ("simulate", "dgx1-v100", "--num-jobs", "20", "--policy", "fcfs", "--queue", "own", "--json")
    fixed, doubled = (
        json.loads(own(*simulated, "--performance", one).out) for one in ("fixed", f"own_models:{name}")
    )
    assert doubled["makespan"] == pytest.approx(2 * fixed["makespan"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module:Model", "no_such_module:Model: No module named 'no_such_module'"),
        ("own_models:Model", "own_models:Model: own_models has no Model"),
        ("own_models:Empty", "own_models:Empty: has no method run_time(job, placement, random)"),
        ("own_models:Answers", "own_models:Answers: calling it without arguments raised TypeError"),
        ("own_models:nan", "performance: run time of '7' = nan"),
        ("own_models:negative", "performance: run time of '7' = -1"),
        ("own_models:nothing", "performance: run time of '7' = None"),
        ("own_models:Exits", "performance: Exits.run_time raised SystemExit: 0"),
        (
            "own_models:Unasked",
            "performance: calling Unasked or using its answer raised TypeError: Unasked.run_time",
        ),
        (
            "own_models:no_ports",
            "performance: calling Ports or using its answer raised AttributeError: 'NoneType'",
        ),
        ("own_models:Raises", "performance: Raises.run_time raised KeyError: 'x' (own_models.py, line 17)"),
    ],
)
def test_faulty_models_are_named(own: Call, name: str, message: str) -> None:
    done = own("simulate", "dgx1-v100", "--num-jobs", "20", "--policy", "fcfs", "--performance", name)
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err


def test_a_sweep_sets_aside_the_cells_of_a_faulty_model(own: Call, tmp_path: Path) -> None:
    text = 'policies = ["fcfs"]\ntopologies = ["minsky"]\nnum-jobs = 20\nperformance = "own_models:{}"\n'
    for name, shown in (("Doubled", "minsky"), ("nan", "run time of '7' = nan")):
        plan = tmp_path / f"{name}.toml"
        plan.write_text(text.format(name), "utf-8")
        done = own("sweep", str(plan), "-o", str(tmp_path / name), "--workers", 1)
        tables = " ".join(path.read_text("utf-8") for path in (tmp_path / name).glob("*.csv"))
        assert shown in done.out + done.err + tables


def test_seeds_count_for_a_model_that_draws(own: Call, tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("job_id,submit_s,num_gpus,duration_s\na,0,2,100\nb,1,2,100\n")
    options = (tmp_path / "jobs.csv", "--performance", "own_models:Draws", "--json")
    done = own("simulate", "minsky", "--policies", "baseline,fcfs", "--seeds", 3, "--jobs", *options)
    assert done.code == 0, done.err
    low, high = json.loads(done.out)[0]["intervals"]["makespan"]
    assert low < high


def test_the_suite_takes_a_model(own: Call, tmp_path: Path) -> None:
    wrong = own(
        "sweep",
        "suite",
        "--quick",
        "--policies",
        "fcfs",
        "-o",
        str(tmp_path / "x"),
        "--performance",
        "own_models:Empty",
    )
    assert "--performance: own_models:Empty: has no method run_time" in wrong.err


def test_the_papers_model_warns_where_it_was_not_fitted(call: Call) -> None:
    mix = ("--num-jobs", "20", "--policy", "fcfs", "--performance", "mapa")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert "MapaSlowdown: job" in call("simulate", "dgx-h100", *mix).err
    assert "MapaSlowdown" not in call("simulate", "dgx1-v100", *mix).err
