"""Drawings as SVG: an element for each GPU and each link, true legends, nothing outside, any name, always the same."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from xml.etree import ElementTree

import pytest

import topoplace as tp
from topoplace import drawing
from topoplace.drawing import style

Element = ElementTree.Element
_H100 = tp.machines.get("dgx-h100")
_INDIRECT = {
    tp.LinkKind.PCIE,
    tp.LinkKind.PCIE_BRIDGES,
    tp.LinkKind.HOST,
    tp.LinkKind.HOST_BRIDGES,
    tp.LinkKind.SYSTEM,
    tp.LinkKind.NVSWITCH,
}
_STATE_WORDS = re.compile(
    "free|busy|chosen|unhealthy|degraded|of-job|job-.*|share-.*|kind-.*|speed-.*|used|backward|slowest"
)


def leaf_spine() -> tp.Topology:
    fabric = tp.Fabric.regular(64, {"leaf": 8, "spine": 64}).with_level("leaf", gb_per_s=50.0, rail=True)
    return tp.Topology.cluster(
        _H100, fabric=fabric.with_level("spine", gb_per_s=50.0, oversubscription=2.0), count=64
    )


def large(count: int) -> tp.Topology:
    fabric = tp.Fabric.regular(count, {"rack": 4, "leaf": 32, "spine": 512})
    return tp.Topology.cluster(_H100, fabric=fabric, count=count)


DRAWN = {
    **{name: tp.machines.get(name) for name in tp.machines.names()},
    "8 racks": tp.Topology.cluster(tp.machines.get("gb200-nvl72"), 8),
    "64 machines": leaf_spine(),
    "flat": tp.Topology.cluster(tp.machines.get("dgx1-v100"), 5),
    "sparse": tp.Topology.from_links(9, [(0, 8, 30.0), (2, 3, 700.0)], sockets=[0, 0, 1, 1, 2, 2, 3, 3, 4]),
    "one": tp.Topology.from_links(1, []),
    "no path": tp.Topology.from_links(3, [], 0.0),
    "two machines": tp.Topology.from_links(
        4, [(0, 1, 50.0)], machines=["a", "a", "b", "b"], sockets=[0, 1, 0, None]
    ),
    "complete": tp.Topology.from_links(
        40, [(u, v, 9.0 + u) for u, v in itertools.combinations(range(40), 2)]
    ),
    "torus 5 x 4 x 3": tp.machines.torus((5, 4, 3)),
    "grid 2 x 7": tp.machines.torus((2, 7), wrap=False),
    "torus 16 x 16 x 2": tp.machines.torus((16, 16, 2)),
}
TILED = {"1,500 machines": large(1500), "12,500 machines": large(12_500)}


def parsed(text: str) -> Element:
    root = ElementTree.fromstring(text)
    for element in root.iter():
        element.tag = element.tag.removeprefix("{http://www.w3.org/2000/svg}")
    return root


def drawn(topology: tp.Topology, **options: object) -> Element:
    return parsed(drawing.svg(topology, **options))  # type: ignore[arg-type]


def having(root: Element, attribute: str) -> dict[str, Element]:
    """Return the elements with an attribute by its value, which none repeats."""
    found = [element for element in root.iter() if attribute in element.attrib]
    by_value = {element.attrib[attribute]: element for element in found}
    assert len(by_value) == len(found)
    return by_value


def words(element: Element) -> set[str]:
    """Return the classes of an element and of all in it."""
    return {word for one in element.iter() for word in one.get("class", "").split()}


def states(topology: tp.Topology) -> dict[str, object]:
    """Return arguments that put GPUs of a topology into every state."""
    n = topology.num_gpus
    return {
        "busy": {"first": range(0, n, 3), "second": [1] if n > 1 else []},
        "chosen": range(2, min(n, 6)),
        "degraded": [n - 1],
        "job": tp.JobGraph.clique(min(n, 6) - 2) if n > 3 else None,
    }


@pytest.mark.parametrize("name", DRAWN)
def test_each_gpu_is_one_element_with_its_state(name: str) -> None:
    topology = DRAWN[name]
    n = topology.num_gpus
    sick = topology.with_unhealthy([n - 1]) if n > 8 else topology
    gpus = having(drawn(sick, **states(topology)), "data-gpu")
    assert set(map(int, gpus)) == set(range(n))
    for number, element in gpus.items():
        gpu, own = int(number), words(element)
        expected = "busy" if gpu % 3 == 0 or gpu == 1 else "free"
        expected = "unhealthy" if n > 8 and gpu == n - 1 else expected
        expected = "chosen" if 2 <= gpu < 6 else expected
        assert own & {"free", "busy", "chosen", "unhealthy"} == {expected}
        assert ("degraded" in own) == (gpu == n - 1)
        if expected == "busy":
            assert ("job-2" in own) == (gpu == 1)


def direct(topology: tp.Topology) -> dict[str, float]:
    """Return GB/s of each link between two GPUs that is neither through a switch nor over the host."""
    return {f"{u}-{v}": link.gb_per_s for u, v, link in topology.links if link.kind not in _INDIRECT}


@pytest.mark.parametrize("name", tp.machines.names())
def test_each_link_of_a_machine_is_one_line_with_the_class_of_its_speed(name: str) -> None:
    topology = tp.machines.get(name)
    lines = having(drawn(topology), "data-link")
    pairs = {key: line for key, line in lines.items() if re.fullmatch(r"\d+-\d+", key)}
    assert {key: float(line.attrib["data-gb-per-s"]) for key, line in pairs.items()} == direct(topology)
    into = {key: line for key, line in lines.items() if "nvswitch" in key or "nvlink_domain" in key}
    expected = {
        gpu: max(topology.bandwidth(gpu, other) for other in range(topology.num_gpus))
        for gpu in range(topology.num_gpus)
        if any(
            topology.link(gpu, v).kind is tp.LinkKind.NVSWITCH for v in range(topology.num_gpus) if v != gpu
        )
    }
    speeds = {int(key.partition("-")[0]): line for key, line in into.items() if key[0].isdigit()}
    assert {gpu: float(line.attrib["data-gb-per-s"]) for gpu, line in speeds.items()} == expected
    for line in lines.values():
        gb_per_s = float(line.attrib["data-gb-per-s"])
        nearest = min(range(7), key=lambda i: abs(math.log2(gb_per_s / (12.5 * 2**i))))
        assert f"speed-{nearest}" in words(line)
        assert sum(one.tag == "path" for one in line.iter()) == 1


@pytest.mark.parametrize("name", [*DRAWN, *TILED])
def test_the_legend_explains_what_is_drawn_and_nothing_else(name: str) -> None:
    topology = {**DRAWN, **TILED}[name]
    root = drawn(topology, **states(topology))
    legend = having(root, "data-legend")
    explained = {word for classes in legend for word in classes.split() if _STATE_WORDS.fullmatch(word)}
    assert {
        word for key in legend.values() for word in words(key) if _STATE_WORDS.fullmatch(word)
    } == explained
    keys = {id(one) for key in legend.values() for one in key.iter()}
    seen = {
        word
        for one in root.iter()
        if id(one) not in keys
        for word in one.get("class", "").split()
        if _STATE_WORDS.fullmatch(word)
    }
    assert explained - {"free"} == seen - {"free"}
    lines = [line for line in root.iter() if "data-link" in line.attrib]
    for key, line in itertools.product(legend, lines):
        if key == line.get("class"):
            stated = {float(text) for text in re.findall(r"[\d.]+", "".join(legend[key].itertext()))}
            assert min(stated) <= float(line.attrib["data-gb-per-s"]) <= max(stated)


def boxes(root: Element) -> Iterator[tuple[float, float, float, float]]:
    """Yield left, top, right and lower edge of every shape; a text is as wide as in a usual font."""
    for one in root.iter():
        if one.tag == "rect":
            x, y, width, height = (float(one.get(key, "0")) for key in ("x", "y", "width", "height"))
            yield x, y, x + width, y + height
        elif one.tag == "path" and one.get("class") != "hatch":
            points = [float(number) for number in re.findall(r"-?[\d.]+", one.attrib["d"])]
            yield min(points[::2]), min(points[1::2]), max(points[::2]), max(points[1::2])
        elif one.tag == "text":
            size, x, y = (float(one.attrib[key]) for key in ("font-size", "x", "y"))
            width = 0.55 * size * len(one.text or "")
            left = x - {"start": 0.0, "middle": width / 2, "end": width}[one.attrib["text-anchor"]]
            yield left, y - size, left + width, y + 0.25 * size


@pytest.mark.parametrize("width", [320, 800, 1500])
@pytest.mark.parametrize("name", [*DRAWN, *TILED])
def test_nothing_is_outside_the_picture(name: str, width: int) -> None:
    topology = {**DRAWN, **TILED}[name]
    root = drawn(topology, width=width, **states(topology))
    _, _, right, bottom = map(float, root.attrib["viewBox"].split())
    is_rack = any(level.name == "nvlink_domain" for level in topology.levels)
    assert right == (max(800, width) if is_rack else width)
    for left, top, end, low in boxes(root):
        assert left >= 0
        assert top >= 0
        assert end <= right
        assert low <= bottom


@pytest.mark.parametrize("name", [*DRAWN, *TILED])
def test_an_id_is_used_once_and_equal_arguments_give_equal_text(name: str) -> None:
    topology = {**DRAWN, **TILED}[name]
    text = drawing.svg(topology, **states(topology))  # type: ignore[arg-type]
    assert max(Counter(re.findall(r'\bid="([^"]*)"', text)).values(), default=1) == 1
    assert text == drawing.svg(topology, **states(topology))  # type: ignore[arg-type]


def test_gpus_of_a_machine_do_not_overlap_and_no_line_passes_through_one() -> None:
    for name in tp.machines.names():
        root = drawn(tp.machines.get(name))
        rects = {
            number: next(one for one in element.iter() if one.tag == "rect")
            for number, element in having(root, "data-gpu").items()
        }
        places = {
            number: tuple(float(one.attrib[key]) for key in ("x", "y", "width", "height"))
            for number, one in rects.items()
        }
        for (ax, ay, aw, ah), (bx, by, bw, bh) in itertools.combinations(places.values(), 2):
            assert ax + aw <= bx or bx + bw <= ax or ay + ah <= by or by + bh <= ay
        for key, line in having(root, "data-link").items():
            path = next(one for one in line.iter() if one.tag == "path").attrib["d"]
            if "Q" in path:
                continue
            x1, y1, x2, y2 = map(float, re.findall(r"-?[\d.]+", path))
            for number, (x, y, width, height) in places.items():
                for i in range(41) if number not in key.split("-") else ():
                    at = x1 + (x2 - x1) * i / 40, y1 + (y2 - y1) * i / 40
                    assert not (x < at[0] < x + width and y < at[1] < y + height), (name, key, number)


@pytest.mark.parametrize("name", TILED)
def test_each_machine_of_a_large_cluster_is_a_tile_with_its_share(name: str) -> None:
    topology = TILED[name]
    busy = [8 * machine + i for machine in range(topology.num_machines) for i in range(machine % 9)]
    text = drawing.svg(topology, busy=busy)
    assert len(text) < 3_000_000
    tiles = having(parsed(text), "data-machine")
    assert len(tiles) == topology.num_machines
    assert all(f"share-{int(machine) % 9}" in words(tile) for machine, tile in tiles.items())


def test_the_jobs_of_a_tile_are_named_and_the_largest_gives_the_colour() -> None:
    topology = TILED["1,500 machines"]
    tiles = having(drawn(topology, busy={"small": [0, 1], "large": range(2, 100)}), "data-machine")
    assert {"share-8", "job-1"} <= words(tiles["0"])
    assert tiles["0"].findtext("title") == "machine0000: 8 of 8 GPUs in use by small, large"
    assert words(tiles["20"]) == {"tile", "share-0"}


def test_domains_with_free_gpus_but_no_idle_machine_are_hatched() -> None:
    topology = leaf_spine()
    one_each = [8 * machine for machine in range(8)]
    domains = having(drawn(topology, busy=[*one_each, 8 * 9]), "data-domain")
    assert {name for name, domain in domains.items() if "fragmented" in words(domain)} == {"leaf0"}
    full = range(7, 64)
    domains = having(drawn(topology, busy=full), "data-domain")
    assert not any("fragmented" in words(domain) for domain in domains.values())


def test_adapters_sockets_and_switches_are_drawn() -> None:
    root = drawn(_H100)
    assert len(having(root, "data-adapter")) == 8
    assert set(having(root, "data-socket")) == {"socket 0", "socket 1"}
    assert "4 NVSwitches" in "".join(having(root, "data-switch")["nvswitch0"].itertext())
    trunk = having(drawn(tp.machines.get("dgx2")), "data-link")["nvswitch0-nvswitch1"]
    assert float(trunk.attrib["data-gb-per-s"]) == 1200.0


def test_a_torus_is_recognised_by_its_links_alone() -> None:
    names = [text for text in drawn(DRAWN["torus 5 x 4 x 3"]).itertext() if text.startswith("plane ")]
    assert names == [f"plane {i}" for i in range(5)]
    torus = tp.machines.torus((3, 4))
    shuffled = tp.Topology.from_links(12, [((u * 5) % 12, (v * 5) % 12, link) for u, v, link in torus.links])
    assert len(having(drawn(shuffled), "data-gpu")) == 12


HOSTILE = (
    "<script>alert(1)</script>",
    "\"'><svg onload=x>",
    "x" * 10_000,
    "🦄" * 50,
    "\x00\x1b[31m\uffff",
    "]]>&amp;",
    "机器" * 99,
)


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_no_name_breaks_the_picture(name: str) -> None:
    machine = tp.Topology.from_links(
        2,
        [(0, 1, 50.0)],
        name=name,
        model=name,
        machines=[name] * 2,
        names=[name, "b"],
        nics=[tp.Nic(name, ("PIX", "SYS"))],
    )
    fabric = tp.Fabric((name, "b"), (tp.Level(name, (name, name)),))
    for topology in (machine, tp.Topology.cluster(replace(_H100, name=name), fabric=fabric, count=2)):
        text = drawing.svg(topology, busy={name: [0]})
        root = parsed(text)
        assert not [one for one in root.iter() if one.tag in ("script", "svg") and one is not root]
        assert all(not key.startswith("on") for one in root.iter() for key in one.attrib)
        _, _, right, _ = map(float, root.attrib["viewBox"].split())
        assert all(end <= right for *_, end, _ in boxes(root))
        text.encode()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"busy": [8]}, r"busy\[0\] = 8 is not in 0\.\.7"),
        ({"busy": {"a": [-1]}}, r"busy\['a'\]\[0\] = -1"),
        ({"chosen": [1, 1]}, r"chosen = \[1, 1\] lists a GPU twice"),
        ({"degraded": ["x"]}, r"degraded\[0\] = 'x'"),
        ({"width": 10}, "width = 10"),
        ({"theme": "blue"}, "theme = 'blue' is not one of auto, light, dark"),
    ],
)
def test_wrong_arguments_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(tp.TopologyError, match=message):
        drawn(tp.machines.get("dgx1-v100"), **options)


def test_every_colour_is_a_property_with_a_value_for_light_and_dark() -> None:
    text = drawing.svg(_H100, theme="dark")
    assert 'class="topoplace dark"' in text
    sheet = style.css()
    used = set(re.findall(r"var\(--topoplace-([\w-]+)\)", sheet))
    for head in (".topoplace{", ".topoplace:not(.light){", ".topoplace.dark{"):
        block = sheet[sheet.index(head) :].partition("}")[0]
        assert used <= set(re.findall(r"--topoplace-([\w-]+):", block))


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_texts_can_be_read_on_what_is_behind_them(scheme: int) -> None:
    """The contrast is at least 4.5, as WCAG 2.2 asks of texts."""
    pairs = [("ink", ground) for ground in ("page", "frame", "free", "busy", "chosen", "unhealthy", "switch")]
    for text, ground in [*pairs, ("faint", "page"), ("faint", "frame")]:
        light, dark = sorted(
            (luminance(style.PALETTE[name][scheme]) for name in (text, ground)), reverse=True
        )
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (text, ground)


def rgb(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_faster_links_stand_out_more_and_only_what_is_broken_is_red(scheme: int) -> None:
    def contrast(name: str) -> float:
        return abs(luminance(style.PALETTE[name][scheme]) - luminance(style.PALETTE["page"][scheme]))

    speeds = [f"speed-{i}" for i in range(1, style.SPEEDS)]
    assert sorted(speeds, key=contrast) == speeds
    reds = {
        name for name, pair in style.PALETTE.items() if (own := rgb(pair[scheme]))[0] > 1.5 * max(own[1:])
    }
    assert reds <= {"alarm", "unhealthy"}
    assert "alarm" in reds


@pytest.mark.parametrize("busy", [[0, 5], {"a": [0], "b": [5]}], ids=["unknown jobs", "jobs"])
def test_gpus_in_use_are_hatched_and_so_is_their_sample(busy: drawing.states.Busy) -> None:
    root = drawn(tp.machines.get("dgx1-v100"), busy=busy, chosen=[2, 3])
    hatched = {one.get("data-gpu") or one.get("data-legend") for one in root.iter() if "taken" in words(one)}
    used = {one.get("data-legend") for one in root.iter() if "busy" in one.get("data-legend", "")}
    assert hatched - {None} == {"0", "5"} | used
    assert used
    assert 'id="topoplace-strokes"' in drawing.svg(tp.machines.get("dgx1-v100"), busy=busy)
    assert "topoplace-strokes" not in drawing.svg(tp.machines.get("dgx1-v100")).partition("</style>")[2]


def test_notebooks_show_topologies_and_placements() -> None:
    topology = tp.machines.get("dgx1-v100")
    assert topology._repr_svg_() == drawing.svg(topology)
    job = tp.JobGraph.ring(3)
    placed = tp.Placement((4, 2, 0), topology=topology, job=job)
    assert placed._repr_svg_() == drawing.svg(topology, busy=None, chosen=(4, 2, 0), job=job)


@pytest.mark.parametrize("machines", [1, 2, 200])
def test_what_is_not_known_to_be_free_is_not_called_free(machines: int) -> None:
    """A placement does not say who has the other GPUs, on one machine, on two, and as tiles."""
    machine = tp.machines.get("dgx-h100")
    topology = tp.Topology.cluster(machine, machines) if machines > 1 else machine
    picture = tp.Placement((2, 3), topology=topology)._repr_svg_()
    body = picture.partition("</style>")[2]
    assert not re.search(r'class="[^"]*\b(free|share-[0-9])\b|free GPUs|GPUs in use|, free<', body)
    assert "free or in use" in body


def test_notebooks_show_who_holds_what_on_a_cluster() -> None:
    cluster = tp.Cluster(tp.machines.get("dgx1-v100").with_unhealthy([7]))
    cluster.allocate("training", [0, 1])
    cluster.allocate("notebook", [4])
    cluster.drain(1)
    cluster.drain(5)
    cluster.hold([6], reason="spare")
    picture = cluster._repr_svg_()
    titles = re.findall(r'data-gpu="(\d+)"[^>]*><title>[^<]*, (.*?)</title>', picture)
    state_of = {int(gpu): title for gpu, title in titles}
    assert state_of == {
        **dict.fromkeys((0, 1), "in use training"),
        **dict.fromkeys((2, 3), "free"),
        4: "in use notebook",
        **dict.fromkeys((5, 6, 7), "out of service"),
    }


def test_a_gpu_without_a_link_to_one_switch_is_seen() -> None:
    worn = replace(_H100, component_links=[entry for entry in _H100.component_links if entry[:2] != (3, 8)])
    lines = having(drawn(worn), "data-link")
    speeds = {key: float(line.attrib["data-gb-per-s"]) for key, line in lines.items() if "nvswitch" in key}
    others = {gpu: {f"{gpu}-nvswitch0": 125.0, f"{gpu}-nvswitch1": 325.0} for gpu in range(8) if gpu != 3}
    assert speeds == {"3-nvswitch1": 325.0} | {
        key: speed for own in others.values() for key, speed in own.items()
    }


def test_links_between_switches_are_those_of_their_groups() -> None:
    dgx2 = tp.machines.get("dgx2")
    worn = replace(dgx2, component_links=[e for e in dgx2.component_links if e[:2] != (3, 16)])
    lines = having(drawn(worn), "data-link")
    trunk = {
        key: float(one.attrib["data-gb-per-s"]) for key, one in lines.items() if key.startswith("nvswitch")
    }
    assert trunk == {"nvswitch0-nvswitch2": 200.0, "nvswitch1-nvswitch2": 1000.0}


def test_a_narrow_rack_keeps_its_switches_between_two_rows() -> None:
    rack = tp.machines.get("gb200-nvl72")
    assert drawing.svg(rack, width=360) == drawing.svg(rack)
