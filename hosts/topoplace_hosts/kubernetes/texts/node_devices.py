"""The GPUs and MIG slices of a Kubernetes node, by its labels and capacity."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from topoplace.discovery.nvidia.mig import slices_of
from topoplace.errors import TopologyError
from topoplace.topology import makers
from topoplace.topology.links.link_kinds import capability_of
from topoplace_hosts.kubernetes.texts.node_record import NodeRecord

GPU = "nvidia.com/gpu"
"""The resource, and the prefix of the labels, of GPUs."""
MIG_COUNT = re.compile(r"nvidia\.com/mig-(([1-8])g\.[0-9]+gb(?:\.me)?(?:\+[a-z.]+)?)\.count")
"""The label of a number of MIG slices of one profile."""
MIG_CAPACITY = re.compile(r"nvidia\.com/mig-(([1-8])g\.([0-9]+)gb(?:\.me)?(?:\+[a-z.]+)?)")
"""The resource of MIG slices of one profile."""

ACCELERATOR = re.compile(
    r"(?:[\w-]+\.)+[\w-]+/(?:gpu|tpu|npu|xpu|gcu|dcu(?:num)?|mlu|gaudi[0-9]?|neuron(?:device)?|i915|xe|Ascend\w+)"
)
"""A resource that counts whole accelerators, of any vendor."""
_MODELS = (
    f"{GPU}.product",
    "amd.com/gpu.product-name",
    "beta.amd.com/gpu.product-name",
    "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-tpu-accelerator",
    "gpu.nvidia.com/model",
    "eks.amazonaws.com/instance-gpu-name",
    "karpenter.k8s.aws/instance-gpu-name",
    "karpenter.azure.com/sku-gpu-name",
    "k8s.amazonaws.com/accelerator",
    "node.kubernetes.io/npu.chip.name",
    "accelerator",
)
"""Labels with the model of a node's accelerators; the first that a node has counts."""
_MAKER = re.compile(r"nvidia|amd|intel|habana|huawei|true", re.IGNORECASE)
"""Values of such labels that name only the maker, such as accelerator=nvidia of AKS."""
_INSTANCE_TYPES = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_SIZE_OF_AZURE = re.compile(r"Standard_N[CDG][0-9]\w*?_([A-Z]+[0-9]+[A-Z]*)_v[0-9]+")
"""A size of Azure's machines with whole GPUs, with their model, such as Standard_ND96isr_H100_v5."""
_OF_AZURE = "Standard_"
"""The start of Azure's sizes. Some of these have only a part of the GPU that they name."""
_MODEL_OF_AMD = re.compile(r"MI[0-9]{3}[A-Z]?")
_SHORTEST_MODEL = 3
"""The least number of characters of a model in a type of instance: a2 of Google's a2-highgpu-8g is none."""
PARTITION = re.compile(r"(?:amd\.com/)?((?:dpx|tpx|qpx|cpx)_nps[0-9])", re.IGNORECASE)
"""A mode that cuts AMD's GPUs into parts, and the resource that counts such parts."""
_PARTITIONS = (
    "amd.com/gpu.compute-memory-partition",
    "beta.amd.com/gpu.compute-memory-partition",
    "amd.com/compute-memory-partition",
    "beta.amd.com/compute-memory-partition",
)
_STRATEGY = "nvidia.com/mig.strategy"
_PROFILE = re.compile(r"-MIG-([1-8])g\.[0-9]+gb\b.*|-SHARED$")
_COUNTS = (f"{GPU}.count", "cloud.google.com/gke-accelerator-count")
"""Labels with the number of a node's GPUs, however many pods share each; the first that a node has counts."""
_GKE_PROFILE = "cloud.google.com/gke-gpu-partition-size"


@dataclass(frozen=True, slots=True)
class Slices:
    """A number of equal devices on one node: whole GPUs, or MIG slices of one profile."""

    count: int
    model: str | None
    memory_gb: float | None
    fraction: float
    profile: str | None = None
    maker: str | None = None


def of(node: NodeRecord, whole_gpus: int | None) -> Iterator[Slices]:
    """Yield the whole GPUs and MIG slices of `node`, with equal devices together.

    whole_gpus: the number of GPUs without slices next to MIG slices of the strategy "mixed"; None takes the capacity.
    Raises TopologyError naming the node, for text in place of a number and for an unknown number of whole GPUs.
    """
    count = labelled_count(node)
    memory = _gigabytes(node.count("labels", f"{GPU}.memory"))
    model = _PROFILE.sub("", _model(node)) or None
    single = node.labels.get(_STRATEGY) == "single"
    mixed = [] if single else list(_labelled(node)) or list(_of_capacity(node, model))
    if mixed:
        yield Slices(_whole(node, whole_gpus), model, memory, 1.0)
        yield from mixed
    elif size := _size_of_slices(node, single):
        slices = count if single else node.count("resources", GPU)
        yield Slices(slices or count or 0, model, memory, _fraction(size, model, node), f"{size}g")
    else:
        yield from _accelerators(node, count, model, memory)


def labelled_count(node: NodeRecord) -> int | None:
    """Return the number of the node's GPUs by its labels; None if no label gives it."""
    return next((count for key in _COUNTS if (count := node.count("labels", key)) is not None), None)


def _size_of_slices(node: NodeRecord, single: bool) -> int | None:
    """Return of how many slices the equal MIG devices are that the node gives away in place of GPUs; None for GPUs."""
    if single and (size := node.count("labels", f"{GPU}.slices.gi")):
        return size
    named = _PROFILE.search(_model(node)) or re.match(r"([1-8])g\.", node.labels.get(_GKE_PROFILE, ""))
    return int(named[1]) if named and named[1] else None


