"""DRMaestro as a service that learns from telemetry (thesis, section 5.4)."""

from __future__ import annotations

from topoplace_lab.policies.drmaestro.inference import InferenceEngine
from topoplace_lab.policies.drmaestro.service import DRMaestroService

__all__ = ["DRMaestroService", "InferenceEngine"]
