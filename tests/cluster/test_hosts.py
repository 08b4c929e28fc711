from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule
from tests.support.cluster_machine import ClusterModel

import topoplace as tp
from topoplace.binding import LaunchDevice
from topoplace.cluster.hosts import HostResources
from topoplace.engine.plan import QueuedJob
from topoplace.placement import HostShare

TOPOLOGY = tp.Topology.from_links(4, [(0, 1, 50.0), (2, 3, 50.0)], machines=["a", "a", "b", "b"])
SIZE = HostResources(cpus=10, memory_gb=8.5, drives=2)
JOBS = st.sampled_from(["p", "q", "r"])
SHARES = st.lists(
    st.builds(HostShare, st.integers(0, 1), st.integers(0, 6), st.sampled_from([0.0, 0.1, 4.2, 8.5])),
    min_size=1,
    max_size=2,
)
DRIVES = st.lists(st.integers(0, 1), max_size=3)
GPUS = st.lists(st.integers(0, 3), unique=True, max_size=3)


def placed(
    gpus: list[int] | tuple[int, ...] = (),
    hosts: list[HostShare] | tuple[HostShare, ...] = (),
    drives: list[int] | tuple[int, ...] = (),
    remote: tuple[int, ...] = (),
) -> tp.Placement:
    return tp.Placement(
        tuple(gpus), topology=TOPOLOGY, hosts=tuple(hosts), drives=tuple(drives), remote=remote
    )


class HostMachine(ClusterModel):
    """The host resources of a cluster against a model that adds up what each job holds."""

    @initialize()
    def start(self) -> None:
        self.begin_with(tp.Cluster(TOPOLOGY, SIZE))

    def left(self) -> list[list[int]]:
        left = [[10_000, 8500, 2], [10_000, 8500, 2]]
        for placement in self.held.values():
            for share in placement.hosts:
                left[share.machine][0] -= round(share.cpus * 1000)
                left[share.machine][1] -= round(share.memory_gb * 1000)
            for machine in placement.drives:
                left[machine][2] -= 1
        return left

    @rule(job=JOBS, gpus=GPUS, hosts=SHARES, drives=DRIVES)
    def allocate(self, job: str, gpus: list[int], hosts: list[HostShare], drives: list[int]) -> None:
        placement = placed(gpus, hosts[: max(len(gpus), 1)], drives)
        known, self.held = self.held, {**self.held, job: placement}
        fits = min(map(min, self.left())) >= 0
        busy = {gpu for other in known.values() for gpu in other.gpus}
        if job not in known and fits and not busy & set(gpus):
            self.cluster.allocate(job, placement)
        else:
            self.held = known
            with pytest.raises(tp.AllocationError):
                self.cluster.allocate(job, placement)

    def disturb(self, old: tp.Cluster) -> None:
        old.drain("a")

    @invariant()
    def agrees(self) -> None:
        assert self.cluster.hosts.free.tolist() == self.left()
        assert self.cluster.hosts.held.keys() == self.held.keys()
        assert set(self.cluster.allocations) == {job for job, placed in self.held.items() if placed.gpus}
        assert not self.cluster.hosts.drained


TestHosts = HostMachine.TestCase

SHORT: list[tuple[tp.Placement, str]] = [
    (placed(hosts=[HostShare(1, 11)]), r"hosts\[0\]: 11 CPUs on machine 'b', which has 10 free"),
    (
        placed([0, 1], [HostShare(0, 6), HostShare(0, 6)]),
        r"hosts\[1\]: 6 CPUs on machine 'a', which has 4 free",
    ),
    (
        placed([0], [HostShare(0, 1, 8.6)]),
        r"hosts\[0\]: 8600 MB of memory on machine 'a', which has 8500 free",
    ),
    (
        placed([0, 1], hosts=[HostShare(0, 1, 5.0), HostShare(0, 1, 4.0)]),
        r"hosts\[1\]: 4000 MB of memory on machine 'a', which has 3500 free",
    ),
    (placed([0], [HostShare(0)], [1, 1, 1]), r"drives\[2\]: 1 drives on machine 'b', which has 0 free"),
]


