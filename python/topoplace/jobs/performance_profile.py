"""PerformanceProfile: measured run times of jobs that run alone, by placement class, or next to another job.

A *job kind* is a pair (name, number of GPUs). The name is the value of `JobGraph.profile`, such as "alexnet/4": a model
and, after the last slash, its batch size. Times are in seconds. A *placement class* states how far apart the GPUs of a
job are: SC'17's `intra-socket` and `inter-socket`, and `inter-machine` for clusters.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, Final, Self

import numpy as np

from topoplace import _checks
from topoplace.jobs import profile_text
from topoplace.jobs.interference_model import InterferenceModel, fitted
from topoplace.jobs.profile_text import PLACEMENTS, JobKind, Measurement, Pair, Solo

__all__ = ["PLACEMENTS", "JobKind", "Measurement", "PerformanceProfile", "read_measurements"]

_PAIR_CLASSES: Final = ("inter-socket", "intra-socket", "inter-machine")
"""Assumed placement classes of a pair if unknown, likeliest first: SC'17 ran two 2-GPU jobs on GPUs 0, 2 and 1, 3."""


@dataclass(frozen=True, eq=False, repr=False)
class PerformanceProfile:
    """Measured run times of job kinds (name, number of GPUs) in seconds. Immutable, hashable and picklable.

    Args:
        solo: Run time alone, by (name, number of GPUs, placement class).
        colocation: Run time of the first job next to the second, by (name, number of GPUs, other's name, other's number
            of GPUs). 0 seconds means not measured, like a missing key.
        colocation_placement: Placement class of the first job when it ran next to the second, if known.

    Raises:
        ValueError: Names an invalid entry.
    """

    solo: Mapping[Solo, float]
    colocation: Mapping[Pair, float] = field(default_factory=dict[Pair, float])
    colocation_placement: Mapping[Pair, str] = field(default_factory=dict[Pair, str])
    predicts: bool = field(default=False, kw_only=True)
    """True if the slowdowns of pairs that were not measured are predicted; see `predicting`."""

    def __post_init__(self) -> None:
        keep = object.__setattr__  # only this method may write: it brings the fields to canonical form
        for name in ("solo", "colocation", "colocation_placement"):
            _checks.instance(getattr(self, name), Mapping, name, ValueError)
        _checks.flag(self.predicts, "predicts", ValueError)
        for pair in self.colocation_placement:
            if pair not in self.colocation:
                raise ValueError(
                    f"colocation_placement[{_checks.shown(pair)}]: the pair must also be in colocation"
                )
        placed = self.colocation_placement
        alone = [_solo_run(key, seconds) for key, seconds in self.solo.items()]
        shared = [_pair_run(pair, time, placed.get(pair)) for pair, time in self.colocation.items()]
        solo = {_solo_key(run): run.seconds for run in alone if run.seconds > 0}
        pairs = {_pair_key(run): run for run in shared if run.seconds > 0}
        keep(self, "solo", MappingProxyType(dict(sorted(solo.items()))))
        keep(self, "colocation", MappingProxyType({pair: pairs[pair].seconds for pair in sorted(pairs)}))
        known = {pair: run.placement for pair, run in sorted(pairs.items()) if run.placement}
        keep(self, "colocation_placement", MappingProxyType(known))

    # ---- construction and serialisation --------------------------------------------------------------------

    @classmethod
    def build(cls, measurements: Iterable[Measurement], *, percentile: float = 95.0) -> Self:
        """Build a profile from repeated runs: the time of each kind of run is a percentile (0..100) of its runs.

        Percentiles are interpolated linearly. SC'17 takes the 95th percentile of five executions (section 5.1). If a
        pair of jobs was measured in several placement classes, the class with the largest slowdown counts.
        """
        percentile = _checks.real(percentile, "percentile", ValueError, high=100.0)
        alone: defaultdict[Solo, list[float]] = defaultdict(list)
        shared: defaultdict[tuple[Pair, str | None], list[float]] = defaultdict(list)
        for run in measurements:
            _checks.instance(run, Measurement, "measurements", ValueError)
            if run.seconds > 0 and run.other is None:
                alone[_solo_key(run)].append(run.seconds)
            elif run.seconds > 0:
                shared[_pair_key(run), run.placement].append(run.seconds)
        solo = cls({key: float(np.percentile(times, percentile)) for key, times in alone.items()})
        pairs = [(*key, float(np.percentile(times, percentile))) for key, times in shared.items()]
        # Among entries of one pair, the last one, with the largest slowdown, stays in the dicts below.
        pairs.sort(key=lambda pair: solo._ratio(*pair) or 0.0)
        placed = {pair: placement for pair, placement, _ in pairs}
        times = {pair: seconds for pair, _, seconds in pairs}
        return cls(solo.solo, times, {pair: where for pair, where in placed.items() if where})

    @classmethod
    def from_csv(cls, text: str) -> Self:
        """Read a profile from CSV that `to_csv` wrote, or from CSV of SC'17's profiles with the same columns.

        Raises:
            ValueError: Names an invalid line, or two lines that measure the same thing.
        """
        return cls._of_runs(profile_text.read_csv(text), "line")

    def to_csv(self) -> str:
        """Return the profile as CSV that `from_csv` reads.

        Columns: kind, model, batch, gpus, placement, with_model, with_batch, with_gpus, seconds.
        """
        return profile_text.write_csv(self.runs())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a profile from JSON that `to_json` wrote; ValueError names the invalid run."""
        return cls._of_runs(profile_text.read_json(text), "run")

    def to_json(self) -> str:
        """Return the profile as canonical JSON: equal profiles give equal text."""
        return profile_text.write_json(self.runs())

    def runs(self) -> Iterator[Measurement]:
        """Yield all measurements: first the runs alone, then the runs next to another job, each sorted."""
        for key, seconds in self.solo.items():
            yield _solo_run(key, seconds)
        for pair, seconds in self.colocation.items():
            yield _pair_run(pair, seconds, self.colocation_placement.get(pair))

    @classmethod
    def _of_runs(cls, runs: Iterable[tuple[int, Measurement]], what: str) -> Self:
        """Build a profile from (number, run) pairs; ValueError if two runs measure the same thing.

        what: the word for the numbers in error messages, such as "line".
        """
        first: dict[Solo | Pair, int] = {}
        solo: dict[Solo, float] = {}
        pairs: dict[Pair, Measurement] = {}
        for place, run in runs:
            key = _solo_key(run) if run.other is None else _pair_key(run)
            if first.setdefault(key, place) != place:
                raise ValueError(f"{what} {place}: already measured in {what} {first[key]}")
            if run.other is None:
                solo[_solo_key(run)] = run.seconds
            else:
                pairs[_pair_key(run)] = run
        placed = {pair: run.placement for pair, run in pairs.items() if run.placement}
        return cls(solo, {pair: run.seconds for pair, run in pairs.items()}, placed)

    # ---- queries -------------------------------------------------------------------------------------------

    @cached_property
    def kinds(self) -> tuple[JobKind, ...]:
        """Return the job kinds (name, number of GPUs) that were measured alone, sorted."""
        return tuple(sorted({(name, num_gpus) for name, num_gpus, _ in self.solo}))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the names of the job kinds that were measured alone, sorted."""
        return tuple(sorted({name for name, _ in self.kinds}))

    def solo_time(self, name: str, num_gpus: int, placement: str = "intra-socket") -> float | None:
        """Return the run time in seconds of a job alone in a placement class; None for an unknown kind of job.

        If this class was not measured, the time of the next closer class counts, or else that of the next farther one.
        For example, a job that was measured only across sockets has the same time for `intra-socket`.

        Raises:
            ValueError: The placement class is unknown.
        """
        if placement not in PLACEMENTS:
            raise ValueError(f"placement = {_checks.shown(placement)}, not one of {', '.join(PLACEMENTS)}")
        times = self._times.get((name, num_gpus))
        return times[PLACEMENTS.index(placement)] if times else None

    def ideal_time(self, name: str, num_gpus: int) -> float | None:
        """Return the shortest run time in seconds of a job alone, over all placement classes; None if unknown."""
        times = self._times.get((name, num_gpus))
        return min(times) if times else None

    def slowdown(self, name: str, num_gpus: int, other: str, other_gpus: int) -> float:
        """Return the run time of the first job next to the second, divided by its run time alone; at least 1.

        The time alone is that of the placement class in which the pair was measured. If this class is unknown, the time
        across sockets is used, or else within a socket, or else across machines: SC'17 ran its pairs of 2-GPU jobs
        across sockets, on GPUs 0, 2 and 1, 3. Relative to a run on one socket, most of the loss would be due to
        locality and not to interference.

        A pair that was not measured, or whose first job was not measured alone, gets the prediction of
        `interference_model` if `predicts` is True and the model knows both jobs. Otherwise it gets the median of the
        first of these groups that contains measured pairs, or 1 if none does: - the first job (same name and number of
        GPUs) next to any other; - the first job's model, with any batch size or number of GPUs, next to any other; -
        any job next to the second; - all pairs.
        """
        known = self._slowdowns.get((name, num_gpus, other, other_gpus))
        if known is not None:
            return known
        if self.predicts:
            predicted = self.interference_model.slowdown((name, num_gpus), (other, other_gpus))
            if predicted is not None:
                return predicted
        return self._median(self._medians, name, num_gpus, other, other_gpus)

    @staticmethod
    def _median(
        medians: Mapping[Hashable, float], name: str, num_gpus: int, other: str, other_gpus: int
    ) -> float:
        for group in (
            ("kind", name, num_gpus),
            ("model", _model(name)),
            ("other", other, other_gpus),
            ("all",),
        ):
            if group in medians:
                return medians[group]
        return 1.0

    def source(self, name: str, num_gpus: int, other: str, other_gpus: int) -> str:
        """Return where the `slowdown` of a pair comes from: "measured", "predicted", "median", or "none" if it is 1."""
        if (name, num_gpus, other, other_gpus) in self._slowdowns:
            return "measured"
        if (
            self.predicts
            and self.interference_model.slowdown((name, num_gpus), (other, other_gpus)) is not None
        ):
            return "predicted"
        return "median" if self._medians else "none"

    def predicting(self) -> Self:
        """Return a copy that predicts the slowdowns of pairs that were not measured; see `interference_model`.

        CSV and JSON contain measurements only: a profile read from them does not predict until `predicting` is called.

        Raises:
            ValueError: There are too few measurements; see `interference_model`.
        """
        copy = type(self)(self.solo, self.colocation, self.colocation_placement, predicts=True)
        _ = copy.interference_model
        return copy

    @cached_property
    def interference_model(self) -> InterferenceModel:
        """Return the model that predicts slowdowns of pairs from the jobs' times alone.

        Raises:
            ValueError: Fewer than 26 measured pairs have a batch size in both names, and both jobs' times alone on one
                GPU, on two GPUs of one socket, and on two GPUs of two sockets.
        """
        return fitted(self._slowdowns, self.kinds, self.solo)

    @cached_property
    def median_rms_error(self) -> float:
        """Return the root of the mean squared error of the medians of `slowdown`, each pair left out in turn."""
        errors = [
            self._median(self._medians_without(pair), *pair) - known
            for pair, known in self._slowdowns.items()
        ]
        return float(np.sqrt(np.mean(np.square(errors)))) if errors else 0.0

    @cached_property
    def worst_slowdown(self) -> float:
        """Return the largest slowdown of any measured pair whose first job was also measured alone; 1 if none was."""
        return max(self._slowdowns.values(), default=1.0)

    # ---- cached tables -------------------------------------------------------------------------------------

    @cached_property
    def _times(self) -> dict[JobKind, tuple[float, ...]]:
        """Return by job kind its run times alone, s, one per placement class, with gaps filled as in `solo_time`."""
        return {kind: tuple(self._filled(*kind)) for kind in self.kinds}

    def _filled(self, name: str, num_gpus: int) -> Iterator[float]:
        measured = [self.solo.get((name, num_gpus, placement)) for placement in PLACEMENTS]
        for i in range(len(PLACEMENTS)):
            near_to_far = (*reversed(measured[: i + 1]), *measured[i + 1 :])
            yield next(seconds for seconds in near_to_far if seconds is not None)

    @cached_property
    def _slowdowns(self) -> dict[Pair, float]:
        """Return the slowdown, at least 1, of every measured pair whose first job was also measured alone."""
        placed = self.colocation_placement
        ratios = {pair: self._ratio(pair, placed.get(pair), time) for pair, time in self.colocation.items()}
        return {pair: max(1.0, ratio) for pair, ratio in ratios.items() if ratio is not None}

    def _ratio(self, pair: Pair, placement: str | None, seconds: float) -> float | None:
        """Return `seconds`, a time next to another job, divided by the first job's time alone; None if that is unknown.

        placement: placement class of the first job; None if unknown.
        """
        name, num_gpus = pair[:2]
        measured = (place for place in _PAIR_CLASSES if (name, num_gpus, place) in self.solo)
        base = self.solo_time(name, num_gpus, placement or next(measured, PLACEMENTS[0]))
        return seconds / base if base else None

    @cached_property
    def _medians(self) -> dict[Hashable, float]:
        """Return the median slowdown of each group of pairs that `slowdown` uses for unmeasured pairs, by group."""
        return self._medians_without(None)

    def _medians_without(self, left_out: Pair | None) -> dict[Hashable, float]:
        groups: defaultdict[Hashable, list[float]] = defaultdict(list)
        for pair, slowdown in self._slowdowns.items():
            name, num_gpus, other, other_gpus = pair
            if pair == left_out:
                continue
            for group in (
                ("kind", name, num_gpus),
                ("model", _model(name)),
                ("other", other, other_gpus),
                ("all",),
            ):
                groups[group].append(slowdown)
        return {group: float(np.median(slowdowns)) for group, slowdowns in groups.items()}

    def __eq__(self, other: object) -> bool:
        return (
            (self._content(), self.predicts) == (other._content(), other.predicts)
            if isinstance(other, PerformanceProfile)
            else NotImplemented
        )

    def __hash__(self) -> int:
        return hash(tuple(frozenset(mapping.items()) for mapping in self._content()))

    def __repr__(self) -> str:
        return f"PerformanceProfile({len(self.solo)} times alone, {len(self.colocation)} next to each other)"

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), predicts=self.predicts), self._content()

    def _content(self) -> tuple[dict[Solo, float], dict[Pair, float], dict[Pair, str]]:
        return dict(self.solo), dict(self.colocation), dict(self.colocation_placement)


