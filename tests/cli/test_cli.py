"""The commands, as a user runs them."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import topoplace as tp
from command_line import COMMAND, assert_command_refuses, run
from topoplace.cli import reading
from topoplace_lab.policies import USUAL

TOPO_M = "\tGPU0\tGPU1\tGPU2\nGPU0\t X \tNV2\tSYS\nGPU1\tNV2\t X \tSYS\nGPU2\tSYS\tSYS\t X \n"
JOBS = "2,ring,0,30,0,a\n4,ring,0,40,1,vgg16\n1,ring,5,20,1,b\n"


def succeed(*arguments: str | Path, stdin: str = "", cwd: Path | None = None) -> str:
    done = run(*arguments, stdin=stdin, cwd=cwd)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


# ---- what works --------------------------------------------------------------------------------------------------


def test_version_and_help_import_nothing_that_takes_time() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "topoplace", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "machines" in done.stdout
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "topoplace.cli" in imported
    assert not imported & {"numpy", "topoplace._core", "rich", "typer", "matplotlib", "asyncio"}
    assert succeed("--version") == f"topoplace {tp.__version__}\n"


def test_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "topoplace", "show"], capture_output=True, text=True, check=True
    )
    assert done.stdout == succeed("show")


def test_machines_lists_them_all() -> None:
    listed = succeed("show", "--list", "machines")
    assert all(name in listed for name in tp.machines.names())


def test_show_prints_the_matrix_and_draws(tmp_path: Path) -> None:
    shown = succeed("show", "dgx1-v100", "-o", tmp_path)
    assert "dgx1-v100: GB/s between GPUs" in shown
    row = next(line.split() for line in shown.splitlines() if line.startswith("GPU 0"))
    assert row[2:] == ["-", "25", "25", "50", "50", "12", "12", "12"]
    assert (tmp_path / "dgx1-v100.png").read_bytes().startswith(b"\x89PNG")


def test_show_of_a_cluster_counts_levels_and_kinds_of_machines() -> None:
    shown = succeed("show", "gb200-nvl72")
    assert "gb200-nvl72: 18 machines, 72 GPUs" in shown
    assert "18 x gb200-tray" in shown
    assert "tray03: GB/s between GPUs" in succeed("show", "gb200-nvl72", "--one", "tray03").replace(
        "gb200-tray:", "tray03:"
    )


def test_show_draws_machines_of_switches_as_svg(tmp_path: Path) -> None:
    succeed("show", "dgx-h100", "--svg", "-o", tmp_path)
    assert "NVSwitch" in (tmp_path / "dgx-h100.svg").read_text("utf-8")


def test_diff_shows_a_degraded_link(tmp_path: Path) -> None:
    topology = tp.machines.get("dgx1-v100")
    links = [
        (u, v, tp.Link(link.kind, 1, 25.0) if (u, v) == (0, 3) else link) for u, v, link in topology.links
    ]
    worn = tmp_path / "worn.json"
    worn.write_text(replace(topology, links=links).to_json())
    unchanged = ("show", "dgx1-v100", "--since", "dgx1-v100")
    assert succeed(*unchanged) == succeed(*unchanged, "--speeds", "achievable") == "no difference\n"
    done = run("show", str(worn), "--since", "dgx1-v100")
    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == "1 difference, 1 for the worse"
    assert done.stdout.splitlines()[2].split()[:4] == ["-", "GPU0", "-", "GPU3"]
    changes = json.loads(run("show", str(worn), "--since", "dgx1-v100", "--json").stdout)
    assert changes == [
        {"what": "GPU0 - GPU3", "before": "2 x NVLINK2, 50 GB/s", "after": "NVLINK2, 25 GB/s", "worse": True}
    ]
    checked = run("show", str(worn), "--check")
    assert checked.returncode == 1
    assert "dgx1-v100: GPU0: has 5 links, but most GPUs of its model have 6" in checked.stdout


def test_discover_reads_files_and_joins_them(tmp_path: Path) -> None:
    one, two = tmp_path / "node1.json", tmp_path / "node2.json"
    one.write_text(tp.machines.get("minsky").to_json())
    two.write_text(tp.machines.get("dgx1-v100").to_json())
    topology = tp.Topology.from_json(succeed("show", "--json", one))
    assert topology == tp.machines.get("minsky")
    both = tp.Topology.from_json(succeed("show", "--json", one, two))
    assert both.machine_names == ("node1", "node2")
    assert "nothing suspicious" in succeed("show", "--check", one)
    assert "nvidia-smi topo -m" in succeed("show", "--list", "formats")
    (tmp_path / "row1").mkdir()
    again = tmp_path / "row1/node1.json"
    again.write_bytes(one.read_bytes())
    alike = tp.Topology.from_json(succeed("show", "--json", one, again))
    assert alike.machine_names == (str(one.with_suffix("")), str(again.with_suffix("")))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--machine minsky", "--machine goes with one file about the network, which TOPO names"),
        ("a.txt b.txt --machine minsky", "--machine goes with one file about the network"),
        ("summit.json summit.txt", "summit.txt: a second machine is called summit"),
    ],
)
def test_discover_refuses_files_that_do_not_go_together(tmp_path: Path, arguments: str, message: str) -> None:
    (tmp_path / "summit.json").write_text(tp.machines.get("summit").to_json())
    assert_command_refuses("show", *arguments.split(), message=message, cwd=tmp_path)


def test_discover_joins_a_network_with_what_its_machines_are_like(tmp_path: Path) -> None:
    (tmp_path / "topology.conf").write_text("SwitchName=a Nodes=n[1-3]\nSwitchName=b Nodes=n4\n")
    read = ("show", "topology.conf", "--machine", "dgx-h100")
    cluster = tp.Topology.from_json(succeed(*read, "--json", cwd=tmp_path))
    assert cluster.machine_names == ("n1", "n2", "n3", "n4")
    assert cluster.fabric is not None
    assert cluster.fabric.levels[0].domains == ("a", "a", "a", "b")
    assert "4 x dgx-h100" in succeed(*read, cwd=tmp_path)
    done = run("show", "topology.conf", "--numa", "numa", cwd=tmp_path)
    assert "--numa: topology is a network; --machine TOPO describes its machines" in done.stderr
    assert "describes a network, not machines with GPUs" in run("place", "topology.conf", cwd=tmp_path).stderr


def test_discover_takes_speeds_and_numa_nodes_from_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "numa").write_text(
        "available: 2 nodes (0-1)\nnode 0 cpus: 0 1\nnode 0 size: 9 MB\nnode 1 cpus: 2 3\nnode 1 size: 9 MB\n"
        "node distances:\nnode   0   1\n  0:  10  21\n  1:  21  10\n"
    )
    (tmp_path / "topo").write_text(
        "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV4\t\t1\nGPU1\tNV4\t X \t\t0\n"
    )
    (tmp_path / "p2p").write_text(
        "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n"
        "   D\\D     0      1\n     0 900.00  77.50\n     1  77.70 900.00\n"
    )
    read = ("show", "--json", "--gpu-model", "A100", "topo")
    more = ("--numa", "numa", "--speeds", "achievable")
    topology = tp.Topology.from_json(succeed(*read, *more, cwd=tmp_path))
    assert (topology.bandwidth(0, 1), topology.gpus[0].cpus, topology.gpus[1].cpus) == (80.0, "2-3", "0-1")
    assert tp.Topology.from_json(succeed(*read, "--measured", "p2p", cwd=tmp_path)).bandwidth(0, 1) == 77.5
    p2p = (tmp_path / "p2p").read_text("utf-8").replace("Uni", "Bi")
    (tmp_path / "p2p").write_text(p2p)
    assert "half of each" in succeed("show", "topo", "--measured", "p2p", cwd=tmp_path)


def test_what_a_file_leaves_open_can_be_assumed(repository: Path) -> None:
    data = repository / "tests/data"
    gres = data / "gres-nodes.conf"
    chosen = succeed("show", "--json", gres, "--assume", "node=gpu9", "--assume", "pcie_gb_per_s=20")
    topology = tp.Topology.from_json(chosen)
    assert (topology.machine_names, topology.bandwidth(0, 1)) == (("gpu9",), 20.0)
    levels = [f"levels.{name}=example.com/{name}" for name in ("rack", "block")]
    options = [part for level in levels for part in ("--assume", level)]
    fabric = tp.Topology.from_json(succeed("show", "--json", data / "k8slabels-nodes.yaml", *options)).fabric
    assert fabric is not None
    assert fabric.level_names == ("nvlink_domain", "rack", "block")
    for wrong in ("nod=gpu9", "node", "node.x=gpu9", "pcie_gb_per_s=fast"):
        refused = run("show", gres, "--assume", wrong)
        assert refused.returncode != 0
        assert (
            f"--assume {wrong}: must be NAME=VALUE for gres.conf of Slurm, with NAME one of node, "
            in refused.stderr
        )


def told_on_a_host_without_accelerators(empty: Path, *arguments: str) -> str:
    """Return the error of a command that finds neither a GPU nor a program: its PATH is the `empty` directory."""
    done = subprocess.run(
        [COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": str(empty), "HOME": ""},
    )
    assert done.returncode == 2
    assert done.stderr.startswith("topoplace: no GPU found; tried:\n  NVML: ")
    return done.stderr


def test_discover_without_any_accelerator_says_what_was_tried(tmp_path: Path) -> None:
    told = told_on_a_host_without_accelerators(tmp_path, "show", "--json")
    assert "\n  nvidia-smi: is not on the PATH\n" in told
    assert "name a file, such as one with the output of `nvidia-smi topo -m`" in told.splitlines()[-1]
    assert "`topoplace show --list machines` lists" in told.splitlines()[-1]


def test_a_command_about_this_host_names_the_argument_that_replaces_it(tmp_path: Path) -> None:
    told = told_on_a_host_without_accelerators(tmp_path, "kubernetes", "label", "--node", "a", "--print")
    assert "name the machine as TOPO" in told.splitlines()[-1]


def test_place_shows_no_prediction_outside_the_range_of_its_fit() -> None:
    placed = succeed(
        "place", "dgx1-v100", "--gpus", "5", "--pattern", "clique", "--policy", "mapa-greedy"
    ).splitlines()
    assert "aggregated GB/s" in placed[3]
    assert not any("effective" in line for line in placed)


def test_place_takes_the_best_and_says_how_to_use_it() -> None:
    placed = succeed("place", "dgx1-v100", "--gpus", "3", "--sensitive")
    assert placed.splitlines()[4].split()[:7] == ["0", "2", "3", "40", "33.3", "ms", "125"]
    assert "- slowest on the first: rings of GPUs 0, 2, 3" in placed.splitlines()
    assert placed.splitlines()[-1] == "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0,2,3"


def test_place_draws_what_it_chose(tmp_path: Path) -> None:
    assert f"wrote {tmp_path / 'placement.png'}" in succeed(
        "place", "cubemesh-16", "--gpus", "5", "-o", tmp_path
    )
    assert (tmp_path / "placement.png").read_bytes().startswith(b"\x89PNG")


def test_place_as_json() -> None:
    answer = json.loads(succeed("place", "dgx1-v100", "--busy", "0,5", "--sensitive", "--top", "2", "--json"))
    assert answer["policy"] == "least-time"
    assert answer["placement"]["gpus"] == [2, 3, 7, 6]
    assert answer["placement"]["optimal"] is True
    assert answer["placement"]["env"]["CUDA_VISIBLE_DEVICES"] == "2,3,7,6"
    assert answer["reason"] is None
    assert len(answer["candidates"]) == 2


def test_place_without_room_says_why_and_exits_with_1() -> None:
    done = run("place", "dgx1-v100", "--busy", "0,1,2,3,4,5,6", "--gpus", "2")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == "not placed: cannot start now: needs 2 GPUs, 1 is free\n"
    done = run("place", "summit", "--gpus", "7", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["reason"] == "never fits: needs 7 GPUs, the topology has 6"


@pytest.mark.parametrize(
    ("pattern", "gpus"), [("mesh", "2x3"), ("torus", "2x2x2"), ("tree", "5"), ("independent", "1")]
)
def test_place_any_pattern(pattern: str, gpus: str) -> None:
    assert "CUDA_VISIBLE_DEVICES=" in succeed("place", "torus2d-16", "--pattern", pattern, "--gpus", gpus)


def test_topologies_from_text_json_and_standard_input(tmp_path: Path) -> None:
    text, described = tmp_path / "topo", tmp_path / "machine"
    text.write_text(TOPO_M)
    described.write_text(tp.machines.get("minsky").to_json())
    for source, stdin in ((text, ""), ("-", TOPO_M)):
        placed = succeed(
            *("place", source, "--gpus", "2", "--sensitive", "--assume", "gpu_model=V100"), stdin=stdin
        )
        assert placed.splitlines()[4].split()[:5] == ["0", "1", "40", "25", "ms"]
    assert "minsky: GB/s" in succeed("show", described)
    assert "minsky: GB/s" in succeed("show", "-", stdin=described.read_text("utf-8"))


def test_a_profile_and_its_jobs(tmp_path: Path) -> None:
    times, trace, manifest = (tmp_path / name for name in ("times.csv", "trace.csv", "jobs.json"))
    times.write_text(
        "kind,model,batch,gpus,placement,with_model,with_batch,with_gpus,seconds\n"
        "solo,net,1,2,intra-socket,,,,100\nsolo,net,1,2,inter-socket,,,,130\nsolo,net,1,1,intra-socket,,,,50\n"
        "collocation,net,1,1,,net,1,1,60\n"
    )
    rows = ((0, 0, 50, 1), (1, 1, 50, 1), (2, 2, 100, 2))
    trace.write_text(
        "job_id,submit_s,duration_s,num_gpus,nodes,model,batch,min_utility\n"
        + "".join(f"{job},{submit},{time},{size},1,net,1,0.5\n" for job, submit, time, size in rows)
    )
    fields = ("id", "arrival", "time", "gpus")
    common = {"type": "net", "size": "1", "minimal_utility": 0.5, "mem": 1, "tasks": 1}
    manifest.write_text(json.dumps([{**common, **dict(zip(fields, row, strict=True))} for row in rows]))
    ends, with_utility = {}, ("fcfs", "best-fit", "topo-aware", "topo-aware-p")
    for jobs in (trace, manifest):
        command = ("simulate", "minsky", "--jobs", jobs, "--profile", times, "--json")
        command += ("--policies", ",".join(with_utility))
        by_name = {row["policy"]: row for row in json.loads(succeed(*command))}
        ends[jobs] = [by_name[name]["makespan"] for name in with_utility]
        assert by_name["topo-aware"]["slo_violations"] == 1.0
        assert by_name["topo-aware-p"]["slo_violations"] == 0.0
        assert by_name["topo-aware-p"]["nvlink_use"] == 1.0
    assert ends[trace] == ends[manifest]
    shown = succeed("simulate", "minsky", "--jobs", trace, "--profile", times, "--policies", "fcfs")
    assert "SLO violations" in shown
    shown = succeed("simulate", "summit", "--policies", "fcfs,best-fit", "--jobs", manifest)
    assert "rejected" not in shown
    simulated = ("simulate", "minsky", "--jobs", trace, "--json")
    without = run(*simulated, "--policy", "mapa-preserve")  # which honours no min_utility
    assert (without.returncode, json.loads(without.stdout)["policy"]) == (1, "mapa-preserve")
    assert "no job ran: all 3 jobs were rejected; the first: min_utility = 0.5" in without.stderr
    for more in ((), ("--profile", times)):
        summary = json.loads(succeed(*simulated, "--policy", "least-time", *more))
        assert (summary["policy"], summary["slo_violations"]) == ("least-time", 0.0)
    assert json.loads(succeed(*simulated, "--profile", times, "--policy", "fcfs"))["policy"] == "fcfs"
    assert "needs --profile" in run("simulate", "minsky", "--performance", "profile").stderr
    assert "not one of step" in run("simulate", "minsky", "--performance", "collective").stderr
    wrong = run("simulate", "minsky", "--performance", "mapa", "--step", "1,1")
    assert "--step is for --performance step, not mapa" in wrong.stderr
    mix = ("simulate", "dgx1-v100", "--num-jobs", "30", "--policy", "baseline", "--json", "--step")
    slow, fast = (json.loads(succeed(*mix, f"1,{gigabytes}")) for gigabytes in (100, 0))
    assert slow["mean_slowdown"] > fast["mean_slowdown"] == 1


def test_a_policy_that_runs_no_job_is_set_aside(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("job_id,submit_s,num_gpus,duration_s,min_utility\na,0,1,10,0.1\nb,0,7,10,0.1\n")
    done = run("simulate", "summit", "--jobs", trace, "--policies", "baseline,topo-aware", "--json")
    assert [row["policy"] for row in json.loads(done.stdout)] == ["topo-aware"]
    assert "baseline is set aside: min_utility = 0.1 cannot be honoured" in done.stderr
    alone = run("simulate", "summit", "--jobs", trace, "--policies", "baseline")
    assert (alone.returncode, "min_utility = 0.1 cannot be honoured" in alone.stderr) == (1, True)
    neither = run("simulate", "summit", "--jobs", trace, "--policies", "baseline,mapa-greedy")
    assert (neither.returncode, "min_utility = 0.1 cannot be honoured" in neither.stderr) == (2, True)
    everyone = run("simulate", "summit", "--jobs", trace, "--without", "min_utility", "--json")
    assert len(json.loads(everyone.stdout)) == len(USUAL)
    shown = succeed("simulate", "summit", "--jobs", trace, "--policy", "topo-aware")
    assert "rejected 1: never fits: needs 7 GPUs, the topology has 6" in shown


def test_a_wrong_placement_by_a_policy_of_the_users_own_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "lowest.py").write_text(
        "import topoplace as tp\n\n\n"
        "class Lowest(tp.policies.SearchPolicy):\n"
        "    name = 'lowest'\n\n"
        "    def best(self, job, cluster, free, required=frozenset()):\n"
        "        gpus = tuple(range(job.num_tasks))\n"
        "        return tp.Placement(gpus=gpus, topology=cluster.topology, job=job)\n\n"
        "    def order(self, job, placement):\n"
        "        return (0.0,)\n"
    )
    place = ("place", "dgx1-v100", "--gpus", "4", "--policy", "lowest:Lowest", "--top", "1")
    assert run(*place, cwd=tmp_path).returncode == 0
    refused = run(*place, "--busy", "2,5", cwd=tmp_path)
    told = "--policy = 'lowest:Lowest': its placement (0, 1, 2, 3) is wrong: GPUs [2] are not free"
    assert (refused.returncode, refused.stdout) == (2, "")
    assert told in refused.stderr


def test_rows_that_are_no_jobs_are_counted(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("job_id,submit_s,num_gpus,duration_s,user\na,0,1,10,me\nb,0,0,10,me\nc,0,1,ten,me\n")
    assert "line 4: duration_s = 'ten'" in run("simulate", "summit", "--jobs", trace).stderr
    done = run("simulate", "summit", "--jobs", trace, "--skip-bad-rows", "--policy", "fcfs", "--json")
    assert f"{trace}: 3 rows, 1 jobs; skipped: 1 bad (duration_s = 'ten'" in done.stderr
    assert "fields not used: user" in done.stderr
    assert json.loads(done.stdout)["rows"]["skipped"]["without GPUs"] == 1


def test_simulate_and_compare(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs.txt"
    jobs.write_text(JOBS)
    one = ("simulate", "dgx1-v100", "--policy", "least-time")
    summary = json.loads(succeed(*one, "--jobs", jobs, "--performance", "fixed", "--json"))
    assert summary["makespan"] == 40.0
    assert "makespan" in succeed(*one, "--num-jobs", "20", "-o", tmp_path)
    compared = succeed("simulate", "summit", "--num-jobs", "20", "-o", tmp_path)
    assert all(name in compared for name in USUAL)
    assert "fgd" not in compared
    everyone = succeed("simulate", "summit", "--num-jobs", "20", "--policies", "all")
    assert all(name in everyone for name in tp.policies.names(sharing=False))
    assert "fgd" not in everyone
    trace = tmp_path / "shares.csv"
    trace.write_text("job_id,submit_s,num_gpus,duration_s,gpu_milli\na,0,1,10,300\nb,0,1,10,500\n")
    assert "fgd" in run("simulate", "summit", "--jobs", trace).stdout
    rows = json.loads(
        succeed("simulate", "summit", "--jobs", jobs, "--policies", "mapa-greedy,baseline", "--json")
    )
    assert [row["policy"] for row in rows] == ["mapa-greedy", "baseline"]
    pictures = sorted(path.name for path in tmp_path.glob("*.png"))
    assert pictures == ["comparison.png", "fragmentation.png", "gantt.png"]
    assert "slurm-tree" in (tmp_path / "report.html").read_text("utf-8")


def test_report_about_saved_results(tmp_path: Path) -> None:
    for seed in ("1", "2"):
        options = ("--num-jobs", "5", "--policy", "fcfs", "--seed", seed, "--save", f"{seed}.csv")
        succeed("simulate", "summit", *options, cwd=tmp_path)
    page = tmp_path / "page.html"
    assert (
        succeed("report", "1.csv", "2.csv", "-o", page, "--title", "Two & two", cwd=tmp_path)
        == f"wrote {page}\n"
    )
    text = page.read_text("utf-8")
    assert "<title>Two &amp; two</title>" in text
    assert re.search(r'"policy":"fcfs",[^}]*},"repetitions":2', text)
    assert_command_refuses("report", page, "-o", tmp_path / "other.html", message=f"RESULT {page}: ")
    twice = ("report", "1.csv", "1.csv", "-o", "other.html")
    assert_command_refuses(*twice, message="RESULT 1.csv is given twice", cwd=tmp_path)
    full = ("report", "1.csv", "-o", "/dev/full")
    assert_command_refuses(*full, message="-o /dev/full: No space left on device", cwd=tmp_path)
    saved = tmp_path / "1.csv"
    assert_command_refuses("report", saved, "-o", saved, message=f"-o {saved}: is also RESULT {saved}")
    assert "topoplace.result" in saved.read_text("utf-8")
    (tmp_path / "copy.csv").write_text(saved.read_text("utf-8"), "utf-8")
    same = ("report", "1.csv", "copy.csv", "-o", "other.html")
    assert_command_refuses(*same, message="RESULT copy.csv: the same run as RESULT 1.csv", cwd=tmp_path)
    assert_command_refuses(
        "report", "1.csv", "-o", "-", message="-o -: is not the name of a file", cwd=tmp_path
    )
    assert_command_refuses("report", "", "-o", "x.html", message="'' is not a path", cwd=tmp_path)


def test_runs_of_other_options_are_no_repetitions(tmp_path: Path) -> None:
    for name, *more in (
        ("1", "--seed", "1"),
        ("2", "--seed", "2"),
        ("3", "--load", "0.5"),
        ("4", "--seed", "4", "--load", "0.5"),
    ):
        options = ("--num-jobs", "5", "--policy", "fcfs", *more, "--save", f"{name}.csv")
        succeed("simulate", "summit", *options, cwd=tmp_path)
    succeed("report", "1.csv", "2.csv", "3.csv", "4.csv", "-o", "page.html", cwd=tmp_path)
    text = (tmp_path / "page.html").read_text("utf-8")
    assert re.search(r'"policy":"fcfs \(without these options\)",[^}]*},"repetitions":2', text)
    assert re.search(r'"policy":"fcfs \(load 0\.5\)",[^}]*},"repetitions":2', text)


def test_compare_tells_policies_of_one_name_apart(tmp_path: Path) -> None:
    classes = "class A(Baseline):\n    name = 'mine'\n\n\nclass B(BestFit):\n    name = 'mine'\n"
    (tmp_path / "two.py").write_text(f"from topoplace.policies import Baseline, BestFit\n\n\n{classes}")
    options = ("--num-jobs", "20", "--policies", "two:A,two:B", "-o", ".")
    shown = succeed("simulate", "summit", *options, cwd=tmp_path)
    assert "mine (two:A)" in shown
    page = (tmp_path / "report.html").read_text("utf-8")
    assert page.count('"repetitions":1') == 2
    assert_command_refuses(
        "simulate", "summit", "--policies", "fcfs,fcfs", message="'fcfs,fcfs': fcfs is given twice"
    )


def test_compare_counts_what_was_rejected(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs.txt"
    jobs.write_text(JOBS.replace("4,ring", "99,ring"))
    shown = succeed("simulate", "summit", "--jobs", jobs, "--policies", "baseline, fcfs")
    assert "rejected" in shown
    assert [line.split()[-1] for line in shown.splitlines() if line.startswith("baseline")] == ["1"]
    assert "same as baseline: fcfs\n" in shown


DUE = "job_id,due,weight\nvgg,3,0.5\nresnet,8,1\nalexnet,2,0.9\n"
TIMES = "job_id,vm_type,gpus,hours\nvgg,NC6,1,4\nvgg,Custom2,4,2\nresnet,Custom2,4,5\nalexnet,NC6,1,1\n"


def test_capacity_decides_what_to_let(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(DUE)
    (tmp_path / "times.csv").write_text(TIMES)
    command = ("capacity", "jobs.csv", "times.csv", "--nodes", "2")
    shown = succeed(*command, cwd=tmp_path)
    assert "Custom2" in shown
    assert "optimal" in shown
    for planner in ("milp", "search", "tight", "printed"):
        found = json.loads(succeed(*command, "--json", "--planner", planner, cwd=tmp_path))
        used = {name: gpus for node in found["nodes"] for name, gpus in node["jobs"].items()}
        assert used == {"vgg": 4, "resnet": 4, "alexnet": 1}
        assert found["cost"]["total"] >= found["bound"] >= 0
    plain = json.loads(succeed(*command, "--json", "--planner", "fifo", cwd=tmp_path))
    assert plain["postponed"] == ["alexnet"]


def test_capacity_names_the_first_of_many_jobs_that_wait(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("job_id,due,weight\n" + "".join(f"j{i},9,1\n" for i in range(1000)))
    times = "".join(f"j{i},NC6,1,2\n" for i in range(1000))
    (tmp_path / "times.csv").write_text("job_id,vm_type,gpus,hours\n" + times)
    command = ("capacity", "jobs.csv", "times.csv", "--planner", "fifo")
    shown = succeed(*command, cwd=tmp_path)
    assert "j5, j6" in shown
    assert "j24 and 975 more" in " ".join(shown.split())
    assert len(json.loads(succeed(*command, "--json", cwd=tmp_path))["postponed"]) == 995


def test_times_that_are_none_are_refused_with_their_file(tmp_path: Path) -> None:
    (tmp_path / "times.csv").write_text("job,hours\n")
    done = run("papers", "gpuaas", "--quick", "--times", "times.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("topoplace: times.csv: line 1: columns = ['job', 'hours']: must contain")


def test_a_log_without_jobs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.swf").write_text("; MaxNodes: 2\n")
    for command, why in (
        (("simulate", "dgx1-v100", "--jobs"), "contains no job"),
        (("papers", "tsubame", "--log"), "the log has no job that ran and had GPUs"),
    ):
        done = run(*command, "empty.swf", cwd=tmp_path)
        assert done.returncode == 2
        assert done.stderr == f"topoplace: empty.swf: {why}\n"


def test_capacity_names_the_row_that_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(DUE)
    (tmp_path / "times.csv").write_text(TIMES + "vgg,NC6,1,0\n")
    done = run("capacity", "jobs.csv", "times.csv", cwd=tmp_path)
    assert done.returncode == 2
    fault = "times, line 6: repeats the job, type and number of GPUs of an earlier line"
    assert done.stderr == f"topoplace: jobs.csv, times.csv: {fault}\n"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("show minsky --svg", "--svg needs -o, where the picture is written"),
        ("simulate minsky --skip-bad-rows", "--skip-bad-rows needs --jobs, whose rows it is about"),
        (
            "capacity jobs.csv times.csv --planner edf --timeout 1",
            "--timeout is not for the planner edf, which decides at once",
        ),
        (
            "capacity jobs.csv times.csv --planner search --gap .1",
            "--gap is for the planners milp, tight, printed, not for search",
        ),
    ],
)
def test_options_that_would_change_nothing_are_refused(tmp_path: Path, command: str, message: str) -> None:
    (tmp_path / "jobs.csv").write_text(DUE)
    (tmp_path / "times.csv").write_text(TIMES)
    done = run(*command.split(), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, f"topoplace: {message}\n")


def test_formats_are_listed_as_json(tmp_path: Path) -> None:
    listed = ("show", "--list", "formats")
    formats = succeed(*listed, cwd=tmp_path).splitlines()
    assert json.loads(succeed(*listed, "--json", cwd=tmp_path)) == formats


def test_show_reads_gzip(tmp_path: Path) -> None:
    plain, packed = tmp_path / "topo.txt", tmp_path / "topo.txt.gz"
    plain.write_text("\tGPU0\tGPU1\nGPU0\t X \tNV2\nGPU1\tNV2\t X \n")
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert succeed("show", packed, "--json") == succeed("show", plain, "--json")
    whole = packed.read_bytes()
    for changed, message in ((whole[:-9], "gzip, cut off"), (whole + b"more", "something else after it")):
        packed.write_bytes(changed)
        done = run("show", packed)
        assert done.returncode == 2
        assert message in done.stderr


def test_gzip_of_several_members_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = tmp_path / "two.gz"
    packed.write_bytes(gzip.compress(b"4 3\n2\n1 3\n") + gzip.compress(b"") + gzip.compress(b"2 4\n3\n"))
    assert reading.unpacked(str(packed)) == b"4 3\n2\n1 3\n2 4\n3\n"
    monkeypatch.setattr(reading, "_MAX_UNPACKED", 12)
    with pytest.raises(ValueError, match="gzip, more than 12 bytes"):
        reading.unpacked(str(packed))


def test_papers_mapa_writes_the_artifacts_log(tmp_path: Path) -> None:
    jobs, log = tmp_path / "jobs.txt", tmp_path / "log.txt"
    jobs.write_text(JOBS)
    options = ("papers", "mapa", "--job-lines", jobs, "--topology", "dgx-v", "--policy", "preserve")
    printed = succeed(*options)
    assert printed.startswith("ID startTime endTime")
    assert len(printed.splitlines()) == 4
    assert succeed(*options, "--write", log) == ""
    assert log.read_text("utf-8") == printed


# ---- what does not -----------------------------------------------------------------------------------------------


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A directory with files that are not what they should be."""
    (tmp_path / "binary").write_bytes(b"GPU0\xff\xfe\x00")
    (tmp_path / "zeros").write_bytes(b"GPU0\0\0")
    (tmp_path / "empty").write_text(" \n")
    (tmp_path / "prose").write_text("It was a dark and stormy night.\n")
    (tmp_path / "cut.json").write_text('{"format": "topoplace.topology", ')
    (tmp_path / "jobs.csv").write_text("pattern,gpus,submit,run_time\nring,two,0,1\n")
    (tmp_path / "header.csv").write_text("job_id,submit_s,num_gpus,duration_s\n")
    (tmp_path / "topology.conf").write_text("SwitchName=a Nodes=n[1-3]\n")
    (tmp_path / "folder").mkdir()
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)  # takes no room on the disk, and no memory if it is not read
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("show qqq", "qqq: no such file, and no built-in machine\n"),
        ("show topo.txt", "no built-in machine; `topoplace example topo.txt` writes one\n"),
        ("show dgx1-v10", "dgx1-v10: no such file, and no built-in machine; did you mean dgx1-v100"),
        ("show no/such/file", "no/such/file: no such file"),
        ("show folder", "folder: Is a directory"),
        ("show binary", "binary: text is not UTF-8: byte 4 is 0xff"),
        ("show zeros", "zeros: text is binary: character 4 is 0"),
        ("show empty", "empty: empty"),
        ("show huge", "huge: more than 67108864 bytes"),
        ("show /dev/zero", "/dev/zero: more than 67108864 bytes"),
        ("simulate summit --jobs huge", "huge: more than 4294967296 bytes"),
        ("show prose", "prose: "),
        ("show cut.json", "cut.json: not JSON"),
        ("show -", "standard input: empty"),
        ("show summit -o prose", "-o prose: not a directory"),
        ("show topology.conf --one n1", "topology is a network alone; --one needs machines with GPUs"),
        ("show topology.conf -o out", "topology is a network alone; -o needs machines with GPUs"),
        ("sweep binary -o out", "binary: not a text in UTF-8"),
        ("papers tsubame --log binary", "binary: not a text file (byte 4 is 0xff)"),
        ("papers tsubame --log zeros", "zeros: not a text file (byte 4 is 0)"),
        ("papers tsubame --log prose", "prose: neither Standard Workload Format nor a PBS accounting log"),
        ("place summit --busy 99", "--busy '99': GPU 99: the GPUs are 0..5"),
        ("place summit --busy 1,1", "--busy '1,1': GPU 1: given twice"),
        ("place summit --busy=-1", "--busy '-1': GPU -1: the GPUs are 0..5"),
        ("place summit --busy a", "--busy 'a': not GPU numbers"),
        ("place summit --busy=", "--busy '': no GPU is named; leave the option out if there is none"),
        ("simulate summit --jobs nowhere.csv", "--jobs nowhere.csv: No such file or directory"),
        ("simulate summit --profile=nowhere.csv", "--profile nowhere.csv: No such file or directory"),
        ("profile show nowhere", "topoplace: nowhere: No such file or directory"),
        (
            "kubernetes extender summit --token-file nowhere",
            "--token-file nowhere: No such file or directory",
        ),
        ("place summit --gpus 0", "--gpus '0': not in 1..4096"),
        ("place summit --gpus 99999", "--gpus '99999': not in 1..4096"),
        ("place summit --gpus=-3", "--gpus '-3': not in 1..4096"),
        ("place summit --gpus four", "--gpus 'four': not a number"),
        ("place summit --gpus 2x2", "--gpus '2x2': a ring takes one number"),
        ("place summit --pattern knot", "--pattern 'knot': not one of ring"),
        ("place summit --policy best", "'best': no such policy"),
        ("place summit --top 0", "--top: 0 is not at least 1"),
        ("simulate summit --jobs jobs.csv", "jobs.csv: line 2: gpus = 'two', not a number"),
        ("simulate summit --jobs nothing.csv", "nothing.csv: No such file"),
        ("simulate summit --jobs header.csv", "topoplace: header.csv: contains no job\n"),
        ("show prose --numa empty", "prose: "),
        ("show summit --numa empty", "topoplace: empty: empty\n"),
        ("show summit --measured empty", "topoplace: empty: empty\n"),
        ("simulate summit --num-jobs=-5", "--num-jobs: -5 is not at least 1"),
        ("simulate summit --seed=-5", "--seed: -5 is not at least 0"),
        ("simulate summit --seed=x", "--seed: 'x' is not a whole number"),
        ("simulate summit --policies baseline,worst", "'worst': no such policy"),
        ("simulate summit --policies ,", "--policies ',': a name is empty"),
        ("papers mapa --artifact folder", "folder: has no results-MACHINE-POLICY-JOBS.txt"),
        ("papers mapa --job-lines jobs.csv", "--topology and --policy missing"),
        ("papers mapa --job-lines jobs.csv --topology dgx-v --policy greedy", "line 1: 4 columns, 6 needed"),
        ("demo", "'demo' is gone: run `topoplace explore` or, in a clone, `make demo` instead"),
        ("dance", "invalid choice: 'dance'"),
        ("machines", "'machines' is gone: run `topoplace show --list machines` instead"),
        (
            "collective dgx1-v100",
            "gone: run `topoplace show MACHINE --collective N` or `topoplace show measure`",
        ),
        ("diff a b", "'diff' is gone: run `topoplace show B --since A` instead"),
        ("show summit --since summit -o out", "-o: --since draws nothing"),
        ("show summit --list machines", "TOPO: --list is about no topology"),
        ("show summit --rates nccl-2.18", "--rates has an effect only with --collective"),
        ("show topology.conf --check", "topology is a network alone; --check needs machines with GPUs"),
        ("show --assume gpu_model=V100", "--assume is about TOPO, which is not given"),
    ],
    ids=lambda value: value or "nothing",
)
def test_wrong_input_is_one_line_that_says_what(odd: Path, arguments: str, message: str) -> None:
    assert_command_refuses(*arguments.split(), message=message, cwd=odd)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_named(odd: Path) -> None:
    (odd / "prose").chmod(0)
    done = run("show", "prose", cwd=odd)
    assert (done.returncode, done.stderr) == (2, "topoplace: prose: Permission denied\n")


