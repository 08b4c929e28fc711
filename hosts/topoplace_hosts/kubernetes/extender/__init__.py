"""An HTTP extender for clusters that keep kube-scheduler: it filters and rates nodes, and binds pods to exact GPUs.

To change:

- Answers: `answers.py`; HTTP, TLS and limits: `server.py`; what it follows and binds: `running.py`.
"""

from __future__ import annotations

from topoplace_hosts.kubernetes.extender.answers import Extender
from topoplace_hosts.kubernetes.extender.running import RunningExtender
from topoplace_hosts.kubernetes.extender.server import ExtenderServer

__all__ = ["Extender", "ExtenderServer", "RunningExtender"]
