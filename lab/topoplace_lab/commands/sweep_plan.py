"""Files of `topoplace sweep`: TOML whose keys are the options of `topoplace simulate`, without the dashes."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import os
import sys
import tomllib
import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from topoplace import _checks
from topoplace.cli import reading
from topoplace_lab.commands import study, sweep_cells

if TYPE_CHECKING:
    from topoplace_lab.sweeps import Plan

_OF_OTHERS: Final = ("json", "seed", "output")
"""Options of `topoplace simulate` that are no keys: they belong to the command, or exist as lists."""
_LISTS: Final = ("policies", "topologies", "workloads", "loads", "seeds")
_FILES: Final = ("topology", "jobs", "typical", "profile")
_USUAL_JOBS: Final = "usual jobs"
_OF_THE_QUEUE: Final = ("in_order", "max_postponements", "protect_running", "window", "retry")
"""Arguments of policies that decide which job is next."""
_MOST_SEEDS: Final = 100_000
_MOST_NAMED: Final = 3
_SEEDS_CHANGE_NOTHING: Final = "the seeds change nothing, as the jobs are all in the file"


@dataclass(frozen=True)
class _Entry:
    """An entry of a list in the file: where it stands, its name in tables, and its options."""

    where: str
    name: str
    options: Mapping[str, Any]


def read(path: Path) -> Plan:
    """Read the plan of a sweep. ValueError names the file, the key and a wrong value.

    Every topology and every file of jobs is read once, so that errors appear before the first cell.
    """
    data = reading.content(str(path))
    with reading.errors_of(str(path)):
        try:
            content = tomllib.loads(data.decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise ValueError("not a text in UTF-8") from None
        except RecursionError:
            raise ValueError("nested too deeply") from None
        return _File(content, path.parent).plan()


class _File:
    """The content of a file, whose paths begin at `folder`."""

    def __init__(self, content: dict[str, Any], folder: Path) -> None:
        self.content = content
        self.folder = folder
        self.inputs: dict[str, str] = {}

    def plan(self) -> Plan:
        from topoplace_lab import sweeps
        from topoplace_lab.sweeps import Cell, Plan, Scenario

        policies = [(entry, _code_of(entry)) for entry in self._entries("policies", "policy")]
        common = self._arguments("", {k: v for k, v in self.content.items() if k not in _LISTS})
        topologies = [(entry, self._topology(entry)) for entry in self._entries("topologies", "topology")]
        workloads = [
            (entry, self._arguments(f"{entry.where}.", entry.options)) for entry in self._workloads()
        ]
        loads, seeds = self._loads(), self._seeds()
        cells: list[Cell] = []
        read: list[_Entry] = []
        unchanged: list[str] = []
        for (where, machines), (jobs, asked), load in product(topologies, workloads, loads):
            self._refuse_twice(where, jobs)
            arguments = (*common, *machines, *asked)
            scenario = Scenario(where.name, jobs.name, load)
            quietly = contextlib.redirect_stderr(io.StringIO()) if jobs in read else contextlib.nullcontext()
            with _warnings_begin(str(scenario)), quietly:
                checked = _check_scenario(where, jobs, load, arguments)
            _refuse_without_queue([entry for entry, _ in policies], checked.queue)
            drawn, own = checked.seed_counts, sweeps.code_of_model(checked.model)
            read.append(jobs)
            if not drawn and len(seeds) > 1:
                unchanged.append(str(scenario))
            cells += [
                Cell(policy.name, scenario, seed, {"arguments": arguments, **_policy(policy)}, code + own)
                for seed in (seeds if drawn else seeds[:1])
                for policy, code in policies
            ]
        if unchanged:
            print(
                f"{_list(unchanged)}: {_SEEDS_CHANGE_NOTHING}: 1 seed instead of {len(seeds)}",
                file=sys.stderr,
            )
        return Plan(tuple(cells), {"file": self.content, "inputs": self.inputs})

    def _refuse_twice(self, where: _Entry, jobs: _Entry) -> None:
        """Raise ValueError if an option stands in two places of which neither is the more special one."""
        for key in where.options.keys() & jobs.options.keys():
            raise ValueError(
                f"{where.where}.{key} = {_checks.shown(where.options[key])}: also in {jobs.where}; give it in one"
            )
        if "loads" in self.content:
            for name, options in (("", self.content), *((f"{e.where}.", e.options) for e in (where, jobs))):
                if "load" in options:
                    raise ValueError(f"{name}load = {_checks.shown(options['load'])}: there are loads too")

    def _entries(self, key: str, kind: str) -> list[_Entry]:
        """Return the entries of the list `key`, each a text or a table with the key `kind`; names are unique."""
        given = self.content.get(key)
        if not isinstance(given, list) or not given:
            shown = _checks.shown(self.content.get(key))
            raise ValueError(f"{key} = {shown}: must be a list with an entry or more")
        found: dict[str, _Entry] = {}
        for i, one in enumerate(_items(given)):
            where = f"{key}[{i}]"
            if not isinstance(one, str | dict):
                raise ValueError(f"{where} = {_checks.shown(one)}: must be a text or a table")
            table = {kind: one} if isinstance(one, str) else cast("dict[str, Any]", one)
            options = dict(table)
            name = options.pop("name", None) or options.get(kind) or _USUAL_JOBS
            entry = _Entry(where, _checks.text(name, f"{where}.name", ValueError), options)
            if kind != "jobs" and kind not in options:
                raise ValueError(f"{where}: has no {kind}")
            if entry.name in found:
                raise ValueError(f"{where}: {entry.name!r} is also {found[entry.name].where}; give it a name")
            found[entry.name] = entry
        return list(found.values())

    def _workloads(self) -> list[_Entry]:
        if "workloads" not in self.content:
            return [_Entry("workloads", _USUAL_JOBS, {})]
        return self._entries("workloads", "jobs")

    def _topology(self, entry: _Entry) -> tuple[str, ...]:
        options = dict(entry.options)
        source = _checks.text(options.pop("topology"), f"{entry.where}.topology", ValueError)
        found = source if reading.is_built_in(source) else self._file(f"{entry.where}.topology", source)
        return found, *self._arguments(f"{entry.where}.", options)

    def _arguments(self, where: str, given: Mapping[str, Any]) -> tuple[str, ...]:
        """Return options as arguments of `topoplace simulate`; ValueError names the key and its value."""
        found: list[str] = []
        for key, value in given.items():
            action = _actions().get(key)
            if action is None:
                raise ValueError(
                    f"{where}{key} = {_checks.shown(value)}: no such key; known: {_known(where)}"
                )
            if key in _FILES:
                value = self._file(f"{where}{key}", value)
            arguments = list(_texts(f"{where}{key}", key, value, action))
            try:
                sweep_cells.parser().parse_args(["TOPO", *arguments])
            except ValueError as error:
                raise ValueError(f"{where}{key} = {_checks.shown(value)}: {error}") from None
            found += arguments
        return tuple(found)

    def _file(self, where: str, source: object) -> str:
        """Return the path of a file next to the plan, and note the digest of what is in it."""
        text = _checks.text(source, where, ValueError)
        path = self.folder / text
        try:
            content = path.read_bytes()
        except OSError as error:
            raise ValueError(f"{where} = {_checks.shown(text)}: {error.strerror}") from None
        self.inputs[text] = hashlib.sha256(content).hexdigest()
        return os.path.abspath(path)

    def _loads(self) -> Sequence[float | None]:
        if "loads" not in self.content:
            return (None,)
        given = _checks.sequence(self.content["loads"], "loads", ValueError)
        if not given:
            raise ValueError("loads = []: must have an entry or more")
        return [_checks.positive(load, f"loads[{i}]", ValueError) for i, load in enumerate(given)]

    def _seeds(self) -> Sequence[int]:
        given = self.content.get("seeds", 1)
        if not isinstance(given, list):
            return range(_checks.integer(given, "seeds", ValueError, low=1, high=_MOST_SEEDS))
        seeds = _checks.sequence(given, "seeds", ValueError)
        if not seeds:
            raise ValueError("seeds = []: must have an entry or more")
        return [
            _checks.integer(seed, f"seeds[{i}]", ValueError, low=0, high=1 << 63)
            for i, seed in enumerate(seeds)
        ]


def _items(value: Any) -> list[Any]:
    """Return a list as it is, and anything else as a list of one."""
    return value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType]


def _policy(entry: _Entry) -> dict[str, Any]:
    given = dict(entry.options)
    return {"policy": given.pop("policy"), "given": given}


def _code_of(entry: _Entry) -> str:
    """Return the digest of a policy's code; ValueError if there is no such policy."""
    from topoplace_lab import sweeps

    made = _policy(entry)
    try:
        return sweeps.code_of(made["policy"], **made["given"])
    except ValueError as error:
        raise ValueError(f"{entry.where}: {error}") from None


