"""JSON of a topology: canonical, versioned, and checked when read.

Version 1 is one list of GPUs and one of links. Version 2 adds components, partitions, notes, kinds of links of assumed
speed, and weights of distances.
It also adds clusters, which list their templates and the template of every machine.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from topoplace import _checks
from topoplace.errors import TopologyError
from topoplace.topology.devices import GPU_KEYS, NIC_KEYS, Component, ComponentKind, Gpu, Nic, written_device
from topoplace.topology.fabric import MAX_MACHINES, Fabric, Level, checked_notes
from topoplace.topology.links.distance import DISTANCES, DistanceWeights
from topoplace.topology.links.link_kinds import Link, LinkKind
from topoplace.topology.tiling import Tiling
from topoplace.topology.topology import Topology
from topoplace.topology.validate import parsed_links

FORMAT = "topoplace.topology"

_KEYS = ("name", "default", "network", "gpus", "links", "nics")
_EXTRA_KEYS = ("components", "component_links", "partitions", "notes", "assumed", "distances")
_GPU_KEYS_1, _NIC_KEYS_1 = 5, 2
"""The number of keys that a GPU and an adapter always have in the JSON; version 1 has no others."""
_CLUSTER_KEYS = ("name", "network", "templates", "machines", "template_of", "levels")
_CLUSTER_EXTRA_KEYS = ("notes", "distances", "uuids")
_SPEED_KEY = "gbps"
"""The key for `gb_per_s` in both versions of the format, which are older than the field's name."""
_LEVEL_KEYS = ("name", _SPEED_KEY, "oversubscription", "kind", "rail", "domains", "domain_of")
_EXTRA_LEVEL_KEYS = ("pxn",)
_WEIGHTS = ("direct", "pcie", "host", "system", "network", "levels")
_EXTRA_WEIGHTS = ("pcie_bridges", "host_bridges")


# ---- writing ---------------------------------------------------------------------------------------------------


def written(topology: Topology) -> str:
    """Return `topology` as canonical JSON: keys sorted, no blanks between values, ASCII. Equal content gives equal
    text.
    """
    record = _flat(topology) if topology.tiling is None else _cluster(topology, topology.tiling)
    version = 1 if record.keys() == set(_KEYS) and _fits_version_1(record) else 2
    record |= {"format": FORMAT, "version": version}
    return json.dumps(record, sort_keys=True, separators=(",", ":"))


def _fits_version_1(record: Mapping[str, Any]) -> bool:
    gpus, nics = record["gpus"], record["nics"]
    return all(len(gpu) <= _GPU_KEYS_1 for gpu in gpus) and all(len(nic) <= _NIC_KEYS_1 for nic in nics)


def _flat(topology: Topology) -> dict[str, Any]:
    record = {
        "name": topology.name,
        "default": topology.default,
        "network": topology.network,
        "gpus": [written_device(gpu) for gpu in topology.gpus],
        "links": [_row(*entry) for entry in topology.links],
        "nics": [_written_nic(nic) for nic in topology.nics],
    }
    extra = {
        "components": [_written_component(part) for part in topology.components],
        "component_links": [_row(*entry) for entry in topology.component_links],
        "partitions": topology.partitions,
        "assumed": [kind.value for kind in topology.assumed],
    }
    return record | {key: value for key, value in extra.items() if value} | _remarks(topology)


def _written_component(part: Component) -> tuple[str, ...]:
    return (part.kind.value, part.name, *([part.cpu] if part.cpu else []))


def _written_nic(nic: Nic) -> dict[str, Any]:
    return {_SPEED_KEY if key == "gb_per_s" else key: value for key, value in written_device(nic).items()}


def _row(u: int, v: int, link: Link) -> tuple[int, int, float, str, int]:
    return u, v, link.gb_per_s, link.kind.value, link.lanes


def _remarks(topology: Topology) -> dict[str, Any]:
    record: dict[str, Any] = {"notes": topology.notes} if topology.notes else {}
    if topology.distances != DISTANCES["sc17"]:
        weights = {key: getattr(topology.distances, key) for key in _WEIGHTS}
        extra = {key: getattr(topology.distances, key) for key in _EXTRA_WEIGHTS}
        weights |= {key: weight for key, weight in extra.items() if weight is not None}
        record["distances"] = weights | {"levels": dict(topology.distances.levels)}
    return record


