"""Random inputs, guided by what they execute: libFuzzer on the bodies in cpp/fuzz, atheris on readers of texts."""

from __future__ import annotations

import argparse
import importlib.util
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from trust.kept import REPOSITORY, SCRATCH, Bar, Kept, run, table

NAME = "fuzz"
HELP = "C++ and readers: libFuzzer (clang++) and atheris, --seconds for each body"
BODIES = REPOSITORY / "cpp/fuzz"
PROGRAMS = REPOSITORY / "build/fuzz/cpp/fuzz"
FINDINGS = SCRATCH / "findings"
# The models try everything, and take seconds for some inputs; a search that takes minutes hangs.
HANG_S = 300
SLOW = "slow-unit-"  # what libFuzzer calls an input that takes longer than others


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command line says about this part."""
    parser.add_argument("bodies", nargs="*", help="such as fuzz_match or system_xml; all by default")
    parser.add_argument("--seconds", type=int, default=60, help="how long each body runs (60)")


def measure(given: argparse.Namespace, kept: Kept) -> Kept:
    """Fuzz each body; one that cannot run here keeps its old row."""
    rows = dict(kept.get("bodies", {}))
    kernels, readers = sorted(path.stem for path in BODIES.glob("fuzz_*.cpp")), parsers()
    chosen = given.bodies or [*kernels, *readers]
    if unknown := sorted(set(chosen) - {*kernels, *readers}):
        sys.exit(f"no fuzz body is called {', '.join(unknown)}")
    for body in chosen:
        if row := (kernel if body in kernels else reader)(body, given.seconds):
            rows[body] = row
            print(f"{body}: {row}", flush=True)
    return {"bodies": {body: rows[body] for body in [*kernels, *readers] if body in rows}}


def parsers() -> list[str]:
    """Return the readers that `make fuzz-parsers` tries."""
    line = re.search(r"^FUZZ_PARSERS \?= (.*)$", (REPOSITORY / "Makefile").read_text("utf-8"), re.MULTILINE)
    return line[1].split() if line else []


def kernel(body: str, seconds: int) -> Kept | None:
    """Fuzz a body of cpp/fuzz from its corpus; None without clang++."""
    if not shutil.which("clang++"):
        print(f"{body}: skipped, there is no clang++", file=sys.stderr)
        return None
    run(["cmake", "--preset", "fuzz", "--log-level=WARNING"])
    run(["cmake", "--build", "--preset", "fuzz", "-j1", "--target", body])
    return fuzz([str(PROGRAMS / body), f"-timeout={HANG_S}"], seconds, [BODIES / "corpus" / body])


def reader(body: str, seconds: int) -> Kept | None:
    """Fuzz a reader of texts from the samples in tests/data; None without atheris."""
    if not importlib.util.find_spec("atheris"):
        print(f"{body}: skipped, atheris is not installed", file=sys.stderr)
        return None
    return fuzz([sys.executable, str(REPOSITORY / "fuzz/fuzz_parsers.py"), body], seconds, [])


def fuzz(command: list[str], seconds: int, corpora: list[Path]) -> Kept:
    """Run a fuzzer for so long; return its inputs, CPU seconds, edges reached, inputs worth keeping, and findings.

    The inputs that are findings stay in build/trust/findings.
    """
    FINDINGS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        found, findings = Path(folder, "corpus"), Path(folder, "findings")
        found.mkdir()
        findings.mkdir()
        limits = [
            f"-max_total_time={seconds}",
            "-print_final_stats=1",
            f"-artifact_prefix={findings}/",
            "-seed=1",
        ]
        before = cpu_seconds()
        folders = [str(found), *map(str, corpora)] if corpora else []
        done = subprocess.run([*command, *limits, *folders], capture_output=True, check=False, cwd=folder)
        spent = cpu_seconds() - before
        text = done.stderr.decode(errors="replace")
        faults = [path for path in findings.iterdir() if not path.name.startswith(SLOW)]
        for path in faults:
            shutil.move(path, FINDINGS / path.name)
    executed = re.search(r"number_of_executed_units: (\d+)", text)
    edges = re.findall(r"cov: (\d+) ft: \d+ corp: (\d+)", text)
    if (done.returncode and not faults) or not executed or not edges:
        sys.exit(f"{' '.join(command)} did not fuzz:\n{text[-2000:]}")
    return {
        "inputs": int(executed[1]),
        "cpu_seconds": round(spent),
        "edges": int(edges[-1][0]),
        "corpus": int(edges[-1][1]),
        "findings": len(faults),
    }


def cpu_seconds() -> float:
    """Return the CPU time of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def bars(kept: Kept) -> list[Bar]:
    """Return the line of the first table."""
    rows = kept["bodies"].values()
    findings, inputs = sum(row["findings"] for row in rows), sum(row["inputs"] for row in rows)
    return [Bar("findings of the fuzzers", "0", f"{findings} in {inputs:,} inputs", not findings)]


def section(kept: Kept) -> str:
    """Return the section of the page."""
    names = ("inputs", "cpu_seconds", "edges", "corpus", "findings")
    rows = [(f"`{body}`", *(row[name] for name in names)) for body, row in kept["bodies"].items()]
    return f"""## Fuzzing

`make fuzz` runs libFuzzer with AddressSanitizer and UndefinedBehaviorSanitizer on the bodies of `cpp/fuzz`; each
compares a kernel with a model too simple to be wrong. `make fuzz-parsers` runs atheris on readers of texts: anything
but a reading or a `TopologyError` is a finding, and so is a second of time. Both run longer every night, and
`make test` replays the inputs kept in `cpp/fuzz/corpus`.

{table(("body", "inputs tried", "CPU seconds", "edges reached", "inputs worth keeping", "findings"), rows)}"""