def _solo_run(key: Solo, seconds: float) -> Measurement:
    what = f"solo[{_checks.shown(key)}]"
    if len(_checks.sequence(key, what, ValueError)) != 3:
        raise ValueError(f"{what}: (name, number of GPUs, placement class) needed")
    name, num_gpus, placement = key
    return _named(what, name, num_gpus, placement, seconds)


def _pair_run(pair: Pair, seconds: float, placement: str | None) -> Measurement:
    what = f"colocation[{_checks.shown(pair)}]"
    if len(_checks.sequence(pair, what, ValueError)) != 4:
        raise ValueError(f"{what}: (name, number of GPUs, other's name, other's number of GPUs) needed")
    name, num_gpus, other, other_gpus = pair
    return _named(what, name, num_gpus, placement, seconds, other, other_gpus)


def _named(what: str, *fields: Any) -> Measurement:
    """Build a measurement from its fields; `what` precedes the message of a ValueError."""
    try:
        return Measurement(*fields)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None


def _solo_key(run: Measurement) -> Solo:
    return run.name, run.num_gpus, run.placement or ""


def _pair_key(run: Measurement) -> Pair:
    return run.name, run.num_gpus, run.other or "", run.other_gpus or 0


def _model(name: str) -> str:
    """Return a profile name without its batch size: "alexnet" for "alexnet/4"."""
    return name.rpartition("/")[0] or name


def read_measurements(text: str) -> Iterator[Measurement]:
    """Yield the measurements in a CSV text with the columns of `PerformanceProfile.to_csv`.

    Unlike in a profile, several rows may measure the same thing. ValueError names an invalid line.
    """
    return (run for _, run in profile_text.read_csv(text))
