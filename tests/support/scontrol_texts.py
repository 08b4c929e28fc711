"""What Slurm's scontrol prints of nodes and jobs, short."""

from __future__ import annotations


def node(
    name: str, gpus: int, used: str = "", *, kind: str = "a100", more: str = "", state: str = "MIXED"
) -> str:
    """Return a node; used: the places of the GPUs in use, such as 0,2-3."""
    return (
        f"NodeName={name} Arch=x86_64 CoresPerSocket=16\n   CPUAlloc=8 CPUTot=64\n"
        f"   Gres=gpu:{kind}:{gpus}\n   GresUsed=gpu:{kind}:{_count(used)}(IDX:{used or 'N/A'})\n"
        f"   State={state} ThreadsPerCore=2\n   Partitions=batch\n   {more}\n\n"
    )


def running(job: str, node: str, places: str, *, ran: str = "00:30:00", limit: str = "02:00:00") -> str:
    """Return a job that has these GPUs of a node."""
    return (
        f"JobId={job} JobName=a b=c\n   UserId=ann(7) GroupId=ann(7)\n   Priority=10 Nice=0\n"
        f"   JobState=RUNNING Reason=None Dependency=(null)\n   RunTime={ran} TimeLimit={limit} TimeMin=N/A\n"
        f"   Partition=batch AllocNode:Sid=login:1\n   NodeList={node}\n   NumNodes=1 NumCPUs=8 NumTasks=1\n"
        f"   JOB_GRES=gpu:{_count(places)}\n"
        f"     Nodes={node} CPU_IDs=0-7 Mem=0 GRES=gpu:a100:{_count(places)}(IDX:{places})\n"
        f"   Command=/home/ann/run JobState=PENDING\n   TresPerNode=gres/gpu:{_count(places)}\n\n"
    )


def waiting(job: str, request: str, *, priority: int = 5, limit: str = "01:00:00", more: str = "") -> str:
    """Return a job that waits; request: such as TresPerNode=gres/gpu:2. more: further values, such as Features=ib."""
    nodes = "" if "NumNodes=" in more else "NumNodes=1-1 "
    return (
        f"JobId={job} JobName=train\n   UserId=bob(8) GroupId=bob(8)\n"
        f"   Priority={priority} Nice=0\n   {more}\n   JobState=PENDING Reason=Resources Dependency=(null)\n"
        f"   RunTime=00:00:00 TimeLimit={limit}\n   SubmitTime=2026-01-01T00:00:00\n   Partition=batch\n"
        f"   NodeList=\n   {nodes}NumCPUs=8 NumTasks=1\n   Command=run\n   {request}\n\n"
    )


def _count(places: str) -> int:
    found = 0
    for part in filter(None, places.split(",")):
        first, _, last = part.partition("-")
        found += int(last or first) - int(first) + 1
    return found
