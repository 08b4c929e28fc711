"""The best, median and worst set of a machine's GPUs."""

from __future__ import annotations

from itertools import combinations

import pytest

import topoplace as tp
from topoplace import collective

DGX1 = tp.machines.get("dgx1-v100")


def test_all_sets_of_a_size():
    found = collective.survey(DGX1, 3)
    rated = sorted((-collective.ring_bandwidth(DGX1, gpus), gpus) for gpus in combinations(range(8), 3))
    figures = [-minus for minus, _ in rated]
    assert (found.best.gpus, found.best.gb_per_s) == (rated[0][1], figures[0])
    assert (found.median.gb_per_s, found.worst.gb_per_s) == (figures[28], figures[-1])
    assert found.worst.gpus == min(gpus for minus, gpus in rated if -minus == figures[-1])
    assert found.mean_gb_per_s == pytest.approx(sum(figures) / 56)
    assert (found.num_sets, found.all_sets, found.choice_matters) == (56, True, True)


def test_too_many_sets_are_drawn_at_random():
    dgx2 = tp.machines.get("dgx2")
    found = collective.survey(dgx2, 8, most_sets=50)
    assert (found.num_sets, found.all_sets) == (50, False)
    assert found == collective.survey(dgx2, 8, most_sets=50)
    assert not found.choice_matters


@pytest.mark.parametrize("size", [1, 9, 2.5])
def test_wrong_sizes_are_refused(size):
    with pytest.raises(ValueError, match="size = "):
        collective.survey(DGX1, size)
