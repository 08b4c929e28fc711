from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topoplace as tp
from command_line import run
from paper_rows import assert_complete, assert_covered, assert_kept, assert_rules_can_fail, by_id
from topoplace_lab.papers import mapa
from topoplace_lab.papers.claims import FITTED, IDENTITY, PaperClaim
from topoplace_lab.papers.mapa import bandwidths
from topoplace_lab.papers.mapa.artifact_order import GreedyOfArtifact
from topoplace_lab.papers.mapa.collective_model import RingStudy
from topoplace_lab.papers.mapa.study import MapaStudy
from topoplace_lab.papers.rules import DIFFERS, NOT_COMPARABLE, ORDER_ONLY, REPRODUCED

JOBS = (
    "2,ring,0,30,0,googlenet.sh\n4,ring,0,40,1,vgg16.sh\n1,ring,5,20,1,vgg16.sh\n5,ring,5,10,1,alexnet.sh\n"
)


@pytest.fixture(scope="module")
def claims() -> dict[str, PaperClaim]:
    return by_id(mapa.reproduce(quick=True))


# ---- run times by rings ------------------------------------------------------------------------------------------


def test_speedups_by_rings_stand_beside_those_by_eq_2() -> None:
    rows = by_id(mapa.reproduce_by_rings(quick=True, step=(0.1, 0.5)))
    assert list(rows) == ["C.1", "C.2", "C.3", "C.4", "C.5"]
    assert {row.verdict for row in rows.values()} == {NOT_COMPARABLE}
    for row in rows.values():
        assert row.paper.startswith("eq. 2: ")
        assert row.ours.startswith("rings: ")
        assert row.ours.count("[") == row.paper.count("[") == 4  # an interval for each policy


def test_only_sensitive_jobs_are_slowed_down_by_rings() -> None:
    study = RingStudy([0], (0.1, 0.5), num_jobs=60)
    result = study.results("Baseline")[0]
    slowed = result.jobs["slowdown"] > 1 + 1e-9
    assert slowed.any()
    assert result.jobs["bandwidth_sensitive"][slowed].all()
    no_data = RingStudy([0], (0.1, 0.0), num_jobs=60).results("Baseline")[0]
    assert no_data.jobs["slowdown"].max() == pytest.approx(1.0)


# ---- the artifact ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", mapa.POLICIES)
@pytest.mark.parametrize("machine", mapa.MACHINES)
def test_every_line_of_every_log(shared: Path, machine: str, policy: str) -> None:
    folder = shared / "data/mapa"
    jobs = (folder / "jobs-ring-s1.txt").read_text("utf-8")
    expected = (folder / f"results-{machine}-{policy}-ring-s1.txt").read_text("utf-8")
    assert mapa.run_artifact(jobs, machine, policy) == expected
    assert (
        mapa.run_artifact(jobs, (folder / f"topology-{machine}.txt").read_text("utf-8"), policy) == expected
    )


# SHA-256 of the logs that the published program writes: commit 15e58ab, GCC 12.2 at -O3, with GPU sets in the order of
# its graph miner. Of two job lists: the shared one of 300 jobs, and GHOSTS.
PUBLISHED = {
    ("dgx-v", "baseline"): ("ceab16d1395a", "008477eb2339"),
    ("dgx-v", "topoAware"): ("f72eb359323e", "008477eb2339"),
    ("dgx-v", "greedy"): ("ab6f542a2356", "008477eb2339"),
    ("dgx-v", "preserve"): ("a671ca942912", "6bdf6b078aaf"),
    ("dgx-p", "baseline"): ("4f9a75d80d9f", "600fa4c39fee"),
    ("dgx-p", "topoAware"): ("2a01bb41b885", "600fa4c39fee"),
    ("dgx-p", "greedy"): ("6df8ece8e14e", "600fa4c39fee"),
    ("dgx-p", "preserve"): ("1e6505dc4db9", "5af158621d30"),
    ("summit", "baseline"): ("7e41cb320b0f", "b80861ec068c"),
    ("summit", "topoAware"): ("cc62950ae9e0", "b80861ec068c"),
    ("summit", "greedy"): ("90ce1cd860a1", "b80861ec068c"),
    ("summit", "preserve"): ("5cd5c2e01d94", "491e102f0c91"),
    ("torus-2d", "baseline"): ("57b1bd187bdf", "16ea2e4044b9"),
    ("torus-2d", "topoAware"): ("f2429ca97efa", "16ea2e4044b9"),
    ("torus-2d", "greedy"): ("c858fb8b9e26", "c402ccc7baf5"),
    ("torus-2d", "preserve"): ("d4056f92b8e7", "225732a24f88"),
}
GHOSTS = """4,ring,0,339,0,caffenet.sh
5,ring,0,349,1,vgg16.sh
1,ring,0,381,1,vgg16.sh
2,ring,0,299,0,googlenet.sh
3,ring,0,412,1,vgg16.sh
1,ring,0,359,1,vgg16.sh
1,ring,0,578,1,inception-v3.sh
1,ring,0,356,0,caffenet.sh
"""
# The published program hangs: of three that ran as job 4, only one gave its GPU back, and job 3 needs five of six.
HANGS = "1,ring,0,5,0,a.sh\n1,ring,0,5,0,b.sh\n1,ring,0,5,0,c.sh\n5,ring,0,7,1,e.sh\n1,ring,0,9,1,z.sh\n"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@pytest.mark.parametrize(("machine", "policy"), PUBLISHED)
def test_logs_of_the_program_as_published(shared: Path, machine: str, policy: str) -> None:
    jobs = (shared / "data/mapa/jobs-ring-s1.txt").read_text("utf-8")
    assert (
        _digest(mapa.run_artifact(jobs, machine, policy, rules="published")) == PUBLISHED[machine, policy][0]
    )


