"""Actors, tasks and gangs on a real Ray with four nodes on this host, whose GPUs are resources without hardware."""

from __future__ import annotations

import os
from typing import Any

import pytest

import topoplace as tp

ray: Any = pytest.importorskip("ray", reason="the extra ray is not installed")

from ray_nodes import TOPOLOGY, Nodes, free_gpus, node_ids, wait_for  # noqa: E402
from topoplace_hosts.ray import Gang, RayPlacer  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

MOST_ACTORS = int(os.environ.get("TOPOPLACE_RAY_ACTORS", "12"))
NUM_GANGS = int(os.environ.get("TOPOPLACE_RAY_GANGS", "3"))


@pytest.fixture
def worker(nodes: Nodes) -> Any:
    @ray.remote(num_cpus=0)
    class Worker:
        def __init__(self, rank: int) -> None:
            self.rank = rank

        def sees(self) -> tuple[int, str, str]:
            node = ray.get_runtime_context().get_node_id()
            return self.rank, node, os.environ["CUDA_VISIBLE_DEVICES"]

        def end(self) -> None:
            ray.actor.exit_actor()

    return Worker


def expected(gang: Gang) -> list[tuple[int, str, str]]:
    """Return the rank, Ray node and device that each actor must see."""
    node_of = node_ids()
    return [(rank, node_of[gpu], str(gpu % 8)) for rank, gpu in enumerate(gang.placement.gpus)]


def see_until_ray_notices(actor: Any) -> None:
    while True:
        ray.get(actor.sees.remote(), timeout=60)


def test_every_actor_sees_the_gpu_that_was_decided(worker: Any) -> None:
    placer = RayPlacer(TOPOLOGY)
    left, gangs = MOST_ACTORS, []
    for number in range(NUM_GANGS):
        size = 2 + number % 2
        gangs.append(placer.place(tp.JobGraph.ring(size).with_(bandwidth_sensitive=True)))
        left -= size
        assert ray.get([actor.sees.remote() for actor in gangs[-1].start(worker)]) == expected(gangs[-1])
    for _ in range(left):
        with placer.place(tp.JobGraph.independent(1)) as gang:
            assert ray.get([actor.sees.remote() for actor in gang.start(worker)]) == expected(gang)
    taken = [gpu for gang in gangs for gpu in gang.placement.gpus]
    assert len(set(taken)) == len(taken)
    wait_for(TOPOLOGY.num_gpus - len(taken))
    for gang in gangs:
        gang.release()
    wait_for(TOPOLOGY.num_gpus)


def test_a_task_runs_on_the_gpu_that_was_decided(nodes: Nodes) -> None:
    @ray.remote
    def device() -> str:
        return os.environ["CUDA_VISIBLE_DEVICES"]

    with RayPlacer(TOPOLOGY).place(tp.JobGraph.independent(1), per_task={"CPU": 1}) as gang:
        assert ray.get(device.options(**gang.options(0)).remote()) == expected(gang)[0][2]
        with pytest.raises(ValueError, match="task = 1"):
            gang.options(1)
    wait_for(TOPOLOGY.num_gpus)


def test_a_gang_is_all_or_nothing_and_released_when_its_actors_die(worker: Any) -> None:
    placer, other = RayPlacer(TOPOLOGY), RayPlacer(TOPOLOGY, "topo-aware")
    gang = placer.place(tp.JobGraph.ring(TOPOLOGY.num_gpus - 2))
    wait_for(2)
    with pytest.raises(TimeoutError, match=r"3 GPUs.*2 are free"):
        other.place(tp.JobGraph.ring(3), timeout=0.3)
    assert free_gpus() == 2
    with pytest.raises(ValueError, match="never fits"):
        other.place(tp.JobGraph.ring(TOPOLOGY.num_gpus + 1))
    gang.release()
    pair = other.place(tp.JobGraph.clique(2))
    for actor in pair.start(worker):
        actor.end.remote()
    again = other.place(tp.JobGraph.ring(TOPOLOGY.num_gpus), timeout=30)
    assert pair.is_released
    del again
    wait_for(TOPOLOGY.num_gpus)


@pytest.mark.parametrize("part", [{"gpu_fraction": 0.5}, {"mig": "1g.5gb"}])
def test_parts_of_gpus_are_refused_by_name(nodes: Nodes, part: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^gpu_fraction and mig cannot be honoured"):
        RayPlacer(TOPOLOGY).place(tp.JobGraph.independent(1).with_(**part))


def test_what_ray_lacks_beside_the_gpus_is_named(nodes: Nodes) -> None:
    with pytest.raises(TimeoutError, match=r"Ray cannot reserve \{'CPU': 99\} for each task"):
        RayPlacer(TOPOLOGY).place(tp.JobGraph.independent(1), per_task={"CPU": 99}, timeout=0)
    wait_for(TOPOLOGY.num_gpus)


def machines_of(gang: Gang) -> set[str]:
    return {TOPOLOGY.gpus[gpu].machine for gpu in gang.placement.gpus}


def test_after_a_node_is_killed_every_actor_sees_the_gpu_that_was_decided(nodes: Nodes, worker: Any) -> None:
    """Gangs elsewhere go on, lost ones are placed again on the nodes that are left."""
    placer = RayPlacer(TOPOLOGY)
    gangs = [placer.place(tp.JobGraph.ring(2 if number else 4)) for number in range(NUM_GANGS)]
    for gang in gangs:
        gang.start(worker)
    for gang in gangs:
        assert ray.get([actor.sees.remote() for actor in gang.actors]) == expected(gang)
    (machine, *_) = machines_of(gangs[0])
    nodes.kill(machine)
    for gang in gangs:
        for actor, gpu in zip(gang.actors, gang.placement.gpus, strict=True):
            if TOPOLOGY.gpus[gpu].machine == machine:
                with pytest.raises(ray.exceptions.RayActorError):
                    see_until_ray_notices(actor)
    whole = [gang for gang in gangs if machine not in machines_of(gang)]
    for gang in whole:
        assert ray.get([actor.sees.remote() for actor in gang.actors]) == expected(gang)
    lost = [gang for gang in gangs if gang not in whole]
    assert lost
    for gang in lost:
        gang.release()  # a gang of several machines has actors that live
        again = placer.place(gang.job, timeout=60)
        assert machine not in machines_of(again)
        assert ray.get([actor.sees.remote() for actor in again.start(worker)]) == expected(again)
        whole.append(again)
    taken = [gpu for gang in whole for gpu in gang.placement.gpus]
    assert len(set(taken)) == len(taken)


def test_a_node_that_was_killed_gets_no_jobs(nodes: Nodes) -> None:
    placer = RayPlacer(TOPOLOGY)
    left = len({machine for machine in TOPOLOGY.machine_names if nodes.is_alive(machine)})
    assert left < len(TOPOLOGY.machine_names)
    rest = placer.place(tp.JobGraph.ring(8 * left), timeout=60)
    assert all(nodes.is_alive(machine) for machine in machines_of(rest))
    with pytest.raises(TimeoutError):
        placer.place(tp.JobGraph.independent(1), timeout=0.2)
