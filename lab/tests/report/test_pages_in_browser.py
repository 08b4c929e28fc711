"""The pages of reports, sweeps and the suite in a browser: keys alone, narrow, light and dark, without an error."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import topoplace as tp
from browser import CHROMIUM, dumped
from topoplace.drawing import tables
from topoplace_lab import suite, sweeps
from topoplace_lab.report.page import write_page
from topoplace_lab.simulate import MapaSlowdown, Result, Workload
from topoplace_lab.suite import page as suite_page
from topoplace_lab.sweeps import Cell, Outcome, Plan, Scenario

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")

WATCH = """
const errors = [];
addEventListener("error", (event) => errors.push(event.message));
document.addEventListener("securitypolicyviolation", (event) => errors.push(event.blockedURI));
"""
TOOLS = """
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const all = (selector) => [...document.querySelectorAll(selector)];
const key = (one, name, more = {}) =>
  one.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true, ...more }));
const filled = () => Object.fromEntries(all("#drawing [data-gpu]")
  .map((one) => [one.dataset.gpu, rectOf(one).style.fill]).filter(([, fill]) => fill));
const marked = () => all("#drawing [data-gpu]").filter((one) => rectOf(one).classList.contains("marked"))
  .map((one) => +one.dataset.gpu);
const heldAt = (time) => run().stays.gpus
  .filter((_, i) => run().stays.start[i] <= time && time < run().stays.end[i]).flat().sort((a, b) => a - b);
const slider = () => document.querySelector("#gantt [role=slider]");
addEventListener("load", async () => {
  let result;
  try { result = await (async () => { TEST })(); } catch (error) { errors.push(String(error)); }
  errors.push(...performance.getEntriesByType("resource").map((one) => one.name));
  document.body.replaceChildren(make("output", { id: "result" }, JSON.stringify({ result: result ?? null, errors })));
});
"""
PAGES = ("report", "sweep", "suite")
DARK = "--blink-settings=preferredColorScheme=0"
Visit = Callable[..., Any]


def simulated(policy: str, topology: tp.Topology, jobs: int) -> Result:
    workload = Workload.mapa(num_jobs=jobs, seed=0)
    return tp.simulate(topology, workload, tp.policies.get(policy), performance=MapaSlowdown(), seed=0)


def outcome(cell: Cell) -> Outcome:
    number = (*tp.policies.names(),).index(cell.policy)
    turnaround = 3600.0 * (1 + number) + 60 * cell.seed
    shares = dict.fromkeys(suite.MEASURES, 10.0 + number) | {"refused": 0.0, "failed_groups": 0.0}
    seconds = dict.fromkeys(("turnaround", "mean_turnaround", "makespan", "mean_wait"), turnaround)
    return {**shares, **seconds, "utilization": 0.5 + number / 100, "rejected": 0.0}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the text of each page, and of a report about a cluster whose GPUs are too many to draw one by one."""
    folder = tmp_path_factory.mktemp("pages")
    machine = tp.machines.get("dgx1-v100")
    runs = [simulated(policy, machine, 60) for policy in ("baseline", "topo-aware", "fcfs")]
    write_page(runs, folder / "report.html")
    large = tp.Topology.cluster(machine, 129)
    write_page([simulated("baseline", large, 40)], folder / "large.html")
    cells = [
        Cell(policy, Scenario("dgx1-v100", "serving", load), seed)
        for load in (0.5, 0.9)
        for seed in (0, 1)
        for policy in ("random-fit", "fcfs", "topo-aware")
    ]
    plan, outcomes = Plan(tuple(cells)), [outcome(cell) for cell in cells]
    sweeps.write_page("plan", sweeps.rows_of(plan, outcomes), folder / "sweep.html")
    some = [i for i, cell in enumerate(cells) if cell.scenario.load == 0.5]
    plan, outcomes = Plan(tuple(cells[i] for i in some)), [outcomes[i] for i in some]
    suite_page.write(plan, outcomes, suite.scores_of(plan, outcomes), folder / "suite.html")
    return {path.stem: path.read_text("utf-8") for path in folder.iterdir()}


