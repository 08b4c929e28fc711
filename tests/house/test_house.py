"""Rules of the house that no linter checks: what an import loads, what a header includes, one version."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import topoplace

WINGS = {"topoplace_lab", "topoplace_hosts"}
HEAVY = {"numpy", "matplotlib", "networkx", "pandas", "rich", "highspy", "topoplace_lab.simulate"}


def modules_after(statement: str) -> set[str]:
    """Return the modules a fresh interpreter has loaded after `statement`, output and exit code ignored."""
    script = f"""
import contextlib, io, json, sys
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    {statement}
print(json.dumps(list(sys.modules)))
"""
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    return set(json.loads(output))


def test_import_loads_nothing_heavy() -> None:
    assert not modules_after("import topoplace") & (HEAVY | WINGS)


def test_the_first_example_of_the_readme_loads_few_modules(repository: Path) -> None:
    code = re.search(r"```python\n(.*?)```", (repository / "README.md").read_text("utf-8"), re.DOTALL)
    assert code is not None
    loaded = modules_after(f"exec({code[1]!r})")
    own = {name for name in loaded if name.partition(".")[0] == "topoplace"}
    assert 80 < len(own) <= 95
    assert not loaded & WINGS


@pytest.mark.parametrize(
    ("topology", "job", "most"),
    [
        ('tp.machines.get("dgx1-v100")', "ring(4)", 95),
        (
            'tp.Topology.cluster(tp.machines.get("dgx-h100"), 4, network=50.0)',
            "parallel(tensor=8, data=2)",
            105,
        ),
    ],
    ids=["one machine", "cluster"],
)
def test_a_decision_of_the_default_loads_few_modules(topology: str, job: str, most: int) -> None:
    loaded = modules_after(f"import topoplace as tp; tp.place(tp.JobGraph.{job}, tp.Cluster({topology}))")
    own = {name for name in loaded if name.partition(".")[0] == "topoplace"}
    assert 80 < len(own) <= most
    assert not loaded & WINGS


def test_help_loads_nothing_heavy() -> None:
    assert not modules_after("from topoplace.cli import main; main(['--help'])") & (HEAVY - {"rich"})


@pytest.mark.parametrize("name", topoplace.__all__)
def test_public_name_resolves(name: str) -> None:
    assert getattr(topoplace, name) is not None


# Names other programs build on: more may come, none may go.
CONTRACT = {
    "AllocationError JobGraphError TopologyError TopoplaceError": "",
    "Topology": """from_links from_matrix from_networkx to_networkx from_json to_json from_nvidia_smi digest num_gpus
        num_machines gpus machine_of bandwidth bandwidth_matrix distance distance_matrix link graph""",
    "JobGraph": """ring chain star tree clique mesh torus allreduce independent from_matrix from_edges
        from_networkx with_ graph parallel from_collectives collectives dimensions joined roles tflop""",
    "Collective": "kind tasks gigabytes dimension",
    "Traffic": "transformer of per_group tflop",
    "Cluster": """allocate release free_gpus owner allocations drain undrain transaction snapshot restore copy
        topology num_free""",
    "Placement": "env bindings spread launch time times slowest",
    "communication_time place": "",
    "Binding": "task machine gpu local_gpu nic numa cpus",
    "Launch": "files command",
    "Policy": "place explain plan",
    "kernels": "Graph enumerate_subgraphs count_subgraphs best_subgraph best_remainder LinkCountScore bipartition",
    "collective": "ring_bandwidth optimal_bandwidth rings",
    "drawing": "svg",
    "machines": "get names",
    "policies": "get names Baseline TopoAware Greedy Preserve SearchPolicy",
    "capacity": "Catalogue VMType TABLE_II CapacityJob CapacityPlanner SearchPlanner Problem Plan",
    "place_all reorder repair": "",
    "simulate": "simulate Workload PerformanceModel Result StepTime",
    "snapshot": "read when Snapshot RunningJob WaitingJob StartTime",
    "testing": "check_policy",
}


@pytest.mark.parametrize("owners", CONTRACT, ids=lambda owners: owners.split()[0])
def test_contract_names_exist(owners: str) -> None:
    missing = [
        f"{owner}.{name}"
        for owner in owners.split()
        for name in ["__doc__", *CONTRACT[owners].split()]
        if not hasattr(owned := getattr(topoplace, owner), name)
        and name not in getattr(owned, "__dataclass_fields__", ())
    ]
    assert not missing


def test_one_version(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text("utf-8"))["project"]
    assert topoplace.__version__ == project["version"]
    assert f"## {project['version']}" in (repository / "CHANGELOG.md").read_text("utf-8")
    assert f"version: {project['version']}" in (repository / "CITATION.cff").read_text("utf-8")
    for folder in ("lab", "hosts"):
        other = tomllib.loads((repository / folder / "pyproject.toml").read_text("utf-8"))["project"]
        assert (other["version"], other["requires-python"]) == (
            project["version"],
            project["requires-python"],
        )
        assert other["dependencies"] == [f"topoplace=={project['version']}"]


@pytest.mark.parametrize("folder", ["python", "lab", "hosts", "tests", "tools", "benchmarks", "examples"])
def test_texts_are_read_with_an_encoding(repository: Path, folder: str) -> None:
    """Without one, what a file says depends on the locale: under LC_ALL=C nothing but ASCII can be read."""
    call = "read_text" + "()"
    paths = (repository / folder).rglob("*.py")
    assert not [path.name for path in paths if call in path.read_text("utf-8")]


INCLUDE = re.compile(r'#include [<"]([^">]+)[">]')
# What a header or source below cpp/<folder> may not include, as the layers of ARCHITECTURE.md say.
FORBIDDEN = {
    "include": r"pybind11|Python\.h|fstream|iostream|filesystem",
    "src": r"pybind11|Python\.h|fstream|iostream|filesystem",
    "src/match": r".*(cluster_state|cluster/.*|partition)\.hpp",
    "src/partition": r".*(cluster_state|cluster/.*|match)\.hpp",
    "src/flow": r".*(cluster_state|cluster/.*|match|partition|mapping|capacity)\.hpp",
    "src/collective": r"cluster/|topoplace/(cluster_state|match|partition|mapping|capacity|flow)\.hpp",
    "src/flow/general": r"flow/(?!general/)",
    "src/flow/scheduling": r"flow/(?!scheduling/|general/arc_lists)",
    "src/flow/scheduling/assignment": r"flow/(?!scheduling/assignment/)",
    "c_interface": r"pybind11|topoplace/",  # it asks Python for everything
    "tests": r"pybind11|Python\.h",
    "fuzz": r"pybind11|Python\.h",
}


@pytest.mark.parametrize("folder", FORBIDDEN)
def test_cpp_layers(repository: Path, folder: str) -> None:
    wrong = [
        f"{path.relative_to(repository)} includes {include}"
        for path in (repository / "cpp" / folder).rglob("*.?pp")
        for include in INCLUDE.findall(path.read_text("utf-8"))
        if re.match(FORBIDDEN[folder], include)
    ]
    assert not wrong


# Errors are values, and programs that embed the library keep their process, their output and their threads.
NOT_IN_THE_CORE = {
    "throws or catches": r"\b(?:throw|try|catch)\b",
    "ends the process": r"\b(?:exit|_Exit|quick_exit|abort|terminate) ?\(",
    "prints": r"\bstd::(?:cout|cerr|clog)\b|\b(?:printf|fprintf|puts|fputs) ?\(",
    "has mutable global state": r"\bthread_local\b|^ *static (?!const)[^()]*;"
    r"|^(?!(?:using|const\w*|inline const\w*|static|struct|class|enum|extern|friend|concept)\b)"
    r"\w[\w:<>,*& ]* \w+(?: = .*|\{.*\})?;",
}


@pytest.mark.parametrize("what", NOT_IN_THE_CORE)
@pytest.mark.parametrize("folder", ["include", "src"])
def test_the_core_leaves_the_process_alone(repository: Path, folder: str, what: str) -> None:
    wrong = [
        f"{path.relative_to(repository)} {what}: {found[0].strip()}"
        for path in (repository / "cpp" / folder).rglob("*.?pp")
        if path.name != "assert.hpp"  # in tests alone
        for found in re.finditer(
            NOT_IN_THE_CORE[what],
            re.sub(r'//.*|"(?:\\.|[^"\\])*"', "", path.read_text("utf-8")),
            re.MULTILINE,
        )
    ]
    assert not wrong
