"""Tests that share what takes long to make, and so run in one process of pytest-xdist.

Its own `--dist loadgroup` sets the ids of tests, which pytest 9.2 does not take over: there, groups have no effect.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

GROUPS = {
    "tests/house/test_docs_site.py": "site",
    "tests/integrations/slurm/test_busy_cluster.py": "a busy cluster of Slurm",
    "tests/integrations/slurm/test_placer.py": "a cluster of Slurm",
    "tests/integrations/slurm/test_toy_cluster.py": "a toy cluster of Slurm",
    "tests/papers/test_paper_drmaestro.py": "drmaestro",
    "tests/papers/test_paper_gpuaas.py": "gpuaas",
    "tests/papers/test_paper_mapa.py": "mapa",
    "tests/papers/test_paper_sc17.py": "sc17",
    "tests/papers/test_paper_tsubame.py": "tsubame",
    "tests/report/test_page.py": "browser",
    "tests/simulate/test_exact_replay.py": "traces",
}


class OneProcessForEachGroup(LoadScopeScheduling):
    """Sends the tests of a group to one process, the largest groups first, then all others one by one."""

    def _split_scope(self, nodeid: str) -> str:
        return GROUPS.get(nodeid.partition("::")[0], nodeid)
