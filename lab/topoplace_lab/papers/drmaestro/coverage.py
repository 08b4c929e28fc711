"""The parts of Amaral's thesis that SC'17 does not contain, with their code and rows."""

from __future__ import annotations

from typing import Final

from topoplace_lab.papers.coverage import Part

TITLE: Final = "Amaral's thesis: DRMaestro, scheduling of disaggregated GPUs"
INTRODUCTION: Final = """\
Chapter 5 of the thesis asks what jobs gain if GPUs can be attached over the network, and what a policy gains that
knows how network contention slows jobs down (DRMaestro). It finds makespans shorter by factors of 1.11 to 1.58 with
disaggregation, and of up to 1.13 by the network-aware policy in large simulations. We repeat both experiments with
the thesis' applications in our simulator; run times and the load of the machines are partly unknown and then fitted.
Disaggregation shortens the makespan in all settings: without disaggregation, with it, and their ratio are {5.5 off}
in the smaller simulation, and {5.6 off} in the larger one. The network-aware policy changes the makespan by a factor
of {5.6 policy, disaggregated} where the thesis has 1.13."""
_ENVIRONMENTS: Final = ("simulate/performance/environments.py",)
_SC17: Final = "as in the SC'17 paper: see its page"

PARTS: Final = (
    Part("Figs. 1 to 6", "introduction and background", note="illustrations"),
    Part("Table 1", "testbed of section 3.1", note="an input; nothing runs on it"),
    Part(
        "Fig. 7",
        "CPU: slowdown of Sysbench",
        _ENVIRONMENTS,
        ("3.1 simulated",),
        "without numbers; the text has 2 % for virtual machines, and no difference for containers",
    ),
    Part(
        "Fig. 8",
        "time to create and exit",
        _ENVIRONMENTS,
        ("3.1 simulated",),
        "without numbers; the text has ratios, and the seconds of a container are given to the model",
    ),
    Part(
        "Tables 2 to 4",
        "network latency and throughput",
        (*_ENVIRONMENTS, "papers/drmaestro/virtual_environments.py"),
        ("3.1 tables", "3.1 nested", "3.1.6"),
    ),
    Part("Table 5, figs. 9 to 13", "GPUs: pack, spread and interference", note=_SC17),
    Part("Table 6", "testbed of section 3.3", ("papers/drmaestro/rodinia.py",), ("5.2",)),
    Part(
        "Fig. 14",
        "time of Rodinia programs in the network",
        ("papers/drmaestro/rodinia.py",),
        ("5.8",),
    ),
    Part("Figs. 15 to 20, Table 7, Algorithms 1 to 3", "topology-aware scheduling", note=_SC17),
    Part(
        "Fig. 21",
        "the architecture of DRMaestro",
        ("policies/drmaestro/service.py", "policies/drmaestro/policy.py"),
        ("5.4 service",),
        "the resource manager is the simulator",
    ),
    Part(
        "Fig. 22",
        "the flow networks, phase by phase",
        ("policies/drmaestro/phases.py", "policies/drmaestro/network.py"),
        ("scale",),
    ),
    Part(
        "Algorithm 4",
        "scheduling and placing",
        ("policies/drmaestro/policy.py", "policies/drmaestro/decision.py"),
        ("5.2", "5.5", "5.6"),
    ),
    Part(
        "Algorithm 5",
        "mapping jobs to machines",
        ("policies/drmaestro/decision.py",),
        ("5.2", "5.5", "5.6", "5.5 reading merged"),
        "ours tries jobs again in one round; one merged mapping, as printed, is an option with its own row",
    ),
    Part("eq. 11", "utility", ("policies/drmaestro/costs.py",), ("5.5 slowdown", "5.6 slowdown")),
    Part(
        "eqs. 12 and 13",
        "costs, and waiting",
        ("policies/drmaestro/costs.py",),
        ("5.5", "5.6", "5.5 reading rounds"),
        "waiting counts seconds; rounds, as in the text, are an option with its own rows",
    ),
    Part(
        "Table 8",
        "complexities of flow algorithms",
        note="two rows of the table are swapped; our kernel is timed in docs/measuring.md",
    ),
    Part("Fig. 23", "experiment 1", ("papers/drmaestro/study.py",), ("5.2",)),
    Part("Fig. 24", "its decision times", ("papers/drmaestro/study.py",), ("5.3",)),
    Part(
        "Fig. 25",
        "experiment 2: experiment 1 in a simulator",
        ("papers/drmaestro/study.py",),
        ("5.2", "5.2 validation"),
        "we simulate both; the second time with run times drawn from histograms of the first",
    ),
    Part("Fig. 26", "experiment 3: 4,096 jobs", ("papers/drmaestro/study.py",), ("5.6",)),
    Part("Fig. 27", "its decision times", ("papers/drmaestro/study.py",), ("5.4",)),
    Part(
        "Fig. 28, Table 9",
        "64 jobs, with and without network awareness",
        ("papers/drmaestro/study.py",),
        ("5.5",),
    ),
    Part("Fig. 29", "slowdowns", ("papers/drmaestro/study.py",), ("5.5 slowdown",)),
    Part(
        "Fig. 30, Table 10",
        "4,096 jobs, with and without network awareness",
        ("papers/drmaestro/study.py",),
        ("5.6",),
    ),
    Part("Fig. 31", "slowdowns", ("papers/drmaestro/study.py",), ("5.6 slowdown",)),
    Part(
        "section 5.6.5.1",
        "costs by network load, normalised by the fullest machine",
        ("policies/drmaestro/network.py", "policies/drmaestro/costs.py"),
        ("5.5 reading fullest",),
    ),
    Part(
        "section 5.4, applications without a model",
        "an unknown application has a neutral cost",
        ("jobs/network_profile.py",),
        ("5.5 reading hotspot", "5.5 reading all three"),
    ),
    Part(
        "section 5.4.4",
        "the event-driven simulator",
        ("simulate/event_loop.py", "simulate/performance/run_time_histograms.py"),
        ("5.5 reading every second", "5.2 validation"),
        "run times from histograms by job type, and slowdowns by neighbours that start and end; the scheduler's "
        "interval is not stated",
    ),
    Part(
        "section 5.4",
        "the service: it consumes telemetry and waits for jobs",
        ("policies/drmaestro/service.py", "telemetry.py", "simulate/monitoring.py"),
        ("5.4 service",),
        "in the simulator; the thesis extends Kubernetes and reads Heapster",
    ),
    Part(
        "section 5.4, inference engine",
        "average completion times in states of the cluster",
        ("policies/drmaestro/inference.py",),
        ("5.4 service",),
        "what a state is, and how an average becomes a cost, is our reading",
    ),
    Part(
        "section 5.4.3",
        "HFCUDA servers and clients as pods",
        ("launch/environment.py",),
        note="a placement gives the environments of servers and clients; starting them is up to the cluster's manager",
    ),
    Part(
        "chapters 4 and 5 joined",
        "GPU topology inside DRMaestro",
        ("policies/drmaestro/gpu_topology.py", "papers/drmaestro/gpu_topology.py"),
        ("6.2",),
        "the thesis joins them neither in its text nor in its future work (section 6.2)",
    ),
)