@pytest.fixture
def visit(pages: dict[str, str], tmp_path: Path) -> Visit:
    """Open a page, run the script of a test in it, and return what that returns."""

    def visited(name: str, script: str, width: int = 1300, flags: tuple[str, ...] = ()) -> Any:
        text = pages[name].replace("<body>", f"<body><script>{WATCH}</script>", 1)
        path = tmp_path / "page.html"
        path.write_text(f"{text}<script>{TOOLS.replace('TEST', script)}</script>", encoding="utf-8")
        dump = dumped(path.as_uri(), tmp_path, width, flags, height=900)
        found = re.search(r'<output id="result">(.*?)</output>', dump, re.DOTALL)
        assert found, dump[:3000]
        values = json.loads(html.unescape(found[1]))
        assert values["errors"] == []
        return values["result"]

    return visited


@pytest.mark.parametrize("name", [*PAGES, "large"])
def test_a_narrow_window_needs_no_scroll_bar(visit: Visit, name: str) -> None:
    needed, window = visit(name, "return [document.documentElement.scrollWidth, innerWidth];", width=360)
    assert needed <= window


@pytest.mark.parametrize("name", PAGES)
def test_a_page_begins_with_what_follows(visit: Visit, name: str) -> None:
    first, size = visit(
        name, "const p = all('header p')[0]; return [p.textContent, getComputedStyle(p).fontWeight];"
    )
    assert re.search(r"jobs finish|no policy finishes jobs sooner|By the shortest turnaround: ", first)
    assert size == "600"


@pytest.mark.parametrize("name", PAGES)
def test_a_head_sorts_by_keys_and_says_what_is_below(visit: Visit, name: str) -> None:
    found = visit(
        name,
        """
        const head = all(".figures th")[1], column = () => all(".figures")[0].tBodies[0].rows;
        const values = () => [...column()].map((row) => +row.cells[1].dataset.value);
        head.focus();
        const tip = [element("tip").hidden, element("tip").textContent];
        key(head, "Enter"); const up = [values(), head.getAttribute("aria-sort")];
        key(head, " "); const down = [values(), head.getAttribute("aria-sort")];
        key(head, "Escape");
        return { tip, up, down, hidden: element("tip").hidden };
        """,
    )
    hidden, text = found["tip"]
    assert not hidden
    assert re.fullmatch(r"[A-Z].{20,}\.", text)
    values, order = found["up"]
    assert len(set(values)) > 1
    assert (values, order) == (sorted(values), "ascending")
    assert found["down"] == [values[::-1], "descending"]
    assert found["hidden"]


@pytest.mark.parametrize("name", PAGES)
def test_heads_and_names_stay_while_a_table_scrolls(visit: Visit, name: str) -> None:
    found = visit(
        name,
        """
        const figures = all(".figures").pop(), box = figures.parentElement;
        box.style.maxHeight = "60px"; box.style.width = "200px";
        box.scrollTop = 30; box.scrollLeft = 60;
        const at = (one) => one.getBoundingClientRect(), frame = at(box);
        const left = [...figures.tBodies[0].rows].map((row) => at(row.cells[0]).left - frame.left);
        const top = at(figures.tHead.rows[0].cells[1]).top - frame.top;
        return { scrolled: [box.scrollTop, box.scrollLeft], left, top };
        """,
    )
    assert found["scrolled"] == [30, 60]
    assert found["top"] == pytest.approx(0, abs=1)
    assert found["left"] == pytest.approx([0] * len(found["left"]), abs=1)


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("dark", [False, True])
def test_texts_stand_out_from_what_is_behind_them(visit: Visit, name: str, dark: bool) -> None:
    """Contrast of WCAG 2, level AA: at least 4.5 for texts, in both schemes, the numbers of GPUs in use included."""
    found = visit(
        name,
        """
        const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
        const rgb = (colour) => {  // of any notation, such as color-mix
          canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
          return canvas.getImageData(0, 0, 1, 1).data;
        };
        const behind = (one) => {
          for (let it = one; it; it = it.parentElement) {
            const colour = getComputedStyle(it).backgroundColor;
            if (rgb(colour)[3] > 0) return colour;
          }
        };
        const linear = (v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
        const light = (colour) => {
          const [r, g, b] = rgb(colour);
          return 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
        };
        const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
        const least = {};
        const note = (what, value) => { least[what] = Math.min(least[what] ?? 99, value); };
        const style = (one) => getComputedStyle(one);
        for (const one of all("h1,h2,p,label,th,td,button,select,td span,summary")) {
          note(one.tagName, contrast(style(one).color, behind(one)));
        }
        for (const one of all(".chart text")) note("chart", contrast(style(one).fill, behind(one.ownerSVGElement)));
        if (element("drawing")) {
          for (let job = 0; job < 40; job++) {
            for (const one of all("#drawing g[data-gpu]")) {
              rectOf(one).style.fill = `color-mix(in srgb, ${gantt.shade(job)} var(--held), var(--topoplace-free))`;
              note("gpu", contrast(style(one.querySelector("text")).fill, style(rectOf(one)).fill));
            }
          }
        }
        return { least, dark: matchMedia("(prefers-color-scheme: dark)").matches };
        """,
        flags=(DARK,) if dark else (),
    )
    assert found["dark"] is dark
    assert {what: round(least, 2) for what, least in found["least"].items() if least < 4.5} == {}
    assert len(found["least"]) >= 7


