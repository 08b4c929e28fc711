"""The labels that an object must have: nodeSelector, terms of node affinity, and label selectors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from topoplace import _checks
from topoplace.errors import KubernetesError
from topoplace_hosts.kubernetes.objects.fields import items, labels, mapping, text, texts

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_OF_FIELDS = ("In", "NotIn")


class Requirement(NamedTuple):
    """A requirement on a label: a line of `matchExpressions` or `matchFields`."""

    key: str
    operator: str
    values: tuple[str, ...]

    def holds(self, value: str | None) -> bool:
        """Return True if a label with this value meets the requirement; None stands for a missing label."""
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case _:
                return value is not None and self._compares(value)

    def _compares(self, value: str) -> bool:
        """Return True if a label is greater, or less; a label that is no integer is neither."""
        if not _INTEGER.fullmatch(value):
            return False
        limit = int(self.values[0])
        return int(value) > limit if self.operator == "Gt" else int(value) < limit


class NodeTerm(NamedTuple):
    """One way to satisfy a node affinity: all its requirements on labels and on the node's name hold."""

    labels: tuple[Requirement, ...]
    names: tuple[Requirement, ...]


class LabelSelector(NamedTuple):
    """The pods that a term of pod affinity applies to; all requirements must hold."""

    requirements: tuple[Requirement, ...]

    def selects(self, found: Mapping[str, str]) -> bool:
        """Return True if the selector includes an object with these labels."""
        return all(one.holds(found.get(one.key)) for one in self.requirements)


def equal_labels(value: object, what: str) -> tuple[Requirement, ...]:
    """Return the requirements of a `nodeSelector` or `matchLabels`."""
    return tuple([Requirement(key, "In", (one,)) for key, one in sorted(labels(value, what).items())])


def node_terms(value: object, what: str) -> tuple[NodeTerm, ...]:
    """Return `nodeSelectorTerms`; one without requirements is left out, as it matches no node."""
    found: list[NodeTerm] = []
    for i, one in enumerate(items(value, what)):
        term = mapping(one, f"{what}[{i}]")
        names = _requirements(term.get("matchFields"), f"{what}[{i}].matchFields", _OF_FIELDS)
        for requirement in names:
            if requirement.key != "metadata.name":
                raise KubernetesError(
                    f"{what}[{i}].matchFields: {_checks.shown(requirement.key)} is no field"
                )
        on_labels = _requirements(term.get("matchExpressions"), f"{what}[{i}].matchExpressions", _OPERATORS)
        if on_labels or names:
            found.append(NodeTerm(on_labels, names))
    return tuple(found)


def label_selector(value: object, what: str) -> LabelSelector | None:
    """Return a label selector; None if it is missing, which selects nothing."""
    if value is None:
        return None
    found = mapping(value, what)
    expressions = _requirements(found.get("matchExpressions"), f"{what}.matchExpressions", _OPERATORS[:4])
    return LabelSelector((*equal_labels(found.get("matchLabels"), f"{what}.matchLabels"), *expressions))


def _requirements(value: object, what: str, operators: tuple[str, ...]) -> tuple[Requirement, ...]:
    return tuple([_requirement(one, f"{what}[{i}]", operators) for i, one in enumerate(items(value, what))])


def _requirement(value: Any, what: str, operators: tuple[str, ...]) -> Requirement:
    found = mapping(value, what)
    operator = text(found.get("operator"), f"{what}.operator")
    values = texts(found.get("values"), f"{what}.values")
    if operator not in operators:
        raise KubernetesError(
            f"{what}.operator = {_checks.shown(operator)} is not one of {', '.join(operators)}"
        )
    if operator in ("Gt", "Lt") and not (len(values) == 1 and _INTEGER.fullmatch(values[0])):
        raise KubernetesError(f"{what}.values = {_checks.shown(values)} is not one integer")
    return Requirement(text(found.get("key"), f"{what}.key"), operator, values)
