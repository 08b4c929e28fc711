"""A topology that is read from a file is called after the file, unless the text has a name for it."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

import topoplace as tp
from command_line import Call, run
from distributions import whole
from topoplace import discovery

TOPO_M = "\tGPU0\tGPU1\nGPU0\t X \tNV2\nGPU1\tNV2\t X \n"


def examples(repository: Path) -> list[Path]:
    """Return texts of all formats of topologies, with the name that the library gives each."""
    found: list[Path] = []
    for path in sorted((repository / "tests/data").iterdir()):
        try:
            read = discovery.read(path.read_bytes())
        except tp.TopologyError:
            continue
        if isinstance(read, tp.Topology):
            found.append(path)
    return found


def test_texts_of_every_format_are_called_after_their_file(repository: Path, call: Call) -> None:
    paths = examples(repository)
    assert len(paths) > 20
    for path in paths:
        assert json.loads(call("show", "--json", path).out)["name"] == path.stem
        assert discovery.read(path.read_bytes()).name != path.stem  # the library's name is as before


def test_a_name_in_the_text_stays(tmp_path: Path, call: Call) -> None:
    path = tmp_path / "other.json"
    path.write_text(tp.machines.get("minsky").to_json())
    assert json.loads(call("show", "--json", path).out)["name"] == "minsky"


def test_a_name_can_be_given(tmp_path: Path, call: Call) -> None:
    path = tmp_path / "topo.txt"
    path.write_text(TOPO_M)
    done = call("show", "--json", path, "--assume", "name=node7")
    assert json.loads(done.out)["name"] == "node7"


@whole
def test_a_network_is_called_after_its_file(tmp_path: Path, call: Call) -> None:
    path = tmp_path / "hall.conf"
    path.write_text("SwitchName=a Nodes=n[1-2]\n")
    joined = call("show", "--json", path, "--machine", "minsky")
    assert json.loads(joined.out)["name"] == "hall"
    assert call("show", path).out.startswith("hall: 1 x leaf, 2 machines\nleaf a: n[1-2]\n")


def test_standard_input_and_pipes_have_no_file_name(tmp_path: Path) -> None:
    assert json.loads(run("show", "--json", "-", stdin=TOPO_M).stdout)["name"] == "nvidia-smi"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(TOPO_M,))
    writer.start()
    assert json.loads(run("show", "--json", pipe).stdout)["name"] == "nvidia-smi"
    writer.join()


@pytest.mark.parametrize("name", ["réseau.txt".encode(), b".txt", b"two words.txt", b"a\nb", b"\xff.txt"])
def test_any_file_name_will_do(tmp_path: Path, name: bytes) -> None:
    path = os.path.join(os.fsencode(tmp_path), name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(TOPO_M)
    done = run("show", os.fsdecode(path))
    assert (done.returncode, done.stderr) == (0, "")
    assert ": GB/s between GPUs" in done.stdout
