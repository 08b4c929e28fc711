"""Coverage-guided fuzzing of the parsers: `make fuzz-parsers`, or `fuzz_parsers.py system_xml -max_total_time=600`.

The first argument is a module below `topoplace.discovery`, the others are libFuzzer's. Inputs start from the fixtures
that the format recognises. Anything but a reading or a TopologyError, an input that takes over a second, or memory
over what twenty times the largest input needs, stops with the input written to a file.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path
from types import FunctionType, ModuleType

import atheris

from topoplace import TopologyError, discovery

FIXTURES = Path(__file__).parents[1] / "tests/data"
LONGEST = 1 << 16
LIMITS = ["-timeout=1", f"-max_len={LONGEST}", "-rss_limit_mb=1024"]


def main() -> None:
    """Fuzz the parser that the command line names."""
    format = next(one for one in discovery.formats() if one.module.endswith(f".{sys.argv[1]}"))
    for one in discovery.formats():
        one.recognised("")  # imports it
    for name in [name for name in sys.modules if name.startswith("topoplace")]:
        instrument(sys.modules[name])

    def read(data: bytes) -> None:
        for parse in (format.parse, discovery.read):
            with contextlib.suppress(TopologyError):
                parse(data)

    with tempfile.TemporaryDirectory() as seeds:
        for fixture in FIXTURES.iterdir():
            data = fixture.read_bytes()
            if recognised(format, data):
                Path(seeds, fixture.name).write_bytes(data)
        atheris.Setup([sys.argv[0], seeds, *LIMITS, *sys.argv[2:]], read)
        atheris.Fuzz()


def instrument(module: ModuleType) -> None:
    """Let the fuzzer see the branches of all functions of `module`, which was found by no importer it knows."""
    for owner in (module, *(value for value in vars(module).values() if isinstance(value, type))):
        for function in vars(owner).values():
            if isinstance(function, FunctionType) and function.__module__ == module.__name__:
                atheris.instrument_func(function)


def recognised(format: discovery.Format, data: bytes) -> bool:
    """Whether `data` is a text of the format."""
    try:
        return discovery.format_of(data) is format
    except TopologyError:
        return False


if __name__ == "__main__":
    main()
