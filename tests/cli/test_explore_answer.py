"""What the page of `topoplace explore` shows is what the library answers, and what is wrong is said of its field."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import topoplace as tp
from distributions import whole
from topoplace import policies
from topoplace.cli.explorer import presets, subject
from topoplace.cli.explorer.answer import answer, choices
from topoplace.cli.explorer.state import MAX_TEXT, State, StateError

HOST = "".join(f"\tGPU{i}" for i in range(2)) + "\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n"


def answered(**fields: Any) -> dict[str, Any]:
    found = answer(State.of(fields))
    json.dumps(found, allow_nan=False)  # the browser can read it
    return found


def problem(**fields: Any) -> tuple[str, str]:
    wrong = answered(**{"machine": "dgx1-v100"} | fields)["problem"]
    return wrong["field"], wrong["message"]


@pytest.mark.parametrize("machine", tp.machines.names())
def test_rows_are_what_each_policy_places(machine: str) -> None:
    """The rows of random busy sets against `place` of each policy, its time, and the rings among its GPUs."""
    topology = tp.machines.get(machine)
    rng = random.Random(machine)
    size = min(4, topology.num_gpus // 2)
    for _ in range(2):
        busy = rng.sample(range(topology.num_gpus), rng.randrange(topology.num_gpus - size + 1))
        found = answered(machine=machine, gpus=str(size), busy=",".join(map(str, busy)))
        assert found["problem"] is None
        rows = {row["policy"]: row for row in found["rows"]}
        assert sorted(rows) == sorted(policies.names())
        for name, row in rows.items():
            expected = placed(name, ring(size), topology, busy)
            if expected is None:
                assert row["gpus"] is None
                assert row["refusal"]
            elif not row["note"]:
                assert tuple(row["gpus"]) == expected.gpus
                assert row["seconds"] == pytest.approx(expected.time)
                assert row["slowest"] == expected.slowest
                if row["ring"] is not None:
                    assert row["ring"] == pytest.approx(
                        tp.collective.all_reduce_bandwidth(topology, expected.gpus)
                    )


def ring(size: int) -> tp.JobGraph:
    return tp.JobGraph.ring(size).with_(bandwidth_sensitive=True)


def placed(name: str, job: tp.JobGraph, topology: tp.Topology, busy: list[int]) -> tp.Placement | None:
    cluster = tp.Cluster(topology)
    if busy:
        cluster.allocate("busy", sorted(busy))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return policies.get(name).place(job, cluster)
        except ValueError:
            return None


def test_only_sensitive_jobs_get_fast_links_from_mapa_preserve() -> None:
    def ring_of(sensitive: bool) -> float:
        found = answered(machine="dgx1-v100", busy="0,5", sensitive=sensitive)
        gb_per_s: float = next(row["ring"] for row in found["rows"] if row["policy"] == "mapa-preserve")
        return gb_per_s

    assert ring_of(True) > ring_of(False)


def test_rows_are_ranked_by_time_and_refusals_come_last() -> None:
    rows = answered(machine="dgx1-v100", busy="0,5")["rows"]
    times = [row.get("seconds") for row in rows]
    assert rows[0]["policy"] == policies.DEFAULT
    assert len(set(times)) > 1  # the choices differ
    placed_times = [time for time in times if time is not None]
    assert placed_times == pytest.approx(sorted(placed_times))
    assert times == placed_times + [None] * times.count(None)
    rows = answered(machine="dgx1-v100", parallel="tensor=2,data=2", groups="2@machine")["rows"]
    refused = [row["gpus"] is None for row in rows]
    assert any(refused)
    assert refused == sorted(refused)


def test_the_drawing_is_of_the_chosen_policy() -> None:
    for policy in ("least-time", "baseline"):
        found = answered(machine="dgx1-v100", busy="0,5", policy=policy)
        row = next(row for row in found["rows"] if row["policy"] == policy)
        svg = found["drawing"]["svg"]
        assert {int(gpu) for gpu in re.findall(r'class="gpu chosen" data-gpu="(\d+)"', svg)} == set(
            row["gpus"]
        )
        assert set(re.findall(r'class="gpu busy" data-gpu="(\d+)"', svg)) == {"0", "5"}
        assert found["detail"]["policy"] == policy
        assert found["detail"]["candidates"][0]["gpus"] == row["gpus"]


def test_parts_of_an_answer_are_those_of_the_whole() -> None:
    state = {"machine": "dgx1-v100", "busy": "0,5", "policy": "baseline"}
    whole, first, then = (answered(**state, part=part) for part in ("all", "choices", "detail"))
    assert first["drawing"] == whole["drawing"]
    assert then["detail"] == whole["detail"]
    assert first["rows"] == then["rows"] == whole["rows"]
    assert first["detail"] is then["drawing"] is None


def test_pinned_gpus_are_among_those_placed() -> None:
    for row in answered(machine="dgx1-v100", pinned="5")["rows"]:
        assert 5 in row["gpus"] if row["gpus"] else "GPU 5" in row["refusal"]
    best = answered(machine="dgx1-v100", pinned="5")["rows"][0]
    bandwidths = [
        tp.collective.ring_bandwidth(tp.machines.get("dgx1-v100"), (5, a, b, c))
        for a in range(5)
        for b in range(a)
        for c in range(b)
    ]
    assert best["ring"] >= max(bandwidths)


@whole
def test_as_many_pinned_gpus_as_tasks_are_the_whole_choice() -> None:
    rows = answered(machine="dgx1-v100", pinned="0,3,5,6")["rows"]
    assert {tuple(sorted(row["gpus"])) for row in rows if row["gpus"]} == {(0, 3, 5, 6)}
    assert sum(row["gpus"] is not None for row in rows) > 20


def test_unhealthy_gpus_get_no_task() -> None:
    found = answered(machine="dgx1-v100", unhealthy="0-3")
    assert all(set(row["gpus"]) == {4, 5, 6, 7} for row in found["rows"] if row["gpus"])
    assert found["drawing"]["svg"].count('class="gpu unhealthy"') >= 4


@pytest.mark.parametrize(("links", "speed"), [("0-3=half", "25"), ("0-3 = lost", None)])
def test_a_link_is_slower_or_lost(links: str, speed: str | None) -> None:
    svg = answered(machine="dgx1-v100", links=links)["drawing"]["svg"]
    found = re.search(r'data-link="0-3" data-gb-per-s="([\d.]+)"', svg)
    assert (found and found[1]) == speed
    before = re.search(
        r'data-link="0-3" data-gb-per-s="([\d.]+)"', answered(machine="dgx1-v100")["drawing"]["svg"]
    )
    assert before
    assert before[1] == "50"


def test_a_link_inside_a_machine_of_a_cluster_is_lost() -> None:
    found = answered(machine="dgx1-v100", count=3, links="8-11=lost", open=1)
    assert found["drawing"]["open"] == "machine1"
    assert found["drawing"]["numbers"] == list(range(8, 16))
    assert 'data-link="0-3"' not in found["drawing"]["svg"]
    assert 'data-link="0-3"' in answered(machine="dgx1-v100", count=3, open=1)["drawing"]["svg"]


def test_what_fits_afterwards_leaves_the_chosen_gpus_alone() -> None:
    left = answered(machine="dgx1-v100", busy="0,5")["detail"]["left"]
    assert [(one["size"], one["fits"]) for one in left] == [(1, True), (2, True)]
    expected = tp.collective.ring_bandwidth(tp.machines.get("dgx1-v100"), (1, 4))  # 2, 3, 7 and 6 are taken
    assert left[1]["ring"] == pytest.approx(expected)


def test_many_machines_are_tiles_that_open() -> None:
    state = {"machine": "dgx-h100", "count": 1300, "gpus": "16", "busy": "0-7"}
    drawing = answered(**state)["drawing"]
    assert drawing["svg"].count("data-machine=") == 1300
    assert drawing["tiles"][2] == [16, 23]
    opened = answered(**state, open=0)["drawing"]
    assert opened["numbers"] == list(range(8))
    assert opened["svg"].count('class="gpu busy"') >= 8


@pytest.mark.parametrize(("machine", "count"), [("dgx-h100", 128), ("minsky", 256), ("gb200-nvl72", 14)])
def test_many_machines_fit_the_height_and_have_names(machine: str, count: int) -> None:
    """With up to 1,024 GPUs, each machine says which it is: by its GPUs' numbers, or by the end of its name."""
    drawing = answered(machine=machine, count=count, width=615, height=520, busy="0-3", gpus="4")["drawing"]
    found = re.search(r'viewBox="0 0 [\d.]+ ([\d.]+)"', drawing["svg"])
    assert found
    assert float(found[1]) <= 520
    tiles = re.findall(
        r'data-machine="(\d+)"><title>(\S+):[^<]*</title><rect[^>]*/><text[^>]*>([^<]+)', drawing["svg"]
    )
    assert len(tiles) == len(drawing["tiles"])
    assert all(name.endswith(shown) and shown for _, name, shown in tiles)
    assert drawing["machines"]


