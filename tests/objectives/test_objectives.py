from __future__ import annotations

import re
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import brute_force
import topoplace as tp
from topoplace.objectives import (
    MAPA_COEFFICIENTS,
    EffectiveBandwidth,
    aggregated_bandwidth,
    bottleneck_bandwidth,
    link_class,
    link_counts,
    possible_whole_domains,
    preserved_bandwidth,
    scores_of,
    whole_domains,
)
from topoplace.objectives.links import remaining_bandwidth
from topoplace.testing.strategies import job_graphs, topologies
from topoplace.topology.links.link_kinds import LinkKind


def unlike_a_dgx1v(topology: tp.Topology) -> bool:
    kinds = {topology.link(u, v).kind for u in range(topology.num_gpus) for v in range(u)}
    fast = {
        kind for kind in kinds if "NVLINK" in kind.name or kind.name in ("NVSWITCH", "C2C", "XGMI", "ICI")
    }
    return not fast <= {LinkKind.NVLINK, LinkKind.NVLINK2}


def test_equation_2_is_extrapolated_on_other_machines_than_that_of_its_fit() -> None:
    def extrapolated(topology: tp.Topology, gpus: tuple[int, ...]) -> float:
        job = tp.JobGraph.ring(len(gpus))
        return scores_of(job, gpus, topology, range(topology.num_gpus))["effective_bandwidth_extrapolated"]

    fitted = {name for name in tp.machines.names() if not extrapolated(tp.machines.get(name), (0, 1, 2))}
    assert fitted == {"summit", "dgx1-v100", "torus2d-16", "cubemesh-16", "p3.16xlarge"}
    assert extrapolated(tp.machines.get("dgx1-v100"), (0, 1, 2, 3, 4, 5))
    own = EffectiveBandwidth([1.0] * 14)
    a100 = tp.machines.get("dgx-a100")
    assert (
        scores_of(tp.JobGraph.ring(2), (0, 1), a100, range(8), own)["effective_bandwidth_extrapolated"] == 0.0
    )
    mixed = tp.Topology.cluster(
        {name: tp.machines.get(name) for name in ("dgx1-v100", "dgx-a100")}, network=12.5
    )
    assert [extrapolated(mixed, gpus) for gpus in ((0, 1), (8, 9), (0, 8))] == [0.0, 1.0, 1.0]


@given(job=job_graphs(max_tasks=5), topology=topologies(min_gpus=5), data=st.data())
def test_scores_against_their_definitions(
    job: tp.JobGraph, topology: tp.Topology, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(topology.num_gpus)))
    gpus, free = (
        tuple(order[: job.num_tasks]),
        sorted(order[: data.draw(st.integers(job.num_tasks, len(order)))]),
    )
    scores = scores_of(job, gpus, topology, free)
    assert scores == {
        "aggregated_bandwidth": brute_force.aggregated(job, topology, gpus),
        "effective_bandwidth": brute_force.effective(job, topology, gpus),
        "effective_bandwidth_extrapolated": float(
            job.num_tasks not in (2, 3, 4, 5) or unlike_a_dgx1v(topology)
        ),
        "preserved_bandwidth": brute_force.preserved(topology, free, gpus),
        "bottleneck_bandwidth": brute_force.bottleneck(job, topology, gpus),
    }
    assert aggregated_bandwidth(job, gpus, topology) == scores["aggregated_bandwidth"]
    assert bottleneck_bandwidth(job, gpus, topology) == scores["bottleneck_bandwidth"]
    assert preserved_bandwidth(gpus, topology, free) == scores["preserved_bandwidth"]
    assert sum(link_counts(job, gpus, topology)) == len(job.edges)


def test_remaining_bandwidth_of_very_many_free_gpus() -> None:
    topology = tp.Topology.cluster(tp.machines.get("dgx1-v100"), 80, racks=4)
    matrix = topology.bandwidth_matrix()
    for free, gpus in ((range(640), (0, 9, 639)), (range(20, 600), (20, 21, 300)), (range(640), (1,))):
        rest = [gpu for gpu in free if gpu not in gpus]
        expected = matrix[np.ix_(rest, rest)].sum() / 2
        assert remaining_bandwidth(gpus, topology, free) == expected


