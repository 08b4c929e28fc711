"""A placement as a dictionary that JSON can represent, as `topoplace place --json` prints it."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from topoplace.launch.environment import slices_without_uuid
from topoplace.objectives.job_bandwidth import placed_bandwidth

if TYPE_CHECKING:
    from topoplace.placement import Placement


def as_dict(placement: Placement) -> dict[str, Any]:
    """Return a placement as JSON represents it; docs/schemas/place.json describes the fields."""
    is_unknown = placement.slices or placement.remote or slices_without_uuid(placement)
    return {
        "gpus": placement.gpus,
        **_communication_as_dict(placement),
        "optimal": placement.optimal,
        "bound": placement.bound,
        "scores": {name: value if math.isfinite(value) else None for name, value in placement.scores.items()},
        "slices": [list(one) for one in placement.slices],
        "resliced": placement.resliced,
        "hosts": [asdict(share) for share in placement.hosts],
        "remote": placement.remote,
        "drives": placement.drives,
        "env": None if is_unknown else placement.env(),
    }


def _communication_as_dict(placement: Placement) -> dict[str, Any]:
    """Return how a placed job communicates: seconds in a step, GB/s and the slowest port; null where it does not."""
    is_known = placement.job is not None and bool(placement.job.edges) and len(placement.gpus) > 1
    carried = placed_bandwidth(placement)
    return {
        "time": placement.time if is_known and placement.time < math.inf else None,
        "gb_per_s": carried.gb_per_s if 0 < carried.gb_per_s < math.inf else None,
        "nvls": carried.by_switches,
        "slowest": (placement.slowest or None) if is_known else None,
    }