def test_a_few_machines_show_their_gpus() -> None:
    drawing = answered(machine="dgx-h100", count=9, width=615, height=520)["drawing"]
    assert drawing["svg"].count("data-gpu=") == 72
    assert drawing["tiles"] == []


# ---- presets and fabrics ----


@pytest.mark.parametrize(
    ("machine", "count"), [*((name, 1) for name in tp.machines.names()), ("dgx1-v100", 3), ("gb200-nvl72", 3)]
)
def test_presets_are_what_the_fields_say_then(machine: str, count: int) -> None:
    offered = answered(machine=machine, count=count)["about"]["presets"]
    assert {"idle", "half in use, scattered"} <= set(offered)
    for name in offered:
        found = answered(machine=machine, count=count, gpus="2", preset=name, part="choices")
        assert found["problem"] is None
        stated = answered(machine=machine, count=count, gpus="2", part="choices", **found["fields"])
        assert stated["drawing"] == found["drawing"]
        assert stated["fields"] == {}
    drained = "one machine drained, half in use"
    assert (drained in offered) == (answered(machine=machine, count=count)["about"]["machines"] > 1)


@pytest.mark.parametrize("machine", ["dgx1-v100", "minsky", "gb200-nvl72"])
def test_half_in_use_is_half(machine: str) -> None:
    topology = tp.machines.get(machine)
    half, opening = (
        presets.PRESETS[name](topology)[0] for name in ("half in use, scattered", "some in use, scattered")
    )
    assert len(half) == topology.num_gpus / 2
    assert topology.num_gpus - len(opening) >= min(6, topology.num_gpus)
    assert ("some in use, scattered" in presets.offered(topology)) == (half != opening)
    drained = tp.Topology.cluster(topology, 2) if topology.num_machines == 1 else topology
    busy, unhealthy = presets.PRESETS["one machine drained, half in use"](drained)
    assert 2 * len(busy) == drained.num_gpus - len(unhealthy)


