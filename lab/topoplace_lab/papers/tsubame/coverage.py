"""The parts of the TSUBAME paper, with their code and rows."""

from __future__ import annotations

from typing import Final

from topoplace_lab.papers.coverage import Part

TITLE: Final = "The R queue of TSUBAME 2.5: GPUs borrowed by rCUDA"
INTRODUCTION: Final = """\
The paper asks what jobs of TSUBAME 2.5 gain if a batch system lends them idle GPUs of other nodes over the network
(the R queue, by rCUDA) instead of only GPUs of their own nodes (the G queue). From a simulated year it finds that the
mean wait falls by a quarter while execution hardly lengthens, so that 20 of 480 nodes could be saved. The job log is
not public: we simulate ten generated years, whose habits are fitted to the paper's waits. The change of the
mean wait is {2.7a}. The share of nodes saved is {2.15}. Rows that follow from the fit are no results; in the congested
queue, which is not fitted, the R queue saves {2.14} of the time."""

PARTS: Final = (
    Part(
        "Fig. 1",
        "the laboratory's machines",
        ("papers/tsubame/machine.py",),
        note="an illustration; its speeds are in 2.1",
    ),
    Part(
        "Fig. 2",
        "time of a copy by size and number of streams",
        ("simulate/performance/remote_copies.py",),
        ("2.1",),
        "no point is printed, in the text or at the axes, so the fit (R2 = 0.986) cannot be repeated",
    ),
    Part("eq. 1", "time of a copy", ("simulate/performance/remote_copies.py",), ("2.1",)),
    Part(
        "eq. 2",
        "bandwidth left by streams",
        ("simulate/performance/remote_copies.py",),
        ("2.1", "2.2"),
    ),
    Part(
        "Fig. 3",
        "Jacobi under contention",
        ("papers/tsubame/rows.py",),
        ("2.3",),
        "without numbers but those of the text; the application's traffic is not stated",
    ),
    Part(
        "Fig. 4",
        "LAMMPS under contention",
        ("papers/tsubame/rows.py",),
        ("2.3",),
        "without numbers but those of the text; the application's traffic is not stated",
    ),
    Part(
        "Fig. 5",
        "the algorithm of the G queue",
        ("policies/tsubame/g_queue.py",),
        ("2.7", "2.9", "2.13", "2.14"),
    ),
    Part(
        "Fig. 6",
        "the algorithm of the R queue",
        ("policies/tsubame/r_queue.py", "policies/tsubame/borrowing.py"),
        ("2.7", "2.8", "2.9", "2.14"),
    ),
    Part(
        "Fig. 7",
        "a schedule of the G queue",
        ("papers/tsubame/schedules.py",),
        ("2.16 G",),
        "its jobs are not stated; `-o` writes a chart of ours",
    ),
    Part(
        "Fig. 8",
        "a schedule of the R queue",
        ("papers/tsubame/schedules.py",),
        ("2.16 R", "2.16 more", "2.16 longer"),
        "its jobs are not stated; `-o` writes a chart of ours",
    ),
    Part(
        "beyond the paper",
        "the congested queue by flows",
        ("papers/tsubame/schedules.py", "policies/drmaestro/policy.py"),
        ("2.14 flows",),
    ),
    Part(
        "Table 1",
        "estimated transfers of a job",
        ("simulate/workloads/logged_jobs.py",),
        ("2.5",),
    ),
    Part("Table 2", "the simulated node", ("papers/tsubame/machine.py",), ("2.4",)),
    Part(
        "section 4.1",
        "the log of 2013",
        ("papers/tsubame/generator.py",),
        ("2.6", "2.13"),
        "not published; a generated log, whose habits are fitted",
    ),
    Part("Fig. 9", "waits under G minus R", ("papers/tsubame/study.py",), ("2.7a", "2.8a", "2.9")),
    Part(
        "Fig. 10",
        "execution times under G minus R",
        ("papers/tsubame/study.py",),
        ("2.7b", "2.8b", "2.8d", "2.10"),
    ),
    Part("Fig. 11", "lives under G minus R", ("papers/tsubame/study.py",), ("2.7c", "2.8c", "2.11")),
    Part(
        "Table 3",
        "450 to 480 nodes",
        ("papers/tsubame/study.py",),
        ("2.9", "2.10", "2.11", "2.12", "2.15"),
    ),
    Part(
        "abstract",
        "a congested queue",
        ("papers/tsubame/congestion.py",),
        ("2.14",),
        "its jobs are not described",
    ),
)