def test_a_policy_has_one_colour_in_all_charts(visit: Visit) -> None:
    found = visit(
        "report",
        """
        const dots = all("#policies circle").map((one) => one.getAttribute("fill"));
        const lines = all("#legend line").map((one) => one.getAttribute("stroke"));
        const curves = all("#slowdowns path[fill=none][stroke]").map((one) => one.getAttribute("stroke"));
        return [dots, lines, curves];
        """,
    )
    assert found[0] == found[1] == found[2]
    assert len(set(found[0])) == 3


def test_the_drawing_shows_who_holds_what_at_the_time(visit: Visit) -> None:
    found = visit(
        "report",
        """
        const seen = [];
        const look = () => seen.push([Object.keys(filled()).map(Number), [...new Set(heldAt(chosen.time))]]);
        look(); key(slider(), "Home"); look();
        for (let i = 0; i < 3; i++) { key(slider(), "ArrowRight"); look(); }
        return { seen, texts: [slider().getAttribute("aria-valuetext"), element("now").textContent] };
        """,
    )
    for drawn, held in found["seen"]:
        assert drawn == held
    assert len(found["seen"][1][0]) > 0
    assert found["texts"][1].startswith(f"After {found['texts'][0]}: ")


def test_a_job_is_marked_in_both_drawings(visit: Visit) -> None:
    found = visit(
        "report",
        """
        const gpusOf = (job) => [...new Set(run().stays.gpus.filter((_, i) => run().stays.job[i] === job).flat())];
        key(slider(), "Home"); key(slider(), "ArrowDown");
        const fromGantt = [marked(), gpusOf(chosen.job).sort(), document.querySelector(".gantt-tip").textContent];
        key(slider(), "Escape"); const none = marked();
        const gpu = +Object.keys(filled())[0], drawn = document.querySelector(`#drawing [data-gpu="${gpu}"]`);
        drawn.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
        const words = slider().getAttribute("aria-valuetext");
        const fromDrawing = [marked(), gpusOf(chosen.job).sort(), words, run().jobs.id[chosen.job]];
        const title = drawn.querySelector("title").textContent;
        document.querySelector("#drawing").dispatchEvent(new PointerEvent("pointerleave"));
        return { fromGantt, none, fromDrawing, title, after: marked() };
        """,
    )
    marked, held, tip = found["fromGantt"]
    assert marked == held
    assert re.match(r"job \S+: GPUs? [\d–,]+\nwaits .*, runs .*\nrun time over that alone: [\d.]+ ×$", tip)
    assert found["none"] == found["after"] == []
    marked, held, text, job = found["fromDrawing"]
    assert marked == held
    assert f"job {job}: " in text
    assert found["title"].endswith(f", job {job}")