def test_a_drained_machine_gets_no_task() -> None:
    found = answered(machine="dgx-h100", count=4, preset="one machine drained, half in use")
    assert found["fields"]["unhealthy"] == "0-7"
    assert all(min(row["gpus"]) > 7 for row in found["rows"] if row["gpus"])


def test_one_gpu_of_each_socket_is_in_use() -> None:
    topology = tp.machines.get("dgx1-v100")
    busy = presets.fields(topology, "one GPU of each socket in use")["busy"].split(",")
    assert [topology.gpus[int(gpu)].socket for gpu in busy] == [0, 1]


@pytest.mark.parametrize("fabric", [name for name in subject.FABRICS if name])
def test_a_fabric_joins_machines_and_choices_differ(fabric: str) -> None:
    state = {"machine": "dgx-h100", "count": 16, "gpus": "16", "fabric": fabric}
    topology = subject.whole(State.of(state), None)
    assert [level.name for level in topology.levels][-1] == "spine"
    assert any(level.rail for level in topology.levels) == fabric.startswith("rails")
    rows = answered(**state, preset="half in use, scattered")["rows"]
    assert len({row["seconds"] for row in rows if row["gpus"]}) > 1


# ---- what people copy ----


STATES = [
    {"busy": "0,5"},
    {"busy": "0,5", "sensitive": False, "policy": "mapa-preserve"},
    {"busy": "0,5", "policy": "mapa-preserve"},
    {"busy": "0-2", "pattern": "clique", "gpus": "3", "policy": "topo-aware"},
    {"parallel": "tensor=2,data=2", "groups": "2@socket"},
    {"machine": "tpu-v4-64", "pattern": "torus", "gpus": "2x2", "busy": "0-9"},
    {"count": 4, "gpus": "16", "busy": "0,3,5,9"},
    {"links": "0-3=lost", "unhealthy": "7", "busy": "7"},
    {"unhealthy": "1,2", "busy": "0"},
    {"count": 8, "gpus": "16", "busy": "0-2", "fabric": "rails of 4, spine 2:1", "unhealthy": "3"},
    {"machine": "", "text": HOST, "gpu_model": "V100", "gpus": "2"},
]


