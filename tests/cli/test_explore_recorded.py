"""The page of `topoplace explore` in the documentation: recorded answers are the library's; Chromium shows them."""

from __future__ import annotations

import json
import random
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from browser import CHROMIUM
from distributions import whole
from explore_page import result_of, with_tools
from topoplace.cli.explorer.answer import answer
from topoplace.cli.explorer.state import State

sys.path.insert(0, str(Path(__file__).parents[2] / "tools/site"))

import recorded

NAME = "l40s-8"


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    """Return the page with the answers for one machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorded, "MACHINES", (NAME,))
        patch.setattr(recorded, "SIZES", (2, 4))
        patch.setattr(recorded, "START", {"machine": NAME, "busy": "0", "gpus": "4"})
        return recorded.page()


def shown(files: dict[str, str], folder: Path, script: str, width: int = 1300) -> Any:
    for name, text in files.items():
        (folder / name).write_text(text + with_tools(script) if name == "page.js" else text, "utf-8")
    return result_of(f"file://{folder / 'index.html'}", folder, width)


@whole
def test_recorded_choices_are_those_of_the_library(files: dict[str, str]) -> None:
    held = json.loads(files["answers.js"].removeprefix("const RECORDED = ").removesuffix(";\n"))
    machine = held["machines"][NAME]
    rng = random.Random(3)
    for _ in range(20):
        size, mask = rng.choice((2, 4)), rng.randrange(256)
        rows = {row["policy"]: row for row in answer(recorded.state_of(NAME, size, mask))["rows"]}
        for policy, number in zip(held["policies"], machine["rows"][str(size)][mask], strict=True):
            row = rows[policy]
            if number < 0:
                assert (row["gpus"], row["refusal"]) == (None, machine["refusals"][-1 - number])
            else:
                assert machine["sets"][number][:4] == [
                    row[key] for key in ("gpus", "seconds", "ring", "slowest")
                ]


@whole
def test_the_page_is_small_and_asks_nobody(files: dict[str, str]) -> None:
    assert sum(map(len, files.values())) < 250_000
    text = "".join(files.values())
    assert "server.js" not in text
    assert re.search(r"fetch\(|https?:(?!//www\.w3\.org/)", text) is None


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_a_click_is_answered_without_a_server(files: dict[str, str], tmp_path: Path) -> None:
    found = shown(
        files,
        tmp_path,
        """
        const first = shownRows(); await press(gpu(3)); await press(gpu(5));
        const after = { rows: shownRows(), drawn: states(), used: all("#drawing [data-link] .used").length,
            left: element("left").innerText, command: element("copies").querySelector("pre").textContent };
        await press(gpu(1), { shiftKey: true }); const said = element("problem").innerText;
        const fields = all("input,select,textarea").filter((one) => one.offsetParent).map((one) => one.name);
        return { first, after, said, fields };
        """,
    )
    for rows, busy in ((found["first"], "0"), (found["after"]["rows"], "0,3,5")):
        expected = answer(State(machine=NAME, busy=busy))
        assert [(row["policy"], row["gpus"]) for row in rows] == [
            (row["policy"], " ".join(map(str, row["gpus"])) if row["gpus"] else None)
            for row in expected["rows"]
        ]
    served = answer(State(machine=NAME, busy="0,3,5"))
    drawn = re.findall(r'<g class="(gpu [^"]*)" data-gpu="(\d+)"', served["drawing"]["svg"])
    assert {gpu: classes for classes, gpu in drawn} == found["after"]["drawn"]
    assert found["after"]["used"] == len(
        re.findall(r'data-link=[^\n]*?class="used', served["drawing"]["svg"])
    )
    assert found["after"]["command"] == served["detail"]["command"]
    for one in served["detail"]["left"]:
        assert f"{one['size']} GPU" in found["after"]["left"]
    assert "topoplace explore" in found["said"]
    assert found["fields"] == ["machine", "pattern", "gpus", "busy", "preset", "share"]


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_a_narrow_window_needs_no_scroll_bar(files: dict[str, str], tmp_path: Path) -> None:
    script = (
        "return [document.documentElement.scrollWidth, innerWidth, document.documentElement.clientWidth];"
    )
    needed, window, visible = shown(files, tmp_path, script, width=360)
    assert needed <= min(window, visible)
