from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from command_line import Call
from distributions import whole
from topoplace.cli import gpu_list
from topoplace.topology.devices import Gpu


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 4), st.booleans()), min_size=1), st.data())
def test_ids_and_ranges_are_read_in_their_order(
    entries: list[tuple[int, int, bool]], data: st.DataObject
) -> None:
    texts: list[str] = []
    expected: list[int] = []
    for first, more, as_range in entries:
        gpus = list(range(first, first + more + 1)) if as_range else [first]
        if set(gpus) & set(expected):
            continue
        expected += gpus
        blank = data.draw(st.sampled_from(["", " "]))
        texts.append(f"{blank}{first}-{first + more}" if as_range else f"{first}{blank}")
    assert gpu_list.parse(",".join(texts), 45, "--busy") == expected


@pytest.mark.parametrize("text", ["", " "])
def test_a_blank_text_lists_no_gpu(text: str) -> None:
    assert gpu_list.parse(text, 8, "--busy") == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("0-8", "GPU 8: the GPUs are 0..7"),
        ("8", "GPU 8: the GPUs are 0..7"),
        ("-1", "GPU -1: the GPUs are 0..7"),
        ("0-999999999", "GPU 999999999: the GPUs are 0..7"),
        ("5-2", "'5-2': a range ascends, such as 2-5"),
        ("0-3,2", "GPU 2: given twice"),
        ("1,,2", "not GPU numbers such as 0-3,6: ''"),
        ("1,two", "not GPU numbers such as 0-3,6: 'two'"),
        ("0-3-5", "not GPU numbers such as 0-3,6: '0-3-5'"),
        ("٣", "not GPU numbers such as 0-3,6: '٣'"),
    ],
)
def test_the_wrong_entry_is_named(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match="--busy") as caught:
        gpu_list.parse(text, 8, "--busy")
    assert str(caught.value) == f"--busy {text!r}: {reason}"


def test_place_leaves_a_range_of_busy_gpus_alone(call: Call) -> None:
    done = call("place", "dgx1-v100", "--busy", "0-2,5", "--gpus", "4")
    assert done.out.splitlines()[-1].endswith("CUDA_VISIBLE_DEVICES=3,4,6,7")


LAST_FOUR = """\
	GPU4	GPU5	GPU7
GPU4	 X 	PIX	SYS
GPU5	PIX	 X 	SYS
GPU7	SYS	SYS	 X
"""


def test_gpus_of_one_machine_have_the_numbers_of_their_devices(call: Call, tmp_path: Path) -> None:
    (tmp_path / "topo.txt").write_text(LAST_FOUR, "utf-8")
    done = call("place", tmp_path / "topo.txt", "--busy", "4-5", "--gpus", "1")
    assert done.out.splitlines()[0] == "GPU 7: nothing is communicated"
    assert done.out.splitlines()[4].split()[0] == "7"
    assert done.out.splitlines()[-1].endswith("CUDA_VISIBLE_DEVICES=7")
    done = call("place", tmp_path / "topo.txt", "--busy", "0", "--gpus", "1")
    assert "--busy '0': GPU 0: the GPUs are 4,5,7" in done.err
    done = call("place", tmp_path / "topo.txt", "--busy", "4-7", "--gpus", "1")
    assert "not placed" in done.out
    done = call("show", tmp_path / "topo.txt", "--collective", "2")
    assert done.out.splitlines()[2].split()[:2] == ["best", "4,5"]


def test_a_slice_is_named_by_its_device(call: Call, tmp_path: Path) -> None:
    gpus = [Gpu(i, f"GPU{i + 4}", "A100", memory_gb=40.0) for i in range(2)]
    (tmp_path / "machine.json").write_text(tp.Topology(gpus, default=12.0).to_json(), "utf-8")
    cut = ("place", tmp_path / "machine.json", "--gpus", "1", "--slice", "5=3g.20gb")
    assert "--busy: GPU 5 is cut by --slice" in call(*cut, "--busy", "5").err
    assert "--slice '5=3g.20gb': GPU 5 is named twice" in call(*cut, "--slice", "5=3g.20gb").err


def test_a_picture_of_one_machine_has_the_numbers_of_its_devices(call: Call, tmp_path: Path) -> None:
    (tmp_path / "topo.txt").write_text(LAST_FOUR, "utf-8")
    assert call("show", tmp_path / "topo.txt", "-o", tmp_path / "machine.svg").code == 0
    picture = (tmp_path / "machine.svg").read_text("utf-8")
    assert [label for label in ("4", "5", "7", "0", "1", "2") if f">{label}</text>" in picture] == [
        "4",
        "5",
        "7",
    ]
    assert 'data-gpu="2"><title>GPU 7, ' in picture


@whole
def test_busy_gpus_from_the_output_of_a_tool(call: Call, tmp_path: Path) -> None:
    (tmp_path / "nodes.txt").write_text("GRES_USED NODELIST\ngpu:6(IDX:0-3,6-7) n1\n", "utf-8")
    done = call("place", "dgx1-v100", "--busy-from", tmp_path / "nodes.txt", "--gpus", "2")
    assert done.out.splitlines()[-1].endswith("CUDA_VISIBLE_DEVICES=4,5")
    (tmp_path / "other.txt").write_text("Name=gpu File=/dev/nvidia[0-3]\n", "utf-8")
    done = call("place", "dgx1-v100", "--busy-from", tmp_path / "other.txt", "--gpus", "2")
    assert "other.txt: gres.conf of Slurm does not state which GPUs are in use" in done.err


