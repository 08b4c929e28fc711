"""Records in the output of squeue and sinfo, with separators that no user can guess.

Users choose names and comments of jobs, and may put line breaks and any separator into them. Each call therefore has
its own random separator.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence

from topoplace.errors import SlurmError


class RecordFormat:
    """The format of one call: the value of -O for squeue or sinfo, and the parser of the output."""

    def __init__(self, fields: Sequence[str]) -> None:
        """Ask for these fields, by the names of -O."""
        self._count = len(fields)
        self._separator = f"|x{secrets.token_hex(8)}|"
        self.option = ",".join(f"{field}:{self._separator}" for field in fields)

    def records(self, text: str) -> Iterator[list[str]]:
        """Yield the fields of each record; "" for (null) and N/A."""
        parts = text.split(self._separator)
        if (len(parts) - 1) % self._count or parts[-1].strip():
            raise SlurmError(f"a list of {len(parts) - 1} fields is not one of records of {self._count}")
        for start in range(0, len(parts) - 1, self._count):
            record = parts[start : start + self._count]
            record[0] = record[0].removeprefix("\n")
            yield ["" if field in ("(null)", "N/A") else field for field in record]
