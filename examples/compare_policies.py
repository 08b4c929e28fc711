"""Compare policies on a hundred jobs on a 16-GPU machine: a table, and two pictures in the current directory."""

from __future__ import annotations

import topoplace as tp
from topoplace_lab.report import plots
from topoplace_lab.simulate import Workload, simulate

topology = tp.machines.get("torus2d-16")
workload = Workload.mapa(num_jobs=100, seed=1)
results = [simulate(topology, workload, tp.policies.get(name)) for name in tp.policies.names()]
for row in results[0].compare(results[1:]):
    print(f"{row['policy']:16} makespan {row['makespan']:6.0f} s, throughput speed-up {row['speedup']:.3f}")

plots.comparison(results, "comparison.png")
results[-1].gantt("gantt.png")
