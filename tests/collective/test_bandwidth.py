"""Bandwidths of collectives on machines small enough to work them out by hand."""

from __future__ import annotations

import threading
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from nccl_machines import CPU, SWITCH, machine
from topoplace import collective, kernels
from topoplace.collective.prepared import prepared
from topoplace.topology.speed_overrides import with_link_speeds

DGX1 = tp.machines.get("dgx1-v100")


def test_only_chosen_gpus_relay():
    assert collective.ring_bandwidth(DGX1, [0, 7]) == 6
    assert collective.ring_bandwidth(DGX1, [0, 3, 7]) == 20
    assert collective.optimal_bandwidth(DGX1, [0, 7]) < collective.optimal_bandwidth(
        DGX1, [0, 7], relay="all"
    )


def test_more_gpus_may_be_faster():
    best = [
        max(collective.ring_bandwidth(DGX1, gpus) for gpus in combinations(range(8), k)) for k in range(2, 9)
    ]
    assert best == [40, 40, 80, 40, 80, 80, 120]


def test_through_nvswitches_all_sets_of_a_size_are_equal():
    for name, gb_per_s in (("dgx-a100", 240), ("dgx-h100", 360), ("hgx-b200", 720), ("dgx2", 120)):
        topology = tp.machines.get(name)
        for gpus in ([0, 1], [0, 3, 7], [1, 2, 4, 6, 7]):
            assert collective.ring_bandwidth(topology, gpus) == gb_per_s


def test_rings_in_order():
    plan = collective.rings(DGX1, [7, 2, 1, 3, 0, 4, 5, 6])
    assert plan.gb_per_s == 120
    assert plan.path_type == "NVL"
    assert plan.complete
    assert plan.assumed
    assert sum(ring.channels * ring.gb_per_s for ring in plan.rings) == 120
    for ring in plan.rings:
        assert sorted(ring.gpus) == list(range(8))
        hops = zip(ring.gpus, ring.gpus[1:] + ring.gpus[:1], strict=True)
        assert all(DGX1.link(u, v).kind is tp.LinkKind.NVLINK2 for u, v in hops)


@pytest.mark.parametrize(
    ("cpu", "across", "inside"),
    [("broadwell", 6, 20), ("skylake", 10, 20), ("sapphire-rapids", 20, 20), ("amd", 15, 24)],
)
def test_pcie_machines(cpu, across, inside):
    """Two GPUs alone at ports of each socket: Intel's host bridges take a sixth of what passes them."""
    topology = machine(cpu, [[1, 1], [1, 1]], sm=86)
    assert collective.ring_bandwidth(topology, [0, 1]) == inside
    assert collective.ring_bandwidth(topology, [1, 2]) == across
    assert collective.ring_bandwidth(topology, range(4)) == across


def test_gpus_below_one_switch_do_not_pass_the_host():
    topology = machine("skylake", [[2, 1]], sm=86)
    assert collective.ring_bandwidth(topology, [0, 1]) == 24
    assert collective.rings(topology, [0, 1]).path_type == "PIX"
    assert collective.rings(topology, [0, 2]).path_type == "PHB"
    assert collective.optimal_bandwidth(topology, [0, 1, 2]) == 36


def test_two_bridges_make_two_rings():
    """Between two bridged pairs each ring takes one direction of every PCIe link."""
    topology = machine("skylake", [[1, 1, 1, 1]], nvlinks={(0, 1): 12, (2, 3): 12})
    plan = collective.rings(topology, range(4))
    assert plan.gb_per_s == 40
    assert {ring.gpus for ring in plan.rings} == {(0, 1, 2, 3), (0, 3, 2, 1)}
    assert collective.ring_bandwidth(topology, [0, 1, 2]) == 20


def test_two_groups_across_sockets_get_at_least_two_channels():
    topology = machine("skylake", [[1, 1], [1, 1]], nvlinks={(0, 1): 12, (2, 3): 12})
    plan = collective.rings(topology, range(4))
    assert [(ring.channels, ring.gb_per_s) for ring in plan.rings] == [(2, 5)]
    assert collective.rings(topology, [0, 1, 2]).rings[0].channels == 1


