"""What a tenant may create to stop, hang or starve a scheduler: claims, pods and nodes of odd forms and sizes."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

from kubernetes_objects import DRIVER, claim_json, claims_of, exactly, node_json, pod_json
from topoplace_hosts.kubernetes.testing.objects import nested

NAMESPACE = "hostile"
ODD: tuple[Any, ...] = (
    *(None, True, -1, 1 << 70, 1.5, "", "x" * 5000, "\ud7ff\u0000", [], {}, [[]], [None], {"": None}),
    *([{}] * 1500, {str(i): i for i in range(1500)}, nested(90), nested(1600), nested(20_000)),
)
_ATOMS = (
    *("true", "1", "dyn(1)", '"a"', "[]", "{}", "device", "device.driver", "null", "1.5", 'b"a"', "x"),
    *(
        f'device.attributes["{DRIVER}"]',
        f'device.attributes["{DRIVER}"].index',
        "device.capacity",
        "9223372036854775807",
    ),
)
_MOST_BYTES = 1_500_000
"""Limit of the API server on an object."""
_BINARY = ("+", "-", "*", "/", "%", "==", "!=", "<", ">=", "&&", "||", "in")
_MACROS = ("exists", "all", "exists_one", "map", "filter")
_ONE_TEXT = (
    "quantity",
    "semver",
    "timestamp",
    "duration",
    "int",
    "string",
    "bytes",
    "type",
    "dyn",
    "size",
    "isQuantity",
)
_WHOLE = (
    f'timestamp("2026-01-01T00:00:00Z").getHours("{"a" * 300}") == 1',
    f"[{', '.join(['dyn(1)'] * 40)}].exists(x, x)",
    '["a"]' + ".map(x, x + x)" * 40 + ' == ["b"]',
    f'"{"a" * 60}b".matches("((a{{1,100}}){{1,100}}){{1,100}}$")',
    "(" * 3000 + "true" + ")" * 3000,
    "!" * 9000 + "true",
    "1" + " + 1" * 2500 + " == 0",
    f'"{"a" * 10_100}" == ""',
    "a" * 20_000,
    "[1].all(a, [1].all(b, [1].all(c, true)))",
)


class HostileTenant:
    """Draws objects. Each has another name."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._count = 0

    def objects(self) -> list[tuple[str, dict[str, Any]]]:
        """Return a few objects with their kinds: claims and pods that use them, or nodes."""
        self._count += 1
        name = f"h{self._count}"
        kind = self._draw.random()
        if kind < 0.1:
            return [("nodes", self._damaged(node_json(name, self._draw.choice((0, 8)))))]
        claim = claim_json(name, *(self._request(i) for i in range(self._draw.choice((1, 1, 2, 32)))))
        claim["spec"]["devices"]["config"] = [
            {"opaque": {"driver": DRIVER, "parameters": self._draw.choice(({}, nested(99), nested(1600)))}}
        ]
        pod = pod_json(name, self._draw.choice((0, 0, 1)), resourceClaims=claims_of(name))
        for one in (claim, pod):
            one["metadata"]["namespace"] = NAMESPACE
        while len(json.dumps(claim)) > _MOST_BYTES:
            del claim["spec"]["devices"]["requests"][len(claim["spec"]["devices"]["requests"]) // 2 :]
        return [("resourceclaims", self._perhaps_damaged(claim)), ("pods", self._perhaps_damaged(pod))]

    def selector(self, depth: int = 4) -> str:
        """Return an expression, of the language or nearly so."""
        draw = self._draw
        if draw.random() < 0.15:
            return draw.choice(_WHOLE)
        if not depth or draw.random() < 0.2:
            return draw.choice(_ATOMS)
        inner = [self.selector(depth - 1) for _ in range(3)]
        return draw.choice(
            (
                f"({inner[0]} {draw.choice(_BINARY)} {inner[1]})",
                f"({inner[0]} {draw.choice(_BINARY)} {inner[1]})",
                f"[{', '.join(inner * draw.choice((1, 1, 20)))}].{draw.choice(_MACROS)}(x, {inner[0]})",
                f"{draw.choice(_ONE_TEXT)}({inner[0]})",
                f"({inner[0]} ? {inner[1]} : {inner[2]})",
                f"{inner[0]}.{draw.choice(('matches', 'startsWith', 'getHours', 'add', 'size', 'x'))}({inner[1]})",
                f"!{inner[0]}",
                inner[0][: draw.randrange(len(inner[0]) + 1)],
            )
        )[:12_000]

    def _request(self, number: int) -> dict[str, Any]:
        selectors = [self.selector() for _ in range(self._draw.choice((1, 1, 4, 32)))]
        one = exactly(f"r{number}", self._draw.choice((1, 1, 9)), *selectors)
        if self._draw.random() < 0.1:
            wanted = one.pop("exactly")
            one["firstAvailable"] = [{**wanted, "name": f"a{i}"} for i in range(8)]
        return one

    def _perhaps_damaged(self, value: dict[str, Any]) -> dict[str, Any]:
        return self._damaged(value) if self._draw.random() < 0.3 else value

    def _damaged(self, value: dict[str, Any]) -> dict[str, Any]:
        """Return an object with odd values in some places; it keeps its name, and is bound to no node."""
        made = copy.deepcopy(value)
        for _ in range(self._draw.choice((1, 1, 3))):
            where: Any = made[self._draw.choice([key for key in ("spec", "status") if made.get(key)])]
            while isinstance(where, dict | list) and where:
                key = (
                    self._draw.choice(list(where))
                    if isinstance(where, dict)
                    else self._draw.randrange(len(where))
                )
                if isinstance(where[key], dict | list) and self._draw.random() < 0.7:
                    where = where[key]
                    continue
                where[key] = copy.deepcopy(self._draw.choice(ODD))
                break
        return made
