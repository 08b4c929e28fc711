"""What users write is parsed strictly; whatever it is, the answer is a request or an error that escapes it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topoplace import JobGraph
from topoplace.jobs.groups import SizedGroups
from topoplace_hosts.request_fields import RequestError
from topoplace_hosts.slurm import request
from topoplace_hosts.slurm.request import SlurmRequest

MARK = "topoplace1;gpus=4"


def test_comment_and_variables() -> None:
    found = request.parsed(
        f"{MARK};pattern=ring;sensitive=yes;within=nvlink%20domain", '{"pattern": "clique"}', 1
    )
    assert found == SlurmRequest(4, 1, pattern="clique", sensitive=True, within="nvlink domain")


def test_prose_is_no_request() -> None:
    assert request.parsed(MARK, "please {be} quick", 1) == SlurmRequest(4)


def test_job_on_one_node() -> None:
    found = request.parsed(
        MARK, '{"sensitive": true, "model": "V100", "memory_gb": 16, "min_utility": 0.5}', 1
    )
    assert found.job_graph() == JobGraph.ring(4).with_(
        bandwidth_sensitive=True, gpu_model="V100", gpu_memory_gb=16, min_utility=0.5, single_machine=True
    )


def test_job_on_several_nodes() -> None:
    found = request.parsed(MARK, "{}", 2)
    assert found.job_graph() == JobGraph.ring(8).with_(max_machines=2, same_gpus=True)
    assert not found.job_graph(same_gpus=False).same_gpus


def test_groups_of_a_comment() -> None:
    comment = '{"groups": "8@nvlink_domain, 4@machine", "prefer_groups": "12+4@rack", "prefer": "rack"}'
    found = request.parsed(f"{MARK};balanced=rack", comment, 4)
    job = JobGraph.ring(16).with_(prefer="rack", balanced="rack")
    job = job.grouped(8, within="nvlink_domain").grouped(4, within="machine").grouped([12, 4], prefer="rack")
    assert found.job_graph() == job  # each node's tasks are a group of their own anyway
    variables = "groups=8%40nvlink_domain%2C4%40machine;prefer_groups=12%2B4%40rack;prefer=rack"
    assert request.parsed(f"{MARK};{variables};balanced=rack", "", 4) == found


def test_comments_of_the_documentation(repository: Path) -> None:
    text = (repository / "docs/integrations/slurm.md").read_text("utf-8")
    found = [request.parsed("topoplace1;gpus=8", one, 8) for one in re.findall(r"--comment='(.*?)'", text)]
    assert [one.groups for one in found] == [(), (SizedGroups(32, "block"), SizedGroups(4, "socket"))]


def test_segments_are_groups_of_nodes() -> None:
    found = request.parsed(MARK, "", 6, segment=2)
    job = JobGraph.ring(24).grouped(8, within="blocks_2").grouped(4, within="machine")
    assert found.job_graph(blocks="blocks_2") == job
    assert request.parsed(MARK, "", 6, segment=7) == request.parsed(MARK, "", 6)  # as in Slurm
    assert request.parsed(MARK, "", 1, segment=1).job_graph() == JobGraph.ring(4).with_(single_machine=True)
    with pytest.raises(RequestError, match="segment = 4 nodes do not divide the job's 6 nodes"):
        request.parsed(MARK, "", 6, segment=4)


def test_groups_that_cross_nodes_or_segments_are_refused() -> None:
    with pytest.raises(RequestError, match=r"groups: the group of tasks .* crosses"):
        request.parsed(MARK, '{"groups": "6@rack"}', 2)
    with pytest.raises(RequestError, match="crosses"):
        request.parsed(MARK, '{"groups": "12@rack"}', 4, segment=2)


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ('{"groups": 8}', "groups = 8 is not a non-empty string"),
        ('{"groups": "8"}', "groups: '8' is not SIZE@LEVEL"),
        ('{"groups": "8@"}', "groups: '8@' is not SIZE@LEVEL"),
        ('{"groups": "-8@rack"}', "groups: '-8@rack': '-8' is no size"),
        ('{"groups": "4+0@rack"}', r"groups: '4\+0@rack' has a group without tasks"),
        ('{"groups": "tensor@rack"}', "groups = 'tensor@rack': 'tensor' is no size"),
        ('{"groups": "8@rack,,4@rack"}', "groups = '' is not a non-empty string"),
        ('{"groups": "9@rack"}', r"groups = 9 is not in 1..4|groups = 9"),
        ('{"prefer_groups": "2+1@rack"}', "have 3 tasks, the job has 4"),
        ('{"balanced": ""}', "balanced = '' is not a non-empty string"),
        ("{", "is not a JSON object"),
        ("{} {}", "is not a JSON object"),
        ('{"pattern": "knot"}', "pattern = 'knot' is not one of ring"),
        ('{"pattern": ["ring"]}', "'pattern' must be a text, a number, true or false"),
        ('{"pattern": {"a": {}}}', "must be a text, a number"),
        ('{"pattern": "ring", "pattern": "ring"}', "'pattern' appears twice"),
        ('{"sensitive": 1}', "sensitive = 1 is not True or False"),
        ('{"min_utility": 2}', "min_utility = 2 is not in 0..1"),
        ('{"min_utility": NaN}', "NaN is not a number"),
        ('{"min_bandwidth": -Infinity}', "-Infinity is not a number"),
        ('{"min_bandwidth": 0}', "min_bandwidth = 0 is not above 0"),
        ('{"memory_gb": ' + "9" * 900 + "}", "more than 12 digits"),
        ('{"memory_gb": "16"}', "memory_gb = '16' is not a number"),
        ('{"model": null}', "model = None is not a non-empty string"),
        ('{"within": "\\u0000"}', r"within = '\\x00' is not a printable name"),
        ('{"within": "' + "x" * 65 + '"}', "is not a printable name of up to 64 characters"),
        ('{"gpus": 9}', "'gpus' is not one of pattern"),
        ('{"\x1b[31m": 1}', "is not a JSON object"),
        ("{" + '"a":{' * 150 + "}" * 151, "is not a JSON object|must be"),
        ("{" + " " * 1024 + "}", "more than 1024 characters"),
    ],
    ids=lambda text: text[:30],
)
def test_strange_comments_are_refused(comment: str, message: str) -> None:
    with pytest.raises(RequestError, match=message) as caught:
        request.parsed(MARK, comment, 1)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "mark",
    ["", "topoplace2;gpus=1", "topoplace1", "topoplace1;gpus=0", "topoplace1;gpus=-1", f"{MARK};gpus=4", f"{MARK};a",
     f"{MARK};pattern=", f"{MARK};x=y", f"{MARK};pattern=%FF", f"{MARK};pattern=ring\n", f"{MARK};;",
     "topoplace1;gpus=9999"],
)  # fmt: skip
def test_strange_marks_are_refused(mark: str) -> None:
    with pytest.raises(RequestError):
        request.parsed(mark, "", 1)


def test_size_over_all_nodes_is_limited() -> None:
    assert request.parsed("topoplace1;gpus=4096", "", 1).gpus == 4096
    with pytest.raises(RequestError, match="gpus = 4 of each of 1025 nodes are more than 4096"):
        request.parsed(MARK, "", 1025)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    [
        "pattern",
        "sensitive",
        "min_utility",
        "min_bandwidth",
        "within",
        "prefer",
        "groups",
        "prefer_groups",
        "balanced",
        "model",
        "memory_gb",
    ]
)


def error_of(mark: str, comment: str, nodes: int) -> str | None:
    """Return the error of a request, or None after it has given a job graph of the right size."""
    try:
        found: Any = request.parsed(mark, comment, nodes)
    except RequestError as error:
        return str(error)
    assert found.job_graph().num_tasks == found.gpus * nodes
    return None


@given(st.dictionaries(KEYS | st.text(), JSON, max_size=4).map(json.dumps) | st.text().map("{".__add__))
def test_any_comment_is_a_request_or_a_printable_error(comment: str) -> None:
    error = error_of(MARK, comment, 2)
    assert error is None or (error.isprintable() and len(error) < 400)


@given(st.text(max_size=80))
def test_any_mark_is_a_request_or_a_printable_error(text: str) -> None:
    error = error_of(f"topoplace1;gpus=1;{text}", "", 1)
    assert error is None or error.isprintable()
