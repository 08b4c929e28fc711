"""Predicted slowdowns of pairs that nobody measured."""

from __future__ import annotations

import pickle
from itertools import product

import numpy as np
import pytest

from topoplace.jobs.interference_model import features_of
from topoplace.jobs.performance_profile import PerformanceProfile
from topoplace_lab.papers.sc17.measured import authors_profile

NAMES = ("light/1", "light/4", "light/16", "heavy/1", "heavy/4", "heavy/16")


def made(slowdown: float = 0.0) -> PerformanceProfile:
    """Times that follow the model: each GPU of the neighbour costs `slowdown` per unit of its logarithm."""
    solo, beside = {}, {}
    for i, name in enumerate(NAMES):
        for gpus in (1, 2):
            solo[name, gpus, "intra-socket"] = 100.0 + 10 * i
            solo[name, gpus, "inter-socket"] = 110.0 + 12 * i
    for (a, m), (b, n) in product(product(NAMES, (1, 2)), repeat=2):
        base = solo[a, m, "inter-socket"]
        beside[a, m, b, n] = base * float(np.exp(slowdown * n))
    return PerformanceProfile(solo, beside)


def test_a_law_that_the_model_can_express_is_found() -> None:
    whole = made(0.1)
    hidden = ("heavy/4", 2, "light/1", 1)
    rest = {pair: seconds for pair, seconds in whole.colocation.items() if pair != hidden}
    profile = PerformanceProfile(whole.solo, rest).predicting()
    assert profile.source(*hidden) == "predicted"
    assert profile.slowdown(*hidden) == pytest.approx(np.exp(0.1), rel=0.01)
    assert profile.interference_model.rms_error < 0.01
    known = ("heavy/4", 2, "light/1", 2)
    assert profile.source(*known) == "measured"
    assert profile.slowdown(*known) == whole.slowdown(*known)
    unknown = ("other", 1, "light/1", 1)
    assert profile.source(*unknown) == "median"
    assert profile.slowdown(*unknown) == whole.slowdown(*unknown)


def test_leave_one_out_is_a_fit_without_the_pair() -> None:
    """The published pairs: the error by leverages equals that of fits from scratch."""
    profile = authors_profile()
    errors = []
    pairs = list(profile.colocation)
    for pair in pairs:
        rest = {other: seconds for other, seconds in profile.colocation.items() if other != pair}
        model = PerformanceProfile(profile.solo, rest).interference_model
        predicted = model.slowdown(pair[:2], pair[2:])
        assert predicted is not None
        errors.append(predicted - profile.slowdown(*pair))
    exact = float(np.sqrt(np.mean(np.square(errors))))
    assert profile.interference_model.rms_error == pytest.approx(exact, rel=0.02)  # scales are of all pairs
    assert profile.interference_model.rms_error < 0.7 * profile.median_rms_error


def test_a_predicting_profile_is_another_one() -> None:
    plain = authors_profile()
    predicting = plain.predicting()
    assert predicting != plain
    assert pickle.loads(pickle.dumps(predicting)) == predicting
    assert hash(predicting) == hash(plain.predicting())
    assert PerformanceProfile({}).source("a", 1, "b", 1) == "none"
    with pytest.raises(ValueError, match="0 measured pairs have all features: a prediction needs 26"):
        PerformanceProfile(plain.solo).predicting()
    with pytest.raises(ValueError, match="predicts = 1"):
        PerformanceProfile({}, predicts=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("missing", [("light/4", 1, "intra-socket"), ("light/4", 2, "inter-socket")])
def test_a_kind_without_all_features_is_not_predicted(missing: tuple[str, int, str]) -> None:
    times = {key: seconds for key, seconds in made().solo.items() if key != missing}
    assert features_of(("light/4", 2), times) is None
    assert features_of(("light/1", 2), times) is not None
    assert features_of(("light", 2), times) is None
    for name in ("4", "light/0", "light/" + "9" * 5000):
        alone = {(name, gpus, place): 1.0 for gpus in (1, 2) for place in ("intra-socket", "inter-socket")}
        assert features_of((name, 1), alone) is None
