"""The reference of the Python API and of the headers of C and C++, made from the code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import topoplace

_ROOT = Path(__file__).parents[2]
_EXTRAS = {
    "topoplace_hosts.ray": "Exact GPUs for the tasks and actors of Ray.",
    "topoplace_hosts.kubernetes.testing": "A simulated API server of Kubernetes.",
    "topoplace_hosts.slurm.testing": "A toy Slurm of the real daemons.",
    "topoplace_lab.policies.drmaestro": "DRMaestro as a service that learns from telemetry.",
    "topoplace.testing.strategies": "Hypothesis strategies for topologies, jobs, hosts and clusters.",
}
"""Public modules that need an optional package, and for which `topoplace` has no attribute."""
_CPP = """\
# C++

The kernels and the state of clusters are a C++20 library that knows nothing of Python. To install it:

    cmake --preset release && cmake --build --preset release
    cmake --install build/release --component cpp

The [C interface](c.md) has the text formats and the policies as well, and runs Python for them.

This program uses the C++ library, and this is how it is built; the tests do both."""


def python_api() -> dict[str, str]:
    """Return Markdown by the name of a page: the package's own names, then each public module's."""
    pages: dict[str, str] = {}
    entries: list[str] = []
    for module in public_modules():
        name = module.__name__
        page = _file_of(name)
        summary, _, rest = (module.__doc__ or "").strip().partition("\n")
        pages[page] = "\n\n".join([f"# {name}", summary, rest.strip(), *_entries(name, public_names(module))])
        entries.append(f"- [{name}]({page}): {summary}")
    for name, summary in _EXTRAS.items():
        page = _file_of(name)
        pages[page] = f"# {name}\n\n::: {name}"
        entries.append(f"- [{name}]({page}): {summary}")
    own = [name for name in topoplace.__all__ if not isinstance(getattr(topoplace, name), ModuleType)]
    intro = "Public are the names on these pages. Whatever else a module contains may change without notice."
    pages["index.md"] = "\n\n".join(
        ["# Python API", intro, "\n".join(entries), "## topoplace", *_entries("topoplace", own)]
    )
    return pages


def _file_of(module: str) -> str:
    return f"{module.removeprefix('topoplace.').replace('.', '-')}.md"


def public_modules() -> Iterator[ModuleType]:
    """Yield the public modules by name."""
    attributes = (getattr(topoplace, name) for name in dir(topoplace))
    return (one for one in attributes if isinstance(one, ModuleType))


def public_names(module: ModuleType) -> list[str]:
    """Return the names in `__all__` of a module; without it, those that it defines and that have a docstring."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return [name for name in listed if not isinstance(getattr(module, name), ModuleType)]
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


def _entries(module: str, names: list[str]) -> list[str]:
    return [f"::: {module}.{name}" for name in names]


# ---- C and C++ -----------------------------------------------------------------------------------------------------


def cpp() -> str:
    """Return Markdown with the C++ headers and an example."""
    example = (_ROOT / "cpp/tests/consumer/main.cpp").read_text("utf-8")
    build = (_ROOT / "cpp/tests/consumer/CMakeLists.txt").read_text("utf-8")
    parts = [_CPP, f"```cpp\n{example}```", f"```cmake\n{build}```", "The headers document themselves."]
    for header in sorted((_ROOT / "cpp/include/topoplace").glob("*.hpp")):
        parts += [f"## topoplace/{header.name}", f"```cpp\n{header.read_text('utf-8')}```"]
    return "\n\n".join(parts)


def c() -> str:
    """Return Markdown with the header of the C interface."""
    header = (_ROOT / "cpp/c_interface/topoplace.h").read_text("utf-8")
    intro = "[How to](../integrations/c.md) build and use it; [examples](../examples.md) in C and Go."
    return f"# C\n\n{intro}\n\n```c\n{header}```"