def _cluster(topology: Topology, tiling: Tiling) -> dict[str, Any]:
    record = {
        "name": topology.name,
        "network": topology.network,
        "templates": [_flat(template) for template in tiling.templates],
        "machines": tiling.fabric.machines,
        "template_of": tiling.template_of,
        "levels": [_level(level) for level in tiling.fabric.levels],
    }
    return record | ({"uuids": tiling.uuids} if tiling.uuids else {}) | _remarks(topology)


def _level(level: Level) -> dict[str, Any]:
    names = [domain for domain in dict.fromkeys(level.domains) if domain is not None]
    number: dict[str | None, int | None] = {domain: i for i, domain in enumerate(names)}
    values = {_SPEED_KEY: level.gb_per_s} | {
        key: getattr(level, key) for key in ("name", "oversubscription", "rail")
    }
    values |= {key: True for key in _EXTRA_LEVEL_KEYS if getattr(level, key)}
    places = [number.get(domain) for domain in level.domains]
    return values | {"kind": level.kind.value, "domains": names, "domain_of": places}


# ---- reading ---------------------------------------------------------------------------------------------------


def parsed(text: str) -> Topology:
    """Return the topology that the JSON `text` describes; TopologyError names the fault of any other text."""
    _checks.refuse_path(text, "text", TopologyError)
    try:
        data = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise TopologyError(f"not JSON: {error}") from None
    if not isinstance(data, dict):
        raise TopologyError(f"the text = {_checks.shown(data)} is not an object")
    record = dict(cast("dict[str, Any]", data))
    for key in ("format", "version"):
        if key not in record:
            raise TopologyError(f"the text has no key {key!r}")
    kind, version = record.pop("format"), record.pop("version")
    if kind != FORMAT or type(version) is not int or version not in (1, 2):
        found = _checks.shown((kind, version))
        raise TopologyError(f"format and version = {found}, not {(FORMAT, 1)} or {(FORMAT, 2)}")
    if version == 2 and "templates" in record:
        return _read_cluster(record)
    return Topology(**_fields(record, "the text", _EXTRA_KEYS if version == 2 else ()))


def _fields(value: object, what: str, extra: Collection[str]) -> dict[str, Any]:
    """Return the constructor arguments of the `Topology` that the JSON object `value` describes.

    extra: the optional keys that are allowed. The constructor checks the content.
    """
    record = _record(value, what, _KEYS, extra)
    gpus, nics, parts = (
        _checks.sequence(record.get(key, ()), key, TopologyError) for key in ("gpus", "nics", "components")
    )
    fields: dict[str, Any] = {key: record[key] for key in ("name", "default", "network")} | {
        "gpus": tuple(
            Gpu(i, **_record(gpu, f"gpus[{i}]", GPU_KEYS[:_GPU_KEYS_1], GPU_KEYS[_GPU_KEYS_1:]))
            for i, gpu in enumerate(gpus)
        ),
        "links": parsed_links(record["links"], "links"),
        "nics": tuple(_read_nic(nic, f"nics[{i}]") for i, nic in enumerate(nics)),
        "components": tuple(_component(part, f"components[{i}]") for i, part in enumerate(parts)),
        "component_links": parsed_links(record.get("component_links", ()), "component_links"),
        "partitions": record.get("partitions", ()),
        "notes": record.get("notes", ()),
        "assumed": record.get("assumed", ()),
    }
    return fields | _read_distances(record)


def _read_nic(value: object, what: str) -> Nic:
    keys = [_SPEED_KEY if key == "gb_per_s" else key for key in NIC_KEYS]
    record = _record(value, what, keys[:_NIC_KEYS_1], keys[_NIC_KEYS_1:])
    return Nic(gb_per_s=record.pop(_SPEED_KEY, None), **record)


def _component(value: object, what: str) -> Component:
    parts = _checks.sequence(value, what, TopologyError)
    if len(parts) not in (2, 3) or parts[0] not in [kind.value for kind in ComponentKind]:
        raise TopologyError(f"{what} = {_checks.shown(parts)} is not the kind and the name of a component")
    return Component(ComponentKind(parts[0]), *parts[1:])


def _read_distances(record: Mapping[str, Any]) -> dict[str, DistanceWeights]:
    if "distances" not in record:
        return {}
    return {
        "distances": DistanceWeights(**_record(record["distances"], "distances", _WEIGHTS, _EXTRA_WEIGHTS))
    }