def instance_type(node: NodeRecord) -> str:
    """Return the cloud's type of the machine, such as p5.48xlarge; "" if no label gives it."""
    return next((node.labels[key] for key in _INSTANCE_TYPES if node.labels.get(key)), "")


def _model(node: NodeRecord) -> str:
    """Return the model of the node's accelerators by a label or by the type of its instance; "" if neither tells."""
    named = (node.labels.get(key, "") for key in _MODELS)
    rented = _model_of_instance(instance_type(node))
    return next((name for name in named if name and not _MAKER.fullmatch(name)), rented)


def _model_of_instance(kind: str) -> str:
    """Return the model of whole GPUs that a type such as p6e-gb200.36xlarge names; "" if it names none."""
    if kind.startswith(_OF_AZURE):
        size = _SIZE_OF_AZURE.fullmatch(kind)
        return size[1] if size else ""
    words = (word for word in re.split(r"[^A-Z0-9]+", kind.upper()) if len(word) >= _SHORTEST_MODEL)
    return next((word for word in words if capability_of(word) or _MODEL_OF_AMD.fullmatch(word)), "")


def partition_of(node: NodeRecord) -> str:
    """Return the mode, such as cpx_nps4, that cuts each AMD GPU of the node into parts; "" if they are whole."""
    named = (node.labels.get(key, "") for key in _PARTITIONS)
    return next((name.lower() for name in named if PARTITION.fullmatch(name)), "")


def resource_of(node: NodeRecord) -> str:
    """Return the resource of the node's accelerators: NVIDIA's if it has one, else the first of another vendor."""
    return GPU if GPU in node.resources else next(filter(_counts_accelerators, node.resources), GPU)


def others(node: NodeRecord) -> Iterator[str]:
    """Yield each other kind of device that the node counts, such as network adapters, with its number."""
    for key in node.resources:
        known = key.startswith(("nvidia.com/gpu", "nvidia.com/mig-")) or _counts_accelerators(key)
        if (
            "/" in key
            and not known
            and not key.startswith("attachable-volumes")
            and node.resources[key] != "0"
        ):
            yield f"{key} ({node.resources[key]})"


def _accelerators(
    node: NodeRecord, count: int | None, model: str | None, memory: float | None
) -> Iterator[Slices]:
    """Yield the whole accelerators: the number of the label, else of the capacity, of each vendor that it counts."""
    if count is not None:
        yield Slices(count, model, memory, 1.0)
        return
    for key in filter(_counts_accelerators, node.resources):
        there = node.count("resources", key) or 0
        named = model or (None if key == GPU else _of_resource(key))
        parts = PARTITION.fullmatch(key)
        if mode := parts[1] if parts else partition_of(node) if key.startswith("amd.com/") else "":
            named = f"{model or 'AMD GPU'} {mode}"  # a part is no GPU of its model
        yield Slices(there, named, memory, 1.0, maker=makers.of_resource(key))


def _counts_accelerators(key: str) -> bool:
    """Return True for a resource that counts whole accelerators, or parts of AMD's."""
    return bool(ACCELERATOR.fullmatch(key) or PARTITION.fullmatch(key))


def _of_resource(key: str) -> str | None:
    """Return the model that the name of a resource is, such as Ascend910; None for a kind such as gpu."""
    name = key.rpartition("/")[2]
    return name if any(map(str.isdigit, name)) else None


def _whole(node: NodeRecord, given: int | None) -> int:
    """Return the number of whole GPUs next to MIG slices: the number `given`, or else that of the capacity."""
    whole = node.count("resources", GPU) if given is None else given
    if whole is None and not node.resources:
        raise TopologyError(
            f"{node.where}has MIG slices of the strategy 'mixed' and an unknown number of whole GPUs: "
            "give Node objects with their status, or whole_gpus="
        )
    return whole or 0


def _labelled(node: NodeRecord) -> Iterator[Slices]:
    """Yield the MIG slices that the labels of `node` count."""
    for key in node.labels:
        if match := MIG_COUNT.fullmatch(key):
            stem = key.removesuffix(".count")
            product = _PROFILE.sub("", node.labels.get(f"{stem}.product", "")) or None
            memory = _gigabytes(node.count("labels", f"{stem}.memory"))
            count = node.count("labels", key) or 0
            yield Slices(count, product, memory, _fraction(int(match[2]), product, node), match[1])


def _of_capacity(node: NodeRecord, model: str | None) -> Iterator[Slices]:
    """Yield the MIG slices that the capacity of `node` counts; their memory is that of the profile's name."""
    for key in node.resources:
        if match := MIG_CAPACITY.fullmatch(key):
            count, memory_gb = node.count("resources", key) or 0, float(match[3]) or None
            yield Slices(count, model, memory_gb, _fraction(int(match[2]), model, node), match[1])


def _fraction(slices: int, model: str | None, node: NodeRecord) -> float:
    """Return the share of a GPU's compute in a MIG slice of size `slices`; the size of a GPU of unknown model is 7."""
    whole = slices_of(model or "") or 7
    if slices > whole:
        raise TopologyError(f"{node.where}a MIG slice of {slices} of {whole}")
    return slices / whole


def _gigabytes(mebibytes: int | None) -> float | None:
    return mebibytes * 1.048576e-3 if mebibytes else None
