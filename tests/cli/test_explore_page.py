"""The page of `topoplace explore` in a browser: clicks, keys, the address; narrow, light and dark, without an error."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import quote

import pytest

import topoplace as tp
from browser import CHROMIUM
from explore_page import result_of, with_tools
from topoplace.cli import gpu_list
from topoplace.cli.explorer import presets
from topoplace.cli.explorer import server as serving
from topoplace.cli.explorer.answer import answer
from topoplace.cli.explorer.server import Server
from topoplace.cli.explorer.state import State

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")

Visit = Callable[..., Any]


@pytest.fixture
def visit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Visit]:
    """Open the page in a state, run the script of a test in it, and return what that returns."""
    scripts: list[str] = []
    own_page = serving._Handler._page

    def page(self: Any, path: str) -> tuple[str, bytes]:
        kind, body = own_page(self, path)
        return kind, body + with_tools(scripts[-1]).encode() if path == "page.js" else body

    monkeypatch.setattr(serving._Handler, "_page", page)
    with Server(start={"machine": "dgx1-v100"}) as server:
        thread = Thread(target=server.serve_forever, args=(0.02,))
        thread.start()

        def visited(
            script: str, width: int = 1300, flags: tuple[str, ...] = (), height: int = 1600, **state: Any
        ) -> Any:
            scripts.append(script)
            hash_ = f"#{quote(json.dumps(state))}" if state else ""
            return result_of(server.address + hash_, tmp_path, width, flags, height)

        yield visited
        server.shutdown()
        thread.join()


def rows_of(**state: Any) -> list[tuple[str, str | None]]:
    """Return the policies in their order with the GPUs that the page should show."""
    return [
        (row["policy"], " ".join(map(str, row["gpus"])) if row["gpus"] else None)
        for row in answer(State.of(state))["rows"]
    ]


def test_rows_are_those_of_the_library_on_every_machine(visit: Visit) -> None:
    """Each built-in machine, twice, with GPUs in use that are random; the address carries the state to the page."""
    rng = random.Random(7)
    states = []
    for name in [*tp.machines.names(), *tp.machines.names()]:
        num_gpus = tp.machines.get(name).num_gpus
        busy = rng.sample(range(num_gpus), rng.randrange(num_gpus - 1))
        states.append({"machine": name, "gpus": "2", "busy": ",".join(map(str, busy))})
    shown = visit(f"""
        const found = [];
        for (const state of {json.dumps(states)}) {{
          location.hash = encodeURIComponent(JSON.stringify(state));
          await wait(50); await settled();
          found.push(shownRows());
        }}
        return found;
    """)
    for state, rows in zip(states, shown, strict=True):
        assert [(row["policy"], row["gpus"]) for row in rows] == rows_of(**state), state
        assert [row["policy"] for row in rows if row["selected"] == "true"] == ["least-time"]


def test_clicks_make_gpus_busy_pinned_and_unhealthy(visit: Visit) -> None:
    found = visit("""
        await press(gpu(0)); await press(gpu(5)); await press(gpu(4)); await press(gpu(4));
        const busy = form.busy.value, rows = shownRows(), drawn = states();
        await press(gpu(1), { shiftKey: true }); await menu(gpu(7));
        return { busy, rows, drawn, pinned: form.pinned.value, unhealthy: form.unhealthy.value, after: states(),
            hash: decodeURIComponent(location.hash.slice(1)) };
    """)
    assert found["busy"] == "0,5"
    expected = rows_of(machine="dgx1-v100", busy="0,5")
    assert [(row["policy"], row["gpus"]) for row in found["rows"]] == expected
    assert {gpu for gpu, classes in found["drawn"].items() if "busy" in classes} == {"0", "5"}
    assert (found["pinned"], found["unhealthy"]) == ("1", "7")
    assert "unhealthy" in found["after"]["7"]
    assert "pinned" in found["after"]["1"]
    kept = json.loads(found["hash"])
    assert (kept["busy"], kept["pinned"], kept["unhealthy"]) == ("0,5", "1", "7")


def test_right_clicks_halve_and_lose_a_link(visit: Visit) -> None:
    found = visit("""
        const link = () => document.querySelector('#drawing [data-link="0-3"]');
        const before = link().dataset.gbPerS;
        await menu(link()); const half = [form.links.value, link().dataset.gbPerS];
        await menu(link()); return { before, half, lost: [form.links.value, link() === null] };
    """)
    assert found == {"before": "50", "half": ["0-3=half", "25"], "lost": ["0-3=lost", True]}


def test_a_right_click_halves_and_loses_the_port_of_a_gpu(visit: Visit) -> None:
    found = visit(
        """
        const link = () => document.querySelector('#drawing [data-link="1-nvswitch0"]');
        const before = link().dataset.gbPerS;
        await menu(link()); const half = [form.links.value, link().dataset.gbPerS, element("problem").hidden];
        await menu(link()); return { before, half, lost: [form.links.value, link() === null] };
        """,
        machine="dgx-a100",
    )
    assert found == {
        "before": "300",
        "half": ["1-nvswitch=half", "150", True],
        "lost": ["1-nvswitch=lost", True],
    }


def test_pins_in_an_opened_machine_are_those_of_the_cluster(visit: Visit) -> None:
    found = visit(
        """
        await press(gpu(2), { shiftKey: true });
        const pinned = form.pinned.value, drawn = document.querySelector("#drawing .pinned").dataset.gpu;
        return { pinned, drawn, rows: shownRows() };
        """,
        machine="dgx1-v100",
        count=40,
        open=3,
    )
    assert (found["pinned"], found["drawn"]) == ("26", "2")
    expected = rows_of(machine="dgx1-v100", count=40, pinned="26")
    assert [(row["policy"], row["gpus"]) for row in found["rows"]] == expected
    placed = [set(row["gpus"].split()) for row in found["rows"] if row["gpus"]]
    assert placed
    assert all("26" in gpus for gpus in placed)


def test_dragging_makes_several_gpus_busy(visit: Visit) -> None:
    found = visit("""
        gpu(0).dispatchEvent(new PointerEvent("pointerdown", { ...at(gpu(0)), button: 0 }));
        for (const number of [1, 2]) window.dispatchEvent(new PointerEvent("pointermove", at(gpu(number))));
        window.dispatchEvent(new PointerEvent("pointerup")); await settled();
        return form.busy.value;
    """)
    assert found == "0-2"


def test_keys_alone_do_everything(visit: Visit) -> None:
    found = visit("""
        document.querySelector("#drawing [tabindex='0']").focus();
        const first = document.activeElement.dataset.gpu;
        await key(" "); const again = document.activeElement.dataset.gpu;
        await key("ArrowRight"); const right = document.activeElement.dataset.gpu;
        await key("u"); await key("ArrowDown"); await key("p");
        const stops = document.querySelectorAll("#drawing [tabindex='0']").length;
        element("rows").focus();
        await key("ArrowDown"); const second = view.policy; await key("End"); const last = view.policy;
        const active = element("rows").getAttribute("aria-activedescendant");
        return { first, again, right, busy: form.busy.value, unhealthy: form.unhealthy.value,
            pinned: form.pinned.value, stops, second, last, active, order: shownRows().map((row) => row.policy) };
    """)
    assert found["again"] == found["first"] == found["busy"]
    assert found["right"] == found["unhealthy"] != found["first"]
    assert found["pinned"]
    assert found["stops"] == 1
    assert found["second"] in found["order"]
    assert found["last"] == found["order"][-1]
    assert found["active"] == f"row-{found['last']}"


def test_walking_along_the_rows_redraws(visit: Visit) -> None:
    found = visit(
        """
        element("rows").focus();
        const first = chosen();
        while (view.policy !== "baseline") await key("ArrowDown");
        return { first, last: chosen(), reason: element("reason").textContent };
        """,
        machine="dgx1-v100",
        busy="0,5",
    )
    rows = dict(rows_of(machine="dgx1-v100", busy="0,5"))
    for shown, policy in ((found["first"], "least-time"), (found["last"], "baseline")):
        assert sorted(shown) == sorted(map(int, (rows[policy] or "").split()))
    assert found["first"] != found["last"]
    assert found["reason"].startswith(f"baseline takes GPUs {rows['baseline']}.")


def test_a_pasted_text_with_a_fault_shows_its_line(visit: Visit) -> None:
    found = visit("""
        await type("text", "\\tGPU0\\tGPU1\\nGPU0\\t X \\tNV4\\nGPU1\\tNV4\\n");
        const wrong = [element("problem").hidden, element("problem").textContent, form.text.className];
        await type("text", "\\tGPU0\\tGPU1\\nGPU0\\t X \\tNV4\\nGPU1\\tNV4\\t X \\n"); await type("gpus", "2");
        return { wrong, then: [element("problem").hidden, Object.keys(states()), form.machine.value] };
    """)
    is_hidden, said, classes = found["wrong"]
    assert not is_hidden
    assert "line 3" in said
    assert "3: GPU1\tNV4" in said
    assert "wrong" in classes
    assert found["then"] == [True, ["0", "1"], ""]


def test_another_machine_opens_in_use_and_presets_change_it(visit: Visit) -> None:
    found = visit("""
        await type("machine", "torus2d-16"); const half = [form.busy.value, view.preset];
        const kept = JSON.parse(decodeURIComponent(location.hash.slice(1)));
        const choose = async (name) => { await type("preset", name); return [form.busy.value, form.unhealthy.value]; };
        const idle = await choose("idle");
        await type("fabric", "leaves of 4, spine 2:1"); const count = form.count.value;
        const drained = await choose("one machine drained, half in use");
        element("clear").click(); await settled();
        return { half, kept, idle, count, drained, cleared: [form.busy.value, form.unhealthy.value] };
    """)
    fields = presets.fields(tp.machines.get("torus2d-16"), "some in use, scattered")
    assert found["half"] == [fields["busy"], ""]
    assert (found["kept"]["busy"], "preset" in found["kept"]) == (fields["busy"], False)
    assert found["idle"] == found["cleared"] == ["", ""]
    assert (found["count"], found["drained"][1]) == ("16", "0-15")


def test_scatter_draws_random_gpus_that_are_healthy(visit: Visit) -> None:
    found = visit(
        """
        const draws = [];
        for (let i = 0; i < 3; i++) { element("scatter").click(); await settled(); draws.push(form.busy.value); }
        await type("share", "25");
        return { draws, quarter: [...read(form.busy.value)], rows: shownRows().length };
        """,
        machine="dgx-h100",
        count=16,
        unhealthy="0-7",
    )
    assert len(set(found["draws"])) > 1
    for text in found["draws"]:
        assert len(gpu_list.parse(text, 128, "busy")) == 60
    assert len(found["quarter"]) == 30
    assert min(found["quarter"]) > 7
    assert found["rows"] == len(tp.policies.names())


@pytest.mark.parametrize(
    "state", [{"machine": "dgx1-v100", "busy": "0,5"}, {"machine": "dgx-h100", "count": 128}]
)
def test_the_choice_is_in_view_with_all_machines(visit: Visit, state: dict[str, Any]) -> None:
    """It stays there beside the policies, however far these are scrolled."""
    found = visit(
        """
        const within = (id) => {
          const box = element(id).getBoundingClientRect();
          return box.top >= 0 && box.bottom <= innerHeight;
        };
        const first = [within("choice"), within("drawing")];
        scrollTo(0, document.body.scrollHeight); await wait(50);
        return { first, then: [within("choice"), within("drawing")], scrolled: scrollY > 0,
            said: element("choice").textContent };
        """,
        height=800,
        **state,
    )
    assert found["first"] == found["then"] == [True, True]
    assert found["scrolled"]
    assert found["said"].startswith("least-time takes GPUs ")


def test_a_tile_opens_its_machine_and_closes(visit: Visit) -> None:
    found = visit(
        """
        const tiles = document.querySelectorAll("#drawing [data-machine]").length;
        await press(document.querySelector('#drawing [data-machine="3"]'));
        const open = [view.open, Object.keys(states()).length];
        await press(gpu(2)); const busy = form.busy.value;
        element("back").click(); await settled();
        return { tiles, open, busy, then: document.querySelectorAll("#drawing [data-machine]").length };
        """,
        machine="dgx-h100",
        count=1250,
    )
    assert found == {"tiles": 1250, "open": [3, 8], "busy": "26", "then": 1250}


@pytest.mark.parametrize(
    "state",
    [
        {"machine": "dgx1-v100", "busy": "0,5"},
        {"machine": "dgx-h100", "count": 40},
        {"machine": "dgx1-v100", "tab": "queue"},
    ],
)
def test_a_narrow_window_needs_no_scroll_bar(visit: Visit, state: dict[str, Any]) -> None:
    script = (
        "return [document.documentElement.scrollWidth, innerWidth, document.documentElement.clientWidth];"
    )
    needed, window, visible = visit(script, width=360, **state)
    assert needed <= min(window, visible)


def test_the_queue_is_linked_to_the_machine_by_keys_alone(visit: Visit) -> None:
    """The tab opens with an arrow key; the chart's keys move the time, and walk through jobs; a GPU marks its job."""
    found = visit(
        """
        element("tab-place").focus(); await key("ArrowRight"); await settled();
        const slider = () => document.querySelector("#chart [role=slider]");
        const colours = () => all("#held [data-gpu]").map((one) => one.querySelector("rect").style.fill !== "");
        const held = () => queue.run.stays.job.flatMap((_, i) =>
          queue.run.stays.start[i] <= queue.time && queue.time < queue.run.stays.end[i] ? queue.run.stays.gpus[i] : []);
        const said = [element("concluded").textContent, element("tab-queue").getAttribute("aria-selected")];
        const seen = [];
        slider().focus(); await key("Home");
        for (let i = 0; i < 30; i++) {
          await key("ArrowRight");
          seen.push([+slider().ariaValueNow, queue.time, colours(), held().sort((a, b) => a - b)]);
        }
        await key("ArrowDown");
        const marked = all("#held .marked").map((one) => +one.dataset.gpu);
        const job = slider().getAttribute("aria-valuetext");
        document.querySelector("#held [tabindex='0']").focus();
        const first = document.activeElement.dataset.gpu;
        await key("ArrowDown"); const moved = document.activeElement;
        const together = all("#held .marked").map((one) => +one.dataset.gpu);
        const now = queue.holder.get(+moved.dataset.gpu);
        const same = [...queue.holder].filter(([, one]) => one === now).map(([gpu]) => gpu);
        return { said, seen, marked, job, first, moved: moved.dataset.gpu, together,
            same: now === undefined ? [] : same, hash: decodeURIComponent(location.hash.slice(1)) };
        """,
        machine="dgx1-v100",
    )
    assert "than under baseline" in found["said"][0]
    assert found["said"][1] == "true"
    times = [now for now, *_ in found["seen"]]
    assert times == sorted(set(times))
    for now, drawn, colours, held in found["seen"]:
        assert now == drawn
        assert [gpu for gpu, has in enumerate(colours) if has] == held
    assert found["marked"]
    assert "job " in found["job"]
    assert found["moved"] != found["first"]
    assert sorted(found["together"]) == sorted(found["same"])
    assert json.loads(found["hash"])["tab"] == "queue"


