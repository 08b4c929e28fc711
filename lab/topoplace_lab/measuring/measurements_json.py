"""Write and read measurements as JSON, and the rates that they correct."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, Final, cast

from topoplace import _checks
from topoplace.collective.prepared import checked_gpus
from topoplace.topology.links import nccl_rates_json as rates_json
from topoplace.topology.links.nccl_rates import PathType, Rates
from topoplace.topology.topology import Topology
from topoplace_lab.measuring.measurements import MeasuredSet, Measurements

FORMAT: Final = "topoplace.collective-measurements"
VERSION: Final = 1
_KEYS: Final = ("topology", "rates", "sets", "efficiencies")
_FROM_SETS: Final = "it follows from the sets; factors of your own are `achieved` in a file of rates"
_SET_KEYS: Final = ("gpus", "path_type", "planned_gb_per_s", "measured_gb_per_s", "failure")


def written(measurements: Measurements) -> str:
    """Return `measurements` as JSON, with the topology and the efficiencies that follow from the sets."""
    record = {
        "format": FORMAT,
        "version": VERSION,
        "topology": json.loads(measurements.topology.to_json()),
        "rates": rates_json.record_of(measurements.rates),
        "sets": [asdict(one) for one in measurements.sets],
        "efficiencies": [asdict(one) for one in measurements.efficiencies()],
    }
    return json.dumps(record, indent=1, sort_keys=True)


def parsed(text: str) -> Measurements:
    """Return the measurements in `text`, which `written` wrote; ValueError names the fault of any other text."""
    return _of_record(rates_json.json_object(text))


def rates_from_json(text: str) -> Rates:
    """Return the rates in `text`, or those corrected by measurements in it; ValueError names its fault."""
    record = rates_json.json_object(text)
    if record.get("format") == FORMAT:
        return _of_record(record).corrected_rates()
    return rates_json.of_record(record)


def _of_record(record: dict[str, Any]) -> Measurements:
    rates_json.check_keys(record, FORMAT, VERSION, _KEYS)
    topology = Topology.from_json(json.dumps(record["topology"]))
    _checks.instance(record["rates"], dict, "rates", ValueError)
    listed = _checks.ordered(record["sets"], "sets", ValueError)
    sets = tuple(_set(topology, one, f"sets[{i}]") for i, one in enumerate(listed))
    try:
        rates = rates_json.of_record(record["rates"])
    except ValueError as error:
        raise ValueError(f"rates: {error}") from None
    if rates.achieved:
        raise ValueError(f"rates: achieved = {_checks.shown(dict(rates.achieved))}: {_FROM_SETS}")
    found = Measurements(topology, rates, sets)
    _check_efficiencies(record["efficiencies"], found)
    return found


def _check_efficiencies(given: object, found: Measurements) -> None:
    """Raise ValueError unless the efficiencies of a text are those of its sets, as an edit would have no effect."""
    computed = [asdict(one) for one in found.efficiencies()]
    listed = _checks.ordered(given, "efficiencies", ValueError)
    if len(listed) != len(computed):
        raise ValueError(f"efficiencies has {len(listed)} entries, not {len(computed)}: {_FROM_SETS}")
    for i, (record, right) in enumerate(zip(listed, computed, strict=True)):
        _checks.instance(record, dict, f"efficiencies[{i}]", ValueError)
        fields = cast("dict[str, Any]", record)
        if strange := sorted(fields.keys() ^ right.keys()):
            raise ValueError(
                f"efficiencies[{i}] has the keys {', '.join(right)}; see {_checks.shown(strange[0])}"
            )
        for key, value in right.items():
            if fields[key] != value:
                what = f"efficiencies[{i}].{key} = {_checks.shown(fields[key])}"
                raise ValueError(f"{what} is not {value!r}: {_FROM_SETS}")


def _set(topology: Topology, given: object, what: str) -> MeasuredSet:
    fields = cast("dict[str, Any]", given)
    if not isinstance(given, dict) or set(fields) != set(_SET_KEYS):
        raise ValueError(f"{what} is not an object with the keys {', '.join(_SET_KEYS)}")
    measured = fields["measured_gb_per_s"]
    try:
        return MeasuredSet(
            tuple(checked_gpus(topology, fields["gpus"])),
            _checks.one_of(fields["path_type"], "path_type", PathType.__members__, ValueError),
            _checks.positive(fields["planned_gb_per_s"], "planned_gb_per_s", ValueError, high=1e6),
            None
            if measured is None
            else _checks.positive(measured, "measured_gb_per_s", ValueError, high=1e6),
            fields["failure"] and _checks.text(fields["failure"], "failure", ValueError),
        )
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None