@pytest.mark.parametrize(("placement", "message"), SHORT, ids=[message for _, message in SHORT])
def test_what_is_short_is_named_and_nothing_is_taken(placement: tp.Placement, message: str) -> None:
    cluster = tp.Cluster(TOPOLOGY, SIZE)
    before = cluster.snapshot()
    with pytest.raises(tp.AllocationError, match=message):
        cluster.allocate("p", placement)
    assert cluster.snapshot() == before


@given(st.lists(st.sampled_from([0.1, 0.2, 0.3, 1.7, 1e-4]), max_size=20))
def test_memory_comes_back_to_the_megabyte(sizes: list[float]) -> None:
    cluster = tp.Cluster(TOPOLOGY, HostResources(0, 100.0))
    for i, size in enumerate(sizes):
        cluster.allocate(str(i), placed(hosts=[HostShare(0, 0, size)]))
    for i, _ in enumerate(sizes):
        cluster.release(str(i))
    assert cluster.hosts.free.tolist() == [[0, 100_000, 0]] * 2


def test_hosts_are_given_for_all_for_each_or_by_name() -> None:
    small = HostResources(1, 1.0)
    for given_hosts in ([SIZE, small], {"b": small, "a": SIZE}):
        assert tp.Cluster(TOPOLOGY, given_hosts).hosts.resources == (SIZE, small)
    assert tp.Cluster(TOPOLOGY, SIZE).hosts.resources == (SIZE, SIZE)
    assert tp.Cluster(TOPOLOGY).hosts.free.shape == (0, 3)


@pytest.mark.parametrize(
    ("given_hosts", "message"),
    [
        ([SIZE], "hosts: 1 entries for 2 machines"),
        ([SIZE, 3], r"hosts\[1\] = 3 is not a HostResources"),
        ({"a": SIZE, "c": SIZE}, "hosts: 'c' is not a machine"),
        ({"a": SIZE}, "hosts: 'b' is missing"),
    ],
)
def test_hosts_that_do_not_match_the_machines_are_refused(given_hosts: Any, message: str) -> None:
    with pytest.raises(tp.AllocationError, match=message):
        tp.Cluster(TOPOLOGY, given_hosts)


def test_without_limits_shares_are_noted_and_never_short() -> None:
    cluster = tp.Cluster(TOPOLOGY)
    cluster.allocate("p", placed([0, 3], [HostShare(0, 1 << 20, 1e6)], [1] * 9, remote=(3,)))
    assert cluster.hosts.held["p"].shares[0].machine == 0
    assert tp.Cluster.restore(cluster.snapshot()).snapshot() == cluster.snapshot()


@pytest.mark.parametrize("resources", [SIZE, None], ids=["told", "not told"])
def test_a_drained_machine_takes_no_process_until_it_is_taken_back(resources: HostResources | None) -> None:
    cluster = tp.Cluster(TOPOLOGY, resources)
    cluster.drain("b")
    with pytest.raises(tp.AllocationError, match=r"hosts\[0\]: machine 'b' is drained"):
        cluster.allocate("p", placed([0], [HostShare(1, 1)]))
    assert tp.Cluster.restore(cluster.snapshot()).hosts.drained == {1}
    assert [cluster.hosts.is_drained(machine) for machine in (0, 1)] == [False, True]
    with cluster.what_if():
        cluster.undrain("b")
        cluster.allocate("p", placed([0], [HostShare(1, 1)]))
    assert cluster.hosts.drained == {1}


def test_a_job_id_is_in_use_whatever_the_job_holds() -> None:
    cluster = tp.Cluster(TOPOLOGY, SIZE)
    cluster.allocate("cpu", placed(hosts=[HostShare(0, 1)]))
    cluster.allocate("gpu", [0])
    with pytest.raises(tp.AllocationError, match="already holds host resources"):
        cluster.allocate("cpu", [1])
    with pytest.raises(tp.AllocationError, match=r"already holds GPUs \(0,\)"):
        cluster.allocate("gpu", placed(hosts=[HostShare(0, 1)]))
    assert cluster.allocations == {"gpu": (0,)}
    assert [cluster.runs(job_id) for job_id in ("cpu", "gpu", "other")] == [True, True, False]
    cluster.release("cpu")
    assert not cluster.runs("cpu")