@given(
    kinds=st.lists(st.sampled_from(["summit", "dgx1-v100", "dgx-a100", "mi250x"]), min_size=2, max_size=5),
    data=st.data(),
)
def test_preserved_bandwidth_of_a_cluster_is_that_inside_its_machines(
    kinds: list[str], data: st.DataObject
) -> None:
    machines = {f"{kind}-{i}": tp.machines.get(kind) for i, kind in enumerate(kinds)}
    cluster = tp.Topology.cluster(machines, network=12.5)
    free = data.draw(st.sets(st.sampled_from(range(cluster.num_gpus)), min_size=2))
    gpus = tuple(data.draw(st.permutations(sorted(free)))[:2])
    left = sorted(free.difference(gpus))
    inside = sum(
        cluster.bandwidth(u, v)
        for u, v in combinations(left, 2)
        if cluster.machine_of[u] == cluster.machine_of[v]
    )
    assert preserved_bandwidth(gpus, cluster, free) == pytest.approx(inside)
    assert scores_of(tp.JobGraph.ring(2), gpus, cluster, free)["preserved_bandwidth"] == pytest.approx(inside)


def test_preserved_bandwidth_of_many_free_gpus() -> None:
    matrix = np.triu(np.arange(40 * 40).reshape(40, 40) % 7 + 1.0, 1)
    topology = tp.Topology.from_matrix(matrix + matrix.T)
    free = list(range(3, 40))
    assert preserved_bandwidth((4, 9), topology, free) == brute_force.preserved(topology, free, (4, 9))


@pytest.mark.parametrize(
    ("links", "paper"),
    [
        ((1, 0, 0), 39.080),
        ((0, 1, 0), 21.606),
        ((0, 0, 1), 10.086),
        ((2, 1, 0), 57.857),
        ((1, 1, 1), 24.108),
        ((0, 0, 3), 11.294),
        ((0, 1, 2), 3.207),
    ],
)
def test_eq2_with_the_papers_digits(links: tuple[int, int, int], paper: float) -> None:
    table_2 = [int(value * 1000) / 1000 for value in MAPA_COEFFICIENTS]
    assert EffectiveBandwidth(table_2).predict(*links) == pytest.approx(paper, abs=6e-4)
    assert EffectiveBandwidth().predict(*links) == pytest.approx(paper, abs=3e-3)


def test_eq2_reproduces_every_prediction_of_the_artifact(shared: Path) -> None:
    logs = sorted((shared / "data/mapa").glob("results-*.txt"))
    lines = [line.split() for log in logs for line in log.read_text("utf-8").splitlines()[1:]]
    printed = {(int(line[-3]), int(line[-2]), int(line[-1])): float(line[10]) for line in lines}
    assert len(logs) == 20
    assert len(printed) > 40
    model = EffectiveBandwidth()
    for counts, predicted in printed.items():
        assert model.predict(*counts) == pytest.approx(predicted, abs=5.01e-7), counts


def test_predict_is_vectorised_bit_for_bit() -> None:
    model = EffectiveBandwidth()
    counts = np.array(list(product(range(5), repeat=3)))
    assert model(counts).tolist() == [model.predict(*row) for row in counts.tolist()]
    assert model(counts).tolist() == [model.of_counts(*row) for row in counts.tolist()]