def _read_cluster(value: dict[str, Any]) -> Topology:
    record = _record(value, "the text", _CLUSTER_KEYS, _CLUSTER_EXTRA_KEYS)
    distances = _read_distances(record).get("distances", DISTANCES["sc17"])
    listed = _checks.sequence(record["templates"], "templates", TopologyError)
    weights: dict[str, Any] = {"distances": distances}
    templates = [
        Topology(**_fields(one, f"templates[{i}]", _EXTRA_KEYS) | weights) for i, one in enumerate(listed)
    ]
    for i, template in enumerate(templates):
        if template.machine_names != ("machine0",):
            raise TopologyError(f"templates[{i}] is not of one machine called machine0")
    if not templates:
        raise TopologyError("templates has 0 entries")
    template_of = _numbers(record["template_of"], "template_of", len(templates))
    rows = _checks.sequence(record["levels"], "levels", TopologyError)
    name = _checks.text(record["name"], "name", TopologyError)
    fabric = Fabric(
        _checks.sequence(record["machines"], "machines", TopologyError),
        tuple(_read_level(row, f"levels[{i}]") for i, row in enumerate(rows)),
        name,
    )
    if len(template_of) != len(fabric.machines):
        raise TopologyError(f"template_of has {len(template_of)} entries for {len(fabric.machines)} machines")
    machines = [templates[number] for number in template_of]
    network = _checks.real(record["network"], "network", TopologyError)
    notes = checked_notes(record.get("notes", ()))
    tiling = Tiling.of(machines, fabric, _read_uuids(record, machines))
    return Topology(tiling=tiling, network=network, name=name, notes=notes, distances=distances)


def _read_uuids(
    record: Mapping[str, Any], machines: Sequence[Topology]
) -> tuple[tuple[str | None, ...], ...]:
    if "uuids" not in record:
        return ()
    rows = _checks.sequence(record["uuids"], "uuids", TopologyError)
    if len(rows) != len(machines):
        raise TopologyError(f"uuids has {len(rows)} entries for {len(machines)} machines")
    checked: list[tuple[str | None, ...]] = []
    for i, (row, machine) in enumerate(zip(rows, machines, strict=True)):
        names = _checks.sequence(row, f"uuids[{i}]", TopologyError)
        if names and len(names) != machine.num_gpus:
            raise TopologyError(f"uuids[{i}] has {len(names)} entries for {machine.num_gpus} GPUs")
        checked.append(
            tuple(
                None if name is None else _checks.text(name, f"uuids[{i}][{j}]", TopologyError)
                for j, name in enumerate(names)
            )
        )
    return tuple(checked)


def _numbers(value: object, what: str, count: int) -> list[int]:
    """Return `value` as a list, after checking that each entry is an index in 0..count - 1."""
    places = _checks.sequence(value, what, TopologyError)
    return [
        _checks.integer(place, f"{what}[{i}]", TopologyError, low=0, high=count - 1)
        for i, place in enumerate(places)
    ]


def _read_level(value: object, what: str) -> Level:
    record = _record(value, what, _LEVEL_KEYS, _EXTRA_LEVEL_KEYS)
    names = _checks.sequence(record.pop("domains"), f"{what}.domains", TopologyError)
    numbers = _checks.sequence(record.pop("domain_of"), f"{what}.domain_of", TopologyError)
    high = min(len(names), MAX_MACHINES) - 1
    domains = tuple(
        None
        if number is None
        else names[_checks.integer(number, f"{what}.domain_of[{i}]", TopologyError, low=0, high=high)]
        for i, number in enumerate(numbers)
    )
    kind = record.pop("kind")
    if kind not in ("network", "nvswitch"):
        raise TopologyError(f"{what}.kind = {_checks.shown(kind)} is neither network nor nvswitch")
    gb_per_s = record.pop(_SPEED_KEY)
    return Level(domains=domains, gb_per_s=gb_per_s, kind=LinkKind(kind), **record)


def _record(value: object, what: str, keys: Collection[str], extra: Collection[str]) -> dict[str, Any]:
    """Return `value` as a dict; TopologyError unless it has all of `keys`, and no other keys than those in `extra`."""
    if not isinstance(value, dict):
        raise TopologyError(f"{what} = {_checks.shown(value)} is not an object")
    record = cast("dict[str, Any]", value)
    for key in sorted(set(keys) - record.keys()):
        raise TopologyError(f"{what} has no key {key!r}")
    for key in sorted(record.keys() - {*keys, *extra}):
        raise TopologyError(f"{what} has an unknown key {key!r}")
    return record