def test_damaged_host_part_of_a_snapshot_is_refused() -> None:
    import hashlib

    cluster = tp.Cluster(TOPOLOGY, SIZE)
    cluster.allocate("p", placed([0], [HostShare(0, 3)]))
    _, topology, described, state = cluster.snapshot().split(b"\n", 3)
    cpus, name = b'"cpus": 3', b'"p"'
    for right, wrong in ((cpus, b'"cpus": 30'), (cpus, b'"cpus": "3"'), (cpus, b'"cups": 3'), (name, b'""')):
        text = topology + b"\n" + described.replace(right, wrong)
        head = b"topoplace-cluster 2 " + hashlib.sha256(text).hexdigest().encode()
        with pytest.raises(tp.SnapshotError):
            tp.Cluster.restore(b"\n".join((head, text, state)))


# ---- placements ------------------------------------------------------------------------------------------------


def servers(devices: Any) -> dict[str, str]:
    remote = [device for device in devices if device.remote]
    return {
        "REMOTE_COUNT": str(len(remote)),
        **{f"REMOTE_{i}": f"{device.machine}:{device.device}" for i, device in enumerate(remote)},
    }


def test_environment_of_a_job_with_remote_gpus() -> None:
    placement = placed([1, 3, 2], [HostShare(0, 2)], remote=(3, 2))
    with pytest.raises(tp.AllocationError, match=r"remote = \(3, 2\): env needs servers="):
        placement.env()
    assert placement.env(servers) == {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": "1",
        "REMOTE_COUNT": "2",
        "REMOTE_0": "b:1",
        "REMOTE_1": "b:0",
    }
    assert placement.server_env() == {"b": {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "1,0"}}


def test_the_hook_sees_all_devices_of_a_machine_in_task_order() -> None:
    seen: list[LaunchDevice] = []

    def hook(devices: Any) -> dict[str, str]:
        seen.extend(devices)
        return {}

    placed([2, 0], [HostShare(0)], remote=(2,)).env(hook)
    assert seen == [LaunchDevice("b", "0", remote=True), LaunchDevice("a", "0", remote=False)]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, "what servers returned = None is not a Mapping"),
        (3, "what servers returned = 3 is not a Mapping"),
        ("AB", "what servers returned = 'AB' is not a Mapping"),
        (b"x", "what servers returned = b'x' is not a Mapping"),
        ([("A", "b")], "what servers returned = .* is not a Mapping"),
        ({"A": 1}, "servers: 'A' = 1 is not a string"),
        ({"A": None}, "servers: 'A' = None is not"),
        ({"A": "b\0c"}, r"servers: 'A' = 'b\\x00c' contains NUL"),
        ({"A": "\ud800"}, "servers: 'A' = .* is not valid Unicode"),
        ({1: "a"}, "servers: name of a variable = 1 is not"),
        ({"": "a"}, "servers: name of a variable = '' is not"),
        ({"A=B": "a"}, "servers: name of a variable = 'A=B' contains '=' or NUL"),
        ({"A\0": "a"}, "servers: name of a variable = .* contains '=' or NUL"),
        ({"CUDA_VISIBLE_DEVICES": "7"}, "servers: must not set CUDA_VISIBLE_DEVICES, which decides"),
        ({"CUDA_DEVICE_ORDER": "FASTEST_FIRST"}, "servers: must not set CUDA_DEVICE_ORDER, which decides"),
    ],
    ids=repr,
)
def test_what_is_no_environment_is_refused(returned: Any, message: str) -> None:
    placement = placed([0, 2], [HostShare(0)], remote=(2,))
    with pytest.raises(tp.AllocationError, match=message):
        placement.env(lambda _: returned)


def test_a_hook_is_a_function_and_may_leave_a_variable_empty() -> None:
    placement = placed([0, 2], [HostShare(0)], remote=(2,))
    wrong: Any = {"A": "b"}
    with pytest.raises(tp.AllocationError, match=r"servers = .* is not callable"):
        placement.env(wrong)
    environment: Any = placement.env(lambda _: {"A": ""})
    assert environment["A"] == ""


def test_numactl_is_for_the_machines_of_the_processes_and_their_local_gpus() -> None:
    gpus = [tp.Gpu(i, f"GPU{i}", socket=i % 2, machine="aabb"[i]) for i in range(4)]
    topology = tp.Topology(tuple(gpus))

    def command(gpus: tuple[int, ...], *machines: int, remote: tuple[int, ...] = ()) -> Any:
        hosts = tuple(map(HostShare, machines))
        return tp.Placement(gpus, topology=topology, hosts=hosts, remote=remote).numactl()

    first = ("numactl", "--cpunodebind=0", "--membind=0")
    assert command((0, 3), 0, remote=(3,)) == first
    assert command((0, 3), 0) == ()
    assert command((2, 3), 0, remote=(2, 3)) == ()
    assert command((0, 3), 0, 1, remote=(3,)) == {"a": first, "b": ()}
    assert command((), 0) == ()


