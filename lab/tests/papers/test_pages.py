"""The pages of papers are made from the records, and say what the records say."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")

REPOSITORY = Path(__file__).parents[3]
sys.path.insert(0, str(REPOSITORY / "tools"))

import write_papers  # noqa: E402
from paper_pages import page, record  # noqa: E402
from paper_pages.coverage import Paper, Part  # noqa: E402
from paper_pages.interval_plot import against_paper  # noqa: E402
from paper_pages.record import Record, RecordRow  # noqa: E402

from topoplace.drawing import figures  # noqa: E402
from topoplace_lab.papers.claims import IDENTITY, RESULTS, ClaimedQuantity, PaperClaim  # noqa: E402
from topoplace_lab.papers.rules import near, ordered  # noqa: E402
from topoplace_lab.report import looks  # noqa: E402
from topoplace_lab.simulate.samples import Sample  # noqa: E402


def claims() -> list[PaperClaim]:
    """Return a row of each kind that a page treats differently."""
    speedups = ClaimedQuantity("1.2", "speedup | of_two", "1.5, 2", series=("fcfs", "best-fit"))
    return [
        speedups.judged(
            "1.4 [1.3, 1.5], 4",
            near(1.5, 2.0, tolerance=0.1),
            Sample.of([1.3, 1.4, 1.5]),
            4.0,
            note="a `b_c`",
        ),
        ClaimedQuantity("1.20", "order of Fig. 2", "falls").judged(
            "2 < 3", ordered("if below", (0.0, 3.0)), 2.0
        ),
        ClaimedQuantity("2", "time of a decision", "ms", machine=True).judged(
            "1", near(2.0, tolerance=3.0), 1.0
        ),
        ClaimedQuantity("3", "constant", "5").identity("5", near(5.0, tolerance=1.0), 5.0),
        ClaimedQuantity("4", "nothing", "0").not_comparable("1", "none"),
    ]


PARTS = (Part("Table 1", "speeds", ("machines",), ("1.2",)), Part("Fig. 2", "order", (), ("1.20",)))
PAPER = Paper("mine", "A paper", "It asks. We get {1.2}.", PARTS)


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = Record.of(claims(), claims()[:1], 1.26)
    made.write(tmp_path / "mine.json")
    assert record.read(tmp_path / "mine.json") == made
    assert made.cpu_minutes == 1.3
    speedup = made.rows[0].numbers
    assert [one.series for one in speedup] == ["fcfs", "best-fit"]
    assert speedup[0].ours[0] == pytest.approx(1.4)
    assert speedup[0].ours[1] < 1.3 < 1.5 < speedup[0].ours[2]
    assert speedup[1].reproduced == (1.9, 2.1)
    assert made.rows[1].numbers == ()  # the paper has no number


def test_a_quick_run_is_called_so(tmp_path: Path) -> None:
    Record.of_quick(claims()).write(tmp_path / "mine.json")
    quick = record.read(tmp_path / "mine.json")
    assert quick.rows == quick.quick == tuple(map(RecordRow.of, claims()))
    assert "**The rows are those of a quick run**" in page.page(PAPER, quick, [])
    assert "quick run |" in page.index([PAPER], {"mine": quick})
    full = Record.of(claims(), claims(), 1.0)
    assert "quick run**" not in page.page(PAPER, full, [])
    assert "| 1 |" in page.index([PAPER], {"mine": full})


def test_what_has_changed_is_named() -> None:
    kept = list(map(RecordRow.of, claims()))
    assert record.differences(kept, claims()) == []
    other = claims()
    other[1] = ClaimedQuantity("1.20", "order of Fig. 2", "falls").not_comparable("2", "none")
    other[2] = ClaimedQuantity("2", "time of a decision", "ms", machine=True).not_comparable(
        "7", "another machine"
    )
    other[4] = ClaimedQuantity("5", "new", "0").not_comparable("1", "none")
    found = record.differences(kept, other)
    assert [line.partition(":")[0] for line in found] == ["1.20", "4", "5"]


def test_a_page_says_what_the_rows_say() -> None:
    text = page.page(PAPER, Record.of(claims(), (), 1.0), ["mine.svg"])
    assert "It asks. We get 1.4, 4." in text
    assert "**3 results: 0 reproduced, 1 order only, 1 differs, 1 not comparable.**" in text
    assert "Counted apart: 1 identity, 1 of this machine." in text
    assert "| 1.2 | speedup \\| of\\_two (Table 1) | 1.5, 2 | 1.4 [1.3, 1.5], 4 | differs |" in text
    assert "a `b_c` |" in text
    assert (
        "| 1.20 | order of Fig. 2 | falls | 2 &lt; 3 | order only |" in text
    )  # neither Table 1's, nor twice
    assert "reproduced † |" in text
    with pytest.raises(KeyError, match="no row"):
        page.page(Paper("mine", "A paper", "{no row}", PARTS), Record.of(claims(), (), 1.0), [])


def test_pictures_show_results_with_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = page.compared(Record.of(claims(), (), 1.0).rows)
    assert [one.label for one in numbers] == ["1.2 fcfs", "1.2 best-fit"]
    drawn: list[Any] = []
    with monkeypatch.context() as patched:
        patched.setattr(figures, "save", lambda figure, path: drawn.append(figure))
        against_paper(numbers, tmp_path / "none.svg")
    (axes,) = drawn[0].axes
    dots = [line for line in axes.lines if line.get_marker() in "o<>" and len(line.get_xdata()) == 1]
    assert [dot.get_color() for dot in dots] == [looks.policy_colour(name) for name in ("fcfs", "best-fit")]
    assert [dot.get_xdata()[0] for dot in dots] == pytest.approx([1.4 / 1.5, 2.0])
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        against_paper(numbers, tmp_path / name / "same.svg")
    first, second = ((tmp_path / name / "same.svg").read_bytes() for name in ("a", "b"))
    assert first == second
    assert b"1.2 best-fit" in first


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of all pages."""
    folder = tmp_path_factory.mktemp("papers")
    write_papers.write(folder)
    return folder


@pytest.mark.parametrize("name", write_papers.NAMES)
def test_the_index_counts_what_the_pages_list(name: str, made: Path) -> None:
    rows = record.read(write_papers.FOLDER / f"{name}.json").rows
    text = (made / f"{name}.md").read_text("utf-8")
    table = text.partition("## Claims")[2].partition("## Parts")[0]
    verdicts = [line.split(" | ")[4] for line in re.findall(r"^\| .*", table, re.MULTILINE)[1:]]
    line = next(
        line for line in (made / "README.md").read_text("utf-8").splitlines() if f"({name}.md)" in line
    )
    numbers = [int(cell) for cell in line.split(" | ")[1 : 1 + len(page.COLUMNS)]]
    assert sum(numbers) == len(rows) == len(verdicts)
    assert numbers[: len(RESULTS)] == [verdicts.count(kind) for kind in RESULTS]
    assert numbers[len(RESULTS)] == verdicts.count(IDENTITY)
