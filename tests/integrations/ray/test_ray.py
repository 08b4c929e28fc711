"""Actors, tasks and gangs on a real Ray with four nodes on this host, whose GPUs are resources without hardware."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

import topoplace as tp

ray: Any = pytest.importorskip("ray", reason="the extra ray is not installed")

from topoplace.integrations.ray import Gang, RayPlacer, node_resources  # noqa: E402
from topoplace.integrations.ray.resources import resource_of  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

NUM_NODES = 4
ADDRESS = "127.0.0.2"
"""An address of the loopback interface; Ray replaces 127.0.0.1 by that of the host."""
TOPOLOGY = tp.Topology.cluster(tp.machines.get("dgx1-v100"), count=NUM_NODES)
MOST_ACTORS = int(os.environ.get("TOPOPLACE_RAY_ACTORS", "12"))
NUM_GANGS = int(os.environ.get("TOPOPLACE_RAY_GANGS", "3"))


class Nodes:
    """A Ray cluster on the loopback interface."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 1, "include_dashboard": False, "node_ip_address": ADDRESS}
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.nodes = {
            machine: self.cluster.add_node(
                num_cpus=16,
                node_ip_address=ADDRESS,
                resources=node_resources(TOPOLOGY, machine),
            )
            for machine in TOPOLOGY.machine_names
        }
        ray.init(address=self.cluster.address, _node_ip_address=ADDRESS, log_to_driver=False)
        self.cluster.wait_for_nodes()

    def stop(self) -> None:
        ray.shutdown()
        self.cluster.shutdown()


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    running = Nodes()
    yield running
    running.stop()


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
    node_of = {name: node["NodeID"] for node in ray.nodes() if node["Alive"] for name in node["Resources"]}
    return [
        (rank, node_of[resource_of(TOPOLOGY, gpu)], str(gpu % 8))
        for rank, gpu in enumerate(gang.placement.gpus)
    ]


def free_gpus() -> int:
    free = ray.available_resources()
    return sum(int(free.get(resource_of(TOPOLOGY, gpu), 0)) for gpu in range(TOPOLOGY.num_gpus))


def wait_for(number: int) -> None:
    """Wait until `number` GPUs are free in Ray."""
    end = time.monotonic() + 30
    while free_gpus() != number:
        assert time.monotonic() < end, f"{free_gpus()} GPUs are free, not {number}"
        time.sleep(0.05)


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

    with RayPlacer(TOPOLOGY).place(tp.JobGraph.independent(1), beside={"CPU": 1}) as gang:
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
        RayPlacer(TOPOLOGY).place(tp.JobGraph.independent(1), beside={"CPU": 99}, timeout=0)
    wait_for(TOPOLOGY.num_gpus)


def test_a_node_that_is_killed_gets_no_jobs(nodes: Nodes, worker: Any) -> None:
    placer = RayPlacer(TOPOLOGY)
    gang = placer.place(tp.JobGraph.ring(8).with_(single_machine=True))
    (machine,) = {TOPOLOGY.gpus[gpu].machine for gpu in gang.placement.gpus}
    actors = gang.start(worker)
    ray.get([actor.sees.remote() for actor in actors])
    nodes.cluster.remove_node(nodes.nodes[machine], allow_graceful=False)
    for actor in actors:
        with pytest.raises(ray.exceptions.RayActorError):
            see_until_ray_notices(actor)
    rest = placer.place(tp.JobGraph.ring(TOPOLOGY.num_gpus - 8), timeout=60)
    assert gang.is_released
    assert machine not in {TOPOLOGY.gpus[gpu].machine for gpu in rest.placement.gpus}
    with pytest.raises(TimeoutError):
        placer.place(tp.JobGraph.independent(1), timeout=0.2)
