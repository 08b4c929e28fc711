"""The network adapters that NCCL and RCCL should use if their default would be wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from topoplace.topology.makers import Maker, maker_of
from topoplace.topology.nearest_adapters import adapters_machine, nearest_adapters
from topoplace.topology.topology import Topology

_RDMA_DEVICE: Final = re.compile(r"mlx[45]_\w+|bnxt_re\w+|rocep\w+|ibp\w+", re.ASCII)
"""The name of an adapter as ibv_devices lists it, which NCCL_IB_HCA takes; not that of a network interface."""
_LIBRARY_MAKERS: Final = (Maker.NVIDIA, Maker.AMD)


def adapter_variables(topology: Topology, gpus: Sequence[int], machine: str) -> dict[str, str]:
    """Return NCCL_IB_HCA with the adapters nearest to `gpus`, which a job of several machines uses on `machine`.

    By default NCCL may take any adapter of a machine, also one for storage or for the GPUs of other jobs. Return {} if
    all adapters are nearest to some GPU of the job, or if the nearest ones are unknown: for adapters without names of
    RDMA devices, or a GPU of another machine. The value begins with "=", as "mlx5_1" alone would also mean "mlx5_10".
    An adapter without ":" and a port means all its ports.
    """
    if any(topology.gpus[gpu].machine != machine for gpu in gpus):
        return {}
    found = adapters_machine(topology, gpus[0])
    if found is None or any(maker_of(topology, gpu) not in _LIBRARY_MAKERS for gpu in gpus):
        return {}
    names = [nic.name for nic in found.nics]
    nearest = found.derived(nearest_adapters)
    used = frozenset[str]().union(*(nearest[topology.local_index[gpu]] for gpu in gpus))
    if len(used) == len(names) or not all(map(_RDMA_DEVICE.fullmatch, names)):
        return {}
    return {"NCCL_IB_HCA": "=" + ",".join(name for name in names if name in used)}