@pytest.mark.parametrize("fields", STATES, ids=str)
def test_the_copied_program_places_the_same(
    fields: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, row = chosen(fields)
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {}
    exec(found["detail"]["python"], scope)
    assert list(scope["placement"].gpus) == row["gpus"]


@pytest.mark.parametrize("fields", STATES, ids=str)
def test_the_copied_command_places_the_same(fields: dict[str, Any], tmp_path: Path) -> None:
    found, row = chosen(fields)
    command = found["detail"]["command"].replace(
        "topoplace place", f"{sys.executable} -m topoplace place --json", 1
    )
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["placement"]["gpus"] == row["gpus"]


def chosen(fields: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    found = answered(**{"machine": "dgx1-v100"} | fields)
    assert found["problem"] is None
    row = next(row for row in found["rows"] if row["policy"] == found["detail"]["policy"])
    assert row["gpus"]
    return found, row


def test_environment_and_launch_files_are_those_of_the_placement() -> None:
    found = answered(machine="dgx1-v100", busy="0,5")["detail"]
    placement = placed("least-time", ring(4), tp.machines.get("dgx1-v100"), [0, 5])
    assert placement
    assert "export CUDA_VISIBLE_DEVICES=2,3,7,6" in found["environment"]
    assert found["launch"] == dict(placement.launch("torchrun").files)


# ---- texts ----


def test_a_pasted_text_is_read() -> None:
    found = answered(text=HOST, gpu_model="V100", gpus="2")
    assert found["problem"] is None
    assert found["about"]["gpus"] == 2
    assert {tuple(row["gpus"]) for row in found["rows"] if row["gpus"]} == {(0, 1)}


def test_an_unreadable_text_is_shown_with_its_line() -> None:
    wrong = answered(text=HOST.replace("GPU1\tNV4\t X ", "GPU1\tNV4"))["problem"]
    assert wrong["field"] == "text"
    assert "line 3" in wrong["message"]
    assert wrong["line"] == {"number": 3, "text": "GPU1\tNV4"}


def test_the_topology_of_the_command_is_that_without_a_machine() -> None:
    own = tp.machines.get("summit")
    assert answer(State(gpus="2"), own)["about"]["name"] == "summit"
    assert answered(machine="", gpus="2")["problem"]["field"] == "machine"


# ---- what is wrong ----


@pytest.mark.parametrize(
    ("fields", "field", "said"),
    [
        ({"machine": "dgx1-v10"}, "machine", "'dgx1-v10' is no built-in machine; did you mean"),
        ({"machine": "x" * 500}, "machine", "is no built-in machine"),
        ({"machine": "tpu-v4-64", "count": 12_500}, "count", "800,000 GPUs: the page shows up to 100,000"),
        ({"text": "hello"}, "text", ""),
        ({"text": "\0" * 99}, "text", ""),
        ({"fabric": "rail", "count": 2}, "fabric", "'rail' is not one of"),
        ({"preset": "full"}, "preset", "'full' is not one of idle"),
        ({"busy": "8"}, "busy", "in use '8': GPU 8: the GPUs are 0..7"),
        ({"busy": "0-999999999"}, "busy", "the GPUs are 0..7"),
        ({"busy": "0;1"}, "busy", "not GPU numbers"),
        ({"unhealthy": "-1"}, "unhealthy", "-1"),
        ({"pinned": "99"}, "pinned", "the GPUs are 0..7"),
        ({"pinned": "3", "busy": "3"}, "pinned", "GPU 3 is pinned and in use"),
        ({"pinned": "3", "unhealthy": "3"}, "pinned", "GPU 3 is pinned and unhealthy"),
        ({"links": "0-3"}, "links", "'0-3' is not as 0-3=half or 0-3=lost"),
        ({"links": "0-7=half"}, "links", "GPUs 0 and 7 have no direct link"),
        ({"links": "0-0=half"}, "links", "0-0 is no link inside a machine"),
        ({"links": "0-64=half"}, "links", "GPU 64: the GPUs are 0..7"),
        ({"count": 2, "links": "0-9=half"}, "links", "0-9 is no link inside a machine"),
        ({"gpus": "many"}, "gpus", "not a number"),
        ({"gpus": "0"}, "gpus", "not in 1.."),
        ({"gpus": "99999999"}, "gpus", "up to 1,024 tasks"),
        ({"pattern": "mesh", "gpus": "x".join(["2"] * 99)}, "gpus", "up to 1,024 tasks"),
        ({"pattern": "rings"}, "pattern", "rings"),
        ({"parallel": "tensor=0"}, "parallel", "tensor"),
        ({"parallel": "sensor=2"}, "parallel", "sensor"),
        ({"groups": "8"}, "groups", "is not SIZE@LEVEL"),
    ],
)
def test_a_wrong_field_is_named(fields: dict[str, Any], field: str, said: str) -> None:
    named, message = problem(**fields)
    assert named == field
    assert said in message
    assert len(message) < 600


def test_what_does_not_depend_on_a_wrong_field_is_shown() -> None:
    found = answered(machine="dgx1-v100", busy="99")
    assert found["drawing"]["svg"].count('class="gpu free"') >= 8
    assert found["rows"] == []
    assert "gpu busy" in answered(machine="dgx1-v100", busy="1", gpus="x")["drawing"]["svg"]


def test_a_job_larger_than_the_machine_is_refused_by_each_policy() -> None:
    found = answered(machine="dgx1-v100", gpus="9")
    assert found["problem"] is None
    assert all(row["gpus"] is None and row["refusal"] for row in found["rows"])
    assert found["detail"]["environment"] == ""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "a state is an object"),
        (None, "a state is an object"),
        ({"machines": "x"}, "a field of the state = 'machines'"),
        ({"busy": [1, 2]}, "busy = [1, 2] is not a text"),
        ({"count": "2"}, "count = '2'"),
        ({"count": 0}, "count = 0"),
        ({"count": 10**30}, "count"),
        ({"count": True}, "count = True"),
        ({"sensitive": 1}, "sensitive = 1"),
        ({"width": 10}, "width = 10"),
        ({"part": "half"}, "part = 'half'"),
        ({"text": "x" * (MAX_TEXT + 1)}, "text has"),
        ({"gpus": "1" * 500_000}, "gpus has 500000 characters"),
    ],
)
def test_what_is_no_state_is_refused(given: object, said: str) -> None:
    with pytest.raises(StateError, match=re.escape(said)):
        State.of(given)


def test_choices_are_those_of_the_library() -> None:
    found = choices()
    assert found["machines"] == list(tp.machines.names())
    assert found["policies"] == list(policies.names())
    for pattern in found["patterns"]:
        gpus = "2x2" if pattern in ("mesh", "torus") else "4"
        assert answered(machine="dgx1-v100", pattern=pattern, gpus=gpus)["problem"] is None


def test_a_port_into_switches_can_be_slow_or_lost() -> None:
    rings = {
        links: answer(State(machine="dgx-a100", links=links, pinned="0,1,2,3"))["rows"][0]["ring"]
        for links in ("", "1-nvswitch=half", "1-nvswitch=lost")
    }
    assert rings == {"": 240.0, "1-nvswitch=half": 120.0, "1-nvswitch=lost": 24.0}
    problem = answer(State(machine="dgx1-v100", links="1-nvswitch=half"))["problem"]
    assert problem["message"] == "links: GPU 1 has no link to a switch that is listed"
    on_second = answer(State(machine="dgx-a100", count=2, links="9-nvswitch=lost", pinned="8,9"))["rows"][0]
    assert on_second["ring"] == 24.0