@pytest.mark.parametrize(("machine", "policy"), PUBLISHED)
def test_ghosts_of_the_program_as_published(machine: str, policy: str) -> None:
    log = mapa.run_artifact(GHOSTS, machine, policy, rules="published")
    assert _digest(log) == PUBLISHED[machine, policy][1]


def test_the_program_as_published_hangs_and_crashes() -> None:
    log = mapa.run_artifact(HANGS, "summit", "baseline", rules="published").splitlines()
    assert [line.split()[0] for line in log] == ["ID", "0", "2", "1", "4"]
    assert log[-1] == "4 0 9 0 9 0 0.000000 1 1 0.000000 12.335063 z.sh 3,"
    assert len(mapa.run_artifact(HANGS, "dgx-v", "baseline", rules="published").splitlines()) == 6
    with pytest.raises(ValueError, match="crashes on cubeMesh-16"):
        mapa.run_artifact(HANGS, "cubeMesh-16", "baseline", rules="published")
    with pytest.raises(ValueError, match="rules = 'mine'"):
        mapa.run_artifact(HANGS, "summit", "baseline", rules="mine")  # type: ignore[arg-type]


def test_logs_as_published_are_rows(tmp_path: Path) -> None:
    (tmp_path / "jobs-ring-x.txt").write_text(HANGS, "utf-8")
    log = mapa.run_artifact(HANGS, "summit", "baseline", rules="published")
    (tmp_path / "published-summit-baseline-ring-x.txt").write_text(log, "utf-8")
    (tmp_path / "results-summit-baseline-ring-x.txt").write_text(log, "utf-8")
    published, repaired = mapa.match_artifact(tmp_path)
    assert (published.id, published.verdict) == ("artifact as published summit baseline ring-x", REPRODUCED)
    assert repaired.verdict == DIFFERS


@pytest.mark.parametrize("machine", mapa.MACHINES)
def test_built_in_links_are_those_of_the_files(shared: Path, machine: str) -> None:
    read = mapa.parse_topology((shared / f"data/mapa/topology-{machine}.txt").read_text("utf-8"))
    built = mapa.topology_of(machine)
    assert np.array_equal(built.bandwidth_matrix(), read.bandwidth_matrix())
    assert np.array_equal(tp.objectives.link_class(built), tp.objectives.link_class(read))


def test_a_log_of_our_own() -> None:
    log = mapa.run_artifact(JOBS, "dgx-v", "greedy").splitlines()
    assert [line.split()[0] for line in log] == ["ID", "2", "0", "1", "3"]
    by_id = {line.split()[0]: line.split() for line in log[1:]}
    assert by_id["0"] == [
        "0",
        "0",
        "30",
        "0",
        "30",
        "100",
        "1.000000",
        "0",
        "2",
        "0.000000",
        "58.925036",
        "googlenet.sh",
        "1,4,",
        "0",
        "ring",
        "350",
        "2",
        "0",
        "0",
    ]
    # Submitted at 5 with two GPUs free: the job of five waits for the first two to end, at 40.
    assert by_id["3"][1:5] == ["40", "50", "35", "10"]
    assert by_id["3"][13] == "5"


def test_our_names_of_machines_and_policies_will_do() -> None:
    ours = mapa.run_artifact(JOBS, "dgx1-v100", "mapa-topo-aware")
    assert ours == mapa.run_artifact(JOBS, "dgx-v", "topoAware")


