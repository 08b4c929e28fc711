"""Which format a text or file is in, told by its content, and the parser that reads it."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from topoplace import _checks
from topoplace.discovery.text import decode, tar_archive
from topoplace.errors import TopologyError

if TYPE_CHECKING:
    from topoplace.topology.fabric import Fabric
    from topoplace.topology.topology import Topology


@dataclass(frozen=True)
class Format:
    """A format and the module of `topoplace.discovery` that has `recognised` and `parse` for it."""

    name: str
    module: str

    def recognised(self, text: str) -> bool:
        """Whether `text` looks like this format; only parsing it tells whether it is."""
        found: bool = self._module().recognised(text)
        return found

    def parse(self, data: str | bytes, **options: Any) -> Any:
        """What `data` says; of `options` those that this format has a use for."""
        known = self.options
        return self._module().parse(data, **{key: value for key, value in options.items() if key in known})

    @property
    def options(self) -> dict[str, str]:
        """The arguments that say what a text leaves open, and their types as they are written."""
        _, *parameters = inspect.signature(self._module().parse).parameters.values()
        return {parameter.name: str(parameter.annotation) for parameter in parameters}

    def _module(self) -> Any:
        return importlib.import_module(f"topoplace.discovery.{self.module}")


# One line each; the first that recognises a text gets it.
FORMATS = (
    Format("rocm-smi or amd-smi topology", "amd.smi_tables"),
    Format("nvidia-smi topo -m", "nvidia.topo_matrix"),
    Format("nvidia-smi topo -p2p", "nvidia.topo_p2p"),
    Format("nvidia-smi nvlink", "nvidia.nvlink_status"),
    Format("nvidia-smi -L", "nvidia.gpu_list"),
    Format("NCCL topology", "nccl.system_xml"),
    Format("measured speeds", "measurements.p2p_and_nccl_tests"),
    Format("rocm-bandwidth-test", "measurements.rocm_bandwidth_test"),
    Format("KFD tree as tar", "amd.kfd"),
    Format("numactl --hardware", "linux.numactl"),
    Format("hwloc XML", "hwloc.hwloc_xml"),
    Format("lstopo text", "hwloc.lstopo_console"),
    Format("machines of SC'17", "research.hiest"),
    Format("gres.conf of Slurm", "slurm.gres"),
    Format("topology.conf of Slurm", "slurm.topology_conf"),
    Format("topology.yaml of Slurm", "slurm.topology_yaml"),
    Format("Kubernetes nodes", "cluster_managers.kubernetes_labels"),
    Format("HyperNodes of Volcano", "cluster_managers.volcano"),
    Format("HiveD configuration", "cluster_managers.hived"),
    Format("Topograph model", "cluster_managers.topograph"),
    Format("NetQ", "networks.netq"),
    Format("ibnetdiscover", "networks.ibnetdiscover"),
    Format("topoplace JSON", "own_json"),  # takes what begins as JSON and is no other's
)


def format_of(data: str | bytes) -> Format:
    """The format of `data`; TopologyError where none recognises it."""
    if isinstance(data, bytes) and tar_archive.is_tar(data):
        return next(found for found in FORMATS if found.module == "amd.kfd")
    text = decode.decoded(data)
    if not text.strip():
        raise TopologyError("the text is empty")
    for found in FORMATS:
        if found.recognised(text):
            return found
    start = _checks.shown(text.strip().split("\n", 1)[0])
    raise TopologyError(
        f"no known format begins with {start}; known: {', '.join(found.name for found in FORMATS)}"
    )


def read(data: str | bytes, *, format: str | None = None, **options: Any) -> Topology | Fabric | Any:
    """What `data`, in any format of `FORMATS`, describes.

    format: the name of one, where the content must not decide. options: such as gpu_model="A100", which the formats
    that need them take and the others ignore.
    Returns a Topology; of text about the network alone a Fabric, which `Topology.cluster` joins with machines; of
    text about CPUs or measured speeds alone what its parser says. Raises TopologyError with line and reason.
    """
    for key in options:
        if not any(key in found.options for found in FORMATS):
            raise TopologyError(f"{key} is an argument of no format")
    if format is None:
        return format_of(data).parse(data, **options)
    for found in FORMATS:
        if found.name == format:
            return found.parse(data, **options)
    raise TopologyError(
        f"format = {_checks.shown(format)} is none of {', '.join(found.name for found in FORMATS)}"
    )