@contextlib.contextmanager
def _warnings_begin(scenario: str) -> Generator[None]:
    """Let warnings of the `with` block begin with the name of a scenario, and come after it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        warnings.warn(f"{scenario}: {text}", stacklevel=2)


def _list(names: Sequence[str]) -> str:
    """Return a few names, and how many more there are."""
    more = f" and {len(names) - _MOST_NAMED} others" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(names[:_MOST_NAMED])}{more}"


def _check_scenario(
    where: _Entry, jobs: _Entry, load: float | None, arguments: tuple[str, ...]
) -> study.Study:
    """Read the topology and the jobs as the cells will do, and return them."""
    more = () if load is None else (f"--load={load!r}",)
    try:
        return sweep_cells.study_with((*arguments, *more))
    except ValueError as error:
        raise ValueError(f"{where.where} with {jobs.where}: {error}") from None


def _refuse_without_queue(policies: Sequence[_Entry], queue: str) -> None:
    """Raise ValueError if a policy has an argument that only counts in its own queue, and all have one queue."""
    for entry in policies if queue == "one" else ():
        for name in _OF_THE_QUEUE:
            if name in entry.options:
                raise ValueError(
                    f'{entry.where}.{name}: counts only in the policy\'s own queue, with queue = "own"'
                )


def _actions() -> dict[str, argparse.Action]:
    """Return the options by their keys."""
    return {
        action.option_strings[-1].removeprefix("--"): action
        for action in sweep_cells.parser()._actions  # pyright: ignore[reportPrivateUsage]
        if action.option_strings and action.dest not in _OF_OTHERS
    }


def _known(where: str) -> str:
    return ", ".join((*(() if where else _LISTS), *_actions()))


def _texts(where: str, key: str, value: object, action: argparse.Action) -> Iterator[str]:
    """Yield the arguments that stand for a value: none for a flag that is false, several for a list."""
    if action.nargs == 0:
        if _checks.flag(value, where, ValueError):
            yield f"--{key}"
        return
    texts: list[str] = []
    for one in _items(value):
        if isinstance(one, bool) or not isinstance(one, str | int | float):
            raise ValueError(f"{where}: {_checks.shown(one)} is neither a text nor a number")
        texts.append(str(one))
    if isinstance(action, argparse._AppendAction):  # pyright: ignore[reportPrivateUsage]
        yield from (f"--{key}={text}" for text in texts)
    else:
        yield f"--{key}={','.join(texts)}"
