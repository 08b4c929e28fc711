"""Pods on 12,500 nodes of 8 GPUs, 90 % of them busy: the decision, and from the watch event to the binding.

`python benchmarks/clusters/bench_kubernetes.py`. The API server is simulated and runs in its own process; its time
is a part of what is measured: from the moment at which it creates a pod until the last pod of the group is bound.
"""

from __future__ import annotations

import gc
import http.client
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from multiprocessing import Pipe, Process
from threading import Event, Thread
from typing import Any

import topoplace as tp
from topoplace.placement import Refusal
from topoplace_hosts.kubernetes.client.access import Access
from topoplace_hosts.kubernetes.extender import Extender, ExtenderServer
from topoplace_hosts.kubernetes.objects.node import node
from topoplace_hosts.kubernetes.objects.pod import Pod, pod
from topoplace_hosts.kubernetes.scheduler import ClusterState, Scheduler, decide
from topoplace_hosts.kubernetes.scheduler.calls import RequestOutcome
from topoplace_hosts.kubernetes.testing import ApiServer

NODES, LOAD = 12_500, 0.9
GPU = "nvidia.com/gpu"
POLICY = "topo-aware"


def node_json(name: str, i: int) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "pool": f"p{i % 2}"}},
        "spec": {},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "allocatable": {"cpu": "96", "memory": "1Ti", "pods": "110", GPU: "8"},
        },
    }


def pod_json(name: str, gpus: int, **fields: Any) -> dict[str, Any]:
    limits = {GPU: str(gpus), "cpu": str(4 * gpus), "memory": f"{8 * gpus}Gi"}
    labels = fields.pop("labels", {})
    return {
        "metadata": {"uid": name, "namespace": "default", "name": name, "labels": labels},
        "spec": {
            "schedulerName": "topoplace",
            "containers": [{"name": "main", "resources": {"limits": limits}}],
            **fields,
        },
        "status": {"phase": "Pending"},
    }


def filled() -> ClusterState:
    """Return a cluster of which pods of 1 to 8 GPUs hold nine tenths, in holes of all sizes."""
    state = ClusterState(tp.Topology.cluster(tp.machines.get("dgx1-v100"), NODES))
    for i, name in enumerate(state.topology.machine_names):
        state.set_node(node(node_json(name, i)))
    generator, policy = random.Random(1), tp.policies.get(POLICY)
    for i in range(10**6):
        if state.cluster.num_free < 4000 and i > 1000:
            break
        found = decide(policy, state, [pod(pod_json(f"held-{i}", generator.choice((1, 2, 4, 8))))])
        if isinstance(found, Refusal):
            continue
        state.assume(*found[0])
    uids = list(state.pods)
    generator.shuffle(uids)
    free = NODES * 8 - sum(one.requests.gpus for one in state.pods.values())
    for uid in uids:
        if free >= (1 - LOAD) * NODES * 8:
            break
        free += state.pods[uid].requests.gpus
        state.remove_pod(uid)
    return state


def timed(state: ClusterState, pods: Callable[[int], Sequence[Pod]], runs: int) -> list[float]:
    """Return seconds of decisions, after each of which the state has changed as after a binding."""
    policy, times = tp.policies.get(POLICY), list[float]()
    for i in range(runs):
        asked = pods(i)
        start = time.perf_counter()
        found = decide(policy, state, asked)
        times.append(time.perf_counter() - start)
        if isinstance(found, Refusal):
            raise SystemExit(found.reason)
        bound = [state.assume(*seat) for seat in found]
        for one in bound:
            state.remove_pod(one.uid)
    return times


def line(what: str, times: Sequence[float]) -> None:
    ordered = sorted(times)
    worst = ordered[min(len(ordered) - 1, round(0.99 * len(ordered)))]
    middle = statistics.median(times)
    print(f"{what}: median {1e3 * middle:.2f} ms, 99 % {1e3 * worst:.2f} ms, first {1e3 * times[0]:.2f} ms")