def test_environment_by_the_machines_of_the_processes() -> None:
    placement = placed([0, 3], [HostShare(0), HostShare(1)])
    assert placement.env() == {
        "a": {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "0"},
        "b": {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "1"},
    }
    assert [placement.host_of(task) for task in range(2)] == [0, 1]
    only_cpus = placed(hosts=[HostShare(1, 2)])
    assert only_cpus.env() == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ""}


def test_a_gpu_lent_by_the_pool_is_named_by_its_uuid() -> None:
    placement = placed([0, 2], [HostShare(0)])
    with pytest.raises(tp.AllocationError, match=r"the UUID of .* is unknown; slices and lent GPUs need one"):
        placement.env()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hosts": (HostShare(2),)}, r"hosts\[0\].machine = 2 is not in 0\.\.1"),
        ({"hosts": (3,)}, r"hosts\[0\] = 3 is not a HostShare"),
        ({"hosts": (HostShare(0), HostShare(1))}, "hosts: 2 processes for 1 GPUs"),
        ({"hosts": (HostShare(0),), "remote": (3,)}, r"remote: GPU 3 is not among gpus = \(0,\)"),
        ({"hosts": (HostShare(0),), "remote": ([],)}, r"remote: GPU \[\] is not among gpus = \(0,\)"),
        ({"remote": (0,)}, "hosts must name the machines of the processes"),
        ({"drives": (5,)}, r"drives\[0\] = 5 is not in 0\.\.1"),
    ],
)
def test_a_placement_that_contradicts_itself_is_refused(arguments: Any, message: str) -> None:
    with pytest.raises(tp.AllocationError, match=message):
        tp.Placement((0,), topology=TOPOLOGY, **arguments)


def test_a_placement_with_hosts_can_be_kept() -> None:
    placement = placed([0, 2], [HostShare(0, 3, 1.5)], [1], remote=(2,))
    assert pickle.loads(pickle.dumps(placement)) == placement
    assert hash(placement) == hash(placed([0, 2], [HostShare(0, 3, 1.5)], [1], remote=(2,)))


# ---- jobs without GPUs -----------------------------------------------------------------------------------------


def test_a_job_without_gpus_needs_something_else() -> None:
    job = tp.JobGraph.without_gpus(cpus=4)
    assert (job.num_tasks, job.cpus) == (0, 4)
    assert tp.JobGraph.from_json(job.to_json()) == job
    for build in (tp.JobGraph.without_gpus, lambda: job.with_(cpus=None), lambda: tp.JobGraph(0)):
        with pytest.raises(tp.JobGraphError):
            build()
    with pytest.raises(tp.JobGraphError, match="processes = 3: must be at most 2, the number of tasks"):
        tp.JobGraph.ring(2).with_(processes=3)


@pytest.mark.parametrize(
    "name", ["baseline", "mapa-topo-aware", "mapa-greedy", "mapa-preserve", "best-fit", "topo-aware-p"]
)
def test_policies_of_gpus_set_a_job_without_gpus_aside(name: str) -> None:
    cluster, job = tp.Cluster(TOPOLOGY, SIZE), tp.JobGraph.without_gpus(cpus=4)
    policy = tp.policies.get(name)
    assert policy.place(job, cluster) is None
    deferred = policy.explain(job, cluster).refusal
    assert deferred is not None
    assert deferred.reason == "never fits: it needs no GPU, and this policy places jobs on GPUs only"
    plan = policy.plan([QueuedJob("p", job), QueuedJob("q", tp.JobGraph.ring(2))], cluster, 0.0)
    assert [job_id for job_id, _ in plan.reject] == ["p"]
    assert [job_id for job_id, _ in plan.start] == ["q"]


