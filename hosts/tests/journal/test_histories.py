"""Random histories of a cluster end in a crash: what is built again from the journal is the state before, or named."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from thoroughness import thorough
from topoplace import AllocationError, Cluster, HostResources, JobGraph, Placement, Topology, machines
from topoplace.mig import MigSlice, present, profiles_of_gpu, start_for
from topoplace.placement import HostShare
from topoplace_hosts.journal import Difference, Entry, Holding, Journal, Stage, keep, recall, reconcile
from topoplace_hosts.journal.entry import named

HOST = HostResources(cpus=64, memory_gb=512, drives=4)
PROFILES = ("1g.5gb", "2g.10gb", "3g.20gb")


@cache
def topologies() -> tuple[Topology, ...]:
    """Return clusters with MIG, one with partitions, one with unhealthy GPUs."""
    machine = machines.get("p4d.24xlarge")
    plain = Topology.cluster(machine, count=2)
    pairs = tuple((i, i + 1) for i in range(0, 8, 2))
    partitions = (*pairs, *((i,) for i in range(8)))
    parted = Topology.cluster(replace(machine, partitions=partitions), count=2)
    return plain, parted, plain.with_unhealthy([3, 9])


def a_placement(cluster: Cluster, rng: random.Random) -> tuple[Placement, JobGraph] | None:
    """Return where a random job may run now: whole GPUs, shares or slices, some with CPUs, memory and drives."""
    topology, kind = cluster.topology, rng.choice(["whole", "share", "slice", "gang"])
    count = rng.choice([1, 1, 2, 3]) if kind != "gang" else rng.randint(2, 6)
    job = rng.choice([JobGraph.ring, JobGraph.clique])(count) if count > 1 else JobGraph.independent(1)
    slices: list[MigSlice] = []
    if kind == "share":
        job = job.with_(gpu_fraction=rng.choice([0.25, 0.5, 0.125]))
        free = list(cluster.gpus_with(job.gpu_fraction))
    elif kind == "slice":
        job = job.with_(mig=rng.choice(PROFILES))
        found = {gpu: a_slice(cluster, gpu, job.mig or "") for gpu in range(topology.num_gpus)}
        free = [gpu for gpu, one in found.items() if one is not None]
    else:
        free = list(cluster.free_gpus())
    gpus = tuple(rng.sample(free, min(count, len(free))))
    if len(gpus) < count or not topology.is_legal(gpus):
        return None
    if kind == "slice":
        slices = [one for gpu in gpus if (one := a_slice(cluster, gpu, job.mig or "")) is not None]
    first = int(topology.machine_of[gpus[0]])
    hosts = tuple(HostShare(first, rng.choice([1, 2.5]), 8.0) for _ in gpus) if rng.random() < 0.5 else ()
    drives = (first,) if hosts and rng.random() < 0.3 else ()
    resliced = gpus if slices else ()
    placed = Placement(
        gpus, topology=topology, job=job, hosts=hosts, drives=drives, slices=tuple(slices), resliced=resliced
    )
    return placed, job


def a_slice(cluster: Cluster, gpu: int, profile: str) -> MigSlice | None:
    """Return where a slice may be cut now on a GPU that is in service and not held otherwise."""
    profiles = profiles_of_gpu(cluster.topology.gpus[gpu])
    sliced = bool(cluster.slices(gpu)) and gpu not in cluster.out_of_service()
    if profile not in profiles or not (sliced or cluster.share_left(gpu) == 1):
        return None
    start = start_for(profiles[profile], profiles, present(cluster.native.slices(gpu)), may_reslice=True)
    return None if start is None else MigSlice(profile, start.start)


def step(cluster: Cluster, journal: Journal, rng: random.Random, number: int) -> None:
    """Change the cluster at random, and write down what changed."""
    topology = cluster.topology
    target = rng.choice([*range(topology.num_gpus), *topology.machine_names])
    match rng.randrange(9):
        case 0:
            rng.choice([cluster.drain, cluster.undrain])(target)
        case 1:
            cluster.hold([target], reason=rng.choice(["spare", "tests"]))
        case 2:
            cluster.unhold([target])
        case 3:
            with suppress(AllocationError):
                gpu = rng.randrange(topology.num_gpus)
                cluster.slice_gpu(gpu, rng.choice([(), ("1g.5gb",) * 3, ("2g.10gb", "1g.5gb", "3g.20gb")]))
        case 4 if cluster.native.num_jobs:
            job_id = rng.choice(cluster.native.job_ids())
            cluster.release(job_id)
            journal.append(Entry(job_id, Stage.ENDED))
        case _:
            found = a_placement(cluster, rng)
            if found is None:
                return
            placed, job = found
            job_id = f"job-{number}"
            with suppress(AllocationError):  # the machine is drained, or its CPUs are short
                cluster.allocate(job_id, placed, job)
                holding = Holding.of_placement(placed)
                journal.append(Entry(job_id, Stage.INTENT, named(topology, placed.gpus), holding=holding))
    keep(cluster, journal)


def rebuilt(before: Cluster, path: Path) -> tuple[Cluster, tuple[Difference, ...], tuple[str, ...]]:
    """Return what a restarted program has, knowing from the host only which GPUs each job is on."""
    topology = before.topology  # as it is read anew: all of it is healthy
    after = Cluster(topology.with_healthy(topology.unhealthy_gpus), HOST)
    running = {job_id: before.gpus_of(job_id) for job_id in before.native.job_ids()}
    with Journal(path) as journal:
        lost = recall(after, journal)
        return after, reconcile(after, running, journal), lost


def test_a_restarted_program_has_the_state_before_the_crash(tmp_path: Path) -> None:
    for seed in range(thorough(10_000, 60)):
        rng = random.Random(seed)
        cluster = Cluster(rng.choice(topologies()), HOST)
        path = tmp_path / str(seed)
        with Journal(path) as journal:
            for number in range(rng.randint(3, 25)):
                step(cluster, journal, rng, number)
        after, differences, lost = rebuilt(cluster, path)
        assert (differences, lost) == ((), ()), seed
        assert after.snapshot() == cluster.snapshot(), seed
        for file in tmp_path.glob(f"{seed}*"):
            file.unlink()


def test_a_gpu_that_was_unhealthy_stays_so(tmp_path: Path) -> None:
    """Three states of two GPUs each; the restarted program reads a topology that calls all of them sound."""
    sound = topologies()[0]
    cluster = Cluster(sound).with_topology(sound.with_unhealthy([0, 1]))
    for gpu, change in ((1, cluster.drain), (2, cluster.drain)):
        change(gpu)
    cluster.hold([0, 3], reason="spare")
    with Journal(tmp_path / "journal") as journal:
        keep(cluster, journal)
        after = Cluster(sound)
        assert recall(after, journal) == ()
        assert reconcile(after, {}, journal) == ()
    assert after.snapshot() == cluster.snapshot() == Cluster.restore(cluster.snapshot()).snapshot()
    states = after.topology.unhealthy_gpus, after.drained_gpus(), tuple(after.held_gpus())
    assert states == ((0, 1), (1, 2), (0, 3))
    repaired = after.with_topology(after.topology.with_healthy([0, 1]))
    assert repaired.out_of_service() == (0, 1, 2, 3)
    for gpu in (1, 2):
        after.undrain(gpu)
    assert after.out_of_service() == (0, 1, 3)
    after.unhold([0, 3])
    assert after.out_of_service() == (0, 1)
    with pytest.raises(AllocationError, match="is unhealthy"):
        after.allocate("new", [0])


def test_a_journal_without_unhealthy_gpus_is_read(tmp_path: Path) -> None:
    """As a version wrote it that did not keep them: what is drained and held is recalled."""
    sound = topologies()[0]
    cluster = Cluster(sound)
    cluster.drain(1)
    with Journal(tmp_path / "journal") as journal:
        keep(cluster, journal)
        text = journal.fact("service")
        assert text is not None
        older = {name: value for name, value in json.loads(text).items() if name != "unhealthy"}
        journal.set_fact("service", json.dumps(older))
        after = Cluster(sound)
        assert recall(after, journal) == ()
    assert (after.drained_gpus(), after.topology.unhealthy_gpus) == ((1,), ())


def test_unhealthy_gpus_that_are_gone_are_named(tmp_path: Path) -> None:
    cluster = Cluster(topologies()[0].with_unhealthy([0]))
    with Journal(tmp_path / "journal") as journal:
        keep(cluster, journal)
        lost = recall(Cluster(Topology.cluster({"other": machines.get("minsky")})), journal)
    ((machine, gpu),) = named(cluster.topology, [0])
    assert lost == (f"GPU {gpu} of {machine} is not in the topology",)


def test_what_the_journal_does_not_know_is_named(tmp_path: Path) -> None:
    """The journal lacks the last entries, as after a crash between a decision and its entry."""
    named_ones = 0
    for seed in range(thorough(10_000, 40)):
        rng = random.Random(seed)
        cluster = Cluster(rng.choice(topologies()), HOST)
        path = tmp_path / str(seed)
        with Journal(path) as journal:
            for number in range(rng.randint(3, 15)):
                step(cluster, journal, rng, number)
        with Journal(tmp_path / f"{seed}-other") as other:
            step_number = 100
            for _ in range(3):
                step(cluster, other, rng, step_number := step_number + 1)
        after, differences, _ = rebuilt(cluster, path)
        unnamed = {
            job_id
            for job_id in cluster.native.job_ids()
            if Holding.in_cluster(cluster, job_id) != Holding.in_cluster(after, job_id)
            or cluster.gpus_of(job_id) != after.gpus_of(job_id)
        } - {one.job_id for one in differences}
        assert not unnamed, seed
        named_ones += bool(differences)
        for file in tmp_path.glob(f"{seed}*"):
            file.unlink()
    assert named_ones > 10


def a_running_set(topology: Topology, rng: random.Random) -> dict[str, Placement | list[int]]:
    """Return jobs on any GPUs, with no respect for partitions, slices or each other."""
    running: dict[str, Placement | list[int]] = {}
    for number in range(rng.randint(0, 7)):
        gpus = rng.sample(range(topology.num_gpus), rng.randint(1, 4))
        job_id = f"job-{number}"
        if rng.random() < 0.2 and all(map(profiles_of_gpu, (topology.gpus[gpu] for gpu in gpus))):
            slices = []
            for gpu in gpus:
                profile = profiles_of_gpu(topology.gpus[gpu])[rng.choice(PROFILES)]
                slices.append(MigSlice(profile.name, rng.choice(profile.starts)))
            running[job_id] = Placement(tuple(gpus), topology=topology, slices=tuple(slices))
        else:
            running[job_id] = gpus if rng.random() < 0.9 else gpus * 2
    return running


def held_in(cluster: Cluster) -> dict[str, tuple[tuple[int, ...], Holding]]:
    """Return what each job holds."""
    return {
        job_id: (cluster.gpus_of(job_id), Holding.in_cluster(cluster, job_id))
        for job_id in cluster.native.job_ids()
    }


def test_any_running_set_is_recorded(tmp_path: Path) -> None:
    overlaps = 0
    for seed in range(thorough(10_000, 60)):
        rng = random.Random(seed)
        topology = rng.choice(topologies())
        cluster = Cluster(topology, HOST if rng.random() < 0.5 else None)
        path = tmp_path / str(seed)
        with Journal(path) as journal:
            for number in range(rng.randint(0, 12)):
                step(cluster, journal, rng, number)
            if rng.random() < 0.5:
                cluster = Cluster(topology, HOST)
                recall(cluster, journal)
            running = a_running_set(topology, rng)
            was = held_in(cluster)
            found = reconcile(cluster, running, journal)
            kinds = {
                kind: {one.job_id for one in found if one.kind == kind} for kind in ("overlap", "partition")
            }
            given = {
                job_id: set(one.gpus if isinstance(one, Placement) else one)
                for job_id, one in running.items()
            }
            assert set(cluster.native.job_ids()) <= running.keys(), seed
            for job_id, gpus in given.items():
                has = set(cluster.gpus_of(job_id))
                others = set().union(*(own for other, own in given.items() if other != job_id))
                assert has <= gpus, seed
                assert has == gpus or (job_id in kinds["overlap"] and gpus - has <= others), seed
                if has and not topology.is_legal(sorted(gpus)) and job_id not in was:
                    assert job_id in kinds["partition"], seed
            state = held_in(cluster)
            again = reconcile(cluster, running, journal)
            assert {one.kind for one in again} <= {"overlap", "slices", "hosts", "partition"}, seed
            assert {one.job_id for one in again} <= kinds["overlap"], seed
            assert held_in(cluster) == state, seed
            overlaps += bool(kinds["overlap"])
        for file in tmp_path.glob(f"{seed}*"):
            file.unlink()
    assert overlaps > 10
