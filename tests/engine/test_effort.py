"""The work that a ranking of candidates may take."""

from __future__ import annotations

from topoplace.engine.effort import Effort
from topoplace.errors import SearchTimeoutError
from topoplace.kernels import WorkBudget


def test_each_search_counts_its_nodes_or_500_until_none_are_left() -> None:
    effort, shares = Effort(WorkBudget(), num_nodes=1_200), list[int | None]()

    def search(budget: WorkBudget) -> None:
        shares.append(budget.left)
        budget.charge(300)

    for _ in range(3):
        effort.extend(search)
    assert shares == [1_200, 700, 200]
    assert not effort.complete  # the third search spent the rest


def test_a_ranking_whose_searches_end_early_is_complete_until_one_is_left_out() -> None:
    effort, searches = Effort(WorkBudget(), num_nodes=1_000), list[WorkBudget]()
    for number_of_searches in (1, 2):
        effort.extend(searches.append)
        assert effort.complete
        assert len(searches) == number_of_searches
    effort.extend(searches.append)
    assert not effort.complete
    assert len(searches) == 2


def test_no_search_follows_one_that_spent_all() -> None:
    effort, searches = Effort(WorkBudget(), num_nodes=1_000), list[WorkBudget]()
    effort.extend(lambda budget: budget.charge(1_000))
    effort.extend(searches.append)
    assert not effort.complete
    assert not searches


def test_others_are_searched_for_after_one_that_ran_out_of_time() -> None:
    effort, searches = Effort(WorkBudget(), num_nodes=1_000), list[WorkBudget]()

    def late(budget: WorkBudget) -> None:
        raise SearchTimeoutError("late", None)

    effort.extend(late)
    effort.extend(searches.append)
    assert not effort.complete
    assert len(searches) == 1


def test_without_nodes_for_them_no_other_candidates_are_searched_for() -> None:
    effort, searches = Effort(WorkBudget()), list[WorkBudget]()
    assert effort.complete
    effort.extend(searches.append)
    assert not effort.complete
    assert not searches
    alone = Effort(WorkBudget(), 100_000)
    alone.extend(searches.append)
    assert searches[0].left == 100_000