@whole
def test_gpus_in_use_by_the_text_are_named_unless_they_are_taken(call: Call, tmp_path: Path) -> None:
    text = "NODELIST STATE GRES GRES_USED\nn1 mixed gpu:a100:4 gpu:a100:1(IDX:0)\n"
    (tmp_path / "nodes.txt").write_text(text, "utf-8")
    done = call("place", tmp_path / "nodes.txt", "--gpus", "1")
    assert "\n\nnote: The GPUs that jobs hold are free here; --busy-from reads which they are" in done.out
    done = call("place", tmp_path / "nodes.txt", "--gpus", "1", "--busy-from", tmp_path / "nodes.txt")
    assert "note" not in done.out
    assert done.out.splitlines()[-1].endswith("CUDA_VISIBLE_DEVICES=1")


@whole
def test_a_busy_gpu_of_a_node_that_is_drained_is_no_fault(call: Call, tmp_path: Path) -> None:
    rows = ("n1 draining gpu:a100:2 gpu:a100:1(IDX:0)", "n2 idle gpu:a100:2 gpu:a100:0")
    (tmp_path / "nodes.txt").write_text("\n".join(("NODELIST STATE GRES GRES_USED", *rows, "")), "utf-8")
    done = call("place", tmp_path / "nodes.txt", "--gpus", "2", "--busy-from", tmp_path / "nodes.txt")
    assert done.code == 0
    assert done.out.startswith("n2 0,1: ")
    assert done.out.splitlines()[4].startswith("n2 0,1 ")


@whole
@pytest.mark.filterwarnings("default:GPUs in use on machines:UserWarning")
def test_machines_with_busy_gpus_that_the_topology_lacks_are_named(call: Call, tmp_path: Path) -> None:
    (tmp_path / "nodes.txt").write_text(
        "NODELIST STATE GRES\nn1 idle gpu:a100:4\nn2 idle gpu:a100:4\n", "utf-8"
    )
    (tmp_path / "used.txt").write_text("GRES_USED NODELIST\ngpu:1(IDX:0) n1\ngpu:1(IDX:1) n3\n", "utf-8")
    done = call("place", tmp_path / "nodes.txt", "--busy-from", tmp_path / "used.txt", "--gpus", "1")
    assert done.code == 0
    assert "GPUs in use on machines that the topology does not have are left out: n3" in done.err


@whole
@pytest.mark.filterwarnings("default:not shown in use:UserWarning")
def test_place_names_the_gpus_that_are_not_free_and_gives_others(call: Call, tmp_path: Path) -> None:
    text = "NodeName=n1 Gres=gpu:4 GresUsed=gpu:0 GresDrain=gpu:3(IDX:0-2)\n"
    (tmp_path / "busy.txt").write_text(text, "utf-8")
    done = call("place", "minsky", "--gpus", "1", "--busy-from", tmp_path / "busy.txt")
    assert done.out.splitlines()[-1].endswith("CUDA_VISIBLE_DEVICES=3")
    assert "not free: GPU 0, 1, 2: GresDrain is gpu:3(IDX:0-2)" in done.err


NODE = """\
kind: Node
metadata: {{name: n1}}
status: {{capacity: {{{resource}: "4"}}}}
"""


@whole
@pytest.mark.parametrize("resource", ["aws.amazon.com/neuron", "example.com/gpu"])
def test_without_a_variable_the_devices_are_named(resource: str, call: Call, tmp_path: Path) -> None:
    (tmp_path / "node.yaml").write_text(NODE.format(resource=resource), "utf-8")
    printed = call("place", str(tmp_path / "node.yaml"), "--gpus", "2").out
    said = next(line for line in printed.splitlines() if line.startswith("note: no variable is printed"))
    assert "devices n1: 0, 1: " in said
    assert ("NEURON_RT_VISIBLE_CORES numbers cores" if "neuron" in resource else resource) in said
    assert "VISIBLE_DEVICES" not in printed


def test_place_says_that_gpus_are_cut_into_slices(call: Call, repository: Path) -> None:
    table = str(repository / "tests/data/smitable-2gpu.txt")
    for count, placed in ((2, True), (3, False)):
        printed = call("place", table, "--gpus", str(count))
        assert printed.code == (0 if placed else 1)
        assert "note: GPU1 is cut into MIG slices, so that no job can have it whole" in printed.out
        assert ("CUDA_VISIBLE_DEVICES=0,3" in printed.out) == placed


def test_show_counts_slices_as_slices(call: Call, repository: Path) -> None:
    printed = call("show", str(repository / "tests/data/nvidialist-mig.txt")).out
    assert "4 MIG slices of A100, 2 x A100;" in printed


def test_an_answer_about_a_machine_numbers_gpus_as_its_devices(call: Call, tmp_path: Path) -> None:
    (tmp_path / "topo.txt").write_text(LAST_FOUR, "utf-8")
    done = call("place", tmp_path / "topo.txt", "--busy", "4", "--gpus", "2")
    assert done.out.startswith("GPUs 5, 7: ")
    assert done.out.splitlines()[5].split()[:2] == ["5", "7"]
    assert "- slowest on the first: PCIe link of GPU 7\n" in done.out
    assert "\nGPU 7 " in call("show", tmp_path / "topo.txt").out
    assert done.out.splitlines()[-1].endswith("CUDA_VISIBLE_DEVICES=5,7")


def test_an_answer_about_several_machines_has_their_names_and_the_numbers_there(call: Call) -> None:
    done = call("place", "gb200-nvl72", "--busy", "0-4", "--gpus", "3")
    assert done.out.startswith("tray01 1–3: ")
    assert "\ntray01 1–3  " in done.out
    assert "- slowest on the first: rings of tray01 1–3\n" in done.out
    assert done.out.splitlines()[-1].startswith("tray01: ")
    assert done.out.splitlines()[-1].endswith("CUDA_VISIBLE_DEVICES=1,2,3")
