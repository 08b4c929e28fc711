"""Tests that share what takes long to make, and so run in one process of pytest-xdist.

Its own `--dist loadgroup` sets the ids of tests, which pytest 9.2 does not take over: there, groups have no effect.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

GROUPS = {
    "tests/cli/test_explore_recorded.py": "recorded page",
    "tests/house/test_docs_site.py": "site",
    "hosts/tests/slurm/test_busy_cluster.py": "a busy cluster of Slurm",
    "hosts/tests/slurm/test_placer.py": "a cluster of Slurm",
    "hosts/tests/slurm/test_toy_cluster.py": "a toy cluster of Slurm",
    "lab/tests/papers/test_paper_drmaestro.py": "drmaestro",
    "lab/tests/papers/test_paper_gpuaas.py": "gpuaas",
    "lab/tests/papers/test_paper_mapa.py": "mapa",
    "lab/tests/papers/test_paper_sc17.py": "sc17",
    "lab/tests/papers/test_paper_tsubame.py": "tsubame",
    "lab/tests/report/test_page.py": "browser",
    "lab/tests/simulate/test_exact_replay.py": "traces",
}


class OneProcessForEachGroup(LoadScopeScheduling):
    """Sends the tests of a group to one process, the largest groups first, then all others one by one."""

    def _split_scope(self, nodeid: str) -> str:
        return GROUPS.get(nodeid.partition("::")[0], nodeid)