def test_power9_loads_its_nvlinks_both_ways():
    topology = machine(
        "power9",
        [[1, 1], [1, 1]],
        sm=70,
        pcie=3,
        nvlinks={(0, 1): 2, (2, 3): 2} | {(gpu, CPU): 2 for gpu in range(4)},
    )
    assert collective.ring_bandwidth(topology, [0, 2]) == 20
    assert collective.ring_bandwidth(topology, range(4)) == 30
    # 40 of NVLink to the other GPU, 40 to the CPU, 12 of PCIe
    assert collective.optimal_bandwidth(topology, [0, 1]) == 2 * 92


def test_nvlinks_into_a_switch_split_into_channels():
    topology = machine(
        "sapphire-rapids", [[1, 1], [1, 1]], sm=90, pcie=5, nvlinks={(gpu, SWITCH): 18 for gpu in range(4)}
    )
    plan = collective.rings(topology, range(4))
    assert [(ring.channels, ring.gb_per_s) for ring in plan.rings] == [(12, 30)]
    assert not plan.assumed
    assert collective.optimal_bandwidth(topology, range(4)) == Fraction(4, 3) * (Fraction("370.8") + 48)


def test_older_versions_have_other_rates():
    topology = machine("amd", [[1], [1]], sm=86)
    assert collective.ring_bandwidth(topology, [0, 1], rates="nccl-2.18") == 24
    assert collective.ring_bandwidth(topology, [0, 1], rates="nccl-2.19") == 15
    assert collective.optimal_bandwidth(topology, [0, 1], rates="nccl-2.19") == 32
    h100 = tp.machines.get("dgx-h100")
    assert collective.ring_bandwidth(h100, [0, 1], rates="nccl-2.18") == 360
    assert collective.ring_bandwidth(DGX1, [0, 3]) == 40


def test_own_rates():
    faster = {**collective.PRESETS["nccl-2.30"].gb_per_s, "nvlink2": 24.0}
    rates = replace(collective.PRESETS["nccl-2.30"], name="own", gb_per_s=faster)
    assert collective.optimal_bandwidth(DGX1, [0, 3], rates=rates) == 2 * (48 + 12)
    assert collective.optimal_bandwidth(DGX1, [0, 3]) == 2 * (40 + 12)


def test_measured_speeds_are_kept():
    assert collective.ring_bandwidth(with_link_speeds(DGX1, {tp.LinkKind.NVLINK2: 15.0}), [0, 3]) == 30
    for column in ("nominal", "achievable"):
        assert collective.ring_bandwidth(with_link_speeds(DGX1, column), [0, 3]) == 40


def test_the_host_is_assumed_only_where_it_is_not_told():
    assert collective.host_is_assumed(DGX1)
    assert not collective.host_is_assumed(machine("amd", [[1, 1]]))


def test_a_machine_of_a_cluster():
    cluster = tp.Topology.cluster(DGX1, count=3)
    assert collective.ring_bandwidth(cluster, [8, 11, 15]) == 20
    assert collective.rings(cluster, [11, 8]).rings[0].gpus == (8, 11)
    assert collective.optimal_bandwidth(cluster, [16, 19]) == collective.optimal_bandwidth(DGX1, [0, 3])
    with pytest.raises(ValueError, match=r"gpus are on several machines \(machine0, machine1"):
        collective.rings(cluster, [0, 8])


@pytest.mark.parametrize("name", ["dgx-h100", "dgx-a100", "dgx2", "hgx-b200"])
@pytest.mark.parametrize("share", [0.5, 0.9, 1.0, 1.5])
def test_measured_pairs_share_the_port_of_a_gpu(name: str, share: float):
    topology = tp.machines.get(name)
    measured = with_link_speeds(topology, share * topology.bandwidth_matrix())
    port = topology.bandwidth(0, 1)
    gpus = range(topology.num_gpus)
    carried = collective.ring_bandwidth(measured, gpus)
    assert 0.6 * min(share, 1.0) * port <= carried <= min(share, 1.0) * port
    host = 64.0  # GB/s of PCIe, which trees use as well
    assert collective.optimal_bandwidth(measured, gpus) <= len(gpus) / (len(gpus) - 1) * (port + host)


