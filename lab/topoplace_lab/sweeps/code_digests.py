"""Digests of the code that computes a cell's figures: this library's, and that of other policies."""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from topoplace import _core, policies
from topoplace_lab.simulate.performance.models import PerformanceModel

_CODE: Final = (*SOURCE_SUFFIXES, *EXTENSION_SUFFIXES)
_OURS: Final = ("topoplace", "topoplace_lab")
_INSTALLED: Final = ("site-packages", "dist-packages")
"""Folders with packages of many authors; a module there does not belong with its neighbours."""
_Files = dict[Path, str]
"""Names of files with code by their paths; a name does not depend on the file's folder."""


@cache
def library_digest() -> str:
    """Return a digest of all code of this library, the compiled extension included."""
    files: _Files = {}
    for name in _OURS:
        files |= _files_of(sys.modules[name])
    return _digest_of({**files, Path(_core.__file__): "_core"})


def code_of(name: str, **options: Any) -> str:
    """Return a digest of the code of the policy called `name`, made with `options` as by `policies.get`.

    The digest is "" for a policy of this library. For other policies, it includes the policy's whole package and the
    modules of base classes. A module outside packages counts with its imports from the same folder. ValueError as for
    `policies.get`.
    """
    policy = policies.get(name, **options)
    offered = "" if name in policies.names() else policies.installed.module_of(name)
    return _code_of_class(type(policy), offered)


def code_of_model(model: PerformanceModel) -> str:
    """Return a digest of the code of a performance model, as `code_of` does for a policy."""
    return _code_of_class(type(model))


def _code_of_class(kind: type, offered: str = "") -> str:
    """Return a digest of the code of a class; offered: the module that names it, if it is another one."""
    files: _Files = {}
    for start in _of_others((offered, kind.__module__)):
        files |= _with_neighbours(_files_of(sys.modules[start.partition(".")[0]]))
    for base in _of_others(one.__module__ for one in kind.__mro__):
        files |= _own_file(sys.modules[base])
    return _digest_of(files) if files else ""


def _of_others(modules: Iterable[str]) -> list[str]:
    """Return the imported modules that are neither this library's nor Python's."""
    tops = {name: name.partition(".")[0] for name in modules if name in sys.modules}
    return [name for name, top in tops.items() if top not in _OURS and top not in sys.stdlib_module_names]


def _digest_of(files: _Files) -> str:
    """Return 12 hexadecimal digits that depend on the names and the contents of files."""
    digest = hashlib.sha256()
    for name, path in sorted((name, path) for path, name in files.items()):
        digest.update(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()[:12]


def _files_of(module: ModuleType) -> _Files:
    """Return the files with the code of a module, or of all modules of a package."""
    found = _own_file(module)
    for folder in map(Path, getattr(module, "__path__", ())):
        found |= _files_in(folder)
    return found


def _own_file(module: ModuleType) -> _Files:
    path = Path(getattr(module, "__file__", None) or "")
    return {path: module.__name__} if path.is_file() else {}


def _files_in(package: Path) -> _Files:
    return {
        path: path.relative_to(package.parent).as_posix()
        for path in package.rglob("*")
        if path.name.endswith(_CODE) and path.is_file()
    }


def _with_neighbours(files: _Files) -> _Files:
    """Return files, and those of the modules and packages next to them that they import, directly or through others."""
    found = dict(files)
    left = list(files)
    while left:
        path = left.pop()
        root = path.parents[found[path].count("/")]
        if path.suffix in SOURCE_SUFFIXES and root.name not in _INSTALLED:
            imported = {one: name for top in _imported_by(path) for one, name in _found_in(root, top).items()}
            left += imported.keys() - found.keys()
            found = imported | found
    return found


def _found_in(root: Path, name: str) -> _Files:
    """Return the files of the module or package of a name in a folder, none for this library's and Python's."""
    if name in _OURS or name in sys.stdlib_module_names:
        return {}
    modules = (root / f"{name}{ending}" for ending in _CODE)
    return {one: one.name for one in modules if one.is_file()} | _files_in(root / name)


def _imported_by(path: Path) -> Iterator[str]:
    """Yield the top-level names of the modules that a file imports anywhere; none if it is not Python's."""
    try:
        parsed = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(parsed):
        if isinstance(node, ast.Import):
            yield from (one.name.partition(".")[0] for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
