"""Which GPUs of a topology are not free by a text that tells their use."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from distributions import whole
from topoplace import TopologyError, discovery
from topoplace.discovery import in_use
from topoplace.discovery.in_use import GpuUse

FOUR = "\tGPU0\tGPU1\tGPU2\tGPU3\n" + "".join(
    f"GPU{u}\t" + "\t".join("X" if u == v else "NV4" for v in range(4)) + "\n" for u in range(4)
)
HEAD = "| NVIDIA-SMI 550.90.07   Driver Version: 550.90.07   CUDA Version: 12.4 |\n"
PROCESSES = "| Processes:                               |\n| No running processes found              |\n"


def topology_of(text: str) -> tp.Topology:
    found = tp.read(text)
    assert isinstance(found, tp.Topology)
    return found


def four() -> tp.Topology:
    return topology_of(FOUR)


def row(number: int, used: str = "0MiB / 46068MiB", name: str = "NVIDIA A40") -> str:
    return (
        f"|   {number}  {name}   On  |   00000000:{number + 17:02X}:00.0 Off |   0 |\n"
        f"| 0%   30C   P0   60W / 300W |   {used} |   0%   Default |\n+----+\n"
    )


def block(number: int, use: str = "    FB Memory Usage\n        Used : 2 MiB\n") -> str:
    return f"GPU 00000000:{number + 17:02X}:00.0\n    Product Name : NVIDIA A40\n    GPU UUID : {uuid(number)}\n{use}"


def log(*blocks: str, attached: int = 0) -> str:
    return f"==============NVSMI LOG==============\nAttached GPUs : {attached or len(blocks)}\n" + "".join(
        blocks
    )


def uuid(number: int) -> str:
    return f"GPU-00000000-0000-4000-8000-00000000000{number}"


def listed(*numbers: int) -> tp.Topology:
    """Return the topology of a list of GPUs in which each has the UUID of a number."""
    lines = (f"GPU {place}: NVIDIA A40 (UUID: {uuid(number)})\n" for place, number in enumerate(numbers))
    return topology_of("".join(lines))


def not_free(text: str, topology: tp.Topology | None = None) -> tuple[tuple[int, ...], list[str]]:
    """Return the GPUs that are not free by a text, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gpus = discovery.busy_gpus(text, four() if topology is None else topology)
    return gpus, [str(one.message) for one in caught]


# ---- health ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "why"),
    [
        (row(3, "ERR! / ERR!").replace("0% ", "ERR!"), "GPU 3: fields that are ERR!: 4"),
        (row(3).replace("Default", "Prohibited"), "GPU 3: its compute mode is Prohibited"),
    ],
)
def test_a_gpu_that_nvidia_smi_shows_broken_is_not_free(last: str, why: str) -> None:
    text = HEAD + row(0) + row(1, "40000MiB / 46068MiB") + row(2) + last + PROCESSES
    assert not_free(text) == ((1, 3), [f"not shown in use, and not free: {why}"])
    assert not_free(text, topology_of(text)) == (
        (1,),
        [],
    )  # where the topology has it unhealthy, no job gets it


def test_a_gpu_with_a_fault_in_the_query_is_not_free() -> None:
    text = log(block(0), block(1, "    Compute Mode : Prohibited\n    Processes : None\n"))
    gpus, (said,) = not_free(text, listed(0, 1))
    assert gpus == (1,)
    assert said.endswith("GPU 1: its compute mode is Prohibited")


@whole
@pytest.mark.parametrize(
    ("record", "expected", "why"),
    [
        (
            "GresUsed=gpu:0 State=DOWN",
            (0, 1, 2, 3),
            "GPU 0, 1, 2, 3: Slurm starts nothing on its node (DOWN)",
        ),
        ("State=DOWN", (0, 1, 2, 3), "GPU 0, 1, 2, 3: Slurm starts nothing on its node (DOWN)"),
        (
            "GresUsed=gpu:1(IDX:2) GresDrain=gpu:1(IDX:0) State=MIXED",
            (0, 2),
            "GPU 0: GresDrain is gpu:1(IDX:0)",
        ),
    ],
)
def test_gpus_of_slurm_that_no_job_gets_are_not_free(
    record: str, expected: tuple[int, ...], why: str
) -> None:
    text = f"NodeName=n1 Gres=gpu:4 {record}\n"
    assert not_free(text) == (expected, [f"not shown in use, and not free: {why}"])


