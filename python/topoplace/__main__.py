"""`python -m topoplace`: the same as the command `topoplace`."""

from __future__ import annotations

import sys

from topoplace.cli import main

sys.exit(main())
