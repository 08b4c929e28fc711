"""A simulated API server of Kubernetes on the loopback interface, for tests of whatever schedules pods."""

from __future__ import annotations

from topoplace.integrations.kubernetes.testing.claim_controller import control_claims
from topoplace.integrations.kubernetes.testing.objects import ObjectStore
from topoplace.integrations.kubernetes.testing.server import ApiServer

__all__ = ["ApiServer", "ObjectStore", "control_claims"]
