"""Performance models of users, named MODULE:OBJECT as on the command line."""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from topoplace import _checks
from topoplace_lab.simulate.performance.models import PerformanceModel


def model_named(name: str) -> PerformanceModel:
    """Return the model named MODULE:OBJECT: an object with `run_time`, or an instance of a class without arguments.

    Raises:
        ValueError: If there is no such module or object, if the class cannot be called without arguments, or if the
            object has no `run_time`.
    """
    module, colon, path = _checks.text(name, "performance", ValueError).partition(":")
    if not (module and colon and path) or module.startswith(".") or "/" in module:
        raise ValueError(f"{_checks.shown(name)} is not MODULE:OBJECT, such as package.module:Model")
    found = _imported(name, module)
    for part in path.split("."):
        if not hasattr(found, part):
            raise ValueError(f"{name}: {module} has no {path}")
        found = getattr(found, part)
    if isinstance(found, type):
        try:
            found = found()
        except (Exception, SystemExit) as error:
            raise ValueError(
                f"{name}: calling it without arguments raised {type(error).__name__}: {error}"
            ) from error
    if not isinstance(found, PerformanceModel):
        raise ValueError(f"{name}: has no method run_time(job, placement, random)")
    return found


def _imported(name: str, module: str) -> Any:
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as error:
        why = (
            str(error)
            if isinstance(error, ImportError)
            else f"importing it raised {type(error).__name__}: {error}"
        )
        raise ValueError(f"{name}: {why}") from error


@contextmanager
def faults_named(model: PerformanceModel) -> Generator[None]:
    """Turn an exception from a user's model in the `with` block into a ValueError with the file and line.

    Faults in calling the model, or in using its answer, are included. ValueErrors about other things stay.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        package = _package(type(model).__module__)
        own = [
            (frame.f_code, line)
            for frame, line in traceback.walk_tb(error.__traceback__)
            if _package(frame.f_globals.get("__name__", "")) == package
        ]
        if package == _package(__name__) or not (
            own or isinstance(error, TypeError | AttributeError | LookupError)
        ):
            raise
        what = f"{type(error).__name__}: {error}"
        if not own:
            raise ValueError(
                f"performance: calling {type(model).__qualname__} or using its answer raised {what}"
            ) from error
        code, line = own[-1]
        raise ValueError(
            f"performance: {type(model).__qualname__}.{own[0][0].co_name} raised {what} "
            f"({Path(code.co_filename).name}, line {line})"
        ) from error


def _package(module: str) -> str:
    return module.partition(".")[0]
