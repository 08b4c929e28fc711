"""Errors of the library in the words of the command line: a message names the option instead of the argument."""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager

_ARGUMENT = re.compile(r"(\w+(?:: \w+)?)(?:\[\d+\])?(?= = )")


@contextmanager
def named(**flags: str) -> Generator[None]:
    """Name the option instead of the argument in a ValueError of the block whose message begins with `argument = `.

    flags: the option for each argument of the library, such as k="--gpus".
    """
    try:
        yield
    except ValueError as error:
        error.args = (in_words_of(flags, str(error)),)
        raise


@contextmanager
def of_file(path: str | os.PathLike[str]) -> Generator[None]:
    """Add the file's name to an OSError of the block without one, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def in_words_of(flags: Mapping[str, str], message: str) -> str:
    """Return `message`; if it begins with `argument = `, with the option that `flags` has for the argument's name."""
    match = _ARGUMENT.match(message)
    known = match is not None and match[1] in flags
    return f"{flags[match[1]]}{message[match.end() :]}" if match and known else message
