from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

import topoplace as tp
from topoplace import Fabric, Link, LinkKind, Topology
from topoplace.topology import compare

DGX1, H100, NVL72 = (tp.machines.get(name) for name in ("dgx1-v100", "dgx-h100", "gb200-nvl72"))
ALIKE = Topology([tp.Gpu(0, "b/c", machine="a"), tp.Gpu(1, "c", machine="a/b")])
TREE = Fabric.regular(4, {"leaf": 2, "spine": 4})
LINKS = [(u, v, Link(link.kind, 1, 25.0) if (u, v) == (0, 3) else link) for u, v, link in DGX1.links]


def test_equal_topologies_do_not_differ() -> None:
    for name in tp.machines.names():
        topology = tp.machines.get(name)
        assert compare.diff(topology, Topology.from_json(topology.to_json())) == ()


@pytest.mark.parametrize(
    ("before", "after", "what", "worse"),
    [
        (DGX1, replace(DGX1, links=LINKS), "GPU0 - GPU3", True),
        (replace(DGX1, links=LINKS), DGX1, "GPU0 - GPU3", False),
        (H100, H100.with_unhealthy([5]), "GPU5", True),
        (ALIKE, ALIKE.with_unhealthy([1]), "a/b/c (index 1)", True),
        (H100, replace(H100, default=1.0), "default", True),
        (H100, replace(H100, nics=[replace(nic, rail=0) for nic in H100.nics]), "NIC NIC1", False),
        (H100, replace(H100, partitions=[(0, 1)]), "partitions", True),
        (H100, replace(H100, components=H100.components[::-1]), "nvswitch NVSwitch0", None),
        (
            NVL72,
            Topology.cluster(
                NVL72.templates[0],
                fabric=NVL72.fabric.with_level("nvlink_domain", gb_per_s=450.0),  # type: ignore[union-attr]
                network=50.0,
                name="gb200-nvl72",
            ),
            "level nvlink_domain",
            True,
        ),
        (
            Topology.cluster(H100, fabric=TREE),
            Topology.cluster(H100, fabric=TREE.with_level("leaf", rail=True)),
            "level leaf",
            True,
        ),
        (
            Topology.cluster(H100, fabric=TREE),
            Topology.cluster(H100, fabric=replace(TREE, levels=TREE.levels[::-1])),
            "order of levels",
            False,
        ),
        (Topology.cluster(H100, 2), Topology.cluster(replace(H100, name="z"), 2), "machine0: machine", False),
        (Topology.cluster(H100, 3), Topology.cluster(H100, 2), "machine2", True),
        (Topology.cluster(H100, 2, racks=1), Topology.cluster(H100, 2, racks=2), "machine1: rack", False),
    ],
)
def test_what_differs_is_told(before: Topology, after: Topology, what: str, worse: bool | None) -> None:
    changes = {change.what: change for change in compare.diff(before, after)}
    if worse is None:
        assert changes  # in another order: whatever it is called, it is not passed over
    else:
        assert changes[what].worse is worse


def test_the_order_does_not_depend_on_hashes() -> None:
    code = (
        "import topoplace as tp; from topoplace.topology import compare;"
        "from topoplace.topology.speed_overrides import with_link_speeds;"
        "m = tp.machines.get('minsky'); n = with_link_speeds(m, 'achievable');"
        "a = tp.Topology.cluster({c: m for c in 'abcde'}); b = tp.Topology.cluster({c: n for c in 'bcdef'});"
        "print([change.what for change in compare.diff(a, b)])"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(printed) == 1


def test_too_many_gpus_to_compare_pair_by_pair_are_refused() -> None:
    torus = tp.machines.torus((16, 16, 8))
    with pytest.raises(tp.TopologyError, match="2048 GPUs are too many to compare pair by pair"):
        compare.diff(torus, replace(torus, name="x"))


def test_findings_of_one_machine() -> None:
    assert compare.check(DGX1) == ()
    worn = replace(DGX1, links=LINKS).with_unhealthy([6])
    assert [(one.where, one.why) for one in compare.check(worn)] == [
        ("dgx1-v100: GPU6", "is not healthy"),
        ("dgx1-v100: GPU0", "has 5 links, but most GPUs of its model have 6"),
        ("dgx1-v100: GPU3", "has 5 links, but most GPUs of its model have 6"),
    ]


def test_what_is_not_known_is_found_and_notes_are_not_serious() -> None:
    unknown = Topology.from_links(2, [(0, 1, 12.0, LinkKind.UNKNOWN)])
    assert compare.check(unknown)[0].why == "1 of 1 pairs of GPUs have an unknown connection"
    noted = replace(DGX1, notes=("speeds are assumed",))
    assert [(one.why, one.serious) for one in compare.check(noted)] == [("speeds are assumed", False)]


@pytest.mark.parametrize(
    ("kind", "gb_per_s", "plausible"),
    [
        (LinkKind.SYSTEM, 1.0, False),
        (LinkKind.PCIE, 0.98, False),
        (LinkKind.HOST, 3.0, True),
        (LinkKind.HOST, 400.0, False),
        (LinkKind.NVLINK4, 20.0, True),
        (LinkKind.NVLINK4, 0.5, False),
        (LinkKind.NVLINK5, 500.0, False),
        (LinkKind.XGMI, 24.0, True),
        (LinkKind.UNKNOWN, 0.1, True),
    ],
)
def test_speeds_that_no_such_link_has_are_found(kind: LinkKind, gb_per_s: float, plausible: bool) -> None:
    found = compare.check(Topology.from_links(2, [(0, 1, gb_per_s, kind)], 12.0))
    assert any("no such link is known" in one.why for one in found) != plausible


def test_odd_machines_are_found() -> None:
    cluster = Topology.cluster([H100] * 20 + [DGX1])
    assert [one.where for one in compare.check(cluster)] == ["machine20"]