def test_gpus_without_a_path():
    apart = tp.Topology.from_links(3, [(0, 1, 20.0)], 0.0)
    assert collective.ring_bandwidth(apart, [0, 1]) == 20
    assert collective.ring_bandwidth(apart, [0, 1, 2]) == 0
    assert collective.rings(apart, [0, 2]).path_type is None
    assert collective.optimal_bandwidth(apart, [0, 2]) == 0


@pytest.mark.parametrize("sm", [70, 90, 100, 120])
@pytest.mark.parametrize("cpu", ["skylake", "amd"])
def test_a_path_slower_than_nccls_channels_is_not_nothing(sm: int, cpu: str):
    """The table for compute capability 10.0 ends at 18 GB/s; a path of PCIe and sockets carries 10 or 16."""
    carried = collective.ring_bandwidth(machine(cpu, [[1], [1]], sm=sm), [0, 1])
    assert 0 < carried <= {"skylake": 10.0, "amd": 16.0}[cpu]


@given(gb_per_s=st.floats(0.01, 100.0), size=st.integers(2, 4), capability=st.sampled_from([70, 90, 100]))
def test_a_path_that_exists_never_carries_nothing(gb_per_s: float, size: int, capability: int):
    gpus = tuple(tp.Gpu(i, f"GPU{i}", capability=capability, socket=i % 2) for i in range(4))
    machine = tp.Topology(gpus, default=gb_per_s)
    assert collective.ring_bandwidth(machine, range(size)) > 0
    assert collective.why_no_rings(machine, range(size)) == ""


def test_why_there_are_no_rings():
    apart = tp.Topology.from_links(4, [(0, 1, 20.0), (1, 2, 2.0)], 0.0)
    assert collective.why_no_rings(apart, [0, 1]) == ""
    assert collective.why_no_rings(apart, [0, 3, 1]) == "there is no path between all of the GPUs (0, 1, 3)"
    legs = [(0, leg, 20.0) for leg in (1, 2, 3)] + [(leg, leg + 3, 20.0) for leg in (1, 2, 3)]
    why = "no ring passes the links among the GPUs (0, 1, 2, 3, 4, 5, 6)"
    assert collective.why_no_rings(tp.Topology.from_links(7, legs, 0.0), range(7)) == why
    machines = tp.Topology.cluster(apart, 2, network=0.0)
    assert collective.why_no_rings(machines, [4, 5]) == ""
    assert collective.why_no_rings(machines, [5, 6]) == ""
    assert collective.why_no_rings(machines, [0, 5, 4]) == (
        "there is no path between the machines of the GPUs (0, 5, 4)"
    )


@pytest.mark.parametrize("name", ["dgx1-v100", "summit", "dgx2", "l40s-8"])
def test_rings_and_cuts_bound_each_other(name):
    """No rings carry more than the least flow, and their own verifier accepts them."""
    topology = tp.machines.get(name)
    machine_of = prepared(topology, "nccl-2.30")
    for gpus in combinations(range(min(6, topology.num_gpus)), 3):
        plan = collective.rings(topology, gpus)
        assert plan.gb_per_s == collective.ring_bandwidth(topology, gpus)
        assert plan.gb_per_s <= collective.broadcast_bandwidth(topology, gpus)
        found = kernels.best_channels(machine_of.network, gpus, machine_of.rules(gpus))
        assert kernels.verify_rings(machine_of.network, gpus, found.rings, rate=found.rate, level=found.level)
        busbw = collective.optimal_bandwidth(topology, gpus) * Fraction(2, 3)
        assert collective.broadcast_bandwidth(topology, gpus) <= busbw * Fraction(3, 2)


