"""Values that nobody should pass, but somebody does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

MATRIX = np.ones((4, 4)) - np.eye(4)

ODD: list[Any] = [
    *(math.nan, math.inf, -math.inf, 3.5, -1, 10**400, 10**5000, True, None, 1j, object(), len),
    *("3", "", "\ud800", "x" * 1_000_000, b"3", [], [1], (), {}, {1, 2}, range(3), iter([1, 2])),
    *(np.float64("nan"), np.float32(3), np.int64(3), np.bool_(True), np.array(3), np.array([1, 2])),
    *(
        frozenset([0, 1, 2]),
        {0: 1, 1: 2}.keys(),
        [None],
        ["x"],
        [math.nan],
        [True, False, True],
        [2**70],
        [0, 0, 1],
    ),
    *(
        [[]],
        [[1], [1, 2]],
        [[0, 1], [2, 0]],
        [(0, 1)],
        [(0, 1, math.nan)],
        [(0, -1, 1)],
        [(0, 1, "x")],
        [(0, 1, -1.0)],
    ),
    *(np.ma.masked_array([0, 1, 2], mask=[0, 1, 0]), np.ma.masked_array(MATRIX, mask=MATRIX == 0)),
    *(np.array(["a"]), np.array(None), MATRIX == 1, MATRIX * 1j, np.zeros((0, 0)), np.zeros((2, 3)), -MATRIX),
]
