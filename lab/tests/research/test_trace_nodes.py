"""Lists of the nodes of cluster traces become clusters, whose machines have CPUs and memory."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import topoplace as tp
from refusals import refusal
from topoplace import discovery
from topoplace.topology.links.link_kinds import LinkKind
from topoplace_lab.research import trace_nodes

PAI = "82e5af3cd5c4af3f,T4,96,512,2\n0123456789abcdef,V100,96.0,512.0,8.0\n82e5af3cd5c4af40,CPU,96,512,0\n"
OWN = "machine,num_gpus\na,2\nb,1\n"


@pytest.fixture
def openb(repository: Path) -> bytes:
    return (repository / "tests/data/tracenodes-openb.csv").read_bytes()


def test_nodes_of_openb(openb: bytes) -> None:
    nodes = trace_nodes.read_nodes(openb)
    topology = nodes.topology
    assert topology.machine_names == ("node-1", "node-2", "node-3")
    assert [gpu.model for gpu in topology.gpus] == ["G3"] * 8 + ["V100M32"] * 2 + ["G3"] * 8
    assert topology.tiling is not None
    assert topology.template_of == (0, 1, 0)
    assert topology.link(0, 1).kind is LinkKind.UNKNOWN
    assert nodes.hosts[1] == tp.HostResources(96, 786432 * 2**20 / 1e9)
    assert topology.notes[1] == "Without GPUs, and left out: node-0."
    job = tp.JobGraph.independent(2).with_(gpu_model=("V100M16", "V100M32"), cpus=96)
    placement = tp.policies.get("fgd").place(job, tp.Cluster(topology, nodes.hosts))
    assert placement is not None
    assert placement.gpus == (8, 9)


@pytest.mark.parametrize("header", ["", "machine,gpu_type,cap_cpu,cap_mem,cap_gpu\n"], ids=["bare", "header"])
def test_machines_of_pai(header: str) -> None:
    assert discovery.format_of(header + PAI).name == "nodes of a trace"
    nodes = trace_nodes.read_nodes(header + PAI)
    assert [gpu.model for gpu in nodes.topology.gpus] == ["T4"] * 2 + ["V100"] * 8
    assert nodes.hosts == (tp.HostResources(96, 512 * 2**30 / 1e9),) * 2


def test_machines_of_philly(repository: Path) -> None:
    nodes = trace_nodes.read_nodes((repository / "tests/data/tracenodes-philly.csv").read_bytes())
    assert [gpu.memory_gb for gpu in nodes.topology.gpus] == [12.0] * 2 + [24.0] * 8 + [12.0] * 2
    assert nodes.hosts == ()


def test_a_template_says_how_gpus_are_connected(openb: bytes) -> None:
    dgx, pair = tp.machines.get("dgx1-v100"), tp.Topology.from_links(2, [(0, 1, 25.0)])
    found = trace_nodes.parse(openb, template={"G3": dgx, "V100M32": pair})
    assert found.link(0, 1) == dgx.link(0, 1)
    message = refusal(lambda data: trace_nodes.parse(data, template={"G3": dgx}), openb)
    assert message == "line 4: template has no topology for model 'V100M32'"
    message = refusal(lambda data: trace_nodes.parse(data, template=dgx), openb)
    assert message == "line 4: 2 GPUs, but its template has 8"


def test_a_list_without_gpus_is_refused() -> None:
    assert refusal(trace_nodes.parse, OWN.replace(",2", ",0").replace(",1", ",0")) == (
        "no machine of the list has a GPU"
    )
    assert trace_nodes.parse(OWN).num_gpus == 3
    assert trace_nodes.read_nodes(OWN).hosts == ()


def test_the_published_nodes_of_openb(shared: Path) -> None:
    path = shared / "data/traces/openb-nodes.csv.gz"
    if not path.exists():
        pytest.skip("the nodes of openb are not on this machine")
    nodes = trace_nodes.read_nodes(gzip.decompress(path.read_bytes()))
    topology = nodes.topology
    assert topology.tiling is not None
    assert (topology.num_machines, topology.num_gpus, len(topology.templates)) == (1213, 6212, 12)
    assert len(nodes.hosts) == 1213


def test_nodes_of_the_trace_of_2026() -> None:
    found = trace_nodes.parse(
        "gpu_model,gpu_capacity_num,cpu_num,node_name\nA10,1,128,0\nH800,8,192,1\nA10,0,9,2\n"
    )
    assert {name: len(gpus) for name, gpus in found.gpus_of.items()} == {"0": 1, "1": 8}
    assert found.gpus[1].model == "H800"