def test_threads_get_the_same_answers():
    sets = list(combinations(range(8), 4))
    expected = [collective.ring_bandwidth(DGX1, gpus) for gpus in sets]
    answers: list[list[float]] = [[] for _ in range(4)]

    def ask(mine):
        fresh = tp.Topology.from_json(DGX1.to_json())
        mine += [collective.ring_bandwidth(fresh, gpus) for gpus in sets]

    threads = [threading.Thread(target=ask, args=(mine,)) for mine in answers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [expected] * 4


@pytest.mark.parametrize(
    ("gpus", "message"),
    [
        ([0], "gpus has 1 entries; a collective operation needs at least 2"),
        ([0, 8], r"gpus\[1\] = 8 is not in 0\.\.7"),
        ([0, 1, 0], r"gpus\[2\] = 0 appears twice"),
        ([0, 1.5], r"gpus\[1\] = 1\.5 is not"),
        ([0, "1"], r"gpus\[1\] = '1' is not"),
        ([True, False], r"gpus\[0\] = True is not an integer"),
        ([0, np.True_], r"gpus\[1\] = .*True_? is not an integer"),
    ],
)
def test_wrong_gpus_are_named(gpus, message):
    for bandwidth in (collective.ring_bandwidth, collective.optimal_bandwidth, collective.rings):
        with pytest.raises(ValueError, match=message):
            bandwidth(DGX1, gpus)


def test_other_wrong_arguments_are_named():
    with pytest.raises(ValueError, match=r"rates = 'nccl-1' is not one of nccl-2\.18"):
        collective.ring_bandwidth(DGX1, [0, 1], rates="nccl-1")
    with pytest.raises(ValueError, match="relay = 'none' is not one of chosen, all"):
        collective.optimal_bandwidth(DGX1, [0, 1], relay="none")
    with pytest.raises(tp.TopologyError, match=r"70 GPUs.*at most 64"):
        collective.ring_bandwidth(tp.Topology.from_links(70, []), [0, 1])


def test_what_is_kept_does_not_hide_wrong_gpus():
    assert collective.ring_bandwidth(DGX1, [0, 3]) == collective.ring_bandwidth(DGX1, (3, 0)) == 40
    with pytest.raises(ValueError, match=r"gpus\[2\] = 3 appears twice"):
        collective.ring_bandwidth(DGX1, [0, 3, 3])
    with pytest.raises(ValueError, match=r"gpus\[1\] = \[3\] is not"):
        collective.ring_bandwidth(DGX1, [0, [3]])
    assert collective.ring_bandwidth(DGX1, [1, 0]) == 20
    with pytest.raises(ValueError, match=r"gpus\[0\] = True is not an integer"):
        collective.ring_bandwidth(DGX1, [True, False])
    assert collective.ring_bandwidth(DGX1, np.array([0, 3])) == 40


def test_a_plan_of_nccl_depends_on_numbers_and_may_lose_by_a_faster_link() -> None:
    """As docs/collectives.md says; the exact optimum does neither."""
    chains = [[(1, 0), (3, 0), (3, 2)], [(1, 0), (2, 0), (2, 3)]]  # the last two GPUs have swapped numbers
    chain, swapped = (tp.Topology.from_links(4, [(*pair, 50.0) for pair in pairs], 12.0) for pairs in chains)
    found = [collective.ring_bandwidth(one, range(4)) for one in (chain, swapped)]
    assert found == [50.0, 40.0]
    best = [collective.optimal_bandwidth(one, range(4)) for one in (chain, swapped)]
    assert best[0] == best[1] >= max(found)
    links = [(2, 0, 50.0), (3, 0, 50.0), (3, 1, 50.0)]
    slow, fast = (tp.Topology.from_links(4, [*links, (3, 2, speed)], 12.0) for speed in (25.0, 50.0))
    assert collective.ring_bandwidth(fast, range(4)) < collective.ring_bandwidth(slow, range(4))
    assert collective.optimal_bandwidth(fast, range(4)) >= collective.optimal_bandwidth(slow, range(4))
