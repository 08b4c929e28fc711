"""Check that the installed extension leaves Python's lock off where Python runs without it."""

from __future__ import annotations

import sys
import sysconfig

import topoplace._core


def main() -> int:
    """Return 1 if the extension has turned the lock of a free-threaded Python on, else 0."""
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        print("this Python has its lock, always")
        return 0
    if sys._is_gil_enabled():  # pyright: ignore[reportAttributeAccessIssue]
        print(f"{topoplace._core.__file__} turned the lock on")
        return 1
    print("no lock")
    return 0


if __name__ == "__main__":
    sys.exit(main())
