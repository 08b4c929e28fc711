"""The C interface in a process that runs Python: its header, and the same answers as the Python API."""

from __future__ import annotations

import ctypes
import json
import re
import subprocess
import sys
from ctypes import byref, c_int32, c_size_t, c_void_p
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.c_library import CError, CLibrary, Status

import topoplace as tp
from distributions import whole
from topoplace.c_interface import CallOutcome
from topoplace.testing import strategies

RING = '{"pattern": "ring", "num_tasks": 4, "bandwidth_sensitive": true}'
POLICIES = ("baseline", "mapa-preserve", "topo-aware-p", "mapa-greedy", "fgd", "drmaestro")


def header(repository: Path) -> str:
    text = (repository / "cpp/c_interface/topoplace.h").read_text("utf-8")
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


# ---- the header ------------------------------------------------------------------------------------------------


def test_numbers_are_those_of_the_header(repository: Path) -> None:
    found = {name: int(value) for name, value in re.findall(r"TOPOPLACE_(\w+) = (\d+)", header(repository))}
    assert found == {one.name: one.value for one in (*Status, *CallOutcome)} | {"INVALID": 0}


def test_the_library_exports_what_the_header_declares(repository: Path, shared_library: Path) -> None:
    declared = set(re.findall(r"(topoplace_\w+)\(", header(repository)))
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", shared_library], capture_output=True, text=True, check=True
    ).stdout
    exported = {line.split()[-1] for line in listed.splitlines()}
    assert exported == declared


def test_version(library: CLibrary) -> None:
    assert library.returned("version").decode() == tp.__version__


def test_start_again(library: CLibrary) -> None:
    library("start", None)
    library("start", sys.prefix)
    with pytest.raises(
        CError, match=f"python = /usr/lib: the process already runs the Python of {sys.prefix}"
    ):
        library("start", "/usr/lib")


# ---- the same as in Python -------------------------------------------------------------------------------------


class Twins:
    """A cluster in Python and one in C; each operation is asked of both."""

    def __init__(self, library: CLibrary, topology: tp.Topology) -> None:
        self.library = library
        read = library.topology(topology.to_json())
        self.ours, self.theirs = tp.Cluster(topology), library.cluster(read)
        library.returned("topology_free", read)  # the cluster does not need it
        self.policies = {name: tp.policies.get(name) for name in POLICIES}
        self.handles = {name: library.given("policy_new", name, None) for name in POLICIES}

    def place(self, policy: str, job_id: str, job: tp.JobGraph) -> None:
        def ours() -> tuple[Any, ...]:
            if self.ours.runs(job_id):
                raise tp.AllocationError(f"job_id = {job_id!r} runs already")
            placement = self.policies[policy].place(job, self.ours)
            if placement is None:
                return refused(self.policies[policy].explain(job, self.ours, top=1))
            self.ours.allocate(job_id, placement)
            return placed(placement)

        self.same(ours, "place", self.theirs, self.handles[policy], job_id, job.to_json())

    def explain(self, policy: str, job: tp.JobGraph) -> None:
        def ours() -> tuple[Any, ...]:
            explained = self.policies[policy].explain(job, self.ours, top=3)
            decided = refused(explained) if explained.refusal else placed(explained.candidates[0])
            return *decided[:4], json.loads(json.dumps(explained.to_dict(self.ours.topology)))

        self.same(ours, "explain", self.theirs, self.handles[policy], job.to_json(), 3)

    def allocate(self, job_id: str, gpus: list[int]) -> None:
        array = (c_int32 * len(gpus))(*gpus)
        self.same(
            lambda: self.ours.allocate(job_id, gpus),
            "allocate", self.theirs, job_id, array, c_size_t(len(gpus)), None,
        )  # fmt: skip

    def release(self, job_id: str) -> None:
        self.same(lambda: self.ours.release(job_id), "release", self.theirs, job_id)

    def drain(self, gpu: int, drained: bool) -> None:
        change = self.ours.drain if drained else self.ours.undrain
        self.same(lambda: change(gpu), "set_drained", self.theirs, gpu, ctypes.c_bool(drained))

    def hold(self, gpu: int, reason: str) -> None:
        self.same(lambda: self.ours.hold([gpu], reason=reason), "hold", self.theirs, gpu, reason)

    def unhold(self, gpu: int) -> None:
        self.same(lambda: self.ours.unhold([gpu]), "unhold", self.theirs, gpu)

    def same(self, ours: Any, name: str, *arguments: Any) -> None:
        expected, error = None, None
        try:
            expected = ours()
        except ValueError as raised:
            error = raised
        if error is None:
            assert self.asked(name, *arguments) == expected
            return
        with pytest.raises(CError) as refused:
            self.asked(name, *arguments)
        assert str(refused.value) == str(error)
        assert refused.value.status is STATUS[type(error)]

    def asked(self, name: str, *arguments: Any) -> Any:
        if name not in ("place", "explain"):
            self.library(name, *arguments)
            return None
        decision = self.library.given(name, *arguments)
        found = self.library.decided(decision)
        text = json.loads(self.library.text("decision_to_json", decision))
        names = text["placement"]["scores"] if text["placement"] else {}
        scores = {name: self.library.score(decision, name) for name in names}
        self.library.returned("decision_free", decision)
        return (*found, scores) if name == "place" else (*found, text)

    def end(self) -> None:
        assert self.library.numbers("cluster_free_gpus", self.theirs) == self.ours.free_gpus()
        for job_id in "abc":
            assert self.library.numbers("cluster_gpus_of", self.theirs, job_id) == self.ours.gpus_of(job_id)
        snapshot = self.library.snapshot(self.theirs)
        assert snapshot == self.ours.snapshot()
        restored = self.library.given("cluster_restore", snapshot, c_size_t(len(snapshot)))
        assert self.library.snapshot(restored) == snapshot
        for handle in (restored, self.theirs):
            self.library.returned("cluster_free", handle)
        for handle in self.handles.values():
            self.library.returned("policy_free", handle)


