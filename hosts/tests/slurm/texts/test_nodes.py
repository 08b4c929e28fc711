"""Slurm's lists of nodes: how many GPUs there are, and which of them jobs hold."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from refusals import refusal
from topoplace import LinkKind, TopologyError, discovery, machines
from topoplace_hosts.slurm.texts import node_states, nodes
from topoplace_hosts.slurm.texts.node_states import Meaning

SCONTROL = (Path(__file__).parents[4] / "tests/data/slurmnodes-scontrol.txt").read_text("utf-8")
SINFO = """NODELIST   GRES              GRES_USED               STATE
n[1-2]     gpu:a100:4(S:0-1) gpu:a100:2(IDX:0-1)     mixed
n3         gpu:a100:4(S:0-1) gpu:a100:0(IDX:N/A)     down*
n3         gpu:a100:4(S:0-1) gpu:a100:0(IDX:N/A)     down*
cpu1       (null)            gpu:0                   idle
"""


def held(text: str) -> list[tuple[str | None, int | None]]:
    return [(one.machine, one.number) for one in nodes.in_use(text) if one.taken]


def test_records_of_scontrol() -> None:
    found = tp.read(SCONTROL)
    assert {name: len(gpus) for name, gpus in found.gpus_of.items()} == {"n1": 4, "n2": 4}
    assert {gpu.model for gpu in found.gpus} == {"a100"}
    assert [gpu.healthy for gpu in found.gpus] == [True] * 4 + [False] * 4
    assert set(found.notes) >= {
        "Slurm does not state how the GPUs of a node are connected.",
        "Nodes on which Slurm starts nothing, whose GPUs are unhealthy: n2 (DRAIN).",
        "Without GPUs, and left out: login.",
    }
    assert held(SCONTROL) == [("n1", 0), ("n1", 2), ("n1", 3)]


def test_one_line_a_node() -> None:
    text = (
        "NodeName=g2 State=MIXED CPUTot=64 Gres=gpu:h100:2(S:0) GresUsed=gpu:h100:1(IDX:1) AllocTRES=cpu=2\n"
    )
    found = tp.read(text)
    assert (found.machine_names, found.num_gpus) == (("g2",), 2)
    assert held(text) == [("g2", 1)]


def test_a_table_of_sinfo() -> None:
    found = tp.read(SINFO)
    assert {name: len(gpus) for name, gpus in found.gpus_of.items()} == {"n1": 4, "n2": 4, "n3": 4}
    assert [gpu.healthy for gpu in found.gpus] == [True] * 8 + [False] * 4
    assert held(SINFO) == [("n1", 0), ("n1", 1), ("n2", 0), ("n2", 1)]


def test_use_alone_is_no_topology() -> None:
    text = "GRES_USED            NODELIST\ngpu:2(IDX:0,3)       n1\n"
    assert held(text) == [("n1", 0), ("n1", 3)]
    with pytest.raises(TopologyError, match=r"not how many there are; use it as --busy-from FILE"):
        tp.read(text)


@pytest.mark.parametrize(
    "document",
    [
        {
            "nodes": [
                {"name": "n1", "gres": "gpu:l40s:4", "gres_used": "gpu:l40s:1(IDX:2)", "state": ["MIXED"]}
            ]
        },
        {
            "sinfo": [
                {
                    "node": {"state": ["MIXED"]},
                    "nodes": {"nodes": ["n1"]},
                    "gres": {"total": "gpu:l40s:4", "used": "gpu:l40s:1(IDX:2)"},
                }
            ],
            "meta": {"slurm": {}},
        },
    ],
)
def test_json(document: dict[str, Any]) -> None:
    text = json.dumps(document)
    found = tp.read(text)
    assert (found.num_gpus, found.gpus[0].model, found.machine_names) == (4, "l40s", ("n1",))
    assert held(text) == [("n1", 2)]


def test_jobs_in_json() -> None:
    jobs = [
        {
            "job_id": 1,
            "job_state": ["RUNNING"],
            "nodes": "n[1-2]",
            "gres_detail": ["gpu:1(IDX:3)", "gpu:2(IDX:0-1)"],
        },
        {"job_id": 2, "job_state": "COMPLETED", "nodes": "n1", "gres_detail": ["gpu:1(IDX:0)"]},
    ]
    text = json.dumps({"jobs": jobs})
    assert held(text) == [("n1", 3), ("n2", 0), ("n2", 1)]
    with pytest.raises(TopologyError, match="not how many there are"):
        tp.read(text)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ("Gres=gpu:4 State=ALLOCATED AllocTRES=cpu=8,gres/gpu=4", [0, 1, 2, 3]),
        ("Gres=gpu:4 State=IDLE AllocTRES=", []),
        (
            "Gres=gpu:4 State=MIXED AllocTRES=gres/gpu=3",
            "3 of 4 GPUs are in use; `scontrol show node -d` tells",
        ),
        ("Gres=gpu:4 GresUsed=gpu:3 State=MIXED", "3 GPUs are in use, but not which they are"),
        ("Gres=gpu:4 State=MIXED", "the text does not say which GPUs are in use"),
        ("Gres=gpu:4 GresUsed=gpu:g0:1(IDX:0),gpu:g1:0(IDX:N/A),gpu:g3:1(IDX:3) State=MIXED", [0, 3]),
        ("Gres=gpu:tesla:no_consume:2 GresUsed=gpu:tesla:2(IDX:0-1) Sockets=2", [0, 1]),
    ],
)
def test_which_gpus_are_in_use(record: str, expected: list[int] | str) -> None:
    text = f"NodeName=n1 {record} \n"
    assert nodes.recognised(text)
    if isinstance(expected, list):
        assert held(text) == [("n1", number) for number in expected]
    else:
        with pytest.raises(TopologyError, match=expected):
            nodes.in_use(text)


def test_slices_and_devices_with_a_type_each() -> None:
    text = "NodeName=n1 Gres=gpu:a100_3g.20gb:2,gpu:g7:1 Sockets=2\n"
    found = tp.read(text)
    assert [(gpu.model, round(gpu.fraction, 3)) for gpu in found.gpus] == [
        ("a100", 0.429),
        ("a100", 0.429),
        (None, 1),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("NODELIST GRES\nn1 gpu:a100:4(S:0-\n", r"line 2: .*sinfo cuts columns: use -O gres:200"),
        ("NODELIST GRES\nn1 gpu:4 more\n", "line 2: 3 cells below 2 titles"),
        ("NodeName=n[1 Gres=gpu:4 CPUTot=3\n", "line 1: NodeName"),
        ("NodeName=n1 Gres=gpu:999 CPUTot=3\n", "999 GPUs are more than 256"),
        ("NodeName=n1 Gres=(null) CPUTot=3\n", "no node has a GPU: Gres of n1 has none"),
        ("NODELIST GRES\nn1 gpu:4\nn1 gpu:8\n", "line 3: node 'n1': appears twice, with other GPUs"),
        ('{"jobs": [], "slurm": 1}', "not how many there are"),
        ('{"nodes": {}, "slurm": 1}', "nodes"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        nodes.parse(text)


def test_busy_gpus_of_a_topology() -> None:
    cluster = tp.Topology.cluster(machines.get("dgx1-v100"), 2, names=["n1", "n2"])
    assert discovery.busy_gpus("GRES_USED NODELIST\ngpu:2(IDX:0,3) n2\ngpu:0 other\n", cluster) == (8, 11)
    alone = machines.get("dgx1-v100")
    assert discovery.busy_gpus("GRES_USED NODELIST\ngpu:2(IDX:0,3) n2\n", alone) == (0, 3)
    with pytest.raises(TopologyError, match="machine 'n2' has no GPU 9, which is in use"):
        discovery.busy_gpus("GRES_USED NODELIST\ngpu:1(IDX:9) n2\n", cluster)
    with pytest.raises(
        TopologyError, match=r"gres.conf of Slurm does not state which GPUs are in use; these do: .*nodes of"
    ):
        discovery.busy_gpus("Name=gpu File=/dev/nvidia[0-3]\n", cluster)


RUNNING = """\
NodeName=g1 Arch=x86_64 CoresPerSocket=48
   CPUAlloc=24 CPUTot=192
   Gres=gpu:b200:4(S:0-1),shard:32
   Sockets=2
   State=MIXED+RESERVED
   AllocTRES=cpu=24,gres/gpu=3,gres/gpu:b200=3