@given(
    rows=st.lists(
        st.tuples(st.integers(1, 5), st.integers(0, 12), st.integers(1, 9), st.integers(0, 1)),
        min_size=1,
        max_size=14,
    ),
    policy=st.sampled_from(sorted(mapa.POLICIES)),
)
@settings(max_examples=25)
def test_times_are_those_of_a_clock_that_ticks(rows: list[tuple[int, int, int, int]], policy: str) -> None:
    """The artifact counts cycles: completions, then arrivals in the order of the list, then starts from the head."""
    text = "".join(f"{k},ring,{arrival},{service},{sensitive},x\n" for k, arrival, service, sensitive in rows)
    log = [line.split() for line in mapa.run_artifact(text, "summit", policy).splitlines()[1:]]
    unseen, queue, running, done = list(range(len(rows))), [], {}, []
    free, cycle = 6, 0
    while len(done) < len(rows):
        for job in [job for job, end in running.items() if end == cycle]:
            done.append((job, cycle - rows[job][2], cycle))
            free += rows[job][0]
            del running[job]
        while unseen and rows[unseen[0]][1] <= cycle:
            queue.append(unseen.pop(0))
        while queue and rows[queue[0]][0] <= free:
            job = queue.pop(0)
            free -= rows[job][0]
            running[job] = cycle + rows[job][2]
        cycle += 1
    assert [(int(line[0]), int(line[1]), int(line[2])) for line in log] == done
    assert [int(line[3]) for line in log] == [start - rows[job][1] for job, start, _ in done]


@pytest.mark.parametrize(
    ("topology", "policy", "jobs", "message"),
    [
        ("dgx-v", "best", JOBS, "policy = 'best': the artifact has baseline, topoAware"),
        ("1 2 fast", "greedy", JOBS, "line 1: '1 2 fast' is not `u v gb_per_s"),
        ("1 1 25 Single", "greedy", JOBS, "line 1: '1 1 25 Single': must have two GPUs of 1..64"),
        ("1 2 25 Single\n2 1 25 Single", "greedy", JOBS, "line 2: the pair 1 2 occurs twice"),
        ("", "greedy", JOBS, "no edge lines"),
        ("dgx-v", "greedy", "9,ring,0,1,0,x\n", "job 0: never fits: needs 9 GPUs"),
        ("dgx-v", "greedy", "6,ring,0,1,0,x\n", "rings, stars and cliques of 1 to 5 tasks"),
        ("dgx-v", "greedy", "2,ring,0,1\n", "line 1: 4 columns, 6 needed"),
    ],
)
def test_what_the_artifact_cannot_do_is_refused(topology: str, policy: str, jobs: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mapa.run_artifact(jobs, topology, policy)


def test_match_artifact_compares_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "jobs-ring-s7.txt").write_text(JOBS)
    log = mapa.run_artifact(JOBS, "summit", "preserve")
    (tmp_path / "results-summit-preserve-ring-s7.txt").write_text(log)
    (tmp_path / "results-summit-baseline-ring-s7.txt").write_text(log.replace("vgg16", "vgg17"))
    differs, same = mapa.match_artifact(tmp_path)
    assert (same.paper, same.ours, same.verdict) == ("5", "5", REPRODUCED)
    assert (differs.paper, differs.verdict) == ("5", DIFFERS)
    assert int(differs.ours) < 5


