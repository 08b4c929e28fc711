"""A program in the place of `all_reduce_perf`, which prints what nccl-tests prints."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

_BODY = """
import json, os, sys, time
from pathlib import Path

here = Path(__file__).parent
visible = os.environ["CUDA_VISIBLE_DEVICES"]
names = ("CUDA_DEVICE_ORDER", "NCCL_ALGO")
with (here / "calls").open("a") as calls:
    calls.write(json.dumps([visible, sys.argv[1:], [os.environ.get(name) for name in names]]) + "\\n")
figures = json.loads((here / "figures.json").read_text("utf-8"))
figure = figures.get(visible, figures.get("else"))
if figure == "hang":
    (here / "pid").write_text(str(os.getpid()))
    time.sleep(600)
if figure == "fail":
    print("box: Test NCCL failure common.cu:1005 'unhandled cuda error'", file=sys.stderr)
    sys.exit(3)
print("# nThread 1 nGpus", len(visible.split(",")), "minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5")
print("#\\n# Using devices")
for rank in range(len(visible.split(",")) - (figure == "one")):
    print(f"#  Rank  {rank} Group  0 Pid  71 on      box4 device  {rank} [0000:0{rank}:00] NVIDIA V100")
print("#\\n#                              out-of-place                       in-place")
columns = "   time   algbw   busbw #wrong"
print("#       size         count      type   redop    root" + columns + columns)
if figure != "silent":
    for size, share in ((8, 0.5), (64, 1.0)):
        speed = f"{10.0:8.2f} {1.0:6.2f} {share * float(figure if figure != 'one' else 1):6.2f}      0"
        print(f"{size:12} {size // 4:13}     float     sum      -1 {speed} {speed}")
print("# Out of bounds values : 0 OK\\n# Avg bus bandwidth    : 1.5\\n#")
"""


def install(folder: Path, figures: Mapping[str, float | str]) -> Path:
    """Write the program into `folder`, and return its path.

    figures: bus bandwidth in GB/s by the GPUs as CUDA_VISIBLE_DEVICES lists them, "else" for all others. Instead of a
    number: "hang", "fail" (exit code 3), "silent" (no rows), "one" (it found one GPU less than it should).
    """
    program = folder / "all_reduce_perf"
    program.write_text(f"#!{sys.executable}\n{_BODY}", encoding="utf-8")
    program.chmod(0o755)
    (folder / "figures.json").write_text(json.dumps(dict(figures)), encoding="utf-8")
    return program


def calls(folder: Path) -> list[tuple[str, list[str], list[str]]]:
    """Return CUDA_VISIBLE_DEVICES, the arguments, and other variables of each call."""
    path = folder / "calls"
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return [(visible, arguments, others) for visible, arguments, others in map(json.loads, lines)]
