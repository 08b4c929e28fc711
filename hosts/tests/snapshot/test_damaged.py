"""Broken texts of schedulers are read or refused by an error of the library, and in time."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from kubernetes_objects import node_json, pod_json
from mutations import WAYS, broken, swollen
from scontrol_texts import node, running, waiting

TEXTS = {
    "slurm": (
        node("n1", 4, "0,2-3") + running("17", "n1", "0,2-3") + waiting("21", "TresPerNode=gres/gpu:2")
    ).encode(),
    "slurm json": json.dumps(
        {
            "nodes": [{"name": "n1", "gres": "gpu:4", "state": ["IDLE"], "partitions": ["batch"]}],
            "jobs": [
                {
                    "job_id": 3,
                    "job_state": ["PENDING"],
                    "tres_per_node": "gres/gpu:2",
                    "priority": {"number": 3},
                }
            ],
        }
    ).encode(),
    "kubernetes": json.dumps(
        {
            "kind": "List",
            "items": [
                {"kind": "Node", **node_json("n1", 4)},
                {"kind": "Pod", **pod_json("a", 2, nodeName="n1")},
                {"kind": "Pod", **pod_json("b", 2, annotations={"scheduling.k8s.io/group-name": "g"})},
                {
                    "kind": "PodGroup",
                    "metadata": {"name": "g", "namespace": "default"},
                    "spec": {"minMember": 3},
                },
                {
                    "kind": "Workload",
                    "metadata": {"name": "w", "namespace": "default"},
                    "spec": {"podSets": [{"count": 2, "template": {"spec": pod_json("c", 1)["spec"]}}]},
                },
            ],
        }
    ).encode(),
}


@pytest.mark.parametrize("name", TEXTS)
@given(st.data())
def test_a_broken_text_is_read_or_refused(name: str, data: st.DataObject) -> None:
    with contextlib.suppress(tp.TopoplaceError):
        found = tp.snapshot.read(data.draw(broken(TEXTS[name])))
        for job in found.waiting[:2]:
            tp.snapshot.when(found, job.job_id, timeout=0.1)


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("how", WAYS)
def test_a_swollen_text_is_read_or_refused(name: str, how: str) -> None:
    with contextlib.suppress(tp.TopoplaceError):
        tp.snapshot.read(swollen(TEXTS[name], how, 400_000))
