"""A simulated API server of Kubernetes on the loopback interface, to test programs that schedule pods."""

from __future__ import annotations

from topoplace_hosts.kubernetes.testing.claim_controller import control_claims
from topoplace_hosts.kubernetes.testing.objects import ObjectStore
from topoplace_hosts.kubernetes.testing.server import ApiServer

__all__ = ["ApiServer", "ObjectStore", "control_claims"]
