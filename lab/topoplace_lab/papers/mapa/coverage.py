"""The parts of the MAPA paper, with their code and rows."""

from __future__ import annotations

from typing import Final

from topoplace_lab.papers.coverage import Part

TITLE: Final = "Ranganath et al., MAPA: multi-accelerator pattern allocation (SC'21)"
INTRODUCTION: Final = """\
MAPA asks how a machine's scheduler should choose GPUs when jobs communicate in patterns such as rings. Its policies
Greedy and Preserve search all mappings of a pattern, and the paper measures that the latter speeds up the slowest
quarter of bandwidth-sensitive jobs by a factor of 1.12 on a DGX-1V. We repeat its examples, its model of bandwidth
and its simulations on the DGX-1V and on two machines of 16 GPUs, with run times that are modelled instead of
measured. Throughput comes in the paper's order, with smaller gains ({3.12} over Baseline for Topo-aware, Greedy and
Preserve). The paper's claims about 16 GPUs hold only in part, and some only with a threshold that its code has and
its text does not mention."""
_FIGURE: Final = "a figure without numbers in the text"

PARTS: Final = (
    Part("Fig. 1", "accelerator topologies", ("machines",), note=f"the built-in machines; {_FIGURE}"),
    Part(
        "Fig. 2",
        "links of a DGX-1V; time by links",
        ("machines", "simulate/performance/models.py"),
        ("3.2", "3.20"),
        "fig. 2a (bandwidth by amount of data) is drawn only, and the text has no number of it: not comparable",
    ),
    Part("Table 1", "peak bandwidths of links", ("topology/links",), ("3.2", "3.17")),
    Part("Fig. 3", "accelerators in the Top500", note="a survey, nothing to reproduce"),
    Part("Fig. 4", "fragmentation under Baseline", ("papers/mapa/study.py",), ("3.3",)),
    Part(
        "Fig. 5",
        "message sizes and calls of the networks",
        ("papers/mapa/bandwidths.py",),
        ("3.4",),
        "for 5a, the means that the text states",
    ),
    Part(
        "Fig. 6",
        "execution time by bandwidth",
        ("simulate/performance/models.py",),
        ("3.12",),
        "as in fig. 16",
    ),
    Part("Fig. 7", "the system", ("policies/mapa/search.py",), note="an overview"),
    Part(
        "Fig. 8",
        "application graphs of NCCL",
        ("jobs/nccl_log.py", "jobs/patterns.py"),
        note="`JobGraph.from_nccl_log`; rings, trees and cliques",
    ),
    Part(
        "Fig. 9",
        "application graphs from code and profiles",
        ("jobs/nccl_log.py", "jobs/job_graph.py"),
        note="`JobGraph.from_nccl_log` and `JobGraph.from_traffic`; reading source code is not built",
    ),
    Part("Fig. 10", "aggregated and preserved bandwidth", ("objectives/links.py",), ("3.2",)),
    Part("eq. 1", "aggregated bandwidth", ("objectives/links.py",), ("3.2",)),
    Part(
        "eq. 2",
        "predicted effective bandwidth",
        ("objectives/effective_bandwidth.py",),
        ("3.5", "3.6", "3.7", "3.8"),
        "the 31 samples are not published: held out are mixes and job sizes of what NCCL's search plans",
    ),
    Part("eq. 3", "preserved bandwidth", ("objectives/links.py",), ("3.14", "3.15")),
    Part("Table 2", "coefficients of eq. 2", ("objectives/effective_bandwidth.py",), ("3.5", "3.6")),
    Part(
        "Fig. 11",
        "bandwidth scores and execution time",
        ("papers/mapa/bandwidths.py",),
        ("3.18",),
        "with bandwidths that NCCL plans; our run times follow from eq. 2, so 11c could not come out otherwise",
    ),
    Part(
        "Fig. 12",
        "predicted and measured bandwidth",
        ("papers/mapa/bandwidths.py",),
        ("3.18", "3.8 held out"),
        "the 31 samples are not published",
    ),
    Part("Algorithm 1", "Preserve", ("policies/mapa/preserve.py",), ("3.11", "3.12", "3.14", "3.15")),
    Part(
        "section 4",
        "Baseline, Topo-aware, Greedy",
        ("policies/mapa/baseline.py", "policies/mapa/topo_aware.py", "policies/mapa/greedy.py"),
        ("3.11", "3.12"),
    ),
    Part(
        "Fig. 13",
        "DGX-V: execution times and bandwidths",
        ("papers/mapa/study.py",),
        ("3.10", "3.11", "3.12"),
    ),
    Part(
        "Table 3",
        "speedups on a DGX-1V",
        ("papers/mapa/study.py",),
        ("3.12",),
        "whole: MIN, 25, 50, 75, MAX and throughput",
    ),
    Part(
        "Fig. 14",
        "the simulator",
        ("papers/mapa/artifact.py", "papers/mapa/published_queue.py"),
        ("artifact",),
        'every line of the logs, with the paper\'s queue and with `rules="published"`',
    ),
    Part(
        "Fig. 15",
        "bandwidths of real and simulated runs",
        note="not comparable: the real runs are not published, and the text has no number",
    ),
    Part("Fig. 16", "bandwidth and execution time", ("simulate/performance/models.py",), ("3.12",)),
    Part("Fig. 17", "16-GPU topologies", ("machines",), ("3.17",)),
    Part("Fig. 18", "bandwidths on 16 GPUs", ("papers/mapa/study.py",), ("3.14", "3.15")),
    Part("Fig. 19", "time of a decision", ("policies/mapa/preserve.py",), ("3.16",)),
)
