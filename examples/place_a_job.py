"""Place a bandwidth-sensitive ring of four on a DGX-1 with two GPUs busy, and list the alternatives."""

from __future__ import annotations

import topoplace as tp

cluster = tp.Cluster(tp.machines.get("dgx1-v100"))
cluster.allocate("someone", [0, 5])

job = tp.JobGraph.ring(4).with_(bandwidth_sensitive=True)
policy = tp.policies.get("mapa-preserve")
placement = policy.place(job, cluster)
if placement is None:
    raise SystemExit("no room")
cluster.allocate("mine", placement)
print("start it with", placement.env())

cluster.release("mine")
for candidate in policy.explain(job, cluster, top=3).candidates:
    print(candidate.gpus, {name: round(score, 1) for name, score in candidate.scores.items()})
