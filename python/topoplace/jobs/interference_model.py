"""Prediction of how much two jobs slow each other down, by ridge regression on measurements of each job alone.

The logarithm of the slowdown is linear in features of the two job kinds and in the product of two of them. The features
of a kind are its loss by spreading two GPUs over sockets (a measure of communication) and by running on several GPUs
instead of one. Further features are the logarithms of its batch size and run time, and its number of GPUs. SC'17
(section 3.3) says that batch size and communication decide, and predicts by a profile of pairs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from topoplace.jobs.profile_text import JobKind, Pair, Solo

_PENALTY: Final = 1.0
"""Weight of the squared coefficients, for features scaled to standard deviation 1."""
_BATCH: Final = re.compile(r"0*[1-9]\d{0,8}", re.ASCII)
LEAST_PAIRS: Final = 26
"""The number of measured pairs needed: two for each coefficient."""


@dataclass(frozen=True, slots=True)
class InterferenceModel:
    """A fitted model of the slowdown of pairs of jobs.

    rms_error: root of the mean squared error of the measured slowdowns, each left out of the fit in turn. most:
    logarithm of the largest measured slowdown; no prediction exceeds it.
    """

    features: Mapping[JobKind, tuple[float, ...]]
    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    rms_error: float
    most: float

    def slowdown(self, kind: JobKind, other: JobKind) -> float | None:
        """Return the predicted slowdown of `kind` next to `other`, at least 1; None if a feature of one is unknown."""
        one, two = self.features.get(kind), self.features.get(other)
        if one is None or two is None:
            return None
        row = (np.array(_row(one, two)) - self.mean) / self.scale
        logarithm = float(self.coefficients[0] + row @ self.coefficients[1:])
        return math.exp(min(max(0.0, logarithm), self.most))


def fitted(
    slowdowns: Mapping[Pair, float], kinds: Iterable[JobKind], alone: Mapping[Solo, float]
) -> InterferenceModel:
    """Fit a model to measured slowdowns.

    kinds: job kinds for which the model predicts. alone: measured run times, in seconds, of kinds alone. Raise
    ValueError if fewer than 26 pairs have all features: a batch size in the name ("alexnet/4"), and times alone on one
    GPU, on two GPUs of one socket, and on two GPUs of two sockets.
    """
    features = {kind: known for kind in kinds if (known := features_of(kind, alone))}
    pairs = [pair for pair in slowdowns if pair[:2] in features and pair[2:] in features]
    if len(pairs) < LEAST_PAIRS:
        raise ValueError(f"{len(pairs)} measured pairs have all features: a prediction needs {LEAST_PAIRS}")
    rows = np.array([_row(features[pair[:2]], features[pair[2:]]) for pair in pairs])
    mean, scale = rows.mean(axis=0), rows.std(axis=0)
    scale[scale == 0.0] = 1.0
    design = np.column_stack([np.ones(len(pairs)), (rows - mean) / scale])
    measured = np.array([slowdowns[pair] for pair in pairs])
    penalty = _PENALTY * np.diag([0.0] + [1.0] * rows.shape[1])
    inverse = np.linalg.inv(design.T @ design + penalty)
    coefficients = inverse @ design.T @ np.log(measured)
    leverage = np.einsum("ij,jk,ik->i", design, inverse, design)
    residual: NDArray[np.float64] = (np.log(measured) - design @ coefficients) / (1 - leverage)
    error = np.maximum(1.0, measured * np.exp(-residual)) - measured
    most = float(np.log(measured).max())
    return InterferenceModel(features, mean, scale, coefficients, float(np.sqrt(np.mean(error**2))), most)


def features_of(kind: JobKind, alone: Mapping[Solo, float]) -> tuple[float, ...] | None:
    """Return the features of a job kind; None if one is unknown."""
    name, num_gpus = kind
    batch = name.rpartition("/")[2]
    near, far = (alone.get((name, 2, place)) for place in ("intra-socket", "inter-socket"))
    one, here = (alone.get((name, gpus, "intra-socket")) for gpus in (1, num_gpus))
    if not (_BATCH.fullmatch(batch) and "/" in name and one and near and far and here):
        return None
    lost = max(0.0, 1 - near / far)
    return lost, here / one - 1, math.log2(int(batch)), float(num_gpus), math.log(one)


def _row(one: tuple[float, ...], two: tuple[float, ...]) -> list[float]:
    return [*one, *two, one[0] * two[0], one[1] * two[1]]
