"""Which format a text or file is in, told by its content, and the parser that reads it."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from topoplace import _checks
from topoplace.discovery import _tar, _text
from topoplace.errors import TopologyError

if TYPE_CHECKING:
    from topoplace.fabric import Fabric
    from topoplace.topology import Topology


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
    Format("rocm-smi or amd-smi topology", "rocm"),
    Format("nvidia-smi topo -m", "nvidia_smi"),
    Format("nvidia-smi topo -p2p", "p2p"),
    Format("nvidia-smi nvlink", "nvlink"),
    Format("nvidia-smi -L", "nvidia_list"),
    Format("NCCL topology", "nccl"),
    Format("measured speeds", "measured"),
    Format("rocm-bandwidth-test", "rocm_bandwidth"),
    Format("KFD tree as tar", "kfd"),
    Format("numactl --hardware", "numactl"),
    Format("hwloc XML", "hwloc"),
    Format("lstopo text", "lstopo"),
    Format("machines of SC'17", "hiest"),
    Format("gres.conf of Slurm", "slurm_gres"),
    Format("topology.conf of Slurm", "slurm_topology"),
    Format("topology.yaml of Slurm", "slurm_topology_yaml"),
    Format("Kubernetes nodes", "kubernetes"),
    Format("HyperNodes of Volcano", "volcano"),
    Format("HiveD configuration", "hived"),
    Format("Topograph model", "topograph"),
    Format("NetQ", "netq"),
    Format("ibnetdiscover", "ibnetdiscover"),
    Format("topoplace JSON", "topoplace_json"),  # takes what begins as JSON and is no other's
)


def format_of(data: str | bytes) -> Format:
    """The format of `data`; TopologyError where none recognises it."""
    if isinstance(data, bytes) and _tar.is_tar(data):
        return next(found for found in FORMATS if found.module == "kfd")
    text = _text.decoded(data)
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