@pytest.mark.parametrize("where", [[0, 1, 2, 3, 4], [4, 0, 4, 1, 2], [3], [2, 2]])
def test_processes_are_counted_and_their_needs_summed(where: list[int]) -> None:
    topology = tp.Topology.cluster(tp.Topology.from_links(1, [], 12.0), 5)
    cluster = tp.Cluster(topology, hosts=tp.HostResources(cpus=8, memory_gb=4.0))
    shares = tuple(tp.HostShare(machine, 2, 0.25 + 0.25 * machine) for machine in where)
    for count in (1, 2):
        cluster.allocate(f"job-{count}", tp.Placement((), topology=topology, hosts=shares[:1]))
    cluster.release("job-2")
    before = cluster.hosts.free.copy(), cluster.hosts.processes.copy()
    assert before[1].tolist() == [int(machine == where[0]) for machine in range(5)]
    placement = tp.Placement(tuple(range(5))[: len(where)], topology=topology, hosts=shares)
    cluster.allocate("many", placement)
    for machine in range(5):
        count = where.count(machine)
        assert cluster.hosts.processes[machine] - before[1][machine] == count
        taken = (before[0] - cluster.hosts.free)[machine].tolist()
        assert taken == [2000 * count, (250 + 250 * machine) * count, 0]
    assert cluster.copy().hosts.processes.tolist() == cluster.hosts.processes.tolist()
    cluster.release("many")
    assert cluster.hosts.free.tolist() == before[0].tolist()
    assert cluster.hosts.processes.tolist() == before[1].tolist()


def test_one_of_many_processes_that_asks_too_much_is_named() -> None:
    topology = tp.Topology.cluster(tp.Topology.from_links(1, [], 12.0), 5)
    cluster = tp.Cluster(topology, hosts=tp.HostResources(cpus=8, memory_gb=4.0))
    gpus = tuple(range(5))
    for cpus, memory, message in (
        (9, 1.0, r"hosts\[3\]: 9 CPUs on machine 'machine3', which has 8"),
        (8, 4.5, r"hosts\[3\]: 4500 MB"),
    ):
        shares = tuple(tp.HostShare(m, *((cpus, memory) if m == 3 else (8, 4.0))) for m in range(5))
        with pytest.raises(tp.AllocationError, match=message):
            cluster.allocate("many", tp.Placement(gpus, topology=topology, hosts=shares))
    cluster.drain(topology.machine_names[4])
    shares = tuple(tp.HostShare(m) for m in range(5))
    with pytest.raises(tp.AllocationError, match=r"hosts\[4\]: machine 'machine4' is drained"):
        cluster.allocate("many", tp.Placement(gpus, topology=topology, hosts=shares))


def test_numbers_of_numpy_are_kept_as_numbers_of_python() -> None:
    hosts = tp.HostResources(np.int32(8), np.float32(1.5), np.int64(1))
    cluster = tp.Cluster(tp.machines.get("minsky"), hosts=hosts)
    share = tp.HostShare(np.int64(0), np.int16(2), np.float64(0.5))
    cluster.allocate("job", tp.Placement((0,), topology=cluster.topology, hosts=(share,)))
    assert tp.Cluster.restore(cluster.snapshot()).snapshot() == cluster.snapshot()


def test_what_hosts_have_cannot_be_written_and_a_drained_one_has_nothing_left() -> None:
    host = tp.HostResources(8, 32.0, drives=2, pool="p")
    cluster = tp.Cluster(tp.machines.get("minsky"), host)
    for amounts in (cluster.hosts.capacity, cluster.hosts.free):
        with pytest.raises(ValueError, match="read-only"):
            amounts[0, 0] = 1
    assert cluster.hosts.left(0) == host
    cluster.drain(cluster.topology.machine_names[0])
    assert cluster.hosts.left(0) == tp.HostResources(0, 0.0, drives=0, pool="p")


def test_what_is_no_allocation_of_hosts_is_refused_by_name() -> None:
    hosts = tp.Cluster(tp.machines.get("minsky"), tp.HostResources(8, 32.0)).hosts
    with pytest.raises(tp.AllocationError, match="held = 'all'"):
        hosts.check("all")  # type: ignore[arg-type]
    assert hosts.left(0).cpus == 8
    for wrong in (-1, 1, "a"):
        with pytest.raises(tp.AllocationError, match="machine = "):
            hosts.is_drained(wrong)  # type: ignore[arg-type]


def test_amounts_of_hosts_are_whole_thousandths() -> None:
    assert tp.Cluster(TOPOLOGY, SIZE).hosts.free.tolist() == [[10_000, 8500, 2]] * 2
