"""The nodes in columns: the remaining amount of each resource, and the nodes that a pod may use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from topoplace_hosts.kubernetes.objects.node import Node
from topoplace_hosts.kubernetes.objects.pod import HostPort, Pod, Repulsion
from topoplace_hosts.kubernetes.scheduler.allowed_rows import AllowedRows, Mask


class NodeTable:
    """All nodes, a row each, and what remains there next to the bound pods.

    The first rows are the machines of a topology, in its order, whether Kubernetes knows them or not.
    """

    def __init__(self, machines: Sequence[str]) -> None:
        """machines: the names of the first rows."""
        self.row_of: dict[str, int] = {name: row for row, name in enumerate(machines)}
        self.nodes: list[Node | None] = [None] * len(machines)
        self._left: dict[str, NDArray[np.int64]] = {}
        self._ports: dict[int, Counter[HostPort]] = {}
        self._repulsions: dict[Repulsion, Counter[int]] = {}
        self._allowed = AllowedRows(self.nodes)

    def row(self, name: str) -> int:
        """Return the row of a node; an unknown node gets a new one."""
        row = self.row_of.setdefault(name, len(self.row_of))
        if row == len(self.nodes):
            self.nodes.append(None)
        return row

    # ---- nodes -----------------------------------------------------------------------------------------------

    def set_node(self, node: Node) -> None:
        """Record the present state of a node."""
        self._replace(self.row(node.name), node)

    def remove_node(self, name: str) -> None:
        """Forget a node, but keep what pods hold there in case it comes back."""
        if name in self.row_of:
            self._replace(self.row_of[name], None)

    def _replace(self, row: int, node: Node | None) -> None:
        old = self.nodes[row]
        self.nodes[row] = node
        before: Mapping[str, int] = old.allocatable if old else {}
        after: Mapping[str, int] = node.allocatable if node else {}
        for name in {**before, **after}:
            self._column(name)[row] += after.get(name, 0) - before.get(name, 0)
        if _looks(old) != _looks(node):
            self._allowed.changed(row)

    def _column(self, resource: str) -> NDArray[np.int64]:
        """Return what is left of a resource, by row; negative where pods hold more than the node has."""
        column = self._left.get(resource)
        if column is None or len(column) < len(self.nodes):
            longer = np.zeros(max(len(self.nodes), 2 * len(column) if column is not None else 0), np.int64)
            if column is not None:
                longer[: len(column)] = column
            column = self._left[resource] = longer
        return column

    def left(self, resource: str) -> NDArray[np.int64]:
        """Return the remaining thousandths of a resource, by row."""
        return self._column(resource)[: len(self.nodes)]

    # ---- pods ------------------------------------------------------------------------------------------------

    def hold(self, pod: Pod, row: int) -> None:
        """Subtract a bound pod's request from a row."""
        self._count(pod, row, 1)

    def release(self, pod: Pod, row: int) -> None:
        """Give back what `hold` took."""
        self._count(pod, row, -1)

    def _count(self, pod: Pod, row: int, sign: int) -> None:
        for name, amount in pod.requests.amounts:
            self._column(name)[row] -= sign * amount
        if pod.host_ports:
            ports = self._ports.setdefault(row, Counter())
            for port in pod.host_ports:
                ports[port] += sign
            self._ports[row] = +ports
        for repulsion in pod.repulsions:
            rows = self._repulsions.setdefault(repulsion, Counter())
            rows[row] += sign
            if not +rows:
                del self._repulsions[repulsion]

    # ---- questions -------------------------------------------------------------------------------------------

    def mask(self, pod: Pod, ignored: str = "") -> Mask:
        """Return True for each row where the pod may run now. ignored: a resource that is not compared."""
        return self._narrowed(pod, None, ignored)

    def reasons(self, pod: Pod) -> dict[str, int]:
        """Return the number of known nodes for each reason why the pod may not run; a node counts for one reason."""
        found = Counter(self._allowed.reasons(pod.place))
        self._narrowed(pod, found)
        return dict(found.most_common())

    def is_repelled(self, pod: Pod) -> bool:
        """Return True if the anti-affinity of a bound pod keeps this one away from some nodes."""
        return any(one.means(pod.namespace, pod.labels) for one in self._repulsions)

    def _narrowed(self, pod: Pod, found: Counter[str] | None, ignored: str = "") -> Mask:
        mask = self._allowed.of(pod.place)
        for what, step in self._steps(pod, ignored):
            narrower = mask & step
            if found is not None and (lost := int(np.count_nonzero(mask)) - int(np.count_nonzero(narrower))):
                found[what] += lost
            mask = narrower
        return mask

    def _steps(self, pod: Pod, ignored: str) -> Iterator[tuple[str, Mask]]:
        for name, amount in pod.requests.amounts:
            if name == ignored:
                continue
            yield f"too little {name}", self.left(name) >= amount
        if pod.host_ports and self._ports:
            yield "host port taken", self._with_ports(pod)
        for repulsion, rows in self._repulsions.items():
            if repulsion.means(pod.namespace, pod.labels):
                yield "anti-affinity of another pod", self._outside(repulsion.topology_key, rows)

    def _with_ports(self, pod: Pod) -> Mask:
        mask = np.ones(len(self.nodes), np.bool_)
        for row, taken in self._ports.items():
            mask[row] = not any(one.conflicts(port) for one in taken for port in pod.host_ports)
        return mask

    def _outside(self, topology_key: str, rows: Counter[int]) -> Mask:
        """Return True for the rows that are in no domain of `rows`."""
        domains = [node.labels.get(topology_key) if node else None for node in self.nodes]
        closed = {domains[row] for row in +rows} - {None}
        return np.array([domain not in closed for domain in domains], np.bool_)


def _looks(node: Node | None) -> object:
    """Return what the demands of pods look at."""
    return (node.name, node.ready, node.taints, node.labels) if node else None