STATUS = {
    tp.AllocationError: Status.NOT_ALLOCATED,
    tp.JobGraphError: Status.BAD_JOB,
    tp.TopologyError: Status.BAD_TOPOLOGY,
    ValueError: Status.BAD_ARGUMENT,
}


def placed(placement: tp.Placement) -> tuple[Any, ...]:
    return int(CallOutcome.PLACED), "", placement.gpus, placement.optimal, dict(placement.scores)


def refused(explained: Any) -> tuple[Any, ...]:
    refusal = explained.refusal
    return int(CallOutcome.NEVER if refusal.permanent else CallOutcome.WAITS), refusal.reason, (), False, {}


JOB_IDS = st.sampled_from("abc")
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("place"), st.sampled_from(POLICIES), JOB_IDS, strategies.demanding_jobs()),
        st.tuples(st.just("place"), st.sampled_from(POLICIES), JOB_IDS, strategies.job_graphs()),
        st.tuples(st.just("explain"), st.sampled_from(POLICIES), strategies.job_graphs()),
        st.tuples(st.just("allocate"), JOB_IDS, st.lists(st.integers(-1, 8), max_size=3)),
        st.tuples(st.just("release"), JOB_IDS),
        st.tuples(st.just("drain"), st.integers(-1, 8), st.booleans()),
        st.tuples(st.just("hold"), st.integers(-1, 8), st.sampled_from(["spare", "in repair", "é", ""])),
        st.tuples(st.just("unhold"), st.integers(-1, 8)),
    ),
    min_size=4,
    max_size=12,
)


@whole
@given(topology=strategies.topologies() | strategies.cluster_topologies(), operations=OPERATIONS)
@pytest.mark.filterwarnings("ignore")
def test_answers_are_those_of_the_python_api(
    library: CLibrary, topology: tp.Topology, operations: list[tuple[Any, ...]]
) -> None:
    twins = Twins(library, topology)
    for name, *arguments in operations:
        getattr(twins, name)(*arguments)
    twins.end()


