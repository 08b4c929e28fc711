"""Text in the dress it arrives in: UTF-16 from PowerShell, code blocks of Markdown."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

import pytest

import topoplace as tp
from distributions import whole
from topoplace import discovery
from topoplace.discovery.text import decode

TEXT = "\tGPU0\tGPU1\r\nGPU0\t X \tPHB\r\nGPU1\tPHB\t X \r\n"
XML = '<?xml version="1.0" encoding="UTF-16"?>\n<system version="1"><cpu numaid="0"/></system>\n'


@pytest.mark.parametrize("bom", ["le", "be"])
def test_utf16_with_a_byte_order_mark_is_read(bom: str) -> None:
    mark = {"le": codecs.BOM_UTF16_LE, "be": codecs.BOM_UTF16_BE}[bom]
    assert decode.decoded(mark + TEXT.encode(f"utf-16-{bom}")) == TEXT
    assert discovery.read(mark + TEXT.encode(f"utf-16-{bom}")) == discovery.read(TEXT)


def test_an_xml_declaration_loses_its_encoding() -> None:
    assert decode.decoded(XML.encode("utf-16")) == XML.replace(' encoding="UTF-16"', "")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (
            codecs.BOM_UTF16_LE + b"\x00\xd8",
            "text begins like UTF-16, but is not: bytes from 2 are no character",
        ),
        (
            "GPU0".encode("utf-16-le"),
            "text is binary: character 1 is 0 (save UTF-16 with a byte order mark, or as UTF-8)",
        ),
    ],
)
def test_bytes_that_are_no_text_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(tp.TopologyError) as caught:
        decode.decoded(data)
    assert str(caught.value) == reason


@whole
@pytest.mark.parametrize("fence", ["```", "```text", "~~~~ini", "   ```\r"])
def test_fences_of_code_blocks_become_empty_lines(fence: str) -> None:
    lines = decode.decoded(f"{fence}\nName=gpu Count=2\n```\n").splitlines()
    assert [line.strip() for line in lines] == ["", "Name=gpu Count=2", ""]
    assert discovery.read(f"{fence}\nName=gpu Count=2\n```\n").num_gpus == 2


@pytest.mark.parametrize(
    "front",
    ["2026-11-22T10:48:03.1234567Z ", "2026-11-22 10:48:03,123 ", "2026-11-22T10:48:03+01:00\t", "0: "],
)
def test_what_logs_put_in_front_of_every_line_is_taken_away(front: str) -> None:
    logged = "".join(f"{front}{line}".rstrip(" ") for line in TEXT.splitlines(keepends=True))
    assert discovery.read(logged) == discovery.read(TEXT)
    assert decode.decoded(f"{front}one\n\nother") == f"{front}one\n\nother"  # not in front of all


HOSTS = pytest.mark.parametrize(
    "front",
    [
        "node01: ",
        "gpu-a.example.com-3: ",
        "Nov  2 07:01:02 node01 topo[123]: ",
        "2026-11-22T10:48:03+0000 node01 topo.sh[7]: ",
        "3: ",
    ],
)


@HOSTS
def test_a_host_in_front_of_every_line_is_taken_away(front: str) -> None:
    assert discovery.read(
        "".join(f"{front}{line}" for line in TEXT.splitlines(keepends=True))
    ) == discovery.read(TEXT)
    blank = "".join(f"{front}{line}".rstrip() + "\n" for line in ["", *TEXT.splitlines(), ""])
    assert discovery.read(blank) == discovery.read(TEXT)


@HOSTS
def test_lines_of_several_hosts_are_refused(front: str) -> None:
    other = re.sub(r"node01|gpu-a|^3", "4", front)
    lines = [f"{one}{line}" for line in TEXT.splitlines(keepends=True) for one in (front, other)]
    with pytest.raises(
        tp.TopologyError, match=r"has lines of 2 hosts, such as .* and 4.*; give one text per host"
    ):
        discovery.read("".join(lines))


@pytest.mark.parametrize(
    "text",
    [
        "gpu.count: 8\ngpu.memory: 80\n",
        "0: 10 20\n1: 20 10\n",
        "node01: a\nnode01: b\nthe end\n",
        "n1:1:2 [0] NCCL INFO a\nn1:1:2 [0] NCCL INFO b\n",
        "n1: n1:1:2 [0] NCCL INFO a\nn1: n1:1:2 [0] NCCL INFO b\nn2: n2:1:2 [0] NCCL INFO c\n" * 2,
        "Device: 0, A100\nDevice: 1, A100\n",
    ],
)
def test_what_only_looks_like_a_host_stays(text: str) -> None:
    assert decode.decoded(text) == text


def test_a_quoted_text_loses_its_marks() -> None:
    quoted = "".join(
        f"> {line}" if line.strip() else ">\n" for line in ("```\n" + TEXT + "\n```\n").splitlines(True)
    )
    assert discovery.read(quoted) == discovery.read(TEXT)
    assert decode.decoded("> a\nb > c\n") == "> a\nb > c\n"


@pytest.mark.parametrize("given", ["topo.txt", "lab/topo.json", "C:\\lab\\topo.xml.gz", Path("lab/topo")])
def test_a_path_in_place_of_the_text_in_the_file_is_named(given: str | Path) -> None:
    name = repr(str(given))
    told = re.escape(
        f"{name} is the name of a file; give the text in it, such as Path({name}).read_text('utf-8')"
    )
    reads = (tp.Topology.from_nvidia_smi, tp.Topology.from_nccl_xml, tp.Topology.from_json)
    for read in reads:
        with pytest.raises(tp.TopologyError, match=told):
            read(given)  # type: ignore[arg-type]
    with pytest.raises(tp.JobGraphError, match=told):
        tp.JobGraph.from_json(given)  # type: ignore[arg-type]


def test_read_opens_a_file_and_names_one_that_it_cannot_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("topo.txt").write_text(TEXT, "utf-8")
    Path("no_ending").write_text(TEXT, "utf-16")
    for given in ("topo.txt", Path("topo.txt"), str(tmp_path / "topo.txt"), Path("no_ending"), TEXT):
        assert tp.read(given) == discovery.read(TEXT)
    assert tp.read is discovery.read
    for given, why in (
        ("none.txt", "No such file"),
        (tmp_path, "Is a directory"),
        (Path("a\0b"), "null byte"),
    ):
        with pytest.raises(tp.TopologyError, match=why):
            tp.read(given)


def test_a_text_of_one_line_is_no_path() -> None:
    for text in (
        "NodeName=n0 Name=gpu File=/dev/nvidia0.conf",
        "Include other.conf",
        '{"file": "topo.json"}',
        "GPU0 GPU1\nsee topo.txt",
    ):
        with pytest.raises(tp.TopologyError) as caught:
            tp.Topology.from_nvidia_smi(text)
        assert "is the name of a file" not in str(caught.value)