@whole
def test_a_node_that_is_down_is_not_free_where_its_gpus_are_not_counted() -> None:
    cluster = tp.Topology.cluster(four(), 2, names=["n1", "n2"])
    text = "NODELIST STATE GRES_USED\nn1 down* gpu:0\nn2 mixed gpu:1(IDX:1)\n"
    gpus, (said,) = not_free(text, cluster)
    assert gpus == (0, 1, 2, 3, 5)
    assert said.endswith("all GPUs of n1: Slurm starts nothing on its node (down*)")


@whole
@pytest.mark.parametrize("requested", ["0", "2"])
def test_a_node_of_kubernetes_that_gets_no_pods_is_not_free(requested: str) -> None:
    text = (
        "Name:               n1\nUnschedulable:      true\nCapacity:\n  nvidia.com/gpu:     4\n"
        "Allocatable:\n  nvidia.com/gpu:     4\nAllocated resources:\n"
        "  Resource           Requests     Limits\n  --------           --------     ------\n"
        "  cpu                10 (5%)      20 (10%)\n  nvidia.com/gpu     " + f"{requested}            0\n"
    )
    gpus, (said,) = not_free(text)
    assert gpus == (0, 1, 2, 3)
    assert "its node gets no pods" in said


@whole
@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("Gres=gpu:999999999 GresUsed=gpu:0", "999999999 GPUs are more than 256"),
        ("Gres=gpu:4 AllocTRES=gres/gpu=999999999", "has no GPU 4, which is in use"),
    ],
)
def test_a_node_with_very_many_gpus_is_refused(record: str, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        discovery.busy_gpus(f"NodeName=n1 {record} State=MIXED\n", four())


# ---- texts that are not complete -------------------------------------------------------------------------------


@given(st.sets(st.integers(0, 3), min_size=1), st.data())
def test_a_gpu_is_free_only_if_the_text_shows_it_so(shown: set[int], data: st.DataObject) -> None:
    busy = data.draw(st.sets(st.sampled_from(sorted(shown))))
    rows = (row(number, f"{40000 * (number in busy)}MiB / 46068MiB") for number in sorted(shown))
    gpus, said = not_free(HEAD + "".join(rows) + PROCESSES)
    assert set(gpus) == busy | (set(range(4)) - shown)
    silent = ", ".join(map(str, sorted(set(range(4)) - shown)))
    assert said == (
        [f"not shown in use, and not free: GPU {silent}: the text says nothing of it"] if silent else []
    )


@whole
def test_nodes_with_fewer_gpus_than_the_topology() -> None:
    gpus, (said,) = not_free("NodeName=n1 Gres=gpu:3 GresUsed=gpu:1(IDX:1) State=MIXED\n")
    assert gpus == (1, 3)
    assert said.endswith("GPU 3: the text says nothing of it")


@whole
def test_a_text_that_lists_only_what_jobs_hold_leaves_the_others_free() -> None:
    assert not_free('{"jobs": [], "slurm": 1}') == ((), [])
    assert not_free("NODELIST GRES_USED\nn1 gpu:1(IDX:1)\n") == ((1,), [])


@pytest.mark.parametrize(
    ("use", "is_free"),
    [
        ("    Processes : None\n", True),
        ("    FB Memory Usage\n        Used : 2 MiB\n", True),
        ("    FB Memory Usage\n        Used : N/A\n    Processes : N/A\n", False),
        ("    FB Memory Usage\n", False),
    ],
)
def test_a_log_that_does_not_tell_the_use_of_a_gpu(use: str, is_free: bool) -> None:
    gpus, said = not_free(log(block(0), block(1, use)), listed(0, 1))
    assert gpus == (() if is_free else (1,))
    assert all("GPU 1: the text does not state whether it is in use" in one for one in said)


def test_a_table_that_is_cut_off_inside_a_gpu() -> None:
    text = HEAD + row(0) + row(1) + row(2) + row(3).split("\n")[0]
    gpus, (said,) = not_free(text)
    assert gpus == (0, 1, 2, 3)  # what follows may list a process of each
    assert said.endswith("GPU 0, 1, 2, 3: the text does not state whether it is in use")
    assert not_free(f"{text}\n{PROCESSES}") == ((), [])  # as where memory is shared with the host


def test_a_log_of_some_gpus_is_read_where_it_is_known_which_they_are() -> None:
    text = log(block(1, "    FB Memory Usage\n        Used : 40000 MiB\n"), attached=2)
    with pytest.raises(
        TopologyError, match=r"some of the machine's GPUs.*00000000:12:00.0.*give the complete output"
    ):
        discovery.busy_gpus(text, four())
    assert not_free(text, listed(0, 1))[0] == (0, 1)
    addresses = topology_of(HEAD + row(0) + row(1) + PROCESSES)
    gpus, (said,) = not_free(text, addresses)
    assert gpus == (0, 1)
    assert said.endswith("GPU 0: the text says nothing of it")


# ---- whose GPUs they are ---------------------------------------------------------------------------------------


@given(st.permutations(range(4)), st.sets(st.integers(0, 3)))
def test_uuids_tell_which_gpu_is_which(order: list[int], busy: set[int]) -> None:
    use = "    FB Memory Usage\n        Used : {} MiB\n"
    text = log(*(block(number, use.format(40000 * (number in busy))) for number in range(4)))
    assert not_free(text, listed(*order)) == (tuple(sorted(order.index(number) for number in busy)), [])


def test_uuids_that_the_topology_lacks() -> None:
    use = "    FB Memory Usage\n        Used : 40000 MiB\n"
    text = log(block(0), block(1, use))
    with pytest.raises(TopologyError, match=rf"about other GPUs \({uuid(0)}, {uuid(1)}\) than the topology"):
        discovery.busy_gpus(text, listed(2, 3))
    gpus, said = not_free(text, listed(0))
    assert (gpus, said) == ((), [f"GPUs in use that the topology does not have are left out: {uuid(1)}"])


def test_all_slices_of_a_gpu_are_found_by_its_number() -> None:
    text = (
        f"GPU 0: NVIDIA A100-SXM4-80GB (UUID: {uuid(0)})\n"
        "  MIG 3g.40gb     Device  0: (UUID: MIG-00000000-0000-4000-8000-000000000001)\n"
        "  MIG 3g.40gb     Device  1: (UUID: MIG-00000000-0000-4000-8000-000000000002)\n"
        f"GPU 1: NVIDIA A100-SXM4-80GB (UUID: {uuid(1)})\n"
    )
    topology = topology_of(text)
    assert topology.num_gpus == 3
    uses = [GpuUse(None, 0, taken=False), GpuUse(None, 1)]
    assert in_use.gpus(uses, topology) == (2,)
    assert in_use.gpus([GpuUse(None, 0), GpuUse(None, 1, taken=False)], topology) == (0, 1)


@whole
@pytest.mark.parametrize("used", ["gpu:a100:1(IDX:0)", "gpu:a100:0"])
def test_the_text_of_another_machine_is_refused(used: str) -> None:
    mine = topology_of("NodeName=mine Gres=gpu:a100:4 State=IDLE CPUTot=4\n")
    text = "NodeName={} Gres=gpu:a100:4 GresUsed={} State=MIXED\n"
    with pytest.raises(TopologyError, match=r"other machines \(other\) than the topology \(mine\)"):
        discovery.busy_gpus(text.format("other", used), mine)
    assert len(not_free(text.format("mine.lab", used), mine)[0]) == used.count("IDX")
    assert not_free(HEAD + "".join(map(row, range(4))) + PROCESSES, mine) == ((), [])


# ---- several outputs -------------------------------------------------------------------------------------------

SEVERAL = "the text has {} outputs of the tool; a GPU that is not free in one of them is not free"


@given(st.lists(st.sets(st.integers(0, 3)), min_size=1, max_size=4), st.booleans())
def test_a_gpu_is_in_use_if_it_is_in_any_of_several_outputs(samples: list[set[int]], as_log: bool) -> None:
    used = "    FB Memory Usage\n        Used : {} MiB\n"
    texts = (
        log(*(block(number, used.format(40000 * (number in busy))) for number in range(4)))
        if as_log
        else HEAD + "".join(row(number, f"{40000 * (number in busy)}MiB / 46068MiB") for number in range(4))
        for busy in samples
    )
    gpus, said = not_free("".join(texts))
    assert set(gpus) == set[int]().union(*samples)
    assert said == ([SEVERAL.format(len(samples))] if len(set(map(frozenset, samples))) > 1 else [])


def test_an_output_that_is_cut_off_leaves_what_the_other_tells() -> None:
    text = log(block(0), block(1)) + log(block(0), block(1, ""))
    assert not_free(text, listed(0, 1)) == ((), [])


@pytest.mark.parametrize(
    "text",
    [
        HEAD + row(0) + row(1) + HEAD + row(0).replace("00000000:11", "00000000:81") + row(1),
        log(block(0), block(1)) + log(block(0), block(1).replace(uuid(1), uuid(2))),
    ],
)
def test_outputs_of_several_machines_are_refused(text: str) -> None:
    with pytest.raises(TopologyError, match=r"GPU [01] is not the same; give each machine its own text"):
        discovery.busy_gpus(text, four())


# ---- texts that are not read -----------------------------------------------------------------------------------

NVIDIA = "give what `nvidia-smi`, `nvidia-smi -q` or `scontrol show node -d` prints"
OTHERS = "no text tells it yet for GPUs of this maker; give their numbers by --busy"


@pytest.mark.parametrize(
    ("text", "what", "remedy"),
    [
        ("index, name, memory.used [MiB]\n0, NVIDIA A40, 9 MiB\n", "`nvidia-smi --query-gpu`", NVIDIA),
        ("pid, process_name, used_gpu_memory [MiB]\n4711, python, 9 MiB\n", "`--query-compute-apps`", NVIDIA),
        (f"gpu_uuid, pid, process_name\n{uuid(0)}, 4711, python\n", "`--query-compute-apps`", NVIDIA),
        ("# gpu     pid  type\n# Idx       #   C/G\n    0    4711     C\n", "`pmon`", NVIDIA),
        ("h1   Fri Nov 20 2026\n[0] NVIDIA A40 | 30 C | 3 / 46068 MB |\n", "no known format", NVIDIA),
        ("device,busy,free\n0,yes,no\n1,no,yes\n", "no known format", NVIDIA),
        ("| AMD-SMI 26.0.0 |\n| GPU  HIP-ID |\n", "devices of `amd-smi`", OTHERS),
        ("== ROCm System Management Interface ==\nDevice  VRAM%\n", "devices of `rocm-smi`", OTHERS),
        ("| HL-SMI Version: 1.2 |\n", "`hl-smi`", OTHERS),
        ("", "the text is empty", ""),
        ('{"busy": [1]}', "JSON, an object with the keys 'busy'", ""),
    ],
)
def test_the_refusal_says_what_tells_gpus_in_use(text: str, what: str, remedy: str) -> None:
    with pytest.raises(TopologyError) as caught:
        discovery.busy_gpus(text, four())
    said = str(caught.value)
    assert what in said
    assert remedy in said
    assert "topo -m" not in said