def test_the_cluster_of_several_machines(library: CLibrary) -> None:
    machine = library.given("topology_built_in", "dgx1-v100")
    options = '{"names": ["a", "b"], "racks": 1, "hosts": {"cpus": 8, "memory_gb": 64}}'
    cluster = library.cluster(machine, machine, options=options)
    topology = library.given("cluster_topology", cluster)
    one = tp.machines.get("dgx1-v100")
    joined = tp.Topology.cluster([one, one], names=["a", "b"], racks=1)
    assert library.text("topology_to_json", topology) == joined.to_json()
    assert library.returned("topology_num_gpus", topology) == 16
    name, on, number = c_void_p(), c_void_p(), c_int32()
    library("topology_gpu", topology, 11, byref(name), byref(on), byref(number))
    assert (ctypes.string_at(name), ctypes.string_at(on), number.value) == (
        joined.gpus[11].name.encode(),
        b"b",
        3,
    )
    library("topology_gpu", topology, 11, None, None, None)
    expected = tp.Cluster(joined, tp.HostResources(8, 64))
    assert library.snapshot(cluster) == expected.snapshot()
    hosts = {"a": {"cpus": 1, "memory_gb": 2}, "b": {"cpus": 3, "memory_gb": 4}}
    options = json.dumps({"hosts": hosts, "names": ["a", "b"], "racks": 1})
    by_name = library.cluster(machine, machine, options=options)
    expected = tp.Cluster(joined, [tp.HostResources(1, 2), tp.HostResources(3, 4)])
    assert library.snapshot(by_name) == expected.snapshot()


def test_without_a_name_the_default_policy_decides(library: CLibrary) -> None:
    cluster = library.cluster(library.given("topology_built_in", "dgx1-v100"))
    policy = library.given("policy_new", None, '{"slack": 0.02}')
    decision = library.given("place", cluster, policy, "a", tp.JobGraph.ring(3).to_json())
    wanted = tp.place(tp.JobGraph.ring(3), tp.Cluster(tp.machines.get("dgx1-v100")))
    assert wanted is not None
    assert library.numbers("cluster_gpus_of", cluster, "a") == wanted.gpus
    assert library.score(decision, "communication_time") == wanted.time


def test_groups_are_kept_together_or_refused_by_name(library: CLibrary) -> None:
    machine = library.given("topology_built_in", "dgx1-v100")
    cluster = library.cluster(*[machine] * 4, options='{"racks": 2}')
    job = tp.JobGraph.ring(12).grouped(6, within="rack").grouped(3, within="machine")
    text = job.to_json()
    with pytest.raises(CError, match="groups cannot be honoured: drmaestro"):
        library.given("place", cluster, library.given("policy_new", "drmaestro", None), "a", text)
    library.given("place", cluster, library.given("policy_new", "topo-aware", None), "a", text)
    gpus = library.numbers("cluster_gpus_of", cluster, "a")
    assert all(len({gpu // 8 for gpu in gpus[i : i + 3]}) == 1 for i in range(0, 12, 3))
    assert all(len({gpu // 16 for gpu in gpus[i : i + 6]}) == 1 for i in (0, 6))
    with pytest.raises(CError, match=r"groups\[0\] has no tasks"):
        library.given(
            "explain", cluster, library.given("policy_new", "fcfs", None),
            '{"pattern": "ring", "num_tasks": 4, "groups": [{"within": "rack"}]}', 1,
        )  # fmt: skip


def test_a_held_gpu_is_given_to_no_job_and_refusals_say_why(library: CLibrary) -> None:
    cluster = library.cluster(library.given("topology_built_in", "summit"))
    policy = library.given("policy_new", "fcfs", None)
    for gpu in range(4):
        library("hold", cluster, gpu, "spare")
    assert library.numbers("cluster_free_gpus", cluster) == (4, 5)
    job = '{"pattern": "ring", "num_tasks": 3}'
    decision = library.given("place", cluster, policy, "a", job)
    assert "4 GPUs are held (spare)" in library.returned("decision_reason", decision).decode()
    library("set_drained", cluster, 0, ctypes.c_bool(False))
    library("unhold", cluster, 1)
    assert library.numbers("cluster_free_gpus", cluster) == (1, 4, 5)


def test_texts_with_options(library: CLibrary, repository: Path) -> None:
    text = (repository / "examples/dgx1.txt").read_bytes()
    for format_ in (None, "nvidia-smi topo -m"):
        handle = library.given(
            "topology_from_text", text + b"beyond", c_size_t(len(text)), format_, '{"gpu_model": "V100"}'
        )
        expected = tp.read(text, gpu_model="V100")
        assert library.text("topology_to_json", handle) == expected.to_json()
        library.returned("topology_free", handle)