def test_match_artifact_needs_logs(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no results-MACHINE-POLICY-JOBS\.txt"):
        list(mapa.match_artifact(tmp_path))


# ---- the paper ---------------------------------------------------------------------------------------------------


def test_every_claim_is_complete(claims: dict[str, PaperClaim]) -> None:
    assert len(claims) >= 40
    assert_complete(claims.values())
    json.dumps([claim.to_dict() for claim in claims.values()])


def test_every_row_belongs_to_a_part_of_the_paper(claims: dict[str, PaperClaim]) -> None:
    assert_covered(claims.values(), "mapa", ["artifact"])


def test_rows_are_those_kept(claims: dict[str, PaperClaim]) -> None:
    assert_kept(claims.values(), "mapa")


def test_every_rule_can_fail(claims: dict[str, PaperClaim]) -> None:
    wrong: dict[str, tuple[object, ...]] = {
        "3.2": (87.0, 120.0, True),
        "3.17": (6, 8, 16, 16, 100),
        "3.5": (1.0,),
        "3.6": (58.925,),
        "3.3": (1.0, 0.9),
        "3.11": (57.85, 30.0),
        "3.11b": (68.71,),  # the maximum that we measure
        "3.11c": (12.33, -1.0),
        "3.12": (1.0, 1.0, 1.0, 0.0, 0.0),
        "3.12 MIN": (1.0, 1.0, 1.05),
        "3.20": (2.0,),
        "3.4 sizes": (1e4, 1e7, 1e6, 1e7, 1e4),
        "3.18": (0.9, 0.9),
        "3.18 example": (1.0,),
        "3.8 mixes": (26,),
        "3.8 held out": (1.0, 1.0, 1.0, 1.0, 3.0),
        "3.14": (-1.0, 1.0),
        "3.14b": (0.3, 1.0, 1.0),
        "3.14b as published": (0.3, 1.0, 1.0),
        "3.15a": (0.3, 1.0, 1.0),
        "3.15b": (0.7, -1.0),
        "3.15c": (-1.0,),
        "3.16": (20.0,),
        "3.16 torus2d-16 growth": (1.0,),
        "3.16 cubemesh-16 growth": (1.0,),
    }
    assert_rules_can_fail(claims.values(), wrong)


@pytest.mark.parametrize("claim_id", ["3.5", "3.6", "3.7", "3.8", "3.10", "3.17", "3.12 MIN"])
def test_what_could_not_come_out_otherwise_is_no_result(claims: dict[str, PaperClaim], claim_id: str) -> None:
    assert claims[claim_id].verdict == IDENTITY


def test_what_holds_and_what_does_not(claims: dict[str, PaperClaim]) -> None:
    assert claims["3.2"].verdict == REPRODUCED
    for claim_id in ("3.11b", "3.15a", "3.15c", "3.15c threshold"):
        assert claims[claim_id].verdict == DIFFERS, claims[claim_id]


def test_what_eq_2_tells_of_other_bandwidths(claims: dict[str, PaperClaim]) -> None:
    assert claims["3.8 mixes"].verdict == claims["3.20"].verdict == FITTED
    assert claims["3.8 fit"].verdict == NOT_COMPARABLE
    assert claims["3.8 held out"].verdict == claims["3.4 sizes"].verdict == DIFFERS
    assert claims["3.18"].verdict == claims["3.18 example"].verdict == ORDER_ONLY
    best, every = bandwidths.ring_mixes()
    assert (len(best), len(every)) == (26, 39)
    assert best == set(bandwidths.PLANNED)


def test_planned_bandwidths_are_those_of_the_search(shared: Path) -> None:
    records = json.loads((shared / "data/collectives/nccl_search.json").read_text("utf-8"))["records"]
    by_mix: dict[tuple[int, ...], list[float]] = {}
    for record in records:
        if record["machine"] == "dgx1v" and 2 <= len(record["gpus"]) <= 5:
            mix = bandwidths.best_of(bandwidths.mixes_of(tuple(record["gpus"])))
            by_mix.setdefault(mix, []).append(record["nccl_ring_bw"])
    assert {
        mix: pytest.approx(np.mean(found), abs=1e-3) for mix, found in by_mix.items()
    } == bandwidths.PLANNED


def test_the_minimum_of_preserve_needs_the_threshold() -> None:
    study = MapaStudy("cubeMesh-16", range(4))
    without, threshold = (study.quantile(policy, 0.0) for policy in ("Preserve", "Preserve, threshold"))
    assert without.high < 12.0
    assert threshold.values == pytest.approx([12.335063] * 4)


def test_the_idle_optima_of_the_artifact() -> None:
    """AggBW of the best ring of 2 to 5 on each idle machine, with the artifact's links (a ring of 2 counts twice)."""
    optima = {
        "dgx-v": [100, 125, 175, 210],
        "dgx-p": [40, 60, 80, 100],
        "summit": [100, 150, 120, 170],
        "torus-2d": [100, 110, 175, 210],
        "cubeMesh-16": [100, 125, 175, 225],
    }
    greedy = GreedyOfArtifact()
    for machine, expected in optima.items():
        cluster = tp.Cluster(mapa.topology_of(machine))
        placed = [greedy.place(tp.JobGraph.ring(size), cluster) for size in range(2, 6)]
        assert [p.scores["aggregated_bandwidth"] for p in placed if p] == expected


def test_the_threshold_is_paid_with_a_longer_makespan() -> None:
    study = MapaStudy("torus-2d", [0, 1])
    assert 0.93 < study.throughput("Preserve, threshold").mean < 0.999
    assert study.throughput("Preserve").mean == pytest.approx(1.0, abs=0.01)


@pytest.mark.deep
def test_the_command_prints_rows_and_writes_plots(tmp_path: Path) -> None:
    done = run("papers", "mapa", "--quick", "--json", "-o", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(done.stdout)
    assert {tuple(row) for row in rows} == {("id", "quantity", "paper", "ours", "verdict", "why")}
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "mapa-gantt.png",
        "mapa-overhead.png",
        "mapa-policies.png",
    ]