def test_fit_recovers_the_model_it_measures() -> None:
    counts = np.array([row for row in product(range(4), repeat=3) if sum(row) <= 6])
    model = EffectiveBandwidth()
    fitted = EffectiveBandwidth.fit(np.column_stack([counts, model(counts)]))
    assert np.allclose(fitted.coefficients, MAPA_COEFFICIENTS, rtol=1e-6)
    assert fitted != model
    assert eval(repr(fitted)) == fitted
    assert repr(model) == "EffectiveBandwidth()"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.zeros((13, 4)), "table: 13 rows, eq. 2 needs at least 14"),
        (np.zeros((14, 3)), "table: shape (14, 3)"),
        (np.where(np.arange(56).reshape(14, 4) == 22, np.nan, 1.0), "table[5, 2] = nan"),
        (np.where(np.arange(56).reshape(14, 4) == 8, -1.0, 1.0), "table[2, 0] = -1.0"),
    ],
)
def test_fit_names_what_it_refuses(table: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        EffectiveBandwidth.fit(table)


def test_coefficients_are_checked() -> None:
    with pytest.raises(ValueError, match="coefficients: 3 values"):
        EffectiveBandwidth((1.0, 2.0, 3.0))
    with pytest.raises(ValueError, match=re.escape("coefficients[1] = nan")):
        EffectiveBandwidth((1.0, float("nan"), *MAPA_COEFFICIENTS[2:]))


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ((50.0, LinkKind.NVLINK2, 2), 0),
        ((25.0, LinkKind.NVLINK2, 2), 0),
        ((20.0, LinkKind.NVLINK1, 1), 1),
        ((300.0, LinkKind.NVSWITCH, 1), 0),
        ((64.0, LinkKind.PCIE, 1), 2),
        ((50.0, LinkKind.XGMI, 1), 0),
        ((37.5, LinkKind.UNKNOWN, 1), 0),
        ((37.4, LinkKind.UNKNOWN, 1), 1),
        ((16.0, LinkKind.UNKNOWN, 1), 1),
        ((15.9, LinkKind.UNKNOWN, 1), 2),
    ],
)
def test_link_class(link: tuple[float, LinkKind, int], expected: int) -> None:
    classes = link_class(tp.Topology.from_links(3, [(0, 2, *link)]))
    assert classes.dtype == np.int8
    assert classes[0, 2] == classes[2, 0] == expected
    assert classes[0, 1] == classes[1, 2] == 2


@pytest.mark.parametrize(
    "weights", [(1.5, -0.5, 0.0), (-0.5, 1.5, 0.0), (0.0, -0.25, 1.25), (0.5, 0.5, 0.01)]
)
def test_weights_of_the_utility_are_shares_of_one(weights: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match=r"communication = |interference = |sum to 1\.01: must be 1"):
        tp.objectives.Utility(*weights)


def test_weights_may_be_off_by_rounding() -> None:
    assert tp.objectives.Utility(0.1 + 0.2, 0.3, 0.4).communication == pytest.approx(0.3)


@pytest.mark.parametrize("gpus", [(-1, 0), (0, -1), (8, 0), (0, 8)])
def test_gpus_that_are_not_there_are_named_wherever_they_stand(gpus: tuple[int, int]) -> None:
    wrong = next(i for i, gpu in enumerate(gpus) if gpu != 0)
    with pytest.raises(ValueError, match=re.escape(f"gpus[{wrong}] = {gpus[wrong]} is not in 0..7")):
        aggregated_bandwidth(tp.JobGraph.ring(2), gpus, tp.machines.get("dgx1-v100"))


def test_domains_are_whole_while_all_their_gpus_are_free() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("dgx-h100"), 12, racks=4))
    assert (whole_domains(cluster, "machine"), whole_domains(cluster, "rack")) == (12, 3)
    cluster.allocate("job", [3])
    cluster.drain(40)
    assert (whole_domains(cluster, "machine"), whole_domains(cluster, "rack")) == (10, 1)
    with pytest.raises(ValueError, match="level = 'pod' is not one of machine, rack"):
        whole_domains(cluster, "pod")


def test_domains_can_be_whole_as_far_as_free_gpus_reach() -> None:
    machines = tp.Topology.cluster(tp.machines.get("minsky"), 4, racks=2)
    cluster = tp.Cluster(machines)
    for i, gpu in enumerate((0, 5, 6, 8)):
        cluster.allocate(f"job {i}", [gpu], tp.JobGraph.ring(1))
    assert (whole_domains(cluster, "machine"), possible_whole_domains(cluster, "machine")) == (1, 3)
    assert (whole_domains(cluster, "rack"), possible_whole_domains(cluster, "rack")) == (0, 1)
    assert tp.defragment(cluster, moves=4).after == 3
    cluster.drain(15)
    assert (whole_domains(cluster, "machine"), possible_whole_domains(cluster, "machine")) == (0, 2)
    uneven = tp.Cluster(
        tp.Topology.cluster({"a": tp.machines.get("dgx-h100"), "b": tp.machines.get("minsky")})
    )
    uneven.allocate("job", [0, 8])  # ten GPUs are free: enough for either machine, not for both
    assert (whole_domains(uneven, "machine"), possible_whole_domains(uneven, "machine")) == (0, 1)
    with pytest.raises(ValueError, match="level = 'pod' is not one of machine, rack"):
        possible_whole_domains(cluster, "pod")
