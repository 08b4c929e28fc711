"""Slurm's jobs as `scontrol show job` prints them, in text or JSON.

Users choose the names, commands and comments of jobs. In text, only the request is read after `Command=`, and its last
entry counts. A name ends at the next field.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from topoplace import _checks
from topoplace.discovery.text import yaml_tree
from topoplace.discovery.text.host_list import expanded
from topoplace.discovery.text.yaml_tree import Fields, Items
from topoplace.errors import SnapshotError
from topoplace_hosts.gathered import moment
from topoplace_hosts.slurm.texts.nodes import HOLDS_GPUS

RECORD = re.compile(
    r"^[ \t]*JobId=.*?(?=^[ \t]*(?:JobId|NodeName|PartitionName)=|\Z)", re.MULTILINE | re.DOTALL
)
"""The record of a job in a text."""
_NAME = re.compile(r"\sJobName=.*?(?=\s(?:ArrayJobId|HetJobId|UserId|GroupId|Priority)=)", re.DOTALL)
_FREE_TEXT = re.compile(r"\s(?:Command|WorkDir|AdminComment|SystemComment|Comment)=")
_VALUE = re.compile(r"(?:^|\s)([A-Za-z][A-Za-z:/]*)=(\S*)")
_REQUEST = re.compile(r"\s(TresPer(?:Job|Node|Task|Socket))=(\S+)")
_COMMENT = re.compile(r"^[ \t]*(AdminComment|Comment)=(.*)$", re.MULTILINE)
_DETAIL = re.compile(r"\sNodes=(\S+) CPU_IDs=\S* Mem=\S* GRES=(\S*)")
_DAYS = re.compile(r"(?:([0-9]{1,6})-)?([0-9]{1,6})(?::([0-9]{1,2}))?(?::([0-9]{1,2}))?")
_ANY_MOMENT = 1.0
"""Remaining seconds of a job past its limit, which Slurm may end at any moment."""
_NONE = frozenset(("", "(null)", "N/A", "None", "Unknown", "none"))
_ENDED = frozenset(
    (
        *("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE"),
        *("OUT_OF_MEMORY", "REVOKED", "LAUNCH_FAILED", "RECONFIG_FAIL", "SPECIAL_EXIT"),
    )
)
_IN_JSON = {
    "JobId": "job_id",
    "Reason": "state_reason",
    "Partition": "partition",
    "NodeList": "nodes",
    "ReqNodeList": "required_nodes",
    "ExcNodeList": "excluded_nodes",
    "Features": "features",
    "Reservation": "resv_name",
    "TresPerNode": "tres_per_node",
    "TresPerJob": "tres_per_job",
    "TresPerTask": "tres_per_task",
    "TresPerSocket": "tres_per_socket",
    "ReqTRES": "tres_req_str",
    "AllocTRES": "tres_alloc_str",
    "AdminComment": "admin_comment",
    "Comment": "comment",
    "ArrayTaskId": "array_task_string",
}
"""The names in JSON of a job's texts, by their names in text."""
_NUMBERS_IN_JSON = {
    "Priority": "priority",
    "NumNodes": "node_count",
    "NumTasks": "tasks",
    "SubmitTime": "submit_time",
    "EndTime": "end_time",
    "SegmentSize": "segment_size",
    "HetJobId": "het_job_id",
    "TimeLimit": "time_limit",
}
_FLAGS_IN_JSON = {"Requeue": "requeue", "BatchFlag": "batch_flag"}
_FLAGS = {"true": "1", "false": "0"}


@dataclass(frozen=True, slots=True)
class JobRecord:
    """The data of one job in a text, in Slurm's words."""

    job_id: str
    states: tuple[str, ...]
    values: Mapping[str, str]
    """The job's fields, without values such as (null) that mean nothing."""
    gres: tuple[tuple[str, str], ...] = ()
    """Pairs of a list of nodes and the devices that the job holds on each of them."""
    seconds_left: float = math.inf

    @property
    def where(self) -> str:
        """Return the start of messages about the job."""
        return f"job {self.job_id}"

    @property
    def runs(self) -> bool:
        """Return True if the job holds its GPUs."""
        return not HOLDS_GPUS.isdisjoint(self.states)

    @property
    def waits(self) -> bool:
        """Return True if the job waits."""
        return "PENDING" in self.states

    @property
    def is_known(self) -> bool:
        """Return True if the job runs, waits or is finished."""
        return self.runs or self.waits or not _ENDED.isdisjoint(self.states)

    def get(self, key: str) -> str:
        """Return a value; "" if the text does not have it."""
        return self.values.get(key, "")

    def number(self, key: str) -> int:
        """Return the number at the start of a value such as 2-4; 0 if there is none."""
        digits = re.match(r"[0-9]{1,15}", self.get(key))
        return int(digits[0]) if digits else 0


def of_text(text: str) -> Iterator[JobRecord]:
    """Yield the jobs in the output of `scontrol show job`; SnapshotError names a job that cannot be read."""
    for match in RECORD.finditer(text):
        yield _record(_NAME.sub("", match[0], count=1))


def of_json(document: Fields) -> Iterator[JobRecord]:
    """Yield the jobs in the output of `scontrol show job --json` or `squeue --json`."""
    jobs = [yaml_tree.fields(one, "a job") for one in yaml_tree.items(document, "jobs")]
    now = _moment(document, jobs)
    yield from (_of_fields(one, now) for one in jobs)


