"""All-reduces in NVSwitches, and rings of NVLink domains."""

from __future__ import annotations

from dataclasses import replace

import pytest

import topoplace as tp
from topoplace import collective
from topoplace.collective.bandwidth import nvls_rate

H100 = tp.machines.get("dgx-h100")
B200 = tp.machines.get("hgx-b200")
NVL72 = tp.machines.get("gb200-nvl72")
RATES = collective.PRESETS["nccl-2.30"]


@pytest.mark.parametrize(
    ("machine", "num_gpus", "published"),
    [
        (H100, 4, 367),  # a benchmark log of a cloud's 4 x H100
        (H100, 8, 476),  # NVIDIA/nccl-tests issue 290
        (H100, 8, 480),  # NVIDIA/nccl issue 2140
        (B200, 8, 830),  # NVIDIA/nccl issue 1807
        (B200, 8, 845),  # NVIDIA/nccl issue 2140, of B300
        (NVL72, 8, 811),
        (NVL72, 72, 840),  # coreweave/nccl-tests pull request 43
    ],
)
def test_an_all_reduce_carries_what_is_published(machine, num_gpus, published):
    found = collective.all_reduce_bandwidth(machine, range(num_gpus))
    assert found == pytest.approx(published, rel=0.03)
    assert found >= collective.ring_bandwidth(machine, range(num_gpus))


def test_eight_h800():
    nvlinks = [(i, 8, tp.Link(tp.LinkKind.NVSWITCH, 8, 200.0)) for i in range(8)]
    switch = tp.Component(tp.ComponentKind.NVSWITCH, "NVSwitch0")
    gpus = [tp.Gpu(i, f"GPU{i}", "H800") for i in range(8)]
    machine = tp.Topology(gpus, components=(switch,), component_links=tuple(nvlinks))
    assert collective.all_reduce_bandwidth(machine, range(8)) == pytest.approx(215, rel=0.03)


@pytest.mark.parametrize(
    "machine", [tp.machines.get(name) for name in ("dgx-a100", "dgx2", "dgx1-v100", "mi300x")]
)
def test_older_and_other_gpus_have_none(machine):
    assert collective.nvls_bandwidth(machine, range(8)) == 0
    assert collective.all_reduce_bandwidth(machine, range(8)) == collective.ring_bandwidth(machine, range(8))


def test_fewer_than_three_gpus_and_machines_apart_have_none():
    assert collective.nvls_bandwidth(H100, [0, 1]) == 0
    apart = tp.Topology.cluster(H100, 2)
    assert collective.nvls_bandwidth(apart, range(16)) == 0
    assert collective.nvls_bandwidth(apart, range(8, 16)) == pytest.approx(476)


def test_rates_can_leave_it_out():
    without = replace(RATES, nvls_efficiency={})
    for rates in (without, "nccl-2.30-rings"):
        assert collective.nvls_bandwidth(H100, range(8), rates=rates) == 0
        assert collective.all_reduce_bandwidth(H100, range(8), rates=rates) == 360


def test_more_gpus_are_never_slower():
    for capability, ring in ((90, 360.0), (100, 720.0)):
        rates = [nvls_rate(n, ring, capability, RATES) for n in range(2, 200)]
        assert rates == sorted(rates)
    assert nvls_rate(8, 360.0, 80, RATES) == nvls_rate(8, 360.0, 0, RATES) == 0


def test_rates_as_json():
    read = collective.Rates.from_json(RATES.to_json())
    assert read.nvls_efficiency == {90: 0.85, 100: 0.74}
    older = RATES.to_json().replace('"nvls_efficiency":{"90":0.85,"100":0.74},', "")
    older = older.replace('"nvls_efficiency":{"100":0.74,"90":0.85},', "")
    assert "nvls" not in older
    assert collective.Rates.from_json(older).nvls_efficiency == {}


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({-1: 0.5}, "nvls_efficiency"),
        ({90: 0.0}, r"nvls_efficiency\[90\]"),
        ({90: float("nan")}, r"nvls_efficiency\[90\]"),
    ],
)
def test_wrong_efficiencies_are_named(wrong, named):
    with pytest.raises(ValueError, match=named):
        replace(RATES, nvls_efficiency=wrong)
    with pytest.raises(ValueError, match="nvls_efficiency"):
        collective.Rates.from_json(RATES.to_json().replace('"100":0.74', '"x":0.74'))


# ---- NVLink domains --------------------------------------------------------------------------------------------


def test_rings_of_a_domain_are_the_same_for_any_of_its_gpus():
    for gpus in ([0, 1], [0, 4], [0, 1, 2, 3], [0, 4, 8], range(8), range(72), [3, 71]):
        assert collective.ring_bandwidth(NVL72, gpus) == 720
        assert collective.domain_ring_rate(NVL72, list(gpus), "nccl-2.30") == 720


@pytest.mark.parametrize("gb_per_s", [900.0, 450.0, 360.0, 200.0, 100.0])
def test_they_are_with_stated_speeds_too(gb_per_s):
    tray = tp.Topology.from_links(
        4, [(u, v, tp.Link(tp.LinkKind.NVSWITCH, 1, gb_per_s)) for u in range(4) for v in range(u + 1, 4)]
    )
    level = tp.Level("nvlink_domain", ("d",) * 4, gb_per_s=gb_per_s, kind=tp.LinkKind.NVSWITCH)
    domain = tp.Topology.cluster(tray, fabric=_fabric(level))
    found = {
        collective.ring_bandwidth(domain, gpus) for gpus in ([0, 1], [0, 4], range(4), range(16), [0, 4, 8])
    }
    assert len(found) == 1
    assert 0 < found.pop() <= gb_per_s


def test_the_slowest_port_decides():
    machines = [
        tp.Topology.from_links(
            4, [(u, v, tp.Link(tp.LinkKind.NVSWITCH, 1, rate)) for u in range(4) for v in range(u + 1, 4)]
        )
        for rate in (400.0, 100.0)
    ]
    level = tp.Level("nvlink_domain", ("d", "d"), kind=tp.LinkKind.NVSWITCH)
    domain = tp.Topology.cluster(machines, fabric=_fabric(level))
    assert collective.ring_bandwidth(domain, [0, 1]) > collective.ring_bandwidth(domain, [4, 5])
    assert collective.ring_bandwidth(domain, range(8)) == collective.ring_bandwidth(domain, [4, 5])


def test_gpus_of_two_domains_have_no_rate_of_a_domain():
    racks = tp.Topology.cluster(
        [NVL72.template(0)] * 4,
        fabric=_fabric(
            tp.Level("nvlink_domain", ("a", "a", "b", "b"), kind=tp.LinkKind.NVSWITCH),
            tp.Level("spine", ("s",) * 4, gb_per_s=50.0),
        ),
    )
    assert collective.domain_ring_rate(racks, [0, 8], "nccl-2.30") == 0
    assert collective.nvls_bandwidth(racks, range(16)) == 0
    assert collective.nvls_bandwidth(racks, range(8)) == pytest.approx(828.8)


def _fabric(*levels: tp.Level) -> tp.Fabric:
    return tp.Fabric(tuple(f"m{i}" for i in range(len(levels[0].domains))), levels)
