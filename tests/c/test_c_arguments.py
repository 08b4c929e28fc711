"""Odd arguments of the C interface: every one is answered with an error, and changes nothing."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import byref, c_int32, c_size_t, c_void_p
from threading import Thread
from typing import Any

import pytest
from tests.support.c_library import CError, CLibrary, Status

import topoplace as tp
from topoplace.c_interface import CallOutcome

RING = '{"pattern": "ring", "num_tasks": 4, "bandwidth_sensitive": true}'
Call = tuple[str, Callable[[dict[str, c_void_p]], tuple[Any, ...]]]
"""The name of a function, and its arguments by the handles of a test."""


@pytest.fixture
def handles(library: CLibrary) -> dict[str, c_void_p]:
    """A live handle of each kind, and what is none."""
    topology = library.given("topology_built_in", "dgx1-v100")
    cluster = library.cluster(topology)
    policy = library.given("policy_new", "mapa-preserve", None)
    decision = library.given("explain", cluster, policy, RING, 1)
    freed = library.given("topology_built_in", "dgx1-v100")
    library.returned("topology_free", freed)
    return {
        "topology": topology,
        "cluster": cluster,
        "policy": policy,
        "decision": decision,
        "freed": freed,
        "NULL": c_void_p(),
        "address": c_void_p(0xDEADBEEF),
    }


TAKERS = [
    ("topology", "topology_gpu", lambda h: (h, 0, None, None, None)),
    ("topology", "topology_to_json", lambda h: (h, byref(c_void_p()))),
    ("cluster", "cluster_topology", lambda h: (h, byref(c_void_p()))),
    ("cluster", "cluster_free_gpus", lambda h: (h, None, c_size_t(0), byref(c_size_t()))),
    ("cluster", "cluster_gpus_of", lambda h: (h, "a", None, c_size_t(0), byref(c_size_t()))),
    ("cluster", "allocate", lambda h: (h, "a", (c_int32 * 1)(0), c_size_t(1), None)),
    ("cluster", "set_drained", lambda h: (h, 0, ctypes.c_bool(True))),
    ("cluster", "hold", lambda h: (h, 0, "spare")),
    ("cluster", "unhold", lambda h: (h, 0)),
    ("cluster", "cluster_snapshot", lambda h: (h, byref(c_void_p()), byref(c_size_t()))),
    ("cluster", "release", lambda h: (h, "a")),
    ("decision", "decision_to_json", lambda h: (h, byref(c_void_p()))),
]


@pytest.mark.parametrize(
    ("kind", "name", "arguments"), TAKERS, ids=lambda one: one if type(one) is str else ""
)
def test_wrong_handles_are_refused(
    library: CLibrary, handles: dict[str, c_void_p], kind: str, name: str, arguments: Any
) -> None:
    for other in handles.keys() - {kind}:
        why = "is NULL" if other == "NULL" else "is not a handle, or freed, or of another kind"
        with pytest.raises(CError, match=f"{kind} {why}") as refused:
            library(name, *arguments(handles[other]))
        assert refused.value.status is Status.BAD_ARGUMENT


@pytest.mark.parametrize("other", ["topology", "decision", "freed", "NULL", "address"])
def test_wrong_handles_among_several(library: CLibrary, handles: dict[str, c_void_p], other: str) -> None:
    bad, cluster, policy = handles[other], handles["cluster"], handles["policy"]
    for name, rest in (("place", ("a", RING)), ("explain", (RING, 1))):
        with pytest.raises(CError, match=r"^cluster is "):
            library.given(name, bad, policy, *rest)
        with pytest.raises(CError, match=r"^policy is "):
            library.given(name, cluster, bad, *rest)
    if other != "topology":
        with pytest.raises(CError, match=r"^topologies\[1\] is "):
            library.cluster(handles["topology"], bad)
    assert library.numbers("cluster_free_gpus", cluster) == tuple(range(8))


def test_accessors_of_wrong_handles(library: CLibrary, handles: dict[str, c_void_p]) -> None:
    for kind in handles.keys() - {"decision"}:
        count = c_size_t(5)
        assert not library.returned("decision_gpus", handles[kind], byref(count))
        assert count.value == 0
        assert library.returned("decision_outcome", handles[kind]) == 0
        assert library.returned("decision_reason", handles[kind]) is None
        assert library.returned("decision_is_optimal", handles[kind]) is False
        assert library.score(handles[kind], "aggregated_bandwidth") is None
    for kind in handles.keys() - {"topology"}:
        assert library.returned("topology_num_gpus", handles[kind]) == -1
    assert not library.returned("decision_score", handles["decision"], None, None)
    assert library.score(handles["decision"], "beauty") is None


def test_freeing_twice_or_the_wrong_kind_does_nothing(
    library: CLibrary, handles: dict[str, c_void_p]
) -> None:
    for kind in ("topology", "cluster", "policy", "decision"):
        for other in handles.keys() - {kind}:
            library.returned(f"{kind}_free", handles[other])
    assert library.returned("topology_num_gpus", handles["topology"]) == 8
    assert library.numbers("cluster_free_gpus", handles["cluster"]) == tuple(range(8))
    assert library.returned("decision_outcome", handles["decision"]) == CallOutcome.PLACED
    for kind in ("topology", "cluster", "policy", "decision"):
        for _ in range(2):
            library.returned(f"{kind}_free", handles[kind])
    assert library.returned("topology_num_gpus", handles["topology"]) == -1


def test_no_place_for_the_result(library: CLibrary, handles: dict[str, c_void_p]) -> None:
    cluster, policy, topology = handles["cluster"], handles["policy"], handles["topology"]
    array = (c_void_p * 1)(topology)
    for name, *arguments in (
        ("topology_built_in", "dgx1-v100", None),
        ("topology_from_text", b"x", c_size_t(1), None, None, None),
        ("topology_to_json", topology, None),
        ("policy_new", "mapa-preserve", None, None),
        ("cluster_new", array, c_size_t(1), None, None),
        ("cluster_topology", cluster, None),
        ("cluster_restore", b"x", c_size_t(1), None),
        ("cluster_snapshot", cluster, None, byref(c_size_t())),
        ("cluster_snapshot", cluster, byref(c_void_p()), None),
        ("cluster_free_gpus", cluster, None, c_size_t(0), None),
        ("place", cluster, policy, "a", RING, None),
        ("explain", cluster, policy, RING, 1, None),
        ("decision_to_json", handles["decision"], None),
    ):
        with pytest.raises(CError, match="is NULL: there is no place for the result"):
            library(name, *arguments)
    assert library.native.topoplace_release(cluster, b"a", None) == Status.NOT_ALLOCATED  # error = NULL
    assert library.numbers("cluster_free_gpus", cluster) == tuple(range(8))


def read(
    text: bytes | None, format_: str | None = None, options: str | None = None, length: int = -1
) -> Call:
    size = c_size_t(len(text or b"") if length < 0 else length)
    return "topology_from_text", lambda _: (text, size, format_, options)


def build(options: str | None, count: int = 1) -> Call:
    return "cluster_new", lambda h: ((c_void_p * 1)(h["topology"]), c_size_t(count), options)


def place(job_id: str | bytes | None, job: str | None) -> Call:
    return "place", lambda h: (h["cluster"], h["policy"], job_id, job)


def ring_of(size: str) -> Call:
    return place("a", f'{{"pattern": "ring", "num_tasks": {size}}}')


def plain(name: str, *arguments: Any) -> Call:
    return name, lambda _: arguments


def explain(top: int) -> Call:
    return "explain", lambda h: (h["cluster"], h["policy"], RING, top)


HOSTS = '{"hosts": [{"cpus": 1, "memory_gb": 1, "legs": 4}]}'
BAD_CALLS = {
    Status.BAD_ARGUMENT: [
        (plain("topology_built_in", None), "name is NULL"),
        (plain("topology_built_in", b"dgx\xff"), "name is not UTF-8 at byte 3"),
        (read(None), "text is NULL"),
        (read(b"x", length=2**64 - 1), "length = 18446744073709551615: text must have at most 1 GiB"),
        (read(b"x", options="{"), "options = '{' is not JSON"),
        (read(b"x", options="[" * 100_000), "options = .* is not JSON"),
        (read(b"x", options="[1]"), r"options = \[1\] is not a dict"),
        (plain("policy_new", "mapa-preserv", None), "did you mean mapa-preserve"),
        (plain("policy_new", "mapa-preserve", '{"colour": 1}'), "colour"),
        (plain("policy_new", "no.such.module:Policy", None), "No module named"),
        (plain("cluster_new", None, c_size_t(1), None), "topologies is NULL"),
        (build(None, count=0), "count = 0"),
        (build(None, count=2**40), "count = 1099511627776"),
        (build('{"colour": 1}'), "options: .*colour"),
        (build('{"hosts": 3}'), "hosts = 3"),
        (build(HOSTS), r"hosts\[0\]: .*legs"),
        (plain("cluster_restore", None, c_size_t(9)), "snapshot is NULL"),
        (place(None, RING), "job_id is NULL"),
        (place(b"\xc3\x28", RING), "job_id is not UTF-8 at byte 0"),
        (place("a", None), "job is NULL"),
        (explain(0), "top = 0"),
        (explain(-(2**31)), "top = -2147483648"),
    ],
    Status.BAD_TOPOLOGY: [
        (plain("topology_built_in", "dgx1"), "did you mean dgx1-p100 or dgx1-v100"),
        (plain("topology_built_in", ""), "name = '' is not a non-empty string"),
        (read(b""), "the text is empty"),
        (read(b"\xff\0\xfe"), "text is not UTF-8: byte 0 is 0xff"),
        (read(b"x", format_="SMI"), "format = 'SMI' is none of"),
        (read(b"x", options='{"colour": 1}'), "colour is not an argument"),
        (build('{"names": ["a", "b"], "count": 3}'), "3"),
    ],
    Status.BAD_JOB: [
        (place("a", ""), "not JSON"),
        (place("a", '{"pattern": "rings", "num_tasks": 1}'), "did you mean ring"),
        (ring_of("-1"), "k = -1"),
        (ring_of("1e999"), "k = inf"),
        (ring_of("9" * 5000), "not JSON"),
        (ring_of("9" * 4000), "k = "),
    ],
    Status.NOT_ALLOCATED: [
        (build('{"hosts": {"cpus": -1, "memory_gb": 1}}'), "cpus = -1"),
        (place("", RING), "''"),
    ],
    Status.BAD_SNAPSHOT: [(plain("cluster_restore", b"topoplace", c_size_t(9)), "header")],
}
CASES = [(status, call, message) for status, cases in BAD_CALLS.items() for call, message in cases]


@pytest.mark.parametrize(("status", "call", "message"), CASES, ids=map(str, range(len(CASES))))
def test_bad_calls_are_refused(
    library: CLibrary,
    handles: dict[str, c_void_p],
    status: Status,
    call: Call,
    message: str,
) -> None:
    name, arguments = call
    with pytest.raises(CError, match=message) as refused:
        library.given(name, *arguments(handles))
    assert refused.value.status is status
    assert library.numbers("cluster_free_gpus", handles["cluster"]) == tuple(range(8))


def test_bad_numbers_are_refused(library: CLibrary, handles: dict[str, c_void_p]) -> None:
    cluster, topology = handles["cluster"], handles["topology"]
    for gpu in (-1, 8, 2**31 - 1, -(2**31)):
        with pytest.raises(CError, match=f"gpu = {gpu} is not in 0..7"):
            library("set_drained", cluster, gpu, ctypes.c_bool(True))
        with pytest.raises(CError, match=f"gpu = {gpu} is not in 0..7"):
            library("topology_gpu", topology, gpu, None, None, None)
        with pytest.raises(CError, match=rf"gpus\[1\] = {gpu}"):
            library("allocate", cluster, "a", (c_int32 * 2)(0, gpu), c_size_t(2), None)
    with pytest.raises(CError, match="gpus is NULL"):
        library("allocate", cluster, "a", None, c_size_t(1), None)
    with pytest.raises(CError, match="count = 1152921504606846976: too many gpus"):
        library("allocate", cluster, "a", (c_int32 * 1)(), c_size_t(2**60), None)
    with pytest.raises(CError, match="empty"):
        library("allocate", cluster, "a", None, c_size_t(0), None)
    library("allocate", cluster, "a", (c_int32 * 4)(3, 2, 1, 0), c_size_t(4), RING)
    assert library.numbers("cluster_gpus_of", cluster, "a") == (3, 2, 1, 0)


def test_small_buffers(library: CLibrary, handles: dict[str, c_void_p]) -> None:
    cluster, array, count = handles["cluster"], (c_int32 * 8)(*[77] * 8), c_size_t()
    with pytest.raises(CError, match="capacity = 7: there are 8 GPUs") as refused:
        library("cluster_free_gpus", cluster, array, c_size_t(7), byref(count))
    assert refused.value.status is Status.BUFFER_TOO_SMALL
    assert (count.value, list(array)) == (8, [77] * 8)
    with pytest.raises(CError, match="gpus is NULL, and capacity = 3"):
        library("cluster_free_gpus", cluster, None, c_size_t(3), byref(count))
    assert count.value == 0


def test_exceptions_of_policies_become_errors(
    library: CLibrary, handles: dict[str, c_void_p], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a policy raises, also what would end the process."""
    for raised, status, message in (
        (SystemExit(3), Status.FAILED, "SystemExit: 3"),
        (KeyboardInterrupt(), Status.FAILED, "KeyboardInterrupt"),
        (RuntimeError("broken \ud800"), Status.FAILED, r"RuntimeError: broken \\ud800"),
        (MemoryError("full"), Status.OUT_OF_MEMORY, "full"),
        (TimeoutError("late"), Status.TIMEOUT, "late"),
        (ModuleNotFoundError("needs PyYAML"), Status.MISSING_PACKAGE, "needs PyYAML"),
    ):

        def place(*_: object, error: BaseException = raised) -> None:
            raise error

        monkeypatch.setattr(tp.policies.Preserve, "place", place)
        with pytest.raises(CError, match=message) as refused:
            library.given("place", handles["cluster"], handles["policy"], "a", RING)
        assert refused.value.status is status
    monkeypatch.undo()
    library.returned(
        "decision_free", library.given("place", handles["cluster"], handles["policy"], "a", RING)
    )
    assert library.numbers("cluster_gpus_of", handles["cluster"], "a") == (0, 1, 2, 3)


def test_handles_freed_by_other_threads(library: CLibrary) -> None:
    """Calls with a handle that another thread frees answer as before, or refuse it."""
    answers: set[object] = set()

    def ask(cluster: c_void_p, policy: c_void_p) -> None:
        for _ in range(50):
            try:
                library("release", cluster, "a")
            except CError as error:
                answers.add(str(error))
            try:
                library.returned("decision_free", library.given("explain", cluster, policy, RING, 1))
                answers.add("explained")
            except CError as error:
                answers.add(str(error))

    for _ in range(20):
        topology = library.given("topology_built_in", "dgx1-v100")
        cluster, policy = library.cluster(topology), library.given("policy_new", "baseline", None)
        threads = [Thread(target=ask, args=(cluster, policy)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for kind, handle in (("policy", policy), ("topology", topology), ("cluster", cluster)):
            library.returned(f"{kind}_free", handle)
        for thread in threads:
            thread.join()
    gone = "is not a handle, or freed, or of another kind"
    assert answers <= {"explained", f"cluster {gone}", f"policy {gone}", "job 'a' holds no GPUs"}
    assert f"cluster {gone}" in answers
