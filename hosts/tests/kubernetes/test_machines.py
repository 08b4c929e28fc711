"""Machines that nodes describe in ConfigMaps: what is written, what is believed, and who follows them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

import topoplace as tp
from kubernetes_objects import node_json, pod_json
from topoplace.errors import KubernetesError
from topoplace.topology.links.distance import DISTANCES
from topoplace_hosts.kubernetes.client.access import Access
from topoplace_hosts.kubernetes.machines import FollowedMachines, config_map, machine
from topoplace_hosts.kubernetes.testing import ApiServer
from waiting import WAIT, until

DGX = tp.machines.get("dgx1-v100")


def changed(**data: str) -> dict[str, Any]:
    """Return the ConfigMap of a machine with other data."""
    return {**config_map("n0", DGX), "data": data}


def with_uuids(topology: tp.Topology, prefix: str) -> tp.Topology:
    return replace(
        topology, gpus=tuple(replace(gpu, uuid=f"{prefix}{gpu.index}") for gpu in topology.gpus), name="mine"
    )


def test_a_machine_is_read_as_it_was_written_but_for_names_and_uuids() -> None:
    topology = with_uuids(DGX, "GPU-")
    value = json.loads(json.dumps(config_map("n0.example", topology)))
    assert value["metadata"] == {"name": "machine.n0.example", "labels": {"topoplace.io/holds": "machine"}}
    assert "GPU-1" not in value["data"]["machine.json"]
    node, found = machine(value)
    assert node == "n0.example"
    assert (found.links, found.gpus[1].model, found.gpus[1].uuid) == (topology.links, "V100", None)
    assert config_map("n1", with_uuids(DGX, "other"))["data"] == value["data"]  # equal machines, equal texts


@pytest.mark.parametrize(
    ("node", "topology", "message"),
    [
        ("", DGX, "node = '' is not the name of a node"),
        ("../x", DGX, "is not the name of a node"),
        ("a" * 250, DGX, "up to 245 characters"),
        ("n0", tp.Topology.cluster(DGX, 2), "has 2 machines"),
        ("n0", tp.Topology.from_links(300, []), "300 GPUs, more than 256"),
    ],
    ids=["no name", "path", "long name", "two machines", "many GPUs"],
)
def test_what_cannot_be_written(node: str, topology: tp.Topology, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config_map(node, topology)


def test_a_text_over_the_limit_is_not_written() -> None:
    links = [(u, v, 1.0 + u + v / 256) for u in range(256) for v in range(u)]
    with pytest.raises(ValueError, match="bytes, more than 262144"):
        config_map("n0", tp.Topology.from_links(256, links))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("text", "is not an object"),
        (changed(), "is not a text of up to"),
        (changed(**{"machine.json": "x" * (1 << 19)}), "is not a text of up to"),
        (changed(**{"machine.json": "GPU0 GPU1"}), "not JSON"),
        (changed(**{"machine.json": "[" * 100000}), "not JSON"),
        (changed(**{"machine.json": "{}"}), "no key 'format'"),
        (changed(**{"machine.json": tp.Topology.cluster(DGX, 2).to_json()}), "has 2 machines"),
        ({**changed(), "metadata": {"name": "coredns"}}, "is not machine.NODE"),
        ({**changed(), "metadata": {"name": "machine.a/b"}}, "is not machine.NODE"),
    ],
    ids=["text", "no data", "large", "other", "deep", "empty", "cluster", "name", "path"],
)
def test_what_is_not_believed(value: object, message: str) -> None:
    with pytest.raises(KubernetesError, match=message):
        machine(value)


def test_machines_that_contradict_each_other_still_make_a_cluster() -> None:
    """Weights of distances of two machines may not differ in a cluster, and UUIDs may not repeat: both are dropped."""
    odd = with_uuids(DGX, "GPU-").with_distances(replace(DISTANCES["sc17"], direct=2.0))
    value = changed(**{"machine.json": odd.to_json()})
    texts = [value, {**value, "metadata": {"name": "machine.n1"}}, config_map("n2", DGX)]
    found = tp.Topology.cluster(dict(machine(one) for one in texts))
    assert found.num_gpus == 24


# ---- who follows them ----------------------------------------------------------------------------------------------


@contextmanager
def following(api: ApiServer, settle_s: float = 0.05) -> Iterator[tuple[list[tp.Topology], list[str]]]:
    """Give the topologies that were worked with, and what was logged."""
    topologies: list[tp.Topology] = []
    logged: list[str] = []

    def work(topology: tp.Topology, end: Event) -> None:
        topologies.append(topology)
        assert end.wait(WAIT)

    machines = FollowedMachines(
        Access("127.0.0.1", api.port),
        "topoplace",
        settle_s=settle_s,
        write_log=lambda event, **fields: logged.append(f"{event} {fields}"),
    )
    stop = Event()
    thread = Thread(target=machines.run, args=(work, stop))
    thread.start()
    try:
        yield topologies, logged
    finally:
        stop.set()
        thread.join(WAIT)
        assert not thread.is_alive()


def test_a_new_topology_for_new_changed_and_missing_machines() -> None:
    with ApiServer() as api, following(api) as (topologies, logged):
        until(lambda: any(line.startswith("no_machines") for line in logged))
        api.store.add("configmaps", config_map("n1", DGX))
        until(lambda: topologies)
        assert topologies[-1].machine_names == ("n1",)
        api.store.add("configmaps", config_map("n0", tp.machines.get("summit")))
        until(lambda: len(topologies) == 2)
        assert dict(topologies[-1].gpus_of) == {"n0": tuple(range(6)), "n1": tuple(range(6, 14))}
        api.store.replace("configmaps", "machine.n0", config_map("n0", DGX))
        until(lambda: len(topologies) == 3)
        assert topologies[-1].num_gpus == 16
        api.store.replace("configmaps", "machine.n1", config_map("n1", DGX))  # the same again
        api.store.remove("configmaps", "machine.n0")
        until(lambda: len(topologies) == 4)
        assert topologies[-1].machine_names == ("n1",)


def test_what_cannot_be_read_is_logged_and_has_no_machine() -> None:
    with ApiServer() as api:
        api.store.add("configmaps", config_map("n0", DGX))
        api.store.add("configmaps", config_map("n1", DGX))
        with following(api) as (topologies, logged):
            until(lambda: topologies)
            broken = {**config_map("n1", DGX), "data": {"machine.json": "{"}}
            api.store.replace("configmaps", "machine.n1", broken)
            until(lambda: len(topologies) == 2)
            assert topologies[-1].machine_names == ("n0",)
            assert sum("machine_unreadable" in line and "n1" in line for line in logged) == 1
            api.store.forget_history()
            api.cut_watches()
            api.store.replace("configmaps", "machine.n1", config_map("n1", DGX))
            until(lambda: len(topologies) == 3)


# ---- the commands --------------------------------------------------------------------------------------------------


def started(folder: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "topoplace", "kubernetes", *words, "--kubeconfig", "kubeconfig"]
    return subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[None]:
    with process:
        try:
            yield
        finally:
            with suppress(ProcessLookupError):
                process.terminate()
            process.communicate(timeout=WAIT)


def test_nodes_are_labelled_and_the_scheduler_uses_what_they_say(tmp_path: Path) -> None:
    with ApiServer() as api:
        (tmp_path / "kubeconfig").write_text(api.kubeconfig(), "utf-8")
        api.store.add("nodes", node_json("n0"))
        api.store.add("pods", pod_json("a", 8))
        with ended(started(tmp_path, "scheduler")):
            for _ in range(2):  # the first writes, the second changes nothing
                with started(tmp_path, "label", "dgx1-v100", "--node", "n0") as label:
                    assert label.communicate(timeout=WAIT) == (None, "topoplace/machine.n0: written\n")
            until(lambda: not api.store.waiting())
        methods = [line for line in api.requests if "configmaps" in line and not line.startswith("GET")]
        path = "/api/v1/namespaces/topoplace/configmaps"
        assert methods == [f"PUT {path}/machine.n0", f"POST {path}", f"PUT {path}/machine.n0"]


def test_a_node_writes_again_what_somebody_deleted(tmp_path: Path) -> None:
    with ApiServer() as api:
        (tmp_path / "kubeconfig").write_text(api.kubeconfig(), "utf-8")
        with ended(started(tmp_path, "label", "summit", "--node", "n0", "--every", "0.1")):
            until(lambda: api.store.listed("configmaps")[0])
            api.store.remove("configmaps", "machine.n0")
            until(lambda: api.store.listed("configmaps")[0])
