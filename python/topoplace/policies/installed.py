"""Policies of other packages: entry points of the group `topoplace.policies`, and reports of faults in their code.

A fault in a policy of another package is reported with the policy's name, method, file and line.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from topoplace import _checks, _installed
from topoplace.errors import AllocationError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from topoplace.engine.policy import Policy


def names() -> tuple[str, ...]:
    """Return the names of all policies that other packages than topoplace's offer, in alphabetical order."""
    return tuple(sorted(name for name, offered in _offered().items() if not all(map(_is_ours, offered))))


def names_of_ours() -> tuple[str, ...]:
    """Return the names of the policies that installed distributions of topoplace add, in a fixed order."""
    offered = _installed.entry_points(_installed.POLICIES)
    return tuple(name for name in _installed.POLICIES_OF_LAB if name in offered)


def classes_of_ours() -> dict[str, EntryPoint]:
    """Return the entry points of the policies in `names_of_ours`, by the name of the class."""
    offered = _installed.entry_points(_installed.POLICIES)
    found = [one for name in names_of_ours() for one in offered[name] if _is_ours(one)]
    return {one.value.partition(":")[2]: one for one in found}


def _is_ours(one: EntryPoint) -> bool:
    return _package(one.value).startswith("topoplace_")


def packages(name: str) -> tuple[str, ...]:
    """Return the packages that offer a policy under this name, in alphabetical order."""
    return tuple(sorted({one.value.partition(":")[0].partition(".")[0] for one in _offered().get(name, ())}))


def module_of(name: str) -> str:
    """Return the module of a policy; "" if unknown. name: MODULE:CLASS, or a name that one package offers."""
    values = [name] if ":" in name else [one.value for one in _offered().get(name, ())]
    return values[0].partition(":")[0] if len(set(values)) == 1 else ""


def find(name: str) -> Callable[..., Policy] | None:
    """Return the class of the policy that an installed package offers under this name; None if none does.

    Raise ValueError if several packages offer it, or if the package cannot be imported or has no such class.
    """
    # Looking through all that is installed takes longer than most decisions: for our names, once is enough.
    ours = _installed.entry_points(_installed.POLICIES) if name in names_of_ours() else None
    offered = (_offered() if ours is None else ours).get(name, ())
    if not offered:
        return None
    shown = f"name = {_checks.shown(name)}"
    values = sorted({one.value for one in offered})
    if len(values) > 1:
        raise ValueError(
            f"{shown}: offered by several packages: {', '.join(values)}; name one of these instead"
        )
    what = f"{shown}: its package offers {values[0]}"
    if ":" not in values[0]:
        raise ValueError(f"{what}, which is not MODULE:CLASS")
    return checked_class(offered[0].load, what, f"{what}, which is not a class")


def checked_class(load: Callable[[], object], what: str, no_class: str) -> Callable[..., Policy]:
    """Return the class that `load` imports; ValueError if it cannot.

    what: beginning of the message if the import fails for any reason. no_class: the message if the object is no class.
    """
    try:
        found = load()
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"{what}: {_installed.text_of(error)}") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise ValueError(f"{what}: {failure(error, 'importing it')}") from error
    if not callable(found):
        raise ValueError(no_class)
    return cast("Callable[..., Policy]", found)


def failure(error: BaseException, doing: str) -> str:
    """Return the error that code of another package raised, and its place, as the end of a sentence; doing: such as
    "importing it".
    """
    last = traceback.extract_tb(error.__traceback__)[-1]
    file = "" if isinstance(error, SyntaxError) else last.filename  # its text has the place
    return _raised(error, doing, file, last.lineno)


def _raised(error: BaseException, doing: str, file: str, line: int | None) -> str:
    where = f" ({Path(file).name}, line {line})" if file else ""
    return f"{doing} raised {type(error).__name__}: {_installed.text_of(error)}{where}"


def is_of_others(policy: Policy) -> bool:
    """Return True if the class of a policy is from another package."""
    return _package(type(policy).__module__) not in ("topoplace", "topoplace_lab")


@contextmanager
def faults_named(policy: Policy, begin: str = "", *, only_its_code: bool = False) -> Generator[None]:
    """Turn a fault of another package's policy in the `with` block into a ValueError with method, file and line.

    begin: beginning of the message. A fault is an error that the policy's code raises, or a result that cannot be used.
    Errors of built-in policies, and about other arguments, are not changed. only_its_code: True changes only errors
    that the policy's code raised, for a block that also does other work.
    """
    try:
        yield
    except (MemoryError, KeyboardInterrupt):
        raise
    except BaseException as error:
        fault = _fault_of(policy, error, only_its_code=only_its_code) if is_of_others(policy) else ""
        if not fault:
            raise
        raise ValueError(begin + fault) from error


def _fault_of(policy: Policy, error: BaseException, *, only_its_code: bool) -> str:
    """Return what is wrong with a policy of others that led to `error`; "" if the error is about something else."""
    about = f"policy {policy.name!r}: "
    text = _installed.text_of(error)
    if text.startswith(about):
        return text.removeprefix(about)
    package = _package(type(policy).__module__)
    own = [
        (frame.f_code, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if _package(frame.f_globals.get("__name__", "")) == package
    ]
    if own:
        code, line = own[-1]
        return _raised(error, own[0][0].co_name, code.co_filename, line)
    if only_its_code or not isinstance(error, Exception | SystemExit):  # such as the end of a generator
        return ""
    if isinstance(error, AllocationError):
        return str(error)
    return (
        ""
        if isinstance(error, ValueError | OSError | ImportError)
        else failure(error, "calling it or using its answer")
    )


def _package(module: str) -> str:
    return module.partition(".")[0]


def _offered() -> Mapping[str, tuple[EntryPoint, ...]]:
    return _installed.offered_now(_installed.POLICIES)