"""


@pytest.mark.parametrize(
    "said",
    [
        "GPUs that jobs hold are free here: g1 (3); `scontrol show node -d` tells which",
        "Nodes with several sockets, and which GPU is near which is not given: g1",
        "Other entries of Gres, which are left out: shard",
        "Nodes in a reservation, which only its jobs get: g1",
    ],
)
def test_what_has_no_place_is_noted(said: str) -> None:
    assert any(said in note for note in nodes.parse(RUNNING).notes)


def test_one_socket_for_each_entry_of_gres() -> None:
    read = nodes.parse(RUNNING.replace("gpu:b200:4(S:0-1)", "gpu:b200:2(S:0),gpu:b200:2(S:1)"))
    assert [gpu.socket for gpu in read.gpus] == [0, 0, 1, 1]
    assert (read.link(0, 1).kind, read.link(0, 2).kind) == (LinkKind.UNKNOWN, LinkKind.SYSTEM)
    assert not any("which GPU is near" in note for note in read.notes)


def test_unknown_is_the_default_of_slurm_conf_and_a_fault_of_scontrol() -> None:
    line = "NodeName=g[1-2] CPUs=8 Sockets=1 RealMemory=9 Gres=gpu:mi300x:2 State=UNKNOWN\n"
    assert all(gpu.healthy for gpu in nodes.parse(line).gpus)
    assert not any(gpu.healthy for gpu in nodes.parse(RUNNING.replace("MIXED+RESERVED", "UNKNOWN")).gpus)


def test_a_table_with_bars() -> None:
    text = "NODELIST|GRES|GRES_USED\ng1|gpu:a100:4|gpu:a100:1(IDX:2)\n"
    assert discovery.busy_gpus(text, discovery.read(text)) == (2,)


def test_busy_gpus_by_the_names_of_hosts() -> None:
    cluster = tp.Topology.cluster(tp.machines.get("minsky"), names=["n1", "n2"])
    text = "GRES_USED NODELIST\ngpu:1(IDX:0) n1.lab\ngpu:1(IDX:3) n2.lab\ngpu:1(IDX:2) n3.lab\n"
    with pytest.warns(UserWarning, match=r"does not have are left out: n3\.lab$"):
        assert discovery.busy_gpus(text, cluster) == (0, 7)
    alone = tp.Topology.cluster(tp.machines.get("minsky"), names=["n2"])
    with pytest.warns(UserWarning, match=r"left out: n1\.lab, n3\.lab$"):
        assert discovery.busy_gpus(text, alone) == (3,)
    with pytest.raises(
        tp.TopologyError, match=r"other machines \(n1.lab, n2.lab, n3.lab\) than .* \(machine0\)"
    ):
        discovery.busy_gpus(text, tp.machines.get("minsky"))
    twice = "GRES_USED NODELIST\ngpu:1(IDX:0) n1.lab\ngpu:1(IDX:1) n1.other\n"
    with pytest.raises(tp.TopologyError, match="other machines"):
        discovery.busy_gpus(twice, cluster)


def test_many_machines_that_the_topology_lacks_are_counted() -> None:
    alone = tp.Topology.cluster(tp.machines.get("minsky"), names=["n1"])
    text = "GRES_USED NODELIST\ngpu:1(IDX:0) n[1-30]\n"
    with pytest.warns(UserWarning, match="left out: n2, n3, n4, n5, n6 and 24 more$"):
        assert discovery.busy_gpus(text, alone) == (0,)


def state_of(state: str) -> tp.Topology:
    return tp.read(f"NODELIST STATE GRES\nn1 {state} gpu:a100:2\nn2 idle gpu:a100:2\n")


CLOSED = """
drng drained* drain@ draine DOWN~ down# inval IDLE+INVALID_REG boot^ boot REBOOT* idle^ mix^ mix@ futr idle* mix* unk
IDLE*+CLOUD IDLE+NOT_RESPONDING MIXED*+DRAIN MIXED+DRAIN IDLE+DRAIN+POWERED_DOWN idle! idle% IDLE+POWERING_DOWN pow_dn
MIXED+REBOOT_REQUESTED idle$ alloc$ maint npc PERFCTRS ERROR failg BLOCKED IDLE+BLOCKED
"""
OPEN = {
    "": "idle mix alloc alloc+ idle+ comp completing mixe IDLE+CLOUD IDLE+DYNAMIC_NORM",
    "once Slurm has powered them up: n1": "idle~ mix# pow_up IDLE+CLOUD+NOT_RESPONDING+POWERING_UP",
    "powered them up: n1 (POWERED_DOWN)": "IDLE+CLOUD+POWERED_DOWN",
    "keeps for jobs of higher priority": "plnd mix- IDLE+PLANNED",
    "in a reservation, which only its jobs get: n1": "resv MIXED+RESERVED",
    "does not know, and takes for open: n1 (": "IDLE+FROZEN ?",
}


@pytest.mark.parametrize("state", CLOSED.split())
def test_states_of_nodes_that_are_closed(state: str) -> None:
    found = state_of(state)
    assert found.unhealthy_gpus == (0, 1)
    assert any(note.startswith("Nodes on which Slurm starts nothing") for note in found.notes)


@pytest.mark.parametrize(
    ("state", "note"), [(state, note) for note, states in OPEN.items() for state in states.split()]
)
def test_states_of_nodes_that_are_open(state: str, note: str) -> None:
    found = state_of(state)
    assert found.unhealthy_gpus == ()
    about = [one for one in found.notes if "n1" in one]
    assert [note in one for one in about] == ([True] if note else [])


@given(st.text(), st.sampled_from(["DRAIN", "DOWN", "MAINT$"]), st.text())
def test_no_word_opens_a_node_that_another_closes(before: str, closed: str, after: str) -> None:
    assert node_states.meanings(f"{before}+{closed}+{after}").keys() == {Meaning.CLOSED}


@pytest.mark.parametrize(
    ("drained", "unhealthy", "note"),
    [
        ("N/A", (), ""),
        ("(null)", (), ""),
        ("gpu:0", (), ""),
        ("gpu:h100:0(IDX:N/A)", (), ""),
        ("gpu:h100:1(IDX:3)", (3,), "are unhealthy: n1 (gpu:h100:1(IDX:3))"),
        ("gpu:h100:2(IDX:0,2)", (0, 2), "are unhealthy: n1"),
        ("gpu:h100:1", (0, 1, 2, 3), "with them all that may be meant: n1 (gpu:h100:1)"),
        ("gpu:l4:1(IDX:N/A)", (4,), "with them all that may be meant: n1"),
        ("gpu:1", (0, 1, 2, 3, 4), "with them all that may be meant: n1"),
        ("gpu:other:1", (0, 1, 2, 3, 4), "with them all that may be meant: n1"),
        ("gpu:h100:1(IDX:1),gpu:l4:1(IDX:4),nic:1", (1, 4), "Other entries of Gres, which are left out: nic"),
    ],
)
def test_gpus_that_slurm_has_drained_are_unhealthy(
    drained: str, unhealthy: tuple[int, ...], note: str
) -> None:
    gres = "gpu:h100:4,gpu:l4:1"
    text = f"NodeName=n1 CPUTot=8\n   Gres={gres}\n   GresDrain={drained}\n   State=IDLE\n"
    node = {"name": "n1", "gres": gres, "gres_drained": drained, "gres_used": "gpu:0", "state": ["IDLE"]}
    for read in (nodes.parse(text), nodes.parse(json.dumps({"nodes": [node]}))):
        assert read.unhealthy_gpus == unhealthy
        about = [one for one in read.notes if "unhealthy" in one or "Other entries" in one]
        assert any(note in one for one in about) == bool(note)
    template = tp.machines.get("minsky")
    four = text.replace(gres, "gpu:h100:4")
    if max(unhealthy, default=0) < 4:
        assert nodes.parse(four, template=template).unhealthy_gpus == unhealthy


def test_a_drained_gpu_that_the_node_does_not_have_is_refused() -> None:
    text = "NodeName=n1 Gres=gpu:2 GresDrain=gpu:1(IDX:5) State=IDLE CPUTot=8\n"
    with pytest.raises(TopologyError, match="node 'n1': GresDrain names GPU 5, but Gres has 2"):
        nodes.parse(text)


def test_gpus_of_which_jobs_hold_shards_or_percentages_are_in_use() -> None:
    used = "gpu:l40s:1(IDX:0),shard:l40s:10(0/8,8/8,2/8,0/8)"
    text = f"NodeName=n1 Gres=gpu:l40s:4,shard:32 GresUsed={used} State=MIXED CPUAlloc=4\n"
    assert discovery.busy_gpus(text, tp.read(text)) == (0, 1, 2)
    text = "NodeName=n1 Gres=gpu:2,mps:200 GresUsed=gpu:0,mps:50(0/100,50/100) State=MIXED CPUAlloc=4\n"
    assert discovery.busy_gpus(text, tp.read(text)) == (1,)


def test_the_record_default_is_no_node_and_fills_later_ones() -> None:
    text = (
        "NodeName=DEFAULT Gres=gpu:h100:2 State=UNKNOWN\n"
        "NodeName=g[1-2] CPUs=8\nNodeName=g3 State=DOWN\nNodeName=g4 Gres=gpu:a100:1\n"
    )
    found = tp.read(text)
    assert found.machine_names == ("g1", "g2", "g3", "g4")
    assert found.num_gpus == 7
    assert found.unhealthy_gpus == (4, 5)


def test_a_partition_is_no_part_of_the_last_node() -> None:
    text = """NodeName=DEFAULT CPUs=64 Gres=gpu:h100:8 State=UNKNOWN
