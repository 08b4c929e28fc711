"""The VM types that a cloud offers for rent, with their GPUs and prices (Filippini et al., Table II)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, overload

from topoplace import _checks
from topoplace.text_formats.csv_rows import number, records

MAX_GPUS: Final = 1024
_COLUMNS: Final = ("name", "gpu_model", "gpus", "cost_per_hour")


@dataclass(frozen=True, slots=True)
class VMType:
    """One type of virtual machine, with GPUs of one model.

    Raises:
        ValueError: For an empty name, `num_gpus` outside 1 to 1024, or a price outside 0 to 1e9.
    """

    name: str
    gpu_model: str
    num_gpus: int
    cost_per_hour: float
    """Price in $ per rented hour, whatever runs there."""

    def __post_init__(self) -> None:
        _checks.text(self.name, "name", ValueError)
        _checks.text(self.gpu_model, "gpu_model", ValueError)
        gpus = _checks.integer(self.num_gpus, "num_gpus", ValueError, low=1, high=MAX_GPUS)
        cost = _checks.real(self.cost_per_hour, "cost_per_hour", ValueError, high=1e9)
        object.__setattr__(self, "num_gpus", gpus)
        object.__setattr__(self, "cost_per_hour", cost)


class Catalogue(Sequence[VMType]):
    """The VM types that can be rented, in a fixed order. Immutable and hashable; equal if all types are equal."""

    __slots__ = ("_index", "_types")

    def __init__(self, types: Iterable[VMType]) -> None:
        """Create a catalogue of these types; raise ValueError if there are none, or if a name occurs twice."""
        self._types: tuple[VMType, ...] = _checks.sequence(types, "types", ValueError)
        self._index: dict[str, int] = {}
        for row, vm_type in enumerate(self._types):
            _checks.instance(vm_type, VMType, f"types[{row}]", ValueError)
            if (first := self._index.setdefault(vm_type.name, row)) != row:
                raise ValueError(f"types[{row}]: {vm_type.name!r} is also the name of types[{first}]")
        if not self._types:
            raise ValueError("types is empty")

    @overload
    def __getitem__(self, index: int) -> VMType: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[VMType, ...]: ...
    def __getitem__(self, index: int | slice) -> VMType | tuple[VMType, ...]:
        return self._types[index]

    def __len__(self) -> int:
        return len(self._types)

    def __iter__(self) -> Iterator[VMType]:
        return iter(self._types)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Catalogue) and self._types == other._types

    def __hash__(self) -> int:
        return hash(self._types)

    def __repr__(self) -> str:
        return f"Catalogue({', '.join(self._index)})"

    @property
    def max_gpus(self) -> int:
        """Return the number of GPUs of the VM type with most GPUs."""
        return max(vm_type.num_gpus for vm_type in self._types)

    def index_of(self, name: str) -> int:
        """Return the position of the VM type called `name`; raise ValueError with the known names if it is unknown."""
        if name not in self._index:
            raise ValueError(f"VM type {_checks.shown(name)} is not one of {', '.join(self._index)}")
        return self._index[name]

    @classmethod
    def from_csv(cls, text: str) -> Catalogue:
        """Read a catalogue from CSV with the columns name, gpu_model, gpus, cost_per_hour ($/h), in any order.

        Raises:
            ValueError: Names the line of a bad value, or a repeated name.
        """
        types: list[VMType] = []
        for line, row in records(text, _COLUMNS):
            gpus = int(number(row["gpus"], int, line, "gpus", low=1, high=MAX_GPUS))
            cost = number(row["cost_per_hour"], float, line, "cost_per_hour", high=1e9)
            try:
                types.append(VMType(row["name"].strip(), row["gpu_model"].strip(), gpus, cost))
            except ValueError as error:
                raise ValueError(f"line {line}: {error}") from None
        return cls(types)

    def to_csv(self) -> str:
        """Return the catalogue as CSV text that `from_csv` can read."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(_COLUMNS)
        writer.writerows((t.name, t.gpu_model, t.num_gpus, repr(t.cost_per_hour)) for t in self._types)
        return out.getvalue()


TABLE_II: Final = Catalogue(
    (
        VMType("NC6", "K80", 1, 0.56),
        VMType("NC12", "K80", 2, 1.13),
        VMType("NC24", "K80", 4, 2.25),
        VMType("NV6", "M60", 1, 0.62),
        VMType("NV12", "M60", 2, 1.24),
        VMType("NV24", "M60", 4, 2.48),
        VMType("Custom1", "Quadro P600", 2, 0.11),
        VMType("Custom2", "GTX 1080Ti", 8, 1.13),
        VMType("Custom3", "Quadro P600", 8, 0.44),
    )
)
"""The paper's catalogue: six VM types of Azure and three in-house servers."""