def test_the_keyboard_reaches_all_that_can_be_used(visit: Visit) -> None:
    """Each field and button of both tabs takes the focus; of tabs, GPUs and policies, one takes it for all."""
    found = visit(
        """
        for (const one of all("details")) one.open = true;
        const reach = () => all("input,select,textarea,button,[role=listbox],[role=slider],svg")
          .filter((one) => one.getClientRects().length && !one.disabled && one.type !== "file");
        const missed = (things) => things.filter((one) => {
          const inside = one.matches("svg") ? one.querySelector("[tabindex='0']") : one;
          inside?.focus();
          return document.activeElement !== inside;
        }).map((one) => one.outerHTML.slice(0, 80));
        const first = reach(), place = [first.length, missed(first)];
        openTab("queue"); await changed(); await settled();
        const second = reach();
        return { place, queue: [second.length, missed(second)] };
        """
    )
    for count, missed in found.values():
        assert count > 12
        assert missed == []


def test_play_runs_the_time_and_stops(visit: Visit) -> None:
    found = visit(
        """
        const before = queue.time; element("play").click(); await wait(700);
        const after = queue.time, label = element("play").textContent; element("play").click();
        const stopped = queue.time; await wait(200);
        return { before, after, label, stopped, later: queue.time, again: element("play").textContent };
        """,
        machine="dgx1-v100",
        tab="queue",
    )
    assert found["before"] < found["after"]
    assert found["stopped"] == found["later"]
    assert (found["label"], found["again"]) == ("Pause", "Play")


