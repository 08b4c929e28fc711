"""The parts of the GPU-as-a-service paper, with their code and rows."""

from __future__ import annotations

from typing import Final

from topoplace_lab.papers.coverage import Part

TITLE: Final = "Filippini et al., Hierarchical scheduling in on-demand GPU-as-a-service systems"
INTRODUCTION: Final = """\
The paper asks how a provider should rent virtual machines and share their GPUs among training jobs with due dates, at
the lowest cost of machines and lateness. It finds that an optimisation model saves 45 to 80 % of the cost of
first-in-first-out and similar rules, and that many small controllers cost 3 % less than a single one. We implement
the model and the rules and simulate ten lists of generated jobs, as the paper's are not published. Our savings over
the best simple rule are {4.6 N=5} with 5 nodes and {4.6 N=10} with 10; over rules that may share nodes, {4.6
sharing}. Compared with our reading of the earlier, centralised model, the small controllers save {4.5}."""

PARTS: Final = (
    Part(
        "Fig. 1",
        "the framework",
        ("capacity/online/controller.py", "capacity/online/dispatch.py"),
        note="an overview",
    ),
    Part("Table I", "parameters and variables", ("capacity/problem/problem.py",), ("4.7",)),
    Part(
        "(P1)",
        "the model of a local controller",
        ("capacity/planners/paper_model.py",),
        ("4.7 variables", "4.6"),
    ),
    Part(
        "(P2)",
        "its linear form",
        ("capacity/planners/paper_model.py", "capacity/planners/capacity_planner.py"),
        ("4.7 variables", "4.6"),
    ),
    Part(
        "section IV",
        "the models with earliness, and the convex combination",
        ("capacity/planners/variant_planner.py",),
        ("variant",),
        "in words only: the weights are ours",
    ),
    Part(
        "section IV, [10]",
        "the earlier centralised model",
        ("capacity/planners/variant_planner.py",),
        ("4.5", "4.7 centralised"),
        "its linear costs as section IV describes them",
    ),
    Part("Table II", "the nodes and their prices", ("capacity/problem/catalogue.py",), ("4.6",)),
    Part(
        "section V-A",
        "jobs and due dates",
        ("capacity/problem/generate.py",),
        ("4.6",),
        "run times are ours, or those that the authors published later",
    ),
    Part("Fig. 2", "time and size of the models", ("papers/gpuaas/study.py",), ("4.7",)),
    Part(
        "Fig. 3",
        "cost next to first-principle methods",
        ("papers/gpuaas/study.py", "capacity/planners/first_principles.py"),
        ("4.6", "4.5"),
    ),
    Part("section V-B", "response of an optimisation server", ("papers/gpuaas/rows.py",), ("4.8",)),
    Part(
        "section II",
        "run times with an error below 11 %; deviation of cost below 7 % on Azure",
        ("papers/gpuaas/re_solving.py", "capacity/online/simulation.py"),
        ("4.10",),
        "neither tables nor errors are published: errors are drawn, and the run is simulated",
    ),
    Part(
        "section V-A, H",
        "decisions every hour",
        ("capacity/online/controller.py",),
        ("hourly",),
    ),
    Part(
        "section VI, load",
        "the number of controllers by load",
        ("capacity/online/sizing.py",),
        ("controllers",),
        "the paper's future work",
    ),
    Part(
        "section VI",
        "dispatch other than round robin",
        ("capacity/online/dispatch.py",),
        ("dispatch",),
        "the paper's future work",
    ),
    Part(
        "beyond the paper",
        "native search, and charging shares",
        ("capacity/planners/local_search.py", "capacity/planners/share_planner.py"),
        ("search", "shares"),
    ),
)