def test_pointing_at_a_bar_shows_its_job(visit: Visit) -> None:
    found = visit(
        "report",
        """
        const [low, high] = span(), front = slider().querySelectorAll("canvas")[1];
        const place = front.getBoundingClientRect();
        const stays = run().stays, longest = stays.job.map((_, i) => i)
          .sort((a, b) => stays.end[b] - stays.start[b] - stays.end[a] + stays.start[a])[0];
        slider().focus();
        const middle = (stays.start[longest] + stays.end[longest]) / 2;
        const gutter = Math.min(front.clientWidth / 4, 8 + 7 * 5), wide = front.clientWidth - gutter - 6;
        const lane = group().machines.flatMap((one) => one.gpus).indexOf(stays.gpus[longest][0]);
        const x = gutter + ((middle - low) / (high - low)) * wide;
        const at = { clientX: place.left + x, clientY: place.top + lane * 16 + 8 };
        front.dispatchEvent(new PointerEvent("pointerdown", { ...at, buttons: 1, bubbles: true }));
        return [chosen.job, stays.job[longest], chosen.time, middle, document.querySelector(".gantt-tip").hidden];
        """,
    )
    assert found[0] == found[1]
    assert found[2] == pytest.approx(found[3], rel=1e-3)
    assert found[4] is False


def test_a_zoomed_chart_follows_the_time(visit: Visit) -> None:
    found = visit(
        "report",
        """
        const cursor = () => {
          const canvas = slider().querySelectorAll("canvas")[1];
          return canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some((one) => one > 0);
        };
        key(slider(), "Home"); for (let i = 0; i < 4; i++) key(slider(), "+");
        const near = cursor(); shown.gantt.setTime(span()[1]); const far = cursor();
        key(slider(), "0"); return [near, far, cursor()];
        """,
    )
    assert found == [True, True, True]


@pytest.mark.parametrize("steps", [False, True])
def test_the_time_plays_by_the_space_bar(visit: Visit, steps: bool) -> None:
    found = visit(
        "report",
        """
        const before = chosen.time, times = new Set();
        key(document.body, " ");
        const words = [element("play").textContent, element("play").getAttribute("aria-pressed")];
        for (let i = 0; i < 30; i++) { await wait(100); times.add(chosen.time); }
        key(document.body, " ");
        const paused = chosen.time; await wait(1500);
        const now = +slider().getAttribute("aria-valuenow");
        return { words, moved: paused > before, times: times.size, rests: chosen.time === paused, now, paused };
        """,
        flags=("--force-prefers-reduced-motion",) if steps else (),
    )
    assert found["words"] == ["Pause", "true"]
    assert found["moved"]
    assert found["rests"]
    assert found["now"] == found["paused"]
    assert found["times"] <= 4 if steps else found["times"] > 10


def test_playing_ends_and_begins_again(visit: Visit) -> None:
    found = visit(
        "report",
        """
        key(slider(), "End"); const [low, high] = span();
        element("play").click(); await wait(200); const again = chosen.time;
        key(slider(), "End"); await wait(200);
        return { again: (again - low) / (high - low), state: element("play").textContent, end: chosen.time === high };
        """,
    )
    assert found["again"] < 0.2
    assert (found["state"], found["end"]) == ("Play", True)


def test_a_large_cluster_is_painted_gpu_by_gpu(visit: Visit) -> None:
    found = visit(
        "large",
        """
        key(slider(), "Home"); key(slider(), "ArrowRight");
        const canvas = element("machines"), place = canvas.getBoundingClientRect();
        const [gpu, [left, top]] = shown.cells.find(([gpu]) => shown.held.has(gpu));
        const at = { clientX: place.left + left + 1, clientY: place.top + top + 1 };
        canvas.dispatchEvent(new PointerEvent("pointermove", { ...at, bubbles: true }));
        const hidden = [canvas.hidden, element("drawing").hidden];
        return { hidden, cells: shown.cells.length, job: chosen.job, held: shown.held.get(gpu) };
        """,
    )
    assert found["hidden"] == [False, True]
    assert found["cells"] == 129 * 8
    assert found["job"] == found["held"]


def test_durations_are_in_two_units(visit: Visit) -> None:
    """They are those of tables in a terminal."""
    seconds = [0.0, 2e-5, 0.25, 1.0, 37.54, 60.0, 3599.7, 27420.0, 90000.0, 1e7]
    found = visit("report", f"return {seconds}.map(gantt.duration);")
    assert found == [tables.duration(one) for one in seconds]
    assert found[7] == "7 h 37 min"
    assert visit("report", "return [gantt.duration(null), gantt.duration(-90)];") == ["–", "−1 min 30 s"]
