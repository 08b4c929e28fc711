"""Discovery of this host's GPUs by the libraries and tools of their vendors; the other readers parse the output.

Only this module and `programs` run programs or read the machine's own files.
"""

from __future__ import annotations

import contextlib
import csv
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from topoplace.discovery.amd import kfd, smi_tables
from topoplace.discovery.hwloc import hwloc_xml
from topoplace.discovery.linux import numactl
from topoplace.discovery.live import nvml, programs
from topoplace.discovery.live.programs import NotHereError
from topoplace.discovery.nvidia import nvml_objects, topo_matrix
from topoplace.errors import TopologyError
from topoplace.topology.devices import Gpu
from topoplace.topology.topology import Topology

_TIMEOUT_S = 60.0
"""Time limit of a tool; one that takes longer probably hangs."""
_KFD_TREE = "/sys/class/kfd/kfd/topology"
_QUERY = ("index", "name", "uuid", "pci.bus_id", "memory.total")
_MIB = 1 << 20


def discover(*, kfd_tree: str | os.PathLike[str] = _KFD_TREE) -> Topology:
    """Return this host's topology from the first source that finds a GPU, with sockets and CPUs completed by `numactl`.

    Sources, in this order: NVML (the extra `nvml`), nvidia-smi, AMD's driver (`kfd_tree`), rocm-smi, lstopo of hwloc.
    If all fail, raise TopologyError with the reason of each.
    """
    sources: dict[str, Callable[[], Topology]] = {
        "NVML": _from_nvml,
        "nvidia-smi": _from_nvidia_smi,
        kfd_tree.__fspath__() if isinstance(kfd_tree, os.PathLike) else kfd_tree: lambda: _from_kfd(
            Path(kfd_tree)
        ),
        "rocm-smi": _from_rocm_smi,
        "lstopo": _from_lstopo,
    }
    silent: list[str] = []
    for name, source in sources.items():
        try:
            return _with_numa(source())
        except (NotHereError, TopologyError) as reason:
            silent.append(f"{name}: {reason}")
    raise TopologyError("\n  ".join(("no GPU found; tried:", *silent)))


def _from_nvml() -> Topology:
    library = nvml.initialised()
    try:
        return nvml_objects.topology_of(library)
    except library.NVMLError as error:
        raise NotHereError(str(error)) from None
    finally:
        library.nvmlShutdown()


def _from_nvidia_smi() -> Topology:
    rows = list(
        _table(_output("nvidia-smi", f"--query-gpu={','.join(_QUERY)}", "--format=csv,noheader,nounits"))
    )
    matrix = _output("nvidia-smi", "topo", "-m")
    models = {row["name"] for row in rows}
    known = models.pop() if len(models) == 1 else None
    try:
        topology = topo_matrix.parse(matrix, known)
    except TopologyError:
        topology = topo_matrix.parse(matrix)  # a model without NVLinks is unknown to the parser
    by_name = {f"GPU{row['index']}": row for row in rows}
    gpus = [_described(gpu, by_name.get(gpu.name)) for gpu in topology.gpus]
    return replace(topology, gpus=tuple(gpus))


def _described(gpu: Gpu, row: dict[str, str] | None) -> Gpu:
    if row is None:
        return gpu
    memory = row["memory.total"]
    return replace(
        gpu,
        model=gpu.model or row["name"],
        uuid=row["uuid"] or None,
        bus_id=row["pci.bus_id"] or None,
        memory_gb=float(memory) * _MIB / 1e9 if memory.isdecimal() and int(memory) else gpu.memory_gb,
    )


def _table(text: str) -> Iterator[dict[str, str]]:
    for cells in csv.reader(text.splitlines(), skipinitialspace=True):
        if len(cells) == len(_QUERY):
            yield dict(zip(_QUERY, map(str.strip, cells), strict=True))


def _from_kfd(tree: Path) -> Topology:
    if not (tree / "nodes").is_dir():
        raise NotHereError("no such directory")
    return kfd.parse(_files(tree))


def _files(tree: Path) -> dict[str, bytes]:
    """Return the content of the files that `kfd.parse` needs, by their path below `tree`, AMD's driver directory.

    Files without read permission are left out; in a container these belong to GPUs that it was not given.
    """
    found: dict[str, bytes] = {}
    for pattern in ("properties", "io_links/*/properties", "mem_banks/*/properties"):
        for path in tree.glob(f"nodes/*/{pattern}"):
            with contextlib.suppress(PermissionError), path.open("rb") as file:
                found[path.relative_to(tree).as_posix()] = file.read(kfd.MAX_FILE_BYTES + 1)
    return found


def _from_rocm_smi() -> Topology:
    return smi_tables.parse(_output("rocm-smi", "--showtopo"))


def _from_lstopo() -> Topology:
    program = "lstopo-no-graphics" if programs.found("lstopo-no-graphics") else "lstopo"
    return hwloc_xml.parse(_output(program, "--of", "xml", "--whole-io"))


def _with_numa(topology: Topology) -> Topology:
    """Return `topology` with sockets and CPUs from `numactl` if it runs and agrees, else unchanged."""
    if all(gpu.numa_node is None for gpu in topology.gpus) or all(gpu.cpus for gpu in topology.gpus):
        return topology
    try:
        return numactl.joined(topology, numactl.parse(_output("numactl", "--hardware")))
    except (NotHereError, TopologyError):
        return topology


def _output(program: str, *arguments: str) -> str:
    return programs.output(program, arguments, _TIMEOUT_S)
