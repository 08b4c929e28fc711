"""Predict effective bandwidth by eq. 2 of MAPA (Ranganath et al., SC'21), and fit its coefficients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topoplace import _checks
from topoplace.topology.links.link_kinds import NVLINKS, LinkKind

if TYPE_CHECKING:
    from topoplace.placement import Placement
    from topoplace.topology.topology import Topology

# Table 2 of the paper truncates these to three decimals; all digits are from the published artifact.
# The artifact's logs print predictions to 1e-6 and agree with every digit here.
MAPA_COEFFICIENTS: Final = (
    16.39670455,
    4.536821878,
    1.55623404,
    -20.69484581,
    -9.467461958,
    7.615106783,
    -7.973335727,
    12.73323772,
    -4.195655221,
    -8.413419363,
    62.85125807,
    27.41832588,
    -5.114108079,
    -46.97390071,
)
FITTED_TASKS: Final = range(2, 6)
"""Job sizes on which eq. 2 was fitted; for other sizes it extrapolates and is not monotone."""
_FITTED_LINKS: Final = frozenset((LinkKind.NVLINK, LinkKind.NVLINK2))
_FAST_LINKS: Final = NVLINKS | {LinkKind.NVSWITCH, LinkKind.C2C, LinkKind.XGMI, LinkKind.ICI}

OUTSIDE_ITS_RANGE: Final = (
    "eq. 2 of MAPA was fitted on jobs of 2 to 5 V100 GPUs with few links; for others, such as jobs of one GPU, "
    "it is no bandwidth"
)
"""The note for readers of a prediction if `is_outside_range`."""

_MAX_LINKS: Final = 2**53


def is_outside_range(placement: Placement) -> bool:
    """Return True if a placement's predicted bandwidth is extrapolated or not positive.

    Without a score that states whether it is extrapolated, a prediction counts as one by MAPA's coefficients.
    """
    scores = placement.scores
    if "effective_bandwidth" not in scores:
        return False
    extrapolated = scores.get("effective_bandwidth_extrapolated")
    if extrapolated is None:
        extrapolated = is_extrapolated(placement.gpus, placement.topology)
    return bool(extrapolated) or scores["effective_bandwidth"] <= 0


def is_extrapolated(gpus: Sequence[int], topology: Topology, model: EffectiveBandwidth | None = None) -> bool:
    """Return True if eq. 2 was not fitted on jobs of this number of GPUs, or on machines such as those of `gpus`.

    MAPA fitted it on a DGX-1V: V100 GPUs with direct NVLinks of the second generation. GPUs and links of unknown model
    and generation count as these. model: a model with other coefficients counts as fitted on these machines.
    """
    if len(gpus) not in FITTED_TASKS:
        return True
    if model is not None and model.coefficients != MAPA_COEFFICIENTS:
        return False
    templates = topology.templates
    if len(templates) == 1:
        return templates[0].derived(_is_unlike_the_fit)
    machines = {int(topology.machine_of[gpu]) for gpu in gpus}
    return any(templates[topology.template_of[machine]].derived(_is_unlike_the_fit) for machine in machines)


def _is_unlike_the_fit(machine: Topology) -> bool:
    if any(gpu.model and "V100" not in gpu.model for gpu in machine.gpus):
        return True
    other = _FAST_LINKS - _FITTED_LINKS
    to_switches = any(link.kind in _FAST_LINKS for _, _, link in machine.component_links)
    return to_switches or any(link.kind in other for _, _, link in machine.links)


class EffectiveBandwidth:
    """A model that predicts effective bandwidth (MAPA, eq. 2): the all-reduce GB/s that a job's links achieve together.

    The inputs are the numbers of double NVLinks, single NVLinks and other links.

    The model was fitted on 2 to 5 GPUs of a DGX-1V. It is not monotone: it may predict less for more or faster links.

    Args:
        coefficients: Theta 1 to 14 of the paper, in its order.

    Raises:
        ValueError: `coefficients` are not 14 numbers.
    """

    __slots__ = ("_known", "coefficients")

    def __init__(self, coefficients: Sequence[float] = MAPA_COEFFICIENTS) -> None:
        given = _checks.ordered(coefficients, "coefficients", ValueError)
        if len(given) != len(MAPA_COEFFICIENTS):
            raise ValueError(f"coefficients: {len(given)} values, eq. 2 has {len(MAPA_COEFFICIENTS)}")
        self.coefficients = tuple(
            _checks.real(value, f"coefficients[{i}]", ValueError, low=-math.inf)
            for i, value in enumerate(given)
        )
        self._known: dict[tuple[int, int, int], float] = {}

    def predict(self, x: ArrayLike, y: ArrayLike, z: ArrayLike) -> Any:
        """Predict GB/s for `x` double NVLinks, `y` single NVLinks and `z` other links; arrays are broadcast.

        Raises:
            ValueError: A number is negative or not finite, or arrays cannot be broadcast together.
        """
        counts = [_counts(count, what) for count, what in ((x, "x"), (y, "y"), (z, "z"))]
        try:
            features = _features(*counts)
        except ValueError:
            shapes = ", ".join(f"{what} {count.shape}" for count, what in zip(counts, "xyz", strict=True))
            raise ValueError(f"the shapes of {shapes} cannot be broadcast together") from None
        return _weighted_sum(self.coefficients, features)

    def of_counts(self, x: int, y: int, z: int) -> float:
        """Return the GB/s predicted for `x` double NVLinks, `y` single NVLinks and `z` other links, cached."""
        return self.of_checked(
            (
                _checks.integer(x, "x", ValueError, low=0, high=_MAX_LINKS),
                _checks.integer(y, "y", ValueError, low=0, high=_MAX_LINKS),
                _checks.integer(z, "z", ValueError, low=0, high=_MAX_LINKS),
            )
        )

    def of_checked(self, counts: tuple[int, int, int]) -> float:
        """Return the result of `of_counts` for numbers of links that need no check."""
        known = self._known.get(counts)
        if known is None:
            known = self._known[counts] = float(self.predict(*counts))
        return known

    @classmethod
    def fit(cls, table: ArrayLike) -> EffectiveBandwidth:
        """Fit the coefficients by least squares to rows (x, y, z, measured GB/s).

        x, y, z: numbers of double NVLinks, single NVLinks and other links. If the rows do not determine the
        coefficients, those of least norm are returned.

        Raises:
            ValueError: There are fewer than 14 rows, a count is negative, or a value is not finite.
        """
        rows = _checks.numbers_of(table, "table", ValueError)
        if rows.ndim != 2 or rows.shape[1] != 4:
            raise ValueError(f"table: shape {rows.shape}, rows of (x, y, z, measured) needed")
        if len(rows) < len(MAPA_COEFFICIENTS):
            raise ValueError(f"table: {len(rows)} rows, eq. 2 needs at least {len(MAPA_COEFFICIENTS)}")
        bad = np.argwhere(~np.isfinite(rows) | ((rows < 0) & (np.arange(4) < 3)))
        if len(bad):
            row, column = map(int, bad[0])
            raise ValueError(
                f"table[{row}, {column}] = {rows[row, column]}, not a finite non-negative number"
            )
        design = np.stack(_features(*rows[:, :3].T), axis=1)
        solution = np.linalg.lstsq(design, rows[:, 3], rcond=None)[0]
        return cls(solution.tolist())

    def __call__(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the GB/s predicted for each row (x, y, z) of `counts`, as `kernels.LinkCountScore` needs it.

        x, y, z: numbers of double NVLinks, single NVLinks and other links.
        """
        rows = _counts(counts, "counts")
        if rows.ndim != 2 or rows.shape[1] != 3:
            raise ValueError(f"counts has shape {rows.shape}; rows of (x, y, z) are needed")
        predicted: NDArray[np.float64] = self.predict(rows[:, 0], rows[:, 1], rows[:, 2])
        return predicted

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EffectiveBandwidth) and self.coefficients == other.coefficients

    def __hash__(self) -> int:
        return hash(self.coefficients)

    def __repr__(self) -> str:
        default = self.coefficients == MAPA_COEFFICIENTS
        return "EffectiveBandwidth()" if default else f"EffectiveBandwidth({self.coefficients})"


def _counts(values: ArrayLike, what: str) -> NDArray[np.float64]:
    counts = _checks.numbers_of(values, what, ValueError)
    for count in counts[~((counts >= 0) & (counts < math.inf))][:1]:
        raise ValueError(f"{what} = {count:g} is not a number of links")
    return counts


def _features(
    x: NDArray[np.float64], y: NDArray[np.float64], z: NDArray[np.float64]
) -> tuple[NDArray[np.float64], ...]:
    """Return the 14 terms of eq. 2 for link counts x, y, z, in the order of the coefficients."""
    pairs = (x * y, y * z, z * x)
    return (
        *(x, y, z, 1 / (x + 1), 1 / (y + 1), 1 / (z + 1)),
        *(*pairs, *(1 / (pair + 1) for pair in pairs)),
        *(x * y * z, 1 / (x * y * z + 1)),
    )


def _weighted_sum(coefficients: Sequence[float], features: Sequence[Any]) -> Any:
    total = coefficients[0] * features[0]
    for coefficient, feature in zip(coefficients[1:], features[1:], strict=True):
        total = total + coefficient * feature
    return total