def test_a_queue_on_many_machines_shades_tiles(visit: Visit) -> None:
    found = visit(
        """
        const shares = all("#held [data-machine]").map((one) => one.getAttribute("class").replace(/\\D/g, ""));
        return { shares, used: queue.holder.size, wrong: element("wrong").textContent };
        """,
        machine="dgx-h100",
        count=200,
        tab="queue",
    )
    assert found["wrong"] == ""
    assert len(found["shares"]) == 200
    assert (found["used"] > 0) == any(share != "0" for share in found["shares"])


@pytest.mark.parametrize("dark", [False, True])
def test_texts_stand_out_from_what_is_behind_them(visit: Visit, dark: bool) -> None:
    """Contrast of WCAG 2, level AA: at least 4.5 for texts, in both schemes."""
    flags = ("--blink-settings=preferredColorScheme=0",) if dark else ()
    found = visit(
        """
        const TEXTS = "h1,[role=tab],h2,p,label,legend,th,td,pre,button,input,#rows span,#rows b,#heads span";
        const rgb = (one, what) => getComputedStyle(one)[what].match(/[\\d.]+/g).map(Number);
        const behind = (one) => {
          const bar = one.matches("b") && one.parentElement.querySelector("i");
          for (let it = bar || one; it; it = it.parentElement) {
            const colour = rgb(it, "backgroundColor");
            if (colour.length < 4 || colour[3] > 0) return colour;
          }
        };
        const linear = (v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
        const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
        const least = {};
        const look = () => {
          for (const one of all(TEXTS).filter((one) => one.offsetParent)) {
            const [a, b] = [light(rgb(one, "color")), light(behind(one))];
            const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
            least[one.tagName] = Math.min(least[one.tagName] ?? 99, contrast);
          }
        };
        await type("busy", "99"); look(); await type("busy", "0,5"); look();
        openTab("queue"); await changed(); await settled(); look();
        return { least, dark: matchMedia("(prefers-color-scheme: dark)").matches };
        """,
        flags=flags,
    )
    assert found["dark"] is dark
    assert {tag: round(contrast, 2) for tag, contrast in found["least"].items() if contrast < 4.5} == {}
    assert len(found["least"]) >= 10


