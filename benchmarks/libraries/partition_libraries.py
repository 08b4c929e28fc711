"""Libraries that bisect graphs, behind one interface; each reports if it is installed.

`pip install --group peers` gets pymetis, kahip and mtkahypar. libmetis and libscotch, if installed, are
called directly, which separates METIS' own time from that of its binding. All libraries get arrays that they need not
convert, and one thread.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib
import importlib.util
import os
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from instances.partition_graphs import IMBALANCE, Instance
from topoplace import kernels

os.environ.setdefault("SCOTCH_PTHREAD_NUMBER", "1")

Call = Callable[[], Any]
"""The call that is timed; its result can be converted to an array of sides."""


def ours(instance: Instance, seed: int) -> Call:
    graph = instance.graph
    return lambda: kernels.bipartition(graph, imbalance=IMBALANCE, seed=seed).side


def pymetis(instance: Instance, seed: int) -> Call:
    library = importlib.import_module("pymetis")
    first, to, weights = instance.rows
    adjacency = library.CSRAdjacency(first, to)
    options = library.Options(seed=seed, ufactor=round(1000 * IMBALANCE))
    return lambda: library.part_graph(2, adjacency, eweights=weights, options=options)[1]


def kahip(mode: str) -> Callable[[Instance, int], Call]:
    def prepare(instance: Instance, seed: int) -> Call:
        library = importlib.import_module("kahip")
        first, to, weights = instance.rows
        weights = np.ones(len(to), dtype=np.int32) if weights is None else weights
        rows = first.tolist(), weights.tolist(), to.tolist()
        ones = [1] * instance.vertices
        kind = getattr(library, mode)
        return lambda: library.kaffpa(ones, *rows, 2, IMBALANCE, True, seed, kind)[1]

    return prepare


@cache
def mt_kahypar_library() -> tuple[Any, Any]:
    library = importlib.import_module("mtkahypar")
    return library, library.initialize(1)


def mt_kahypar(preset: str) -> Callable[[Instance, int], Call]:
    def prepare(instance: Instance, seed: int) -> Call:
        library, started = mt_kahypar_library()
        context = started.context_from_preset(getattr(library.PresetType, preset))
        context.set_partitioning_parameters(2, IMBALANCE, library.Objective.CUT)
        context.logging = False
        library.set_seed(seed)
        edges = [tuple(edge) for edge in instance.edges.tolist()]
        weights = (
            ()
            if instance.weights is None
            else ([1] * instance.vertices, instance.weights.astype(int).tolist())
        )
        graph = started.create_graph(context, instance.vertices, len(edges), edges, *weights)
        return lambda: graph.partition(context).get_partition()

    return prepare


def metis(instance: Instance, seed: int) -> Call:
    library = _shared("metis")
    options = (ctypes.c_int32 * 40)(*[-1] * 40)
    options[8], options[16] = seed, round(1000 * IMBALANCE)  # METIS_OPTION_SEED, METIS_OPTION_UFACTOR
    side = np.empty(instance.vertices, dtype=np.int32)
    vertices, constraints, parts, cut = (
        ctypes.byref(ctypes.c_int32(value)) for value in (instance.vertices, 1, 2, 0)
    )
    first, to, weights = map(_address, instance.rows)
    rows = first, to, None, None, weights

    def call() -> np.ndarray:
        library.METIS_PartGraphRecursive(
            vertices, constraints, *rows, parts, None, None, options, cut, _address(side)
        )
        return side

    return call


def scotch(instance: Instance, seed: int) -> Call:
    """Prepare Scotch's default strategy at this imbalance; its random numbers restart from the seed."""
    library = _shared("scotch-7.0")
    first, to, weights = instance.rows
    side = np.empty(instance.vertices, dtype=np.int32)
    graph, strategy = ctypes.create_string_buffer(1024), ctypes.create_string_buffer(256)
    library.SCOTCH_randomSeed(seed)
    library.SCOTCH_randomReset()
    library.SCOTCH_graphInit(graph)
    size = (ctypes.c_int32(0), ctypes.c_int32(instance.vertices)), ctypes.c_int32(len(to))
    rows = _address(first), None, None, None, size[1], _address(to), _address(weights)
    library.SCOTCH_graphBuild(graph, *size[0], *rows)
    library.SCOTCH_stratInit(strategy)
    library.SCOTCH_stratGraphMapBuild(
        strategy, ctypes.c_int32(0), ctypes.c_int32(2), ctypes.c_double(IMBALANCE)
    )

    def call() -> np.ndarray:
        library.SCOTCH_graphPart(graph, ctypes.c_int32(2), strategy, _address(side))
        return side

    return call


def _address(array: np.ndarray | None) -> Any:
    return None if array is None else array.ctypes.data_as(ctypes.c_void_p)


@cache
def _shared(name: str) -> ctypes.CDLL:
    if name.startswith("scotch"):
        errors = ctypes.util.find_library(name.replace("scotch", "scotcherr"))
        ctypes.CDLL(errors or "", mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(ctypes.util.find_library(name) or "")


class Library(NamedTuple):
    prepare: Callable[[Instance, int], Call]
    module: str = ""
    """Name of the module that must be installed, if any."""
    system: str = ""
    """Name of the system library that must be installed, if any."""

    @property
    def installed(self) -> bool:
        if self.system:
            return ctypes.util.find_library(self.system) is not None
        return not self.module or importlib.util.find_spec(self.module) is not None


LIBRARIES = {
    "ours": Library(ours),
    "pymetis": Library(pymetis, module="pymetis"),
    "METIS": Library(metis, system="metis"),
    "Scotch": Library(scotch, system="scotch-7.0"),
    "KaHIP fast": Library(kahip("FAST"), module="kahip"),
    "KaHIP eco": Library(kahip("ECO"), module="kahip"),
    "mt-kahypar": Library(mt_kahypar("DEFAULT"), module="mtkahypar"),
    "mt-kahypar quality": Library(mt_kahypar("QUALITY"), module="mtkahypar"),
}


def installed() -> list[str]:
    """Return the names of the installed libraries."""
    return [name for name, library in LIBRARIES.items() if library.installed]
