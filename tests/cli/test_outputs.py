"""Where results are written: directories are created, and what is in the way or missing is named before the work."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

import topoplace as tp
from command_line import COMMAND, Call
from distributions import whole

RUNS = "kind,model,batch,gpus,placement,with_model,with_batch,with_gpus,seconds\nsolo,net,1,1,intra-socket,,,,100\n"
PICTURES = (
    "show summit",
    "show summit --svg",
    "place summit --gpus 2",
    "simulate summit --num-jobs 2 --policy fcfs",
    "simulate summit --num-jobs 2 --policies baseline,fcfs",
    "papers mapa --quick",
    "papers drmaestro --quick",
    "papers gpuaas --quick",
    "papers sc17 --quick",
    "papers tsubame --quick",
)
QUICK_PICTURES = PICTURES[:5]
FILES = {
    "profile build runs.csv -o": "profile.json",
    "papers mapa --job-lines lines.txt --topology dgx-v --policy greedy --write": "log.txt",
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "runs.csv").write_text(RUNS)
    (tmp_path / "lines.txt").write_text("2,ring,0,30,0,a\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@whole
@pytest.mark.parametrize("command", QUICK_PICTURES)
def test_directories_of_pictures_are_created(here: Path, call: Call, command: str) -> None:
    done = call(*command.split(), "-o", "new/and/deep")
    assert (done.code, done.err) == (0, "")
    names = {path.name for path in (here / "new/and/deep").iterdir()}
    assert len(names) == 1 or names in (
        {"gantt.png", "fragmentation.png"},
        {"comparison.png", "report.html", "comparison.csv", "comparison.tex"},
    )
    assert all(f"wrote new/and/deep/{name}" in done.out for name in names)


@whole
@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
@pytest.mark.parametrize("command", [QUICK_PICTURES[0], *QUICK_PICTURES[2:]])
def test_the_ending_of_a_picture_names_a_file(here: Path, call: Call, command: str, ending: str) -> None:
    before = set(here.iterdir())
    done = call(*command.split(), "-o", f"o.{ending}")
    assert (done.code, done.err) == (0, "")
    assert set(here.iterdir()) - before == {here / f"o.{ending}"}
    begin = (here / f"o.{ending}").read_bytes()[:200]
    starts = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<"}
    assert begin.startswith(starts[ending])
    assert f"wrote o.{ending}\n" in done.out


def test_other_pictures_are_refused_by_their_endings(here: Path, call: Call) -> None:
    for path in ("o.jpg", "o.EPS"):
        done = call("place", "summit", "-o", path)
        assert (done.code, done.err) == (2, f"topoplace: -o {path}: pictures end in .png, .svg, .pdf\n")
        assert not (here / path).exists()
    assert call("show", "summit", "--svg", "-o", "o.pdf").err == "topoplace: --svg: -o o.pdf is a PDF\n"


@whole
@pytest.mark.parametrize("command", [*PICTURES[5:], "sweep suite --quick", "sweep plan.toml"])
def test_a_picture_cannot_hold_what_takes_several_files(here: Path, call: Call, command: str) -> None:
    (here / "plan.toml").write_text('policies = ["fcfs"]\ntopologies = ["summit"]\nnum-jobs = 2\n')
    done = call(*command.split(), "-o", "o.png")
    assert (done.code, done.err) == (
        2,
        "topoplace: -o o.png: several files are written; name a directory\n",
    )
    assert not (here / "o.png").exists()


@whole
@pytest.mark.parametrize("command", FILES)
def test_directories_of_files_are_created(here: Path, call: Call, command: str) -> None:
    path = f"new/and/deep/{FILES[command]}"
    done = call(*command.split(), path)
    assert (done.code, done.err) == (0, "")
    assert (here / path).read_text("utf-8")


@whole
@pytest.mark.parametrize("command", [f"{command} -o" for command in PICTURES] + list(FILES))
@pytest.mark.parametrize("place", ["runs.csv/below", "runs.csv/far/below"])
def test_a_file_in_the_way_is_named_before_the_work(call: Call, command: str, place: str) -> None:
    path = f"{place}/{FILES.get(command, '')}".rstrip("/")
    flag = command.split()[-1]
    done = call(*command.split(), path)
    assert (done.code, done.out) == (2, "")
    assert done.err == f"topoplace: {flag} {path}: runs.csv is not a directory\n"


@whole
@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("simulate summit --policy fcfs --jobs runs.csv --save", "--jobs runs.csv"),
        ("simulate runs.csv --policy fcfs --save", "TOPO runs.csv"),
        ("simulate summit --policy fcfs --profile runs.csv --save", "--profile runs.csv"),
        ("simulate summit --policy fcfs --typical runs.csv --jobs lines.txt --save", "--typical runs.csv"),
        ("profile build runs.csv -o", "FILE runs.csv"),
        ("report lines.txt runs.csv -o", "RESULT runs.csv"),
        ("show measure runs.csv -o", "TOPO runs.csv"),
        ("show measure summit --rates runs.csv -o", "--rates runs.csv"),
        ("papers mapa --topology dgx-v --policy greedy --job-lines runs.csv --write", "--job-lines runs.csv"),
    ],
)
def test_an_input_is_not_overwritten(
    here: Path, call: Call, command: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if command.startswith("papers"):
        (here / "runs.csv").write_bytes((here / "lines.txt").read_bytes())
    for reader in ("topoplace_lab.commands.study.Study", "topoplace_lab.simulate.Result.load"):
        monkeypatch.setattr(reader, lambda *_: None)
    before = (here / "runs.csv").read_text("utf-8")
    done = call(*command.split(), "./runs.csv")
    assert (done.code, done.out) == (2, "")
    assert done.err == f"topoplace: {command.split()[-1]} runs.csv: is also {name}, which would be lost\n"
    assert (here / "runs.csv").read_text("utf-8") == before


@whole
def test_a_file_of_runs_is_not_overwritten_by_traffic(here: Path, call: Call) -> None:
    before = (here / "runs.csv").read_text("utf-8")
    done = call("profile", "record", "-o", "runs.csv", "--runs", "runs.csv", "--name", "M/1", "--", "true")
    message = "-o runs.csv: is also --runs runs.csv, which would be lost"
    assert (done.code, done.out, done.err) == (2, "", f"topoplace: {message}\n")
    assert (here / "runs.csv").read_text("utf-8") == before


@whole
def test_a_result_that_cannot_be_saved_is_named_as_given(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", ".run.csv.7.part")

    monkeypatch.setattr("topoplace_lab.simulate.storage.tables._to_disk", full)
    done = call("simulate", "summit", "--num-jobs", 2, "--policy", "fcfs", "--save", "run.csv")
    assert (done.code, done.err) == (2, "topoplace: --save run.csv: No space left on device\n")


@whole
@pytest.mark.parametrize("command", [command for command in PICTURES if "--svg" not in command])
def test_a_missing_package_is_named_before_the_work(
    here: Path, call: Call, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for work in (
        "topoplace_lab.simulate.simulate",
        "topoplace_lab.simulate.event_loop.simulate",
    ):
        monkeypatch.setattr(work, None)
    done = call(*command.split(), "-o", "pictures")
    assert (done.code, done.out) == (2, "")
    is_svg_possible = command.startswith(("show", "place"))
    what = "-o (a PNG or PDF; an SVG needs no package)" if is_svg_possible else "-o (a picture)"
    assert done.err == f"topoplace: {what} needs matplotlib: pip install 'topoplace[plot]'\n"
    assert not (here / "pictures").exists()


@pytest.mark.parametrize("command", ["show", "place"])
def test_a_cluster_is_drawn_as_svg_without_matplotlib(
    here: Path, call: Call, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    topology = tp.Topology.cluster(tp.machines.get("dgx1-v100"), 200)
    (here / "large.json").write_text(topology.to_json())
    assert call(command, "large.json", "-o", "large.svg").code == 0
    assert (here / "large.svg").read_text("utf-8").count("data-machine") == 200
    done = call(command, "large.json", "-o", "large.png")
    assert (done.code, done.err) == (
        2,
        "topoplace: -o (a PNG or PDF; an SVG needs no package) needs matplotlib: pip install 'topoplace[plot]'\n",
    )


@whole
@pytest.mark.parametrize("planner", ["milp", "tight", "printed"])
def test_a_missing_solver_is_named_before_the_work(
    here: Path, call: Call, planner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "jobs.csv").write_text("job_id,due,weight\nvgg,3,0.5\n")
    (here / "times.csv").write_text("job_id,vm_type,gpus,hours\nvgg,NC6,1,4\n")
    monkeypatch.setitem(sys.modules, "highspy", None)
    monkeypatch.setattr("topoplace_lab.capacity.planners.capacity_planner.search_conditioned", None)
    done = call("capacity", "jobs.csv", "times.csv", "--planner", planner)
    remedy = "topoplace: planning by a model needs HiGHS: pip install 'topoplace-lab[capacity]'\n"
    assert (done.code, done.out, done.err) == (2, "", remedy)
    monkeypatch.setattr("topoplace_lab.papers.gpuaas.GpuaasStudy", None)
    assert call("papers", "gpuaas", "--quick").err == remedy


@whole
@pytest.mark.parametrize(
    ("module", "source", "message"),
    [
        ("defusedxml.sax", "nccl-c2c-2gpu.xml", "needs defusedxml: pip install 'topoplace[discovery]'"),
        ("yaml", "volcano-hypernodes.yaml", "needs PyYAML: pip install 'topoplace[discovery]'"),
    ],
)
def test_a_missing_reader_is_named(
    call: Call, repository: Path, monkeypatch: pytest.MonkeyPatch, module: str, source: str, message: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    done = call("show", repository / "tests/data" / source)
    assert done.code == 2
    assert message in done.err


@whole
def test_a_full_disk_is_named_with_the_file(call: Call) -> None:
    command = "papers mapa --job-lines lines.txt --topology dgx-v --policy greedy --write /dev/full"
    done = call(*command.split())
    assert (done.code, done.err) == (2, "topoplace: --write /dev/full: No space left on device\n")


def test_a_full_disk_behind_standard_output_is_named() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([COMMAND, "show"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (2, "topoplace: standard output: No space left on device\n")
