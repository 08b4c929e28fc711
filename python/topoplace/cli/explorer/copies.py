"""Texts to copy from the page: a command and a program with the same decision, the environment, launch files."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from topoplace.cli import gpu_list
from topoplace.cli.explorer import subject
from topoplace.jobs.job_graph import PATTERNS

if TYPE_CHECKING:
    from topoplace.cli.explorer.state import State
    from topoplace.cli.explorer.subject import Condition
    from topoplace.placement import Placement
    from topoplace.topology.topology import Topology

_MAX_ENVIRONMENTS = 16


def of(state: State, topology: Topology, where: Condition, placed: Placement | None) -> dict[str, Any]:
    """Return the texts to copy, each of which runs unchanged."""
    found: dict[str, Any] = {
        "command": _command(state, topology, where),
        "python": _program(state, topology, where),
        "environment": "",
        "launch": {},
        "start": "",
    }
    if placed is not None:
        found["environment"] = _environment(placed)
        found |= _launch(placed)
    return found


def topology_json(state: State, own: Topology | None) -> str:
    """Return the topology of a state as JSON, with its faults; FieldError names a wrong field."""
    return subject.faulty(subject.whole(state, own), state.unhealthy, state.links).to_json()


def _is_built_in(state: State) -> bool:
    return bool(state.machine) and not (state.text or state.links.strip())


def _command(state: State, topology: Topology, where: Condition) -> str:
    numbers = gpu_list.numbers(topology)
    is_named = _is_built_in(state) and state.count == 1 and not state.unhealthy.strip()
    parts = ["topoplace", "place", state.machine if is_named else "-", *subject.job_flags(state)]
    if where.busy:
        parts += ["--busy", ranges(numbers[gpu] for gpu in where.busy)]
    command = shlex.join([*parts, "--policy", state.policy])
    return command if is_named else f"{command} <<'END'\n{topology.to_json()}\nEND"


def ranges(gpus: Iterable[int]) -> str:
    """Return GPUs as a short text, such as "0-3,6"."""
    return ",".join(f"{a}-{b}" if a < b else f"{a}" for a, b in _runs(sorted(gpus)))


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    first = last = -1
    for number in numbers:
        if number != last + 1 or first < 0:
            if first >= 0:
                yield first, last
            first = number
        last = number
    if first >= 0:
        yield first, last


def _program(state: State, topology: Topology, where: Condition) -> str:
    """Return a Python program that places the job of a state."""
    lines = [
        "import topoplace as tp",
        "",
        *_topology_as_python(state, topology),
        "cluster = tp.Cluster(topology)",
    ]
    busy = sorted(set(where.busy).difference(topology.unhealthy_gpus))
    if busy:
        lines.append(f"cluster.allocate('busy', {_as_python(busy)})")
    lines += [
        f"job = {_job_as_python(state)}",
        f"placement = tp.policies.get({state.policy!r}).place(job, cluster)",
    ]
    return "\n".join([*lines, "print(placement and (placement.gpus, placement.time, placement.slowest))", ""])


def _topology_as_python(state: State, topology: Topology) -> Iterator[str]:
    """Yield the lines that make the topology, in words if it consists of built-in machines."""
    if not _is_built_in(state):
        yield f"topology = tp.Topology.from_json({topology.to_json()!r})"
        return
    yield f"topology = tp.machines.get({state.machine!r})"
    if state.count > 1:
        sizes, changes = subject.fabric_of(state.count, state.fabric)
        yield f"fabric = tp.Fabric.regular({state.count}, {sizes})"
        for level, fields in changes.items():
            yield f"fabric = fabric.with_level({level!r}, **{fields})"
        yield f"topology = tp.Topology.cluster(topology, {state.count}, fabric=fabric)"
    if topology.unhealthy_gpus:
        yield f"topology = topology.with_unhealthy({_as_python(sorted(topology.unhealthy_gpus))})"


def _as_python(gpus: list[int]) -> str:
    runs = list(_runs(gpus))
    if len(runs) == 1 and len(gpus) > 4:
        return f"range({gpus[0]}, {gpus[-1] + 1})"
    if len(gpus) <= 64:
        return str(gpus)
    spans = ", ".join(f"*range({first}, {last + 1})" for first, last in runs)
    return f"[{spans}]"


def _job_as_python(state: State) -> str:
    from topoplace.jobs.groups import sized_groups

    if state.parallel.strip():
        degrees = (part.partition("=") for part in state.parallel.split(","))
        made = f"parallel({', '.join(f'{name.strip()}={int(number)}' for name, _, number in degrees)})"
    elif (pattern := state.pattern.strip()) in PATTERNS:
        made = f"{pattern}({int(state.gpus)})"
    else:
        made = f"{pattern}([{', '.join(state.gpus.split('x'))}])"
    if state.sensitive:
        made += ".with_(bandwidth_sensitive=True)"
    for text in state.groups.split():
        sizes, level = sized_groups(text)
        made += f".grouped({sizes!r}, within={level!r})"
    return f"tp.JobGraph.{made}"


def _environment(placed: Placement) -> str:
    """Return the variables of the processes; of a job on several machines, a line for each machine."""
    from topoplace.launch import environment

    try:
        found = placed.env()
    except ValueError as error:  # of remote GPUs
        return f"# {error}"
    lines: list[str] = []
    for name, value in found.items():
        if isinstance(value, dict):
            each = (f"export {environment.assigned(key, text)}" for key, text in value.items())
            lines.append("\n".join((f"# {' '.join(name.split())}", *each)))
        else:
            lines.append(f"export {environment.assigned(name, value)}")
    left = len(lines) - _MAX_ENVIRONMENTS
    return "\n".join(lines[:_MAX_ENVIRONMENTS] + ([f"# and {left} more machines"] if left > 0 else []))


def _launch(placed: Placement) -> dict[str, Any]:
    try:
        made = placed.launch("torchrun")
    except ValueError as error:
        return {"launch": {}, "start": f"# {error}"}
    return {"launch": dict(made.files), "start": made.command}
