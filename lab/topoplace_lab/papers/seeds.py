"""The number of seeds of a reproduction's simulations."""

from __future__ import annotations

from typing import Final

SEEDS: Final = 10
"""Number of seeds of every simulated row, in a full run."""
QUICK_SEEDS: Final = 3
"""Number of seeds in a quick run; fewer would give no useful interval."""
