"""A job's request to topoplace: parsed strictly from text of users, with limits on its size and depth.

job_submit.lua writes the first part into the job's AdminComment: the GPUs of each node, and the submitter's TOPOPLACE_
variables. These are words `name=value` separated by semicolons, with unusual characters percent-encoded. The second
part is the job's comment if it is a JSON object, such as `--comment='{"pattern": "ring", "sensitive": true}'`. Its
values replace those of variables. A comment that does not begin with a brace is ignored. The third part is `--segment`,
as squeue shows it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from urllib.parse import unquote_to_bytes

from topoplace import _checks
from topoplace.errors import JobGraphError
from topoplace.jobs.groups import MACHINE
from topoplace.jobs.job_graph import JobGraph
from topoplace_hosts.request_fields import RequestError, checked, from_json
from topoplace_hosts.requested_job import RequestedJob

MARK: Final = "topoplace1"
"""The first word of the AdminComment of jobs that topoplace decides."""
MAX_CHARACTERS: Final = 1024
"""Limit on the comment and on the AdminComment."""
MAX_TASKS: Final = 4096
"""Limit on the GPUs of a job on all its nodes together."""
BLOCK: Final = "block"
"""The level of the blocks of Slurm's topology/block."""
_WORD = re.compile(r"([a-z_]{1,20})=((?:[\w.,-]|%[0-9A-F]{2}){1,256})", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_TRUTH = MappingProxyType({"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False})


@dataclass(frozen=True, slots=True)
class SlurmRequest(RequestedJob):
    """A job's request, apart from what Slurm itself handles."""

    gpus: int
    """GPUs of each node."""
    nodes: int = 1
    nodelist: str = ""
    """The nodes that the job must have, as its user listed them; "" for no such demand."""
    exclude: str = ""
    """The nodes that the job must not have; "" for none."""
    segment: int = 0
    """Nodes in each segment, all in one block; 0 without segments."""

    def job_graph(self, *, same_gpus: bool = True, blocks: str = BLOCK) -> JobGraph:
        """Return the job for a policy; JobGraphError for groups that it cannot have.

        same_gpus: require the same GPUs on each of several nodes, which Slurm needs. blocks: the level; one of its
        domains must have all nodes of a segment.
        """
        job = self.on_gpus(self.gpus * self.nodes)
        if self.nodes == 1:
            return job.with_(single_machine=True)
        if self.segment:
            job = job.grouped(self.segment * self.gpus, within=blocks)
        if (
            job.groups or job.balanced
        ):  # policies honour no limits on machines next to groups: each node is one
            return job.grouped(self.gpus, within=MACHINE)
        return job.with_(max_machines=self.nodes, same_gpus=same_gpus)


def parsed(admin_comment: str, comment: str, nodes: int, segment: int = 0) -> SlurmRequest:
    """Return the request of a job on `nodes` nodes; RequestError says what is wrong with it.

    segment: the value of `--segment` in nodes; as in Slurm, a value above `nodes` has no effect.
    """
    if max(len(admin_comment), len(comment)) > MAX_CHARACTERS:
        raise RequestError(f"comment: more than {MAX_CHARACTERS} characters")
    words = _words(admin_comment)
    gpus = _checks.integer(_count(words.pop("gpus", "")), "gpus", RequestError, low=1, high=MAX_TASKS)
    nodes = _checks.integer(nodes, "nodes", RequestError, low=1, high=MAX_TASKS)
    words.pop("json", "")
    nodelist, exclude = words.pop("nodelist", ""), words.pop("exclude", "")
    if gpus * nodes > MAX_TASKS:
        raise RequestError(f"gpus = {gpus} of each of {nodes} nodes are more than {MAX_TASKS}")
    given = {name: _converted(name, value) for name, value in words.items()}
    if comment.startswith("{"):
        given |= from_json(comment, "comment")
    segment = segment if segment <= nodes else 0
    if segment and nodes % segment:
        raise RequestError(f"segment = {segment} nodes do not divide the job's {nodes} nodes")
    asked = checked(given)
    found = SlurmRequest(gpus, nodes, nodelist=nodelist, exclude=exclude, segment=segment, **asked)
    try:
        found.job_graph()
    except JobGraphError as error:
        raise RequestError(str(error)) from None
    return found


def has_json(admin_comment: str) -> bool:
    """Return True if the job's comment was a JSON object when it was submitted."""
    return admin_comment.endswith(";json=1")


def is_marked(admin_comment: str) -> bool:
    """Return True if job_submit.lua has left the job to topoplace."""
    return admin_comment.split(";", 1)[0] == MARK


# ---- the two texts -------------------------------------------------------------------------------------------------


def _words(admin_comment: str) -> dict[str, str]:
    mark, *words = admin_comment.split(";")
    if mark != MARK:
        raise RequestError(f"AdminComment = {_checks.shown(admin_comment)} does not begin with {MARK}")
    found: dict[str, str] = {}
    for word in words:
        match = _WORD.fullmatch(word)
        if match is None or match[1] in found:
            raise RequestError(f"AdminComment: {_checks.shown(word)} is not name=value, or appears twice")
        try:
            found[match[1]] = unquote_to_bytes(match[2]).decode("utf-8")
        except UnicodeDecodeError:
            raise RequestError(f"{match[1]} = {_checks.shown(match[2])} is not UTF-8") from None
    return found


def _count(text: str) -> int:
    if not re.fullmatch("[0-9]{1,6}", text, re.ASCII):
        raise RequestError(f"gpus = {_checks.shown(text)} is not a number")
    return int(text)


def _converted(name: str, text: str) -> object:
    """Return the text of a variable as the value that JSON would have."""
    if name == "sensitive":
        return _TRUTH.get(text.lower(), text)
    numeric = name in ("min_utility", "min_bandwidth", "memory_gb")
    return float(text) if numeric and _NUMBER.fullmatch(text) else text