def seconds(text: str, where: str) -> float:
    """Return a time such as 2-12:00:00 in seconds, infinite for no limit; SnapshotError names the job."""
    if text in _NONE or text.upper() in ("UNLIMITED", "PARTITION_LIMIT", "NOT_SET"):
        return math.inf
    match = _DAYS.fullmatch(text)
    if match is None:
        raise SnapshotError(f"{where}: {_checks.shown(text)} is not a time such as 2-12:00:00")
    days, *parts = match.groups()
    clock = [int(part) for part in parts if part is not None]
    if days is not None:  # D-HH[:MM[:SS]]
        hours, minutes, rest = [*clock, 0, 0][:3]
    elif len(clock) == 3:
        hours, minutes, rest = clock
    else:  # MM[:SS]
        hours, (minutes, rest) = 0, [*clock, 0][:2]
    return float(int(days or 0) * 86400 + hours * 3600 + minutes * 60 + rest)


# ---- text ------------------------------------------------------------------------------------------------------


def _record(text: str) -> JobRecord:
    head = _FREE_TEXT.split(text, maxsplit=1)[0]
    found: dict[str, str] = {}
    for key, value in _VALUE.findall(head):
        found.setdefault(key, value)
    found |= dict(_REQUEST.findall(text))
    found |= {key: value.strip() for key, value in _COMMENT.findall(text)}
    found = {key: value for key, value in found.items() if value not in _NONE}
    job_id = found.get("JobId", "")
    where = f"job {_checks.shown(job_id)}"
    if not job_id:
        raise SnapshotError("a job has no number after JobId=")
    if "ArrayJobId" in found and "ArrayTaskId" in found:
        job_id = f"{found['ArrayJobId']}_{found['ArrayTaskId']}"
    elif "HetJobId" in found and found.get("HetJobOffset", "0") != "0":
        job_id = f"{found['HetJobId']}+{found['HetJobOffset']}"
    left = seconds(found.get("TimeLimit", ""), where) - _or_zero(seconds(found.get("RunTime", ""), where))
    states = tuple(re.split(r"[+,]", found.get("JobState", "")))
    return JobRecord(job_id, states, found, tuple(_DETAIL.findall(head)), max(left, _ANY_MOMENT))


def _or_zero(value: float) -> float:
    return 0.0 if value == math.inf else value


# ---- JSON ------------------------------------------------------------------------------------------------------


def _moment(document: Fields, jobs: list[Fields]) -> float:
    """Return the time of the snapshot; without one, the latest at which something has happened."""
    stated = document.get("last_update")
    if (found := _number(stated)) is not None:
        return found
    keys = ("submit_time", "start_time", "last_sched_evaluation")
    running = (one for one in jobs if "RUNNING" in _words(one.get("job_state")))
    return max((_number(one.get(key)) or 0.0 for one in running for key in keys), default=0.0)


def _of_fields(job: Fields, now: float) -> JobRecord:
    values = _values(job)
    if "JobId" not in values:
        raise SnapshotError("jobs: a job has no job_id")
    job_id = _id(job, values)
    is_limited = "TimeLimit" in values and "EndTime" in values
    left = max(_ANY_MOMENT, moment(values["EndTime"]) - now) if is_limited else math.inf
    return JobRecord(job_id, tuple(_words(job.get("job_state"))), values, tuple(_details(job)), left)


def _values(job: Fields) -> dict[str, str]:
    """Return what JSON says about a job, by the names that it has in text."""
    found = {key: _text(job.get(name)) for key, name in _IN_JSON.items()}
    for key, name in _NUMBERS_IN_JSON.items():
        number = _number(job.get(name))
        found[key] = "" if number is None else f"{number:.0f}"
    found |= {key: _FLAGS.get(str(job.get(name)), "") for key, name in _FLAGS_IN_JSON.items()}
    if found["HetJobId"] == "0":
        found["HetJobId"] = ""
    return {key: value for key, value in found.items() if value not in _NONE}


def _id(job: Fields, values: dict[str, str]) -> str:
    """Return the id of a job, of a task of an array, or of a part of a heterogeneous job."""
    array, task = _number(job.get("array_job_id")), _number(job.get("array_task_id"))
    if array and (task is not None or "ArrayTaskId" in values):
        tasks = values.get("ArrayTaskId") or f"{task:.0f}"
        return f"{array:.0f}_{tasks}"
    offset, head = _number(job.get("het_job_offset")), _number(job.get("het_job_id"))
    return f"{head:.0f}+{offset:.0f}" if head and offset else values["JobId"]


def _details(job: Fields) -> Iterator[tuple[str, str]]:
    """Yield the devices of a job on each of its nodes, if they are there for each."""
    details = _words(job.get("gres_detail"))
    names = expanded(_text(job.get("nodes")), "nodes") if details else []
    if len(names) == len(details):
        yield from zip(names, details, strict=True)


def _number(value: object) -> float | None:
    """Return a number, which Slurm also writes as an object that says whether it is set."""
    if isinstance(value, Fields):
        if value.get("set") == "false" or value.get("infinite") == "true":
            return None
        value = value.get("number")
    if not isinstance(value, str):
        return None
    try:
        found = float(value)
    except ValueError:
        return None
    return found if math.isfinite(found) and found >= 0 else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ",".join(_words(value))


def _words(value: object) -> list[str]:
    """Return the texts of a list, or the one that a value is."""
    found = value if isinstance(value, Items) else [value]
    return [word for word in found if isinstance(word, str)]
