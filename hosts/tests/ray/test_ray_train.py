"""Ray Train on GPUs that were decided: each rank's node and device, with a real Ray and without torch."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import topoplace as tp

ray: Any = pytest.importorskip("ray", reason="the extra ray is not installed")
pytest.importorskip("pydantic", reason="the extra ray-train is not installed")
pytest.importorskip("fsspec", reason="the extra ray-train is not installed")

from ray.train import RunConfig, WorkerGroupError  # noqa: E402
from ray.train.backend import Backend, BackendConfig  # noqa: E402
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer  # noqa: E402

from ray_nodes import TOPOLOGY, Nodes, node_ids, wait_for  # noqa: E402
from topoplace_hosts.ray import RayPlacer  # noqa: E402
from topoplace_hosts.ray.train import TrainWorkers, rank_order  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import tests


class Chosen(tp.policies.SearchPolicy):
    """A policy that chooses the GPUs it was given."""

    name = "chosen"

    def __init__(self, *gpus: int) -> None:
        self._gpus = gpus

    def place(self, job: tp.JobGraph, cluster: tp.Cluster) -> tp.Placement | None:
        return tp.Placement(gpus=self._gpus, topology=cluster.topology, job=job)

    def best(self, *_: Any) -> None:
        raise AssertionError("place does not search")


@pytest.fixture
def board(nodes: Nodes) -> Any:
    """An actor that keeps what workers say of themselves."""

    @ray.remote(num_cpus=0)
    class Board:
        def __init__(self) -> None:
            self.rows: list[tuple[Any, ...]] = []

        def put(self, *row: Any) -> None:
            self.rows.append(row)

        def get(self) -> list[tuple[Any, ...]]:
            return sorted(self.rows)

    return Board.remote()


def say_who(config: dict[str, Any]) -> None:
    import ray.train

    context = ray.train.get_context()
    ranks = (context.get_world_rank(), context.get_node_rank(), context.get_local_rank())
    node = ray.get_runtime_context().get_node_id()
    ray.get(config["board"].put.remote(*ranks, node, device()))


def device() -> str:
    return os.environ["CUDA_VISIBLE_DEVICES"]


class Framework(BackendConfig):
    """A framework that must see its GPU when it starts, as torch does."""

    def __init__(self, board: Any) -> None:
        self.board = board

    @property
    def backend_cls(self) -> Any:
        return Starts


class Starts(Backend):
    def on_start(self, worker_group: Any, backend_config: Framework) -> None:
        for rank, seen in enumerate(worker_group.execute(device)):
            ray.get(backend_config.board.put.remote("starts", rank, seen))


def train(workers: TrainWorkers, board: Any, folder: Path) -> list[tuple[Any, ...]]:
    trainer = DataParallelTrainer(
        say_who,
        train_loop_config={"board": board},
        scaling_config=workers.scaling_config(),
        backend_config=workers.backend_config(),
        run_config=RunConfig(storage_path=str(folder)),
    )
    trainer.fit()
    rows: list[tuple[Any, ...]] = ray.get(board.get.remote())
    return rows


def test_ranks_go_round_the_ring_and_see_its_gpus(nodes: Nodes, board: Any, tmp_path: Path) -> None:
    """The ring begins in the middle of a machine; ranks begin where the machine begins."""
    node_of = node_ids()
    with RayPlacer(TOPOLOGY, Chosen(6, 9, 8, 7, 5)).place(tp.JobGraph.ring(5)) as gang:
        workers = TrainWorkers(gang)
        assert workers.tasks == (1, 2, 3, 4, 0)
        assert train(workers, board, tmp_path) == [
            *((0, 0, 0, node_of[9], "1"), (1, 0, 1, node_of[8], "0")),
            *((2, 1, 0, node_of[7], "7"), (3, 1, 1, node_of[5], "5"), (4, 1, 2, node_of[6], "6")),
        ]
    wait_for(TOPOLOGY.num_gpus)


def test_the_gpu_is_there_before_the_framework_starts(nodes: Nodes, board: Any, tmp_path: Path) -> None:
    with RayPlacer(TOPOLOGY).place(tp.JobGraph.ring(2)) as gang:
        workers = TrainWorkers(gang, {"CPU": 2})
        DataParallelTrainer(
            lambda: None,
            scaling_config=workers.scaling_config(),
            backend_config=workers.backend_config(Framework(board)),
            run_config=RunConfig(storage_path=str(tmp_path)),
        ).fit()
        devices = [str(gpu % 8) for gpu in gang.placement.gpus]
        assert ray.get(board.get.remote()) == [("starts", 0, devices[0]), ("starts", 1, devices[1])]


def test_a_ring_that_comes_back_to_a_machine_is_refused_or_numbered_by_machine(nodes: Nodes) -> None:
    with RayPlacer(TOPOLOGY, Chosen(0, 8, 1, 9)).place(tp.JobGraph.ring(4)) as gang:
        with pytest.raises(ValueError, match=r"ring of 4 comes back to a machine.*any_order=True"):
            TrainWorkers(gang)
        assert TrainWorkers(gang, any_order=True).tasks == (0, 2, 1, 3)
        with pytest.raises(ValueError, match=r"resources\['GPU'\]"):
            TrainWorkers(gang, {"GPU": 1})


def test_a_framework_that_replaces_workers_is_refused(nodes: Nodes, board: Any) -> None:
    class Replaces(Backend):
        has_replica_groups = True

    class Configured(BackendConfig):
        backend_cls = Replaces

    with RayPlacer(TOPOLOGY).place(tp.JobGraph.ring(2)) as gang:
        with pytest.raises(ValueError, match="backend: replica groups cannot be honoured"):
            TrainWorkers(gang).backend_config(Configured())
        assert TrainWorkers(gang).backend_config(Framework(board)).backend is None


def test_workers_elsewhere_are_an_error(nodes: Nodes, tmp_path: Path) -> None:
    """If Ray did not honour the labels, training would use GPUs of others."""
    with RayPlacer(TOPOLOGY, Chosen(0, 8)).place(tp.JobGraph.ring(2)) as gang:
        workers = TrainWorkers(gang)
        swapped = workers.scaling_config()
        swapped.label_selector = swapped.label_selector[::-1]
        trainer = DataParallelTrainer(
            lambda: None,
            scaling_config=swapped,
            backend_config=workers.backend_config(),
            run_config=RunConfig(storage_path=str(tmp_path)),
        )
        with pytest.raises(Exception, match="rank 0 is on node"):
            trainer.fit()


@pytest.mark.parametrize(
    ("job", "machines", "tasks"),
    [
        (tp.JobGraph.ring(4), "aaaa", (0, 1, 2, 3)),
        (tp.JobGraph.ring(4), "abbb", (0, 1, 2, 3)),
        (tp.JobGraph.ring(5), "aabba", (2, 3, 4, 0, 1)),
        (tp.JobGraph.ring(5), "ababa", None),
        (tp.JobGraph.chain(5), "aabba", None),
        (tp.JobGraph.clique(5), "ababa", (0, 2, 4, 1, 3)),
        (tp.JobGraph.independent(4), "abab", (0, 2, 1, 3)),
        (tp.JobGraph.ring(6), "abbcca", (1, 2, 3, 4, 5, 0)),
    ],
)
def test_ranks_communicate_as_tasks_do(
    job: tp.JobGraph, machines: str, tasks: tuple[int, ...] | None
) -> None:
    assert rank_order(job, machines) == tasks
    if tasks is not None:
        edges = {frozenset(edge[:2]) for edge in job.edges}
        assert {frozenset(tasks[rank] for rank in edge) for edge in edges} == edges


def say_hello_and_wait(config: dict[str, Any]) -> None:
    ray.get(config["board"].put.remote("hello"))
    time.sleep(600)


def test_training_ends_with_its_node_and_the_job_is_placed_again(
    nodes: Nodes, board: Any, tmp_path: Path
) -> None:
    gang = RayPlacer(TOPOLOGY, Chosen(0, 8)).place(tp.JobGraph.ring(2))
    workers = TrainWorkers(gang)

    def kill_when_both_train() -> None:
        while len(ray.get(board.get.remote())) < 2:
            time.sleep(0.1)
        nodes.kill(TOPOLOGY.machine_names[1])

    killer = Thread(target=kill_when_both_train)
    killer.start()
    trainer = DataParallelTrainer(
        say_hello_and_wait,
        train_loop_config={"board": board},
        scaling_config=workers.scaling_config(),
        backend_config=workers.backend_config(),
        run_config=RunConfig(storage_path=str(tmp_path)),
    )
    with pytest.raises(WorkerGroupError, match="Rank 1 Error"):
        trainer.fit()
    killer.join()
    end = time.monotonic() + 60
    while node_ids().keys() & {8}:
        assert time.monotonic() < end, "Ray does not notice"
        time.sleep(0.1)
    with pytest.raises(ValueError, match=r"^task 1: the node of topoplace:machine1:0 is not alive$"):
        workers.scaling_config()
    gang.release()
    with RayPlacer(TOPOLOGY).place(tp.JobGraph.ring(2)) as again:
        assert TOPOLOGY.machine_names[1] not in {TOPOLOGY.gpus[gpu].machine for gpu in again.placement.gpus}
        assert len(TrainWorkers(again).scaling_config().label_selector) == 2
