"""How many seeds a reproduction's simulations have."""

from __future__ import annotations

from typing import Final

SEEDS: Final = 10
"""Number of seeds of every simulated row, in a full run."""
QUICK_SEEDS: Final = 3
"""Number of seeds in a quick run: with fewer, there is no interval to speak of."""
