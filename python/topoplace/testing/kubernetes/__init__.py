"""A simulated API server of Kubernetes on the loopback interface, for tests of whatever schedules pods."""

from __future__ import annotations

from topoplace.testing.kubernetes.claim_controller import control_claims
from topoplace.testing.kubernetes.objects import ObjectStore
from topoplace.testing.kubernetes.server import ApiServer

__all__ = ["ApiServer", "ObjectStore", "control_claims"]
