"""`topoplace report` writes one HTML page about results of `topoplace simulate --save`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from topoplace.cli import flags, options, writing

if TYPE_CHECKING:
    from topoplace_lab.simulate import Result


def add(commands: Any) -> None:
    """Add `topoplace report` and its arguments to the command line."""
    parser = options.command(
        commands,
        "report",
        "write one HTML page about saved results: policies, time, machines, decisions",
        _run,
        examples=[
            "topoplace report topo-aware.csv -o page.html",
            "topoplace report topo-aware-1.csv topo-aware-2.csv fcfs.csv -o page.html --title 'Our cluster'",
        ],
    )
    parser.add_argument(
        "results",
        metavar="RESULT",
        nargs="+",
        type=options.path,
        help="what `topoplace simulate --save` wrote; several of one policy, equal but for the seed, are averaged",
    )
    parser.add_argument(
        "-o",
        dest="output",
        metavar="FILE",
        type=options.path,
        required=True,
        help="write the page to FILE; it needs no other file",
    )
    parser.add_argument(
        "--title", default="Policies compared", metavar="TEXT", help="the page's title (default: %(default)s)"
    )


def _run_of(result: Result) -> object:
    """Return what two files have in common if they are of one run, which is no repetition of itself."""
    return result.seed, result.options, result


def _run(arguments: argparse.Namespace) -> None:
    from topoplace import _checks
    from topoplace_lab.report.page import write_page
    from topoplace_lab.simulate import Result

    with flags.named(title="--title"):
        title = _checks.text(arguments.title, "title", ValueError)
    output = writing.file(arguments.output, inputs=[("RESULT", path) for path in arguments.results])
    results: list[Result] = []
    for i, path in enumerate(arguments.results):
        if path in arguments.results[:i]:
            raise ValueError(f"RESULT {path} is given twice")
        try:
            found = Result.load(path)
        except ValueError as error:
            raise ValueError(f"RESULT {path}: {error}") from None
        for earlier, other in zip(results, arguments.results, strict=False):
            if found.seed is not None and _run_of(found) == _run_of(earlier):
                raise ValueError(f"RESULT {path}: the same run as RESULT {other}, with the same seed")
        results.append(found)
    try:
        write_page(results, output, title=title)
    except OSError as error:
        raise ValueError(f"-o {output}: {error.strerror}") from None
    writing.wrote(output, beside_json=False)