NodeName=g[1-2]

NodeName=DEFAULT Sockets=2
NodeName=g3 State=DOWN
NodeName=g4\tGres=gpu:a100:4
NodeName=login Gres=""
# State=DOWN
PartitionName=all Nodes=ALL State=DOWN
"""
    found = discovery.read(text)
    assert {name: len(gpus) for name, gpus in found.gpus_of.items()} == {"g1": 8, "g2": 8, "g3": 8, "g4": 4}
    assert [gpu.healthy for gpu in found.gpus] == [True] * 16 + [False] * 8 + [True] * 4
    assert "Without GPUs, and left out: login." in found.notes


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ("Gres=gpu:l4:4,shard:l4:32 GresUsed=gpu:l4:1(IDX:0),shard:l4:10(0/8,8/8,2/8,0/8)", [0, 1, 2]),
        ("Gres=gpu:t4:2,gpu:l4:1,mps:l4:100 GresUsed=gpu:t4:0,mps:l4:50(50/100)", [2]),
        ("Gres=gpu:2,mps:200 GresUsed=gpu:0,mps:0(0/100,0/100)", []),
        ("Gres=gpu:2,mps:200 GresUsed=gpu:0,mps:30(0/100,30/100)", [1]),
        ("Gres=gpu:2,shard:8 GresUsed=gpu:0,shard:3", "shard of GPUs is in use, but not of which"),
        ("Gres=gpu:4,shard:l4:8 GresUsed=gpu:0,shard:l4:3(3/8)", "shard of GPUs is in use, but not of which"),
        ("Gres=gpu:2,shard:8 AllocTRES=cpu=1,gres/shard=3", "shares of GPUs are in use, but not of which"),
        ("Gres=gpu:2,shard:8 GresUsed=gpu:0 AllocTRES=gres/shard=3", "shares of GPUs are in use, but not of"),
        ("Gres=gpu:2 GresUsed=(null) AllocTRES=cpu=1,gres/gpu=1", "1 of 2 GPUs are in use"),
        (
            "Gres=gpu:2,mps:200 GresUsed= AllocTRES=gres/mps:t4=50",
            "shares of GPUs are in use, but not of which",
        ),
        ("GresUsed=gpu:t4:0,gpu:l4:0,mps:l4:50(50/100)", "mps of GPUs is in use, but not of which"),
        ("GresUsed=gpu:l4:0,mps:l4:50(0/100,50/100)", [1]),
        ("GresUsed=mps:l4:50(50/100)", "mps of GPUs is in use, but not of which"),
        ("Gres=gpu:g0:1,gpu:g1:1,mps:200 GresUsed=gpu:g0:0,gpu:g1:0,mps:g1:50(50/100)", [1]),
    ],
)
def test_gpus_in_shares_are_in_use(record: str, expected: list[int] | str) -> None:
    text = f"NodeName=n1 {record} State=MIXED\n"
    if isinstance(expected, list):
        assert [number for _, number in held(text)] == expected
    else:
        with pytest.raises(TopologyError, match=expected):
            nodes.in_use(text)


def test_gpus_in_shares_without_their_number() -> None:
    assert held("NODELIST GRES_USED\nn1 gpu:0,shard:l4:3(0/8,3/8)\n") == [("n1", 1)]


def test_shares_in_use_without_their_gpus_are_noted() -> None:
    text = "NodeName=n1 Gres=gpu:2,shard:8 State=MIXED CPUTot=4 AllocTRES=cpu=1,gres/shard=3\n"
    assert any("GPUs that jobs hold are free here: n1 (shares)" in note for note in nodes.parse(text).notes)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (
            "n1                  idle                gpu:nvidia_h100_80gb",
            "GRES = 'gpu:nvidia_h100_80gb' is cut",
        ),
        ("n1                  idle                gpu:a100:2,gpu:nvidi", "'gpu:a100:2,gpu:nvidi' is cut"),
        ("n1                  idle and more       gpu:h100:8          ", "5 cells below 3 titles"),
    ],
)
def test_cells_that_fill_a_column_of_sinfo_are_cut(row: str, why: str) -> None:
    text = f"{'NODELIST':20}{'STATE':20}{'GRES':20}\n{{}}\n"
    assert nodes.parse(text.format(f"{'n1':20}{'idle':20}{'gpu:nvidia_h100_80:8':20}")).num_gpus == 8
    with pytest.raises(TopologyError, match=f"{re.escape(why)}.*; sinfo cuts columns: use -O gres:200"):
        nodes.parse(text.format(row))


@pytest.mark.parametrize("between", [" ", "\n   "])
def test_what_people_wrote_is_not_read(between: str) -> None:
    fields = (
        "NodeName=n1",
        "Gres=gpu:h100:4",
        "State=DOWN CPUTot=4",
        "Reason=bad psu State=IDLE Gres=gpu:a100:1",
    )
    found = nodes.parse(between.join((*fields, "Comment=see Gres=gpu:2")))
    assert [(gpu.model, gpu.healthy) for gpu in found.gpus] == [("h100", False)] * 4


def test_slices_are_no_devices_without_their_uuids() -> None:
    text = "NodeName=n1 Gres=gpu:a100_3g.20gb:2,gpu:a100_1g.5gb:1 State=IDLE CPUTot=4\n"
    found = tp.read(text)
    placement = tp.policies.get("best-fit").place(tp.JobGraph.independent(2), tp.Cluster(found))
    assert placement is not None
    with pytest.raises(tp.AllocationError, match="the UUID of GPU0 is unknown; slices"):
        placement.env()


def test_a_table_without_titles_is_read_by_its_cells() -> None:
    text = "n1  gpu:h100:4  mix   64  gpu:h100:2(IDX:0,3)\nn2  (null)      idle  8   gpu:0\n"
    found = tp.read(text)
    assert (found.machine_names, found.num_gpus) == (("n1",), 4)
    assert held(text) == [("n1", 0), ("n1", 3)]


def test_a_table_of_gpus_in_use_without_titles_marks_them_busy() -> None:
    text = "n1      gpu:h100:2(IDX:0-1)   \nn2      gpu:h100:0(IDX:N/A)   \n"
    assert "use it as --busy-from FILE" in refusal(discovery.read, text)
    assert held(text) == [("n1", 0), ("n1", 1)]


@pytest.mark.parametrize("row", ["n1 gpu:h100:4 train", "n1 gpu:h100:4 gpu:h100:2"])
def test_a_table_whose_columns_are_not_told_is_refused_by_its_tool(row: str) -> None:
    assert "this is a table of nodes as `sinfo --noheader` prints it" in refusal(discovery.read, row)


def test_a_state_that_is_not_given_is_noted() -> None:
    record = "NodeName=n1 CPUAlloc=4 CPUTot=8 Gres=gpu:a100:4 GresUsed=gpu:a100:1\n"
    note = "Nodes whose state is not given, and which are assumed to be open: n1."
    assert note in tp.read(record).notes
    assert note not in tp.read(record.replace("Gres=", "State=IDLE Gres=", 1)).notes
    assert note not in tp.read("NodeName=n1 CPUs=8 RealMemory=9 Gres=gpu:a100:4\n").notes
    assert note in tp.read("NODELIST GRES\nn1 gpu:a100:4\n").notes


def test_the_topology_of_nodes_is_a_level() -> None:
    found = tp.read(
        "NodeName=n[1-2] RealMemory=9 Gres=gpu:4 Topology=default:b1,tree:top:leaf1\n"
        "NodeName=n3 RealMemory=9 Gres=gpu:4 Topology=default:b2\nNodeName=n4 RealMemory=9 Gres=gpu:4\n"
    )
    assert found.fabric is not None
    assert [(level.name, level.domains) for level in found.fabric.levels] == [
        ("default", ("b1", "b1", "b2", None))
    ]
    assert any(
        note.startswith("The level default is what Topology= of the nodes tells, and tree is left out;")
        for note in found.notes
    )


def test_other_kinds_alone_are_named() -> None:
    record = "NodeName=a1 CPUAlloc=0 Gres=npu:910b:8(S:0-3) State=MIXED\n"
    assert "of its kinds, npu, none is read" in refusal(discovery.read, record)
