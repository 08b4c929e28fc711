"""A reader who types a question into the search of the site, opened from files, finds the page that answers it."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("material")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")

REPOSITORY = Path(__file__).parents[2]


class Question(NamedTuple):
    """What a reader types, the page that must be among the first three found, and what the page must say."""

    typed: str
    page: str
    says: str


QUESTIONS = [
    Question("which policy", "policies", "least-time"),
    Question("deepspeed fsdp", "training", "--pattern allreduce --gpus 64"),
    Question("megatron tensor pipeline", "training", "--parallel tensor=8,pipeline=4,data=2"),
    Question("torchrun", "training", "--launch torchrun"),
    Question("rank order several machines", "training", "rank"),
    Question("does it need root", "integrations/slurm", "never needs root"),
    Question("kubernetes rights", "integrations/kubernetes", "resourceclaims/status"),
    Question("what happens after a restart", "state", "no GPU is given twice"),
    Question("slurm crash", "integrations/slurm", "the journal is lost"),
    Question("kubernetes node dies", "integrations/kubernetes", "a device plugin is killed"),
    Question("crash recovery", "state", "reconcile"),
    Question("golang", "integrations/c", "Go"),
    Question("fragmentation", "waiting", "topoplace make-room"),
    Question("gpu dies", "broken", "with_unhealthy"),
    Question("mig slices", "mig", "slice_gpu"),
    Question("amd", "topologies", "rocm-smi --showtopo"),
    Question("degraded link", "broken", "topoplace show --check"),
    Question("gpu failure", "broken", "undrain"),
    Question("nvl72 racks", "training", "nvlink_domain"),
    Question("upgrade slurm", "integrations/slurm", "pip install --upgrade"),
    Question("upgrade kubernetes", "integrations/kubernetes", "kubectl rollout undo"),
    Question("monitor metrics prometheus", "integrations/kubernetes", "decided_total"),
    Question("secure", "state", "ConstrainDevices=yes"),
    Question("install in slurm", "integrations/slurm", "topoplace slurm gres"),
    Question(
        "install on kubernetes",
        "integrations/kubernetes",
        "kubectl apply -f examples/kubernetes/scheduler.yaml",
    ),
    Question("compare with kueue", "beside", "kueue-best-fit"),
    Question("volcano", "beside", "Volcano"),
    Question("how fast", "measuring", "one decision by policy.place on 16 GPUs"),
    Question("when does my job start", "waiting", "topoplace when"),
    Question("why was my job refused", "waiting", "explain"),
    Question("test my own policy", "testing", "check_policy"),
    Question("simulate my trace", "simulator", "topoplace simulate"),
    Question("a gpu is broken, keep it out", "broken", "with_unhealthy"),
    Question("why is my job still waiting", "waiting", "topoplace when"),
    Question("set CUDA_VISIBLE_DEVICES for torchrun", "training", "placement.env()"),
    Question("pipeline parallel across two nodes", "training", "--parallel"),
    Question("vllm with two replicas on one machine", "questions", "tensor=4,pipeline=2"),
    Question("compare my policy against random with confidence intervals", "simulator", "95 % intervals"),
    Question("undo an allocation if the launch fails", "questions", "cluster.what_if()"),
    Question("does it support mi300x", "questions", "topoplace show"),
    Question("thread safety", "concepts", "threading.Lock"),
    Question("grafana", "questions", "Prometheus"),
    Question("cite the software", "questions", "CITATION.cff"),
]
"""The questions of readers: a scheduler's developer, an operator of a cluster, a researcher, a user of one machine."""

READER = """
<script>
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
addEventListener("load", async () => {
  const answers = [];
  try {
    const box = document.querySelector("[data-md-component=search-query]");
    box.focus();
    await wait(3000);
    for (const question of QUESTIONS) {
      box.value = question;
      box.dispatchEvent(new KeyboardEvent("keyup", { bubbles: true }));
      box.dispatchEvent(new Event("input", { bubbles: true }));
      await wait(500);
      answers.push([...document.querySelectorAll(".md-search-result__item > a:first-child")].map((one) => one.href));
    }
  } catch (error) { answers.push(String(error)); }
  const output = document.createElement("output");
  output.id = "answers";
  output.textContent = JSON.stringify(answers);
  document.body.replaceChildren(output);
});
</script>
"""
"""Types each question into the search box, and leaves the pages found as the text of the page."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def found(site: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The pages found for each question, the best first."""
    typed = [question.typed for question in QUESTIONS]
    page = site / "reader.html"
    reader = READER.replace("QUESTIONS", json.dumps(typed))
    page.write_text((site / "index.html").read_text("utf-8").replace("</body>", f"{reader}</body>"), "utf-8")
    shown = dumped(page, tmp_path_factory.mktemp("profile"))
    page.unlink()
    answers = re.search(r'<output id="answers">(.*?)</output>', shown, re.DOTALL)
    assert answers, shown[:3000]
    lists = json.loads(html.unescape(answers[1]))
    pages = [[name_of(address, site) for address in addresses] for addresses in lists]
    return dict(zip(typed, pages, strict=True))


def dumped(page: Path, profile: Path) -> str:
    """Return what Chromium makes of a page that is opened as a file."""
    assert CHROMIUM
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
    command += ["--virtual-time-budget=120000", "--dump-dom", page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def name_of(address: str, site: Path) -> str:
    return re.sub(r"\.html.*", "", address.removeprefix(f"{site.as_uri()}/"))


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.typed)
def test_the_page_is_found(question: Question, found: dict[str, list[str]]) -> None:
    assert question.page in found[question.typed][:3]


@pytest.mark.parametrize("typed", ["mig slices", "degraded link", "grafana"])
def test_pages_with_all_words_are_found(typed: str, found: dict[str, list[str]], site: Path) -> None:
    """Of a word that few pages have, these are all; words that say nothing do not count."""
    words = [word.removesuffix("s") for word in typed.split()]
    pages = found[typed]
    assert pages
    for page in pages:
        text = (site / f"{page}.html").read_text("utf-8").lower()
        assert all(word in text for word in words), page


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.typed)
def test_the_page_says_it(question: Question, site: Path) -> None:
    text = (site / f"{question.page}.html").read_text("utf-8")
    assert question.says in " ".join(html.unescape(re.sub(r"<[^>]*>", "", text)).split())