@pytest.mark.parametrize("is_still", [False, True])
def test_rings_move_unless_the_reader_wants_no_motion(visit: Visit, is_still: bool) -> None:
    found = visit(
        """
        const line = document.querySelector('#drawing [data-link="1-7"] .used');
        return { animation: getComputedStyle(line).animationName, classes: line.getAttribute("class"),
            direction: getComputedStyle(line).animationDirection, reason: element("reason").textContent };
        """,
        flags=("--force-prefers-reduced-motion",) if is_still else (),
        machine="dgx1-v100",
        gpus="4",
        busy="0,3,5,6",
    )
    assert found["animation"] == ("none" if is_still else "flow")
    assert found["classes"] == "used backward slowest"
    assert found["direction"] == ("normal" if is_still else "reverse")
    assert "Their slowest links are 1-7, 2-4: PCIe, between sockets, 12 GB/s." in found["reason"]


def test_a_saved_picture_is_a_whole_svg(visit: Visit) -> None:
    text = visit("""
        let saved; window.Blob = class { constructor(parts) { saved = parts.join(""); } };
        URL.createObjectURL = () => "data:,"; HTMLAnchorElement.prototype.click = () => {};
        element("save").click(); return saved;
    """)
    assert text.startswith("<svg")
    assert "--topoplace-chosen" in text
    assert text.count("data-gpu=") == 8


def test_a_machine_with_a_hostile_name_is_only_shown(visit: Visit) -> None:
    name = "</script><img src=x onerror=document.title='taken'>"
    text = tp.Topology.from_links(2, [(0, 1, tp.Link(tp.LinkKind.NVLINK3, 1, 25.0))], name=name).to_json()
    found = visit(
        "return [document.title, element('about').textContent, document.images.length];", text=text, gpus="2"
    )
    assert found[0] == "topoplace explore"
    assert name in found[1]
    assert found[2] == 0


def test_an_address_without_a_state_shows_the_first_machine(visit: Visit) -> None:
    hashes = [
        "",
        "#",
        "#%7B",
        "#[]",
        "#%22x%22",
        "#%ff",
        "#{%22busy%22:3}",
        '#{"nothing":1}',
        '#{"open":"x"}',
    ]
    found = visit(f"""
        const found = [];
        for (const hash of {json.dumps(hashes)}) {{
          location.hash = hash; await wait(50); await settled();
          found.push([form.machine.value, shownRows().length, element("problem").hidden]);
        }}
        return found;
    """)
    assert found == [["dgx1-v100", len(tp.policies.names()), True]] * len(hashes)