def test_a_reader_that_goes_away_is_no_error_message() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([COMMAND, "show", "torus2d-16"], stdout=write, stderr=subprocess.PIPE, timeout=60)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_closed_output_is_nobody_to_talk_to() -> None:
    for command in ("show summit", "place summit", "place summit --json", "--help"):
        done = subprocess.run(
            ["sh", "-c", f'"$0" {command} >&-', COMMAND], stderr=subprocess.PIPE, timeout=60
        )
        assert done.returncode == 0
        assert b"Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_line() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([COMMAND, "show", "summit"], stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert (done.returncode, done.stderr) == (2, b"topoplace: standard output: No space left on device\n")


def test_standard_input_that_is_closed_is_named() -> None:
    done = subprocess.run(
        ["sh", "-c", '"$0" show - <&-', COMMAND], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (2, "topoplace: standard input: closed\n")


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"LC_ALL": "C"},
        *(
            pytest.param(one, marks=pytest.mark.deep)
            for one in ({"PYTHONIOENCODING": "ascii"}, {"COLUMNS": "1"}, {"HOME": ""})
        ),
    ],
    ids=str,
)
def test_names_of_others_do_no_harm_on_any_terminal(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "topo").write_text(
        tp.Topology.from_links(2, [(0, 1, 5.0)], name="\x1b[31mréd\nline→ $\\frac$").to_json()
    )
    done = subprocess.run(
        [COMMAND, "show", "topo", "-o", "."], capture_output=True, cwd=tmp_path, env=environment, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"\\x1b[31mr\\xe9d\\nline\\u2192 $\\\\frac$: GB/s")


@pytest.mark.parametrize("endings", ["\r\n", "\n"])
def test_line_endings_and_links_to_files_do_not_matter(tmp_path: Path, endings: str) -> None:
    (tmp_path / "topo").write_bytes(TOPO_M.replace("\n", endings).encode())
    (tmp_path / "jobs").write_bytes(JOBS.replace("\n", endings).encode())
    (tmp_path / "link").symlink_to("topo")
    assert "GPU 2" in succeed("show", "link", cwd=tmp_path)
    assert "makespan" in succeed("simulate", "link", "--jobs", "jobs", cwd=tmp_path)


def test_a_long_argument_is_not_repeated_whole() -> None:
    for command in (("show", "a" * 9999), ("place", "summit", "--gpus", "9" * 9999), ("a" * 9999,)):
        done = run(*command)
        assert done.returncode == 2
        assert len(done.stderr) < 500
        assert len(done.stderr.splitlines()) == 1
