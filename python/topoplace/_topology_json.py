"""The JSON form of a topology: canonical, versioned, and checked when it is read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

from topoplace import _checks
from topoplace.devices import GPU_KEYS, Gpu, Nic
from topoplace.errors import TopologyError
from topoplace.links import parsed_links

if TYPE_CHECKING:
    from topoplace.topology import Topology

FORMAT = "topoplace.topology"
VERSION = 1

_SETTINGS = ("name", "default", "network")
_LISTS = ("gpus", "links", "nics")
_NIC_KEYS = ("name", "paths")


def written(topology: Topology) -> str:
    """`topology` as canonical JSON: keys sorted, no blanks, ASCII; equal content gives equal text."""
    data = {
        "format": FORMAT,
        "version": VERSION,
        "name": topology.name,
        "default": topology.default,
        "network": topology.network,
        "gpus": [{key: getattr(gpu, key) for key in GPU_KEYS} for gpu in topology.gpus],
        "links": [(u, v, link.gbps, link.kind.value, link.lanes) for u, v, link in topology.links],
        "nics": [asdict(nic) for nic in topology.nics],
    }
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def parsed(text: str) -> dict[str, Any]:
    """The fields of the `Topology` that `text` describes; their values are still to be checked by it."""
    try:
        data = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise TopologyError(f"not JSON: {error}") from None
    record = _record(data, "the text", ("format", "version", *_SETTINGS, *_LISTS))
    if (record["format"], record["version"]) != (FORMAT, VERSION):
        found = _checks.shown((record["format"], record["version"]))
        raise TopologyError(f"format and version = {found}, not {(FORMAT, VERSION)}")
    gpus, nics = (_checks.sequence(record[key], key, TopologyError) for key in ("gpus", "nics"))
    return {key: record[key] for key in _SETTINGS} | {
        "gpus": tuple(Gpu(i, **_record(gpu, f"gpus[{i}]", GPU_KEYS)) for i, gpu in enumerate(gpus)),
        "links": parsed_links(record["links"], "links"),
        "nics": tuple(Nic(**_record(nic, f"nics[{i}]", _NIC_KEYS)) for i, nic in enumerate(nics)),
    }


def _record(value: object, what: str, keys: Iterable[str]) -> dict[str, Any]:
    """`value` as a dict with exactly `keys`."""
    if not isinstance(value, dict):
        raise TopologyError(f"{what} = {_checks.shown(value)} is not an object")
    record = cast("dict[str, Any]", value)
    for key in sorted(record.keys() ^ set(keys)):
        raise TopologyError(f"{what} has {'no' if key in keys else 'an unknown'} key {key!r}")
    return record