def serve(held: list[dict[str, Any]], names: Sequence[str], pipe: Any) -> None:
    """Be the API server: create the pods that the pipe asks for, and answer how long it took until all were bound."""
    with ApiServer() as api:
        for i, name in enumerate(names):
            api.store.add("nodes", node_json(name, i))
        for one in held:
            api.store.add("pods", one)
        pipe.send(api.port)
        while (asked := pipe.recv()) is not None:
            before = len(api.store.bound)
            start = time.perf_counter()
            for one in asked:
                api.store.add("pods", one)
            with api.store.changed:
                while len(api.store.bound) < before + len(asked):
                    if not api.store.changed.wait(30.0):
                        raise SystemExit(f"not bound: {api.store.waiting()[:3]} {api.store.events[-1:]}")
            pipe.send(time.perf_counter() - start)
            for one in asked:
                api.store.remove("pods", one["metadata"]["name"])
            time.sleep(0.05)


def as_json(one: Pod) -> dict[str, Any]:
    made = pod_json(one.name, one.requests.gpus, nodeName=one.node)
    made["metadata"]["annotations"] = dict(one.annotations)
    made["status"]["phase"] = "Running"
    return made


def event_to_binding(state: ClusterState, runs: int) -> None:
    ours, theirs = Pipe()
    names = state.topology.machine_names
    server = Process(
        target=serve, args=([as_json(one) for one in state.pods.values()], names, theirs), daemon=True
    )
    server.start()
    port = ours.recv()
    scheduler = Scheduler(state.topology, tp.policies.get(POLICY), Access("127.0.0.1", port))
    stop, ready = Event(), Event()
    start = time.perf_counter()
    thread = Thread(target=scheduler.run, args=(stop, ready.set))
    thread.start()
    ready.wait()
    gc.freeze()  # as the command does
    print(f"listed {NODES} nodes and {len(state.pods)} pods in {time.perf_counter() - start:.1f} s")

    def lasted(pods: list[dict[str, Any]]) -> float:
        ours.send(pods)
        return float(ours.recv())

    line("one pod of 2 GPUs, event to binding", [lasted([pod_json(f"one-{i}", 2)]) for i in range(runs)])

    def members(i: int) -> list[dict[str, Any]]:
        labels = {"topoplace.io/group": f"g{i}", "topoplace.io/group-size": "64"}
        return [pod_json(f"g{i}-{k}", 1, labels=labels) for k in range(64)]

    line("a group of 64 pods, event to the last binding", [lasted(members(i)) for i in range(runs)])
    stop.set()
    thread.join()
    ours.send(None)


def extender(state: ClusterState, runs: int) -> None:
    """Time kube-scheduler's questions about all nodes by name, over HTTP; each follows a change of the state."""
    policy = tp.policies.get(POLICY)
    asked = Extender(state, policy, lambda bound: RequestOutcome(bound, "bound", None, ""))
    with ExtenderServer({"/filter": asked.filter, "/prioritize": asked.prioritize}) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        names = list(state.topology.machine_names)
        for path in ("/filter", "/prioritize"):
            times: list[float] = []
            for i in range(runs):
                body = json.dumps({"Pod": pod_json(f"e{i}", 2), "NodeNames": names})
                start = time.perf_counter()
                connection.request("POST", path, body)
                connection.getresponse().read()
                times.append(time.perf_counter() - start)
                with asked.lock:
                    found = decide(policy, state, [pod(pod_json(f"between-{i}", 2))])
                    if not isinstance(found, Refusal):
                        state.assume(*found[0])
            line(f"extender, {path[1:]} {len(names)} nodes, over HTTP", times)
        connection.close()


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    state = filled()
    free = NODES * 8 - sum(one.requests.gpus for one in state.pods.values())
    print(f"{NODES} nodes, {free} of {NODES * 8} GPUs free, {len(state.pods)} pods")
    for gpus in (1, 2, 4, 8):
        line(
            f"decision, {gpus} GPUs", timed(state, lambda i, gpus=gpus: [pod(pod_json(f"x{i}", gpus))], runs)
        )
    pools = [{"pool": "p0"}, {"pool": "p1"}]
    line(
        "decision, 2 GPUs, in pools in turn",
        timed(state, lambda i: [pod(pod_json(f"x{i}", 2, nodeSelector=pools[i % 2]))], runs),
    )
    line(
        "decision, group of 64 pods",
        timed(state, lambda i: [pod(pod_json(f"x{i}-{k}", 1)) for k in range(64)], runs),
    )
    event_to_binding(state, runs)
    extender(state, runs)


if __name__ == "__main__":
    main()
