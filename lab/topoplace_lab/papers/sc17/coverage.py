"""The parts of the SC'17 paper, with their code and rows."""

from __future__ import annotations

from typing import Final

from topoplace_lab.papers.coverage import Part

TITLE: Final = "Amaral et al., Topology-aware GPU scheduling for learning workloads (SC'17)"
INTRODUCTION: Final = """\
The paper asks which GPUs jobs of deep learning should get when they share machines with fast and slow links. It finds
that placing them by a utility of communication, interference and fragmentation (TOPO-AWARE, and TOPO-AWARE-P, which
postpones jobs) speeds up six jobs by a factor of about 1.3 and lowers waits and slowdowns of simulated job lists. We
repeat the experiment with the six jobs and the simulations twice: in a port of the simulator that the authors
published, and in ours. For the six jobs of Table 1, the speedups of TOPO-AWARE-P over the others and the four
makespans are {1.8 own, Table 1} in our simulator. In our simulations the policies often come in the paper's order,
but the differences are small against the spread of job lists, and TOPO-AWARE-P does slow some jobs."""

PARTS: Final = (
    Part(
        "Fig. 1",
        "two machines: POWER8 with NVLink, DGX-1",
        ("machines",),
        note="the machines `minsky` and `dgx1-p100`",
    ),
    Part("Fig. 2", "pack and spread, drawn", note="an illustration without numbers"),
    Part(
        "Fig. 3",
        "time of computing and communicating, by batch size",
        ("simulate/performance/training_step.py", "papers/sc17/training.py"),
        ("1.15",),
        "the three times that the text has; drawn bars have no numbers",
    ),
    Part(
        "Fig. 4",
        "speedup of pack over spread, by batch size",
        ("papers/sc17/measured.py", "papers/sc17/training.py"),
        ("1.12", "1.13", "1.14"),
        "times with batch 1, 4, 64 and 128 were published; batches 2 and 8, and the PCIe machine, are from a model",
    ),
    Part(
        "Fig. 5",
        "use of NVLink over time",
        ("simulate/performance/training_step.py", "papers/sc17/training.py"),
        ("1.16",),
        "the two values that the text has, as means over a step",
    ),
    Part(
        "Fig. 6",
        "slowdown of two jobs on one machine",
        ("papers/sc17/measured.py", "objectives/colocation.py"),
        ("1.17", "1.18", "1.19"),
    ),
    Part(
        "section 3.3",
        "interference of pairs that were not measured",
        ("jobs/interference_model.py",),
        ("1.18 predicted",),
        "the paper profiles every pair; the prediction is ours",
    ),
    Part(
        "Fig. 7",
        "the graph of a machine, with weights by level",
        ("topology/topology.py",),
        note="tests of distances",
    ),
    Part("eq. 1", "the objective", ("objectives/utility.py",), ("1.23 own",)),
    Part(
        "eq. 2",
        "the utility, as printed and as coded",
        ("objectives/utility.py", "objectives/printed_utility.py", "objectives/authors_utility.py"),
        ("1.23 own, 10 lists, reading: eq. 2",),
        "as printed it rewards interference and divides by zero; `objectives.utility` says how we read it",
    ),
    Part("eq. 3", "communication cost", ("objectives/utility.py",), ("1.9", "1.23")),
    Part("eq. 4", "interference", ("objectives/colocation.py",), ("1.17", "1.23")),
    Part(
        "eq. 5",
        "fragmentation",
        ("objectives/domains.py",),
        ("1.23", "1.23 own, 10 lists, reading: eq. 5"),
        "over the sockets of the job's machines; the sum over the cluster would not depend on the placement",
    ),
    Part(
        "Algorithm 1",
        "placing a job",
        ("policies/sc17/topo_aware.py", "policies/sc17/costs.py"),
        ("1.9 own", "1.23 own"),
    ),
    Part(
        "Algorithm 2",
        "recursive bipartitioning of the job",
        ("kernels/__init__.py",),
        ("1.9 own", "1.23 own"),
    ),
    Part(
        "Algorithm 3",
        "bipartitioning by utility",
        ("policies/sc17/topo_aware.py", "policies/sc17/bipartition.py"),
        ("1.23 own, 10 lists, reading: Algorithm 3",),
        "by default utility chooses among mappings; inside the bipartition with `utility_in_bipartition=True`",
    ),
    Part(
        "section 5.1",
        "job graphs with weights 4 to 1 by batch size",
        ("objectives/utility.py", "simulate/workloads/generators.py"),
        ("1.23 own, 10 lists, reading: batch weights",),
        "they cancel if a job is compared with its own worst case; `Utility(heaviest=4)` keeps them",
    ),
    Part(
        "section 5.1",
        "NVLink traffic and run times of a live host",
        ("measuring/counters.py", "jobs/performance_profile.py"),
        note="`topoplace profile record` and `profile build`; tested with stand-ins of NVML and DCGM",
    ),
    Part(
        "section 5.2",
        "the greedy policies",
        ("policies/sc17/first_come.py", "policies/sc17/best_fit.py"),
        ("1.23 own",),
        "Best Fit in two readings",
    ),
    Part(
        "Table 1",
        "the jobs of the prototype",
        ("papers/sc17/scenarios.py",),
        ("1.9", "1.10", "1.11"),
    ),
    Part(
        "Fig. 8",
        "the prototype: placements over time, waits and slowdowns",
        ("papers/sc17/own_prototype.py", "papers/sc17/rows.py"),
        ("1.7", "1.8", "1.9", "1.10", "1.11"),
    ),
    Part(
        "Fig. 9",
        "the authors' simulator on the same jobs",
        ("papers/sc17/published_simulator/simulator.py",),
        ("1.7 code", "1.22 code"),
        "equal job by job to the published program under CPython 2.7.18, on lists of up to 1,000 jobs",
    ),
    Part(
        "Fig. 10",
        "scenario 1: 100 jobs on 5 machines",
        ("papers/sc17/own_scenarios.py", "papers/sc17/rows.py"),
        ("1.23",),
        "no numbers in the text: the order of the policies is compared",
    ),
    Part(
        "Fig. 11",
        "scenario 2: 10,000 jobs on 1,000 machines",
        ("papers/sc17/own_scenarios.py",),
        ("1.22", "1.23 own", "1.24 own"),
        "with the published arrivals nothing waits",
    ),
    Part("section 5.5.1", "TOPO-AWARE-P slows no job", ("policies/sc17/topo_aware.py",), ("1.23 own",)),
    Part(
        "section 4.4",
        "cost of the algorithm",
        note="a complexity of their data structures; our decisions are timed in docs/measuring.md",
    ),
)
