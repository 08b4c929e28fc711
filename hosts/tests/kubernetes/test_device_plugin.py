"""The device plugin, called as a kubelet calls it, over a socket."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

import topoplace as tp
from kubernetes_objects import pod_json

grpc = pytest.importorskip("grpc", reason="the extra kubernetes is not installed")

from kubelet import Kubelet  # noqa: E402
from topoplace_hosts.kubernetes.client.access import Access  # noqa: E402
from topoplace_hosts.kubernetes.device_plugin import DevicePlugin, PreferredAllocation  # noqa: E402
from topoplace_hosts.kubernetes.objects.annotations import GPUS  # noqa: E402
from topoplace_hosts.kubernetes.testing import ApiServer  # noqa: E402
from waiting import WAIT  # noqa: E402

QUESTIONS = 2500 if os.environ.get("TOPOPLACE_KUBERNETES_DEEP") == "1" else 40
"""Random questions about each of four machines."""


def node(name: str = "dgx1-v100", numa_nodes: int = 2) -> tp.Topology:
    """Return a machine of the catalogue whose GPUs have UUIDs, with as many GPUs on each NUMA node."""
    machine = tp.machines.get(name)
    per_node = machine.num_gpus // numa_nodes
    gpus = tuple(
        [replace(gpu, uuid=f"GPU-{gpu.index}", numa_node=gpu.index // per_node) for gpu in machine.gpus]
    )
    return replace(machine, gpus=gpus)


def ids(*gpus: int) -> list[str]:
    return [f"GPU-{gpu}" for gpu in gpus]


@contextmanager
def running(plugin: DevicePlugin, unhealthy: Callable[[], Sequence[str]] = tuple) -> Iterator[None]:
    stop = Event()
    thread = Thread(target=plugin.run, args=(stop, unhealthy))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(WAIT)
        assert not thread.is_alive()


def test_a_kubelet_and_a_plugin(tmp_path: Path) -> None:
    plugin = DevicePlugin(node(), directory=tmp_path)
    with Kubelet(tmp_path) as kubelet, running(plugin):
        assert kubelet.registrations.get(timeout=WAIT) == ("topoplace.sock", "nvidia.com/gpu", True)
        assert (tmp_path / "topoplace.sock").stat().st_mode & 0o777 == 0o600
        with kubelet.plugin("topoplace.sock") as calls:
            assert calls.prefers()
            assert next(calls.lists()) == {f"GPU-{gpu}": (True, gpu // 4) for gpu in range(8)}
            (chosen,) = calls.preferred((ids(1, 2, 3, 4, 7), ids(7), 3))
            assert chosen == PreferredAllocation(node()).choose(ids(1, 2, 3, 4, 7), ids(7), 3)
            first, second = calls.allocate(chosen, ids(0))
            assert sorted(first.envs["NVIDIA_VISIBLE_DEVICES"].split(",")) == sorted(chosen)
            assert first.envs["CUDA_VISIBLE_DEVICES"] == first.envs["NVIDIA_VISIBLE_DEVICES"]
            assert dict(second.envs) == dict.fromkeys(
                ("NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"), "GPU-0"
            )
    assert not (tmp_path / "topoplace.sock").exists()


def test_two_containers_of_a_pod_and_replicas(tmp_path: Path) -> None:
    with Kubelet(tmp_path) as kubelet, running(DevicePlugin(node(), directory=tmp_path, passing="cdi")):
        kubelet.registrations.get(timeout=WAIT)
        with kubelet.plugin("topoplace.sock") as calls:
            both = calls.preferred((ids(*range(8)), [], 4), (ids(4, 5, 6), ids(6), 2))
            assert [len(one) for one in both] == [4, 2]
            assert "GPU-6" in both[1]
            (replicas,) = calls.preferred((["GPU-0::0", "GPU-0::1", "GPU-3::1"], [], 2))
            assert replicas == ["GPU-0::0", "GPU-3::1"]
            (container,) = calls.allocate(["GPU-0::0", "GPU-0::1"])
            assert [one.name for one in container.cdi_devices] == ["nvidia.com/gpu=GPU-0"]
            assert dict(container.envs) == {"CUDA_VISIBLE_DEVICES": "GPU-0"}


@pytest.mark.parametrize(
    ("available", "required", "size", "reason"),
    [
        (["GPU-0", "GPU-9"], [], 1, "available: device 'GPU-9' is not in the topology"),
        (["GPU-0"], ["GPU-1"], 1, "required: device 'GPU-1' is not available"),
        (["GPU-0"], [], 2, "size = 2: there are 1 GPUs, 0 of them required"),
        (["GPU-0", "GPU-1"], ["GPU-0", "GPU-1"], 1, "size = 1: there are 2 GPUs, 2 of them required"),
        (["GPU-0"], [], -1, "size = -1: there are 1 GPUs, 0 of them required"),
    ],
)
def test_a_question_without_an_answer_leaves_the_choice_to_the_kubelet(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    available: list[str],
    required: list[str],
    size: int,
    reason: str,
) -> None:
    with Kubelet(tmp_path) as kubelet, running(DevicePlugin(node(), directory=tmp_path)):
        kubelet.registrations.get(timeout=WAIT)
        with kubelet.plugin("topoplace.sock") as calls:
            assert calls.preferred((available, required, size), (ids(1, 2), [], 1)) == [[], ["GPU-1"]]
            assert f"no preference: {reason}" in caplog.text
            with pytest.raises(grpc.RpcError, match="device 'GPU-9' is not one of this node"):
                calls.allocate(["GPU-9"])


def test_a_restart_of_the_kubelet(tmp_path: Path) -> None:
    with running(DevicePlugin(node(), directory=tmp_path)):
        for _ in range(3):
            with Kubelet(tmp_path) as kubelet:
                kubelet.registrations.get(timeout=WAIT)
                with kubelet.plugin("topoplace.sock") as calls:
                    assert len(next(calls.lists())) == 8


def test_a_plugin_that_starts_before_the_kubelet_and_after_one_that_was_killed(tmp_path: Path) -> None:
    (tmp_path / "topoplace.sock").touch()
    with running(DevicePlugin(node(), directory=tmp_path)), Kubelet(tmp_path) as kubelet:
        kubelet.registrations.get(timeout=WAIT)


def test_broken_gpus_are_reported_and_repaired_ones_too(tmp_path: Path) -> None:
    broken: list[str] = []
    healthy = node()
    topology = replace(healthy, gpus=(replace(healthy.gpus[0], healthy=False), *healthy.gpus[1:]))
    plugin = DevicePlugin(topology, directory=tmp_path)
    with Kubelet(tmp_path) as kubelet, running(plugin, lambda: list(broken)):
        kubelet.registrations.get(timeout=WAIT)
        with kubelet.plugin("topoplace.sock") as calls:
            lists = calls.lists()
            assert [one for one, (is_healthy, _) in next(lists).items() if not is_healthy] == ["GPU-0"]
            broken[:] = ["GPU-3", "GPU-77"]
            assert [one for one, (is_healthy, _) in next(lists).items() if not is_healthy] == ids(0, 3)
            broken.clear()
            assert [one for one, (is_healthy, _) in next(lists).items() if not is_healthy] == ids(0)


@pytest.mark.parametrize(
    "policy", [tp.policies.LeastTime(), tp.policies.Preserve()], ids=lambda one: one.name
)
@pytest.mark.parametrize("name", ["dgx1-v100", "dgx-a100", "summit", "cubemesh-16"])
def test_the_preferred_allocation_is_the_best_set(
    name: str, policy: tp.policies.SearchPolicy | tp.policies.LeastTime
) -> None:
    topology = node(name)
    preferred = PreferredAllocation(topology, policy)
    chance = random.Random(7)
    for _ in range(QUESTIONS):
        free = chance.sample(range(topology.num_gpus), chance.randint(1, min(8, topology.num_gpus)))
        size = chance.randint(1, len(free))
        required = chance.sample(free, chance.randint(0, min(2, size)))
        chosen = preferred.choose(ids(*free), ids(*required), size)
        gpus = [int(one.removeprefix("GPU-")) for one in chosen]
        assert len(set(gpus)) == size
        assert set(required) <= set(gpus) <= set(free)
        job = (tp.JobGraph.ring(size) if size > 2 else tp.JobGraph.clique(size)).with_(
            bandwidth_sensitive=True
        )

        def value(some: Sequence[int], job: tp.JobGraph = job, free: Sequence[int] = free) -> tuple[Any, ...]:
            alone = tp.Cluster(topology)
            for gpu in set(range(topology.num_gpus)) - set(free):
                alone.drain(gpu)
            placement = policy.best(job, alone, frozenset(some))
            assert placement is not None
            order = tuple(round(one, 6) for one in policy.order(job, placement))
            return order, len({topology.gpus[gpu].numa_node for gpu in some})

        sets = [some for some in combinations(sorted(free), size) if set(required) <= set(some)]
        assert value(gpus) == min(map(value, sets))


def test_no_devices_and_gpus_without_links() -> None:
    assert PreferredAllocation(node()).choose(ids(0, 1), [], 0) == []
    apart = tp.Topology.from_links(3, [(0, 1, 25.0)], 0.0)
    assert PreferredAllocation(apart).choose(["0", "1", "2"], [], 2) == ["0", "1"]
    with pytest.raises(ValueError, match="size = 2: no such set of the available GPUs is linked"):
        PreferredAllocation(apart).choose(["0", "1", "2"], ["2"], 2)


@pytest.mark.parametrize("name", ["dgx1-v100", "dgx1-p100", "summit"])
def test_no_other_set_carries_more_by_ten_percent(name: str) -> None:
    topology = tp.machines.get(name)
    preferred = PreferredAllocation(topology)
    chance = random.Random(3)
    for _ in range(QUESTIONS):
        free = chance.sample(range(topology.num_gpus), chance.randint(2, topology.num_gpus))
        size = chance.randint(2, len(free))
        chosen = [int(one) for one in preferred.choose([str(gpu) for gpu in free], [], size)]
        most = max(tp.collective.ring_bandwidth(topology, some) for some in combinations(free, size))
        assert tp.collective.ring_bandwidth(topology, chosen) >= 0.9 * most


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PreferredAllocation(tp.Topology.cluster(node(), count=2)), r"^topology: 2 machines;"),
        (lambda: PreferredAllocation(node(), "fgd"), r"^policy = fgd: it cannot be asked"),
        (lambda: DevicePlugin(node(), directory="nowhere"), r"^directory = 'nowhere' is not a directory$"),
        (lambda: DevicePlugin(node(), resource_name="gpu"), r"^resource_name = 'gpu' is not like"),
        (lambda: DevicePlugin(node(), passing="socket"), r"^passing = 'socket' is neither"),
        (lambda: DevicePlugin(node(), endpoint="kubelet.sock"), r"^endpoint = 'kubelet.sock' is not"),
    ],
)
def test_wrong_arguments_are_named(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_pods_get_what_the_scheduler_decided(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Both containers of a bound pod get their GPUs in order; nobody else gets them; others are asked of the policy."""
    with ApiServer() as api, Kubelet(tmp_path) as kubelet:
        bound = pod_json("a", 3, nodeName="n0", annotations={GPUS: '{"main":[6,1,4]}'})
        api.store.add("pods", pod_json("odd", 1, nodeName="n0", tolerations=[{"operator": "Near"}]))
        api.store.add("pods", pod_json("elsewhere", 2, nodeName="n1", annotations={GPUS: '{"main":[0,3]}'}))
        api.store.add("pods", pod_json("wrong", 2, nodeName="n0", annotations={GPUS: '{"main":[0,1,2]}'}))
        api.store.add("pods", bound)
        plugin = DevicePlugin(node(), directory=tmp_path, node="n0", access=Access("127.0.0.1", api.port))
        with running(plugin):
            kubelet.registrations.get(timeout=WAIT)
            with kubelet.plugin("topoplace.sock") as calls:
                free = ids(*range(8))
                assert calls.preferred((free, [], 3)) == [ids(6, 1, 4)]
                assert "a pod that cannot be read: " in caplog.text
                assert calls.allocate(ids(1, 4, 6))[0].envs["NVIDIA_VISIBLE_DEVICES"] == "GPU-6,GPU-1,GPU-4"
                assert calls.preferred((ids(0, 1, 2, 3, 7), [], 3)) != [ids(6, 1, 4)]
                (other,) = calls.preferred((free, [], 2))
                assert len(other) == 2
                calls.allocate(ids(0, 3))  # nobody on this node was given these
                with pytest.raises(grpc.RpcError, match="given to another pod by the scheduler"):
                    calls.allocate(ids(0, 1))
                api.store.finish("a")
                calls.allocate(ids(0, 1))
                api.stop()
                with pytest.raises(grpc.RpcError, match="is not known"):
                    calls.allocate(ids(0, 1))
