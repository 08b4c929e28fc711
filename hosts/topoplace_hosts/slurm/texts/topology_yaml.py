"""Reader of Slurm's `topology.yaml` as a Fabric: one of its topologies, of switches, blocks, rings or toruses.

The text is a list. Each entry has a name, `cluster_default`, and the content of a `topology.conf`: `tree` with
`switches`, `block` with `blocks` and `block_sizes`, or `ring` with `rings`. `torus3d` gives the level "torus" of nodes
that share a torus; their places in it are left out with a note. `flat` names no nodes, and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from topoplace import _checks
from topoplace.discovery.text import decode, host_list, yaml_tree
from topoplace.discovery.text.yaml_tree import Fields
from topoplace.errors import TopologyError
from topoplace.topology.fabric import Fabric, Level
from topoplace_hosts.slurm.texts import topology_conf
from topoplace_hosts.slurm.texts.conf_records import ConfRecord

_TREE, _BLOCK, _RING, _FLAT, _TORUS = "tree", "block", "ring", "flat", "torus3d"
# For each kind: the key of its list, the key of a member's name there, and the key of that name in a topology.conf.
_MEMBERS = {
    _TREE: ("switches", "switch", "switchname"),
    _BLOCK: ("blocks", "block", "blockname"),
    _RING: ("rings", "ring", "ringname"),
}
_NAMED = re.compile(r"^-[ \t]+[\"']?topology[\"']?:[ \t]*\S", re.MULTILINE)
_KIND = re.compile(r"^[ \t]+(?:tree|block|ring|flat|torus3d):", re.MULTILINE)


def recognised(text: str) -> bool:
    """Return True if `text` looks like a `topology.yaml`."""
    return _NAMED.search(text) is not None and _KIND.search(text) is not None


def parse(
    data: str | bytes, *, topology: str | None = None, name: str = "slurm", allow_dangling: bool = False
) -> Fabric:
    """Read the fabric of one of the topologies in `data`, the text of a `topology.yaml`.

    topology: its name; None means the only one, or the first with `cluster_default: true`, as in Slurm. The levels and
    allow_dangling are those of `topology_conf.parse`.
    Raises TopologyError naming the line.
    """
    if topology is not None:
        _checks.text(topology, "topology", TopologyError)
    entries = list(_entries(decode.decoded(data, "topology.yaml")))
    names = [entry["topology"] for entry in entries]
    chosen = _chosen(entries, names, topology)
    kind = _kind(chosen)
    notes = (
        [f"This is {names[entries.index(chosen)]} of the topologies {_checks.some(names)}."]
        if names[1:]
        else []
    )
    if kind == _TORUS:
        return _toruses(chosen, name, notes)
    records = list(_records(chosen, kind))
    return topology_conf.of_records(records, name, "topology.yaml", notes, allow_dangling=allow_dangling)


def _toruses(entry: Fields, name: str, notes: Sequence[str]) -> Fabric:
    """Return a fabric in which nodes of one torus are a domain of the level "torus"."""
    body = yaml_tree.fields(entry[_TORUS], _TORUS)
    torus_of: dict[str, str] = {}
    for item in yaml_tree.items(body, "toruses"):
        torus = yaml_tree.fields(item, "a torus")
        label = _checks.text(yaml_tree.scalar(torus, "name"), f"{yaml_tree.at(torus)}name", TopologyError)
        regions = [yaml_tree.fields(region, "a region") for region in yaml_tree.items(torus, "regions")]
        for part in (torus, *regions):
            listed = yaml_tree.scalar(part, "nodes")
            for node in host_list.expanded(listed, f"{yaml_tree.at(part)}nodes") if listed else ():
                if node in torus_of:
                    raise TopologyError(f"{yaml_tree.at(part)}node {_checks.shown(node)} appears twice")
                torus_of[node] = label
    if not torus_of:
        raise TopologyError(f"{yaml_tree.at(body)}topology {_checks.shown(entry['topology'])} has no nodes")
    notes = (*notes, "The places of nodes in a torus form no levels, and are left out.")
    return Fabric(tuple(torus_of), (Level("torus", tuple(torus_of.values())),), name, notes)


def _entries(text: str) -> Iterator[Fields]:
    documents = [one for one in yaml_tree.documents(text, "topology.yaml") if one is not None]
    if len(documents) != 1 or not isinstance(documents[0], yaml_tree.Items) or not documents[0]:
        raise TopologyError("topology.yaml is one list of topologies")
    seen: set[str] = set()
    for i, item in enumerate(documents[0]):
        entry = yaml_tree.fields(item, f"topology {i}")
        if yaml_tree.scalar(entry, "topology") is None:
            raise TopologyError(f"{yaml_tree.at(entry)}an entry has no topology, its name")
        if entry["topology"] in seen:
            raise TopologyError(
                f"{yaml_tree.at(entry)}topology {_checks.shown(entry['topology'])} appears twice"
            )
        seen.add(entry["topology"])
        yield entry


def _chosen(entries: list[Fields], names: list[str], topology: str | None) -> Fields:
    defaults = [
        entry for entry in entries if (yaml_tree.scalar(entry, "cluster_default") or "").lower() == "true"
    ]
    if topology is None and (len(entries) == 1 or defaults):
        return (defaults or entries)[0]
    if topology is None:
        raise TopologyError(f"none of {_checks.some(names)} has cluster_default: choose one with topology=")
    if topology not in names:
        raise TopologyError(f"topology = {_checks.shown(topology)} is none of {_checks.some(names)}")
    return entries[names.index(topology)]


def _kind(entry: Fields) -> str:
    name = _checks.shown(entry["topology"])
    kinds = [kind for kind in (*_MEMBERS, _FLAT, _TORUS) if kind in entry]
    if len(kinds) != 1:
        raise TopologyError(
            f"{yaml_tree.at(entry)}topology {name} has {len(kinds)} of tree, block, ring, flat, torus3d"
        )
    if kinds[0] == _FLAT:
        raise TopologyError(
            f"{yaml_tree.at(entry)}topology {name} is flat: all nodes are equally near, and it names none; "
            "`scontrol show node` lists them"
        )
    return kinds[0]


def _records(entry: Fields, kind: str) -> Iterator[ConfRecord]:
    """Yield the records of a `topology.conf` with the same content as `entry`."""
    members, named, key = _MEMBERS[kind]
    body = yaml_tree.fields(entry[kind], kind)
    sizes = yaml_tree.items(body, "block_sizes")
    if sizes:
        yield ConfRecord(yaml_tree.line_of(sizes), {"blocksizes": ",".join(map(str, sizes))})
    listed = yaml_tree.items(body, members)
    if not listed:
        raise TopologyError(
            f"{yaml_tree.at(body)}topology {_checks.shown(entry['topology'])} has no {members}"
        )
    for i, item in enumerate(listed):
        member = yaml_tree.fields(item, f"{named} {i}")
        words = {key: named, "nodes": "nodes", "switches": "children"}
        values = {word: value for word, name in words.items() if (value := yaml_tree.scalar(member, name))}
        if kind == _BLOCK and "nodes" in member:
            values.setdefault("nodes", "")  # a block without nodes fills a larger one
        if key not in values:
            raise TopologyError(f"{yaml_tree.at(member)}an entry of {members} has no {named}, its name")
        yield ConfRecord(yaml_tree.line_of(member), values)
