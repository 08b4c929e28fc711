"""A deadline ends every search of its thread by an error, and nothing else."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from topoplace import JobGraph, kernels, machines
from topoplace.errors import DeadlineError
from topoplace.kernels.limits import check_deadline, deadline

PATTERN = JobGraph.mesh((4, 5)).graph
TARGET = machines.get("torus2d-16").graph


def search() -> None:
    kernels.best_subgraph(JobGraph.ring(12).graph, TARGET, timeout=60)


def test_a_search_raises_once_the_time_is_up() -> None:
    with deadline(0.0):
        with pytest.raises(DeadlineError):
            search()
        with pytest.raises(DeadlineError):
            check_deadline()
    check_deadline()
    kernels.best_subgraph(JobGraph.ring(4).graph, TARGET)


def test_a_long_search_is_cut_short() -> None:
    hard = np.array([[0 if i == j else 1 + i * j % 7 for i in range(64)] for j in range(64)], dtype=float)
    start = time.monotonic()
    with deadline(0.1), pytest.raises(DeadlineError):
        kernels.best_subgraph(PATTERN, hard, timeout=30)
    assert time.monotonic() - start < 20  # the search takes all its 30 seconds


def test_the_outer_deadline_holds_inside() -> None:
    with deadline(0.0), deadline(60.0), pytest.raises(DeadlineError):
        search()
    with deadline(60.0):
        with deadline(0.0), pytest.raises(DeadlineError):
            search()
        search()


def test_other_threads_have_no_deadline() -> None:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            kernels.best_subgraph(JobGraph.ring(4).graph, TARGET)
        except DeadlineError as error:
            errors.append(error)

    with deadline(0.0):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert not errors
