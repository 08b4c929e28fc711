"""The matrix of `nvidia-smi topo -m` as people write it into documents and scripts."""

from __future__ import annotations

from refusals import refusal
from topoplace import discovery
from topoplace.discovery.nvidia import topo_matrix

PRINTED = (
    "\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\tNUMA Affinity\n"
    "GPU0\tX\tNV4\tSYS\t0-7,16-23\t1\nGPU1\tNV4\tX\tPHB\t8-15,24-31\t0\nmlx5_0\tSYS\tPHB\tX\t\t\n"
)
AFFINITIES_FIRST = """\
## One of our nodes
| NUMA Affinity | CPU Affinity |        | GPU0 | GPU1 | mlx5_0 |
|---------------|--------------|--------|------|------|--------|
| 1             | 0-7,16-23    | GPU0   | X    | NV4  | SYS    |
| 0             | 8-15,24-31   | GPU1   | NV4  | X    | PHB    |
|               |              | mlx5_0 | SYS  | PHB  | X      |

!!! info
"""


def test_columns_may_come_in_another_order() -> None:
    topology = discovery.read(AFFINITIES_FIRST)
    printed = topo_matrix.parse(PRINTED)
    assert (topology.gpus, topology.links, topology.nics) == (printed.gpus, printed.links, printed.nics)
    assert [(gpu.numa_node, gpu.cpus) for gpu in topology.gpus] == [(1, "0-7,16-23"), (0, "8-15,24-31")]


def test_a_row_that_is_too_short_is_refused() -> None:
    short = AFFINITIES_FIRST.replace(" NV4  | X    | PHB    |", " NV4  | X    |")
    assert refusal(topo_matrix.parse, short).startswith("line 5: ")


def test_a_matrix_in_a_comment_is_read() -> None:
    for sign in ("#", "//"):
        text = "nvidia-smi topo -m\n\n# A typical output:\n" + "".join(
            f"{sign} {line}\n" for line in PRINTED.replace("\t", "    ").splitlines()[:3]
        )
        topology = discovery.read(text)
        assert topology.links == topo_matrix.parse(PRINTED).links
        assert len(topology.nics) == 1
