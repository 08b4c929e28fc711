"""Texts that no reader reads: their tool or format, what they lack, and what to give instead.

`TOOLS` is the table. Texts of data that any program may write (JSON, CSV) are described by their keys and columns.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import cast

from topoplace import _checks
from topoplace.discovery.text import decode

_HEAD = 1 << 16
"""Limit on the characters of a text that are searched."""
_MAX_NAMES = 20
_TOPO_M = "nvidia-smi topo -m"
_TOPO = "give what `nvidia-smi topo -m` prints"
_NETWORK = f"for the network give what `ibnetdiscover` prints; for GPUs {_TOPO}"
_COUNTED = "give what `lstopo --of xml` prints, or the Kubernetes nodes, which count them"
_JOBS = "it describes jobs, so it is a workload"
_SIMULATE = "use it with `topoplace trace` and `topoplace simulate`"
_NCCL_GRAPH = "NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=INIT,GRAPH"
_NCCL_FILE = "NCCL_TOPO_DUMP_FILE=FILE writes the topology of a machine"
_NODES = "`kubectl get nodes -o yaml`"
_USE = "give what `nvidia-smi`, `nvidia-smi -q` or `scontrol show node -d` prints, or the numbers by --busy"
_USE_OF_OTHERS = "no text tells it yet for GPUs of this maker; give their numbers by --busy"


def _run(program: str) -> str:
    """Return the pattern of a line that runs `program`, with a prompt or without, or that its output begins with."""
    return rf"^(?:[^\n]{{0,80}}[$#>%][ \t]*)?[ \t|]*(?:sudo[ \t]+)?(?:{program})\b"


@dataclass(frozen=True, slots=True)
class Unread:
    """A tool whose texts no reader reads."""

    name: str
    """Name of the tool, as a noun with its article."""
    pattern: str
    """Pattern that matches a line of its texts, which the refusal names; ^ and $ match ends of lines."""
    lacks: str
    """The reason why no topology can be read from it, as the end of a sentence that begins with "it"."""
    remedy: str
    hides_formats: bool = False
    """True if its texts look like a format that is read, so that the tool must be tried before the formats."""
    use: str = _USE
    """The text to give instead for GPUs in use."""


def _gpus_only(name: str, pattern: str, remedy: str = _TOPO) -> Unread:
    """Return a tool that lists devices or their state, and not how they are connected."""
    return Unread(name, pattern, "it does not tell how the GPUs are connected", remedy)


def _of_amd(name: str, pattern: str, command: str) -> Unread:
    """Return a tool of AMD that lists devices or their state; `command` prints how they are connected."""
    lacks = "it does not tell how the GPUs are connected"
    return Unread(name, pattern, lacks, f"give what `{command}` prints", use=_USE_OF_OTHERS)


def _other_maker(name: str, pattern: str, command: str) -> Unread:
    """Return a tool of another maker, of whose texts the matrix that `command` prints is read, if any is."""
    lacks = "it does not tell how the accelerators are connected"
    return Unread(name, pattern, lacks, f"give what `{command}` prints", use=_USE_OF_OTHERS)


def _not_told(name: str, pattern: str) -> Unread:
    """Return a tool of another maker that has no text of which a matrix is read."""
    return Unread(
        name, pattern, "it is about accelerators whose texts are not read", _COUNTED, use=_USE_OF_OTHERS
    )


def _of_scheduler(name: str, pattern: str, command: str) -> Unread:
    """Return a batch system or cluster manager whose texts are not read; `command` describes one of its machines."""
    lacks = "it counts GPUs, and does not tell how they are connected"
    remedy = f"give what `{command}` prints on each kind of node, and the numbers of GPUs in use by --busy"
    return Unread(name, pattern, lacks, remedy, use="give their numbers by --busy")


def _no_gpus(name: str, pattern: str, remedy: str) -> Unread:
    return Unread(name, pattern, "it does not tell which GPUs there are", remedy)


_WORKLOAD_KINDS = (
    "Pod|Deployment|Job|CronJob|StatefulSet|DaemonSet|ReplicaSet|PodGroup|JobSet|PyTorchJob|MPIJob|RayCluster|"
    "RayJob|Workload|ClusterQueue|LocalQueue|LeaderWorkerSet|ResourceClaim|ResourceClaimTemplate"
)
_READ_KINDS = r"Node(?:List)?|Topology|ResourceFlavor|ResourceSlice(?:List)?|HyperNode|HyperNodeList"


def _manifest(kinds: str) -> str:
    """Return the pattern of a text with an object of one of `kinds` and none of those that are read."""
    return (
        rf"\A(?![\s\S]*\bkind\"?:[ \t]*\"?(?:{_READ_KINDS})\"?[ \t\r]*(?:[,}}]|$))[\s\S]*?"
        rf"^[ \t]*(?:-[ \t]+)?\"?kind\"?:[ \t]*\"?(?:{kinds})(?:List)?\"?[ \t\r]*,?$"
    )


_JOB_STATES = (
    "COMPLETED|FAILED|CANCELLED|TIMEOUT|RUNNING|PENDING|REQUEUED|NODE_FAIL|OUT_OF_ME|PREEMPTED|SUSPENDED"
)

_GAUDI_CSV = (
    r"^(?:[^,\n]{1,80}, ?){0,16}(?i:hl-\d{3}[\w-]*)(?:, ?|\r?$)"
    r"|^(?:[\w.]+(?: \[[\w%]+\])?, ?){0,16}(?:module_id|aip\.\w+)\b"
)
"""A row, or the titles, of `hl-smi -Q`; titles of both makers count as those of nvidia-smi."""

# The first row whose pattern is found is the tool.
TOOLS = (
    Unread(
        "the manifest of a Kubernetes workload",
        _manifest(_WORKLOAD_KINDS),
        "it describes what is to run, not machines",
        f"give what {_NODES} prints; `topoplace kubernetes` schedules its pods",
        hides_formats=True,
    ),
    Unread(
        "a ConfigMap of Kubernetes",
        _manifest("ConfigMap"),
        "what may be read are the files inside it",
        "give the text of one of them, without its indent, as a file",
        hides_formats=True,
    ),
    Unread(
        "a list of instances of MIG slices that `nvidia-smi mig` prints",
        r"^\|[ \t]*(?:GPU|Compute) instances:|^\|[ \t]*GPU instance (?:profiles|placements)|"
        + _run("nvidia-smi mig"),
        "it has no UUIDs, by which processes use slices",
        "give what `nvidia-smi -L` prints, which lists the slices as devices",
        hides_formats=True,
    ),
    Unread(
        "`neuron-ls` of AWS",
        r"\"neuron_device\"[ \t]*:",
        "it is about accelerators whose texts are not read",
        _COUNTED,
        hides_formats=True,
        use=_USE_OF_OTHERS,
    ),
    Unread(
        "`amd-smi xgmi`",
        r"^[ \t]*(?:LINK METRIC TABLE:|XGMI LINK STATUS)|\"(?:xgmi_metric|link_metrics)\"[ \t]*:",
        "it does not tell which GPUs its links join",
        "give what `amd-smi topology` prints, with or without --json",
        use=_USE_OF_OTHERS,
    ),
    _no_gpus(
        "the message of nvidia-smi that the driver does not answer",
        r"^[ \t]*(?:NVIDIA-SMI has failed|Failed to initialize NVML)|couldn't communicate with the NVIDIA driver",
        "load the driver, or run it where it is loaded",
    ),
    _no_gpus(
        "the message that there is no GPU",
        r"^[ \t]*No devices (?:were )?found",
        "run the tool on a machine with GPUs",
    ),
    Unread(
        "a page of HTML",
        r"\A\s*(?:<!--[\s\S]{0,2000}?-->\s*)?(?i:<(?:!doctype html|html|head|body)\b)",
        "it is not the text of a tool",
        "save the text itself, such as with the page's button Raw",
    ),
    Unread(
        "a log of NCCL's rings and trees",
        r"NCCL INFO (?:Channel|Ring|Trees?) ?[\[0-9]",
        "it describes a job's communication, not a machine",
        f"`JobGraph.from_nccl_log` reads it as a job graph; {_NCCL_GRAPH} prints the machine's graph; {_NCCL_FILE}",
    ),
    Unread(
        "a debug log of NCCL",
        r"\bNCCL (?:INFO|WARN|TRACE)\b",
        "it has neither NCCL's graph of the system nor NVLink cliques",
        f"{_NCCL_GRAPH} prints the graph; {_NCCL_FILE}",
    ),
    Unread(
        "a dump of sacct",
        rf"^JobID(?:Raw)?(?:\||[ \t]{{2,}}\S)|^\d+(?:_\d+)?(?:\.\w+)?(?:\|[^|\n]*)*\|(?:{_JOB_STATES})[^|\n]*\|",
        _JOBS,
        f"{_SIMULATE}; `topoplace trace` says which columns it lacks",
    ),
    Unread(
        "the queue that squeue prints",
        r"^[ \t]*JOBID[ \t|]+[A-Z_]{2,}(?:[ \t|(]|$)",
        _JOBS,
        "which GPUs are in use: `scontrol show node -d` with --busy-from; past jobs: `sacct -a -X -P`",
    ),
    Unread(
        "jobs as `scontrol show job` prints them",
        r"^[ \t]*JobId=\d",
        _JOBS,
        "which GPUs are in use: `scontrol show node -d` with --busy-from; past jobs: `sacct -a -X -P`",
    ),
    Unread(
        "pods as `kubectl get pods` prints them",
        r"^(?:NAMESPACE[ \t]+)?NAME[ \t]+READY[ \t]+STATUS\b",
        "it describes pods, not machines",
        f"give what {_NODES} prints",
    ),
    Unread(
        "a pod as `kubectl describe pod` prints it",
        r"^Name:[ \t]+\S+[ \t\r]*\n[\s\S]{0,4000}?^(?:Containers|Service Account):",
        "it describes a pod, not machines",
        f"give what {_NODES} prints",
    ),
    Unread(
        "a configuration of HiveD",
        r"^[ \t]*(?:physicalCluster|cellTypes):",
        "its cells do not tell how the GPUs are connected",
        f"give what {_NODES} prints",
    ),
    Unread(
        "cgroup.conf of Slurm",
        r"^[ \t]*(?:Constrain(?:Devices|Cores|RAMSpace)|CgroupPlugin|CgroupMountpoint)[ \t]*=",
        "it has no nodes",
        "give gres.conf, topology.conf or what `scontrol show node` prints",
    ),
    Unread(
        "a configuration file of Slurm",
        r"^[ \t]*(?:ClusterName|SlurmctldHost|SelectType|SchedulerType|GresTypes|TopologyPlugin|"
        r"PartitionName|AccountingStorageType|ControlMachine)[ \t]*=",
        "it has no NodeName= with Gres=gpu",
        "give gres.conf, topology.conf or what `scontrol show node` prints",
    ),
    _other_maker("`npu-smi` of Ascend", _run("npu-smi"), "npu-smi info -t topo"),
    _other_maker("`gpustack-runtime`", _run("gpustack-runtime"), "gpustack-runtime topo"),
    _other_maker("`mthreads-gmi` of Moore Threads", _run("mthreads-gmi"), "mthreads-gmi topo -m"),
    _other_maker(
        "`xpu-smi` of Intel",
        _run("xpu-smi|xpumcli") + r"|^\|[ \t]*Device ID[ \t]*\|[ \t]*Device Information",
        "xpu-smi topology -m",
    ),
    _other_maker("`mx-smi` of MetaX", _run("mx-smi") + r"|^[ \t=]*MetaX System Management", "mx-smi topo -m"),
    _not_told(
        "`hl-smi` of Gaudi",
        _run("hl-smi") + r"|^\|[ \t]*HL-SMI Version|^\|[ \t]*\d+[ \t]+HL-\d{3}|" + _GAUDI_CSV,
    ),
    _not_told(
        "`neuron-ls` of AWS",
        _run("neuron-ls") + r"|^[ \t|]*NEURON[ \t|]+(?:NEURON|DEVICE)\b",
    ),
    _not_told("`tpu-info`", _run("tpu-info") + r"|^[ \t]*TPU (?:Chips?|Runtime Utilization)\b"),
    _not_told("the devices that JAX lists", r"^[^\n]{0,80}\[?(?:Tpu|Cuda|Rocm)Device\(id=\d"),
    _not_told("`cnmon` of Cambricon", _run("cnmon") + r"|^\|[ \t]*CNMON v"),
    Unread(
        "a list of NPUs of Slurm",
        r"^[ \t]*(?:NodeName=\S+[ \t]+)?Name=npu\b|^[ \t]*NodeName=[^\n]{0,2000}\bGres=npu\b",
        "it counts accelerators of the kind npu, and gpu is the only kind that is read",
        "give what `npu-smi info -t topo` prints on each kind of node",
        use=_USE_OF_OTHERS,
    ),
    _gpus_only(
        "`gpustat`",
        _run("gpustat") + r"|^\[\d+\] [^|\n]{1,80}\|[^|\n]{0,40}(?:°|')C[^|\n]{0,60}\|[ \t]*\d+ / +\d+ MB",
    ),
    _of_scheduler(
        "`pbsnodes` of PBS",
        r"^[ \t]+(?:Mom = \S|ntype = \w|resources_available\.)|" + _run("pbsnodes"),
        _TOPO_M,
    ),
    _of_scheduler(
        "`bhosts` or `lshosts` of LSF",
        r"^HOST_NAME[ \t]+(?:GPU_ID|STATUS|type|JL/U|gpu_)|" + _run("bhosts|lshosts"),
        _TOPO_M,
    ),
    _of_scheduler(
        "`condor_status` of HTCondor",
        r"^Name[ \t]+OpSys[ \t]+Arch\b|^[ \t]*Machines Owner Claimed\b|" + _run("condor_status"),
        _TOPO_M,
    ),
    _of_scheduler(
        "`flux resource` of Flux",
        r"^[ \t]*STATE(?:[ \t]+(?:QUEUE|UP|PROPERTIES))?[ \t]+NNODES(?:[ \t]+NCORES)?[ \t]+(?:NGPUS|NODELIST)|"
        + _run("flux (?:resource|jobs|queue)"),
        _TOPO_M,
    ),
    _of_scheduler(
        "`ray status` of Ray", r"^=+ Autoscaler status: |^[ \t]*[\d.]+/[\d.]+ (?:GPU|CPU)[ \t\r]*$", _TOPO_M
    ),
    _of_amd("`gpurun`", _run("gpurun"), "rocm-smi --showtopo"),
    _gpus_only("the statistics of `nvidia-smi dmon` or `pmon`", r"^#[ \t]*gpu[ \t]+(?:pwr|pid|sm|gtemp)\b"),
    _gpus_only(
        "the table of `nvidia-smi --query-gpu` or `--query-compute-apps`",
        r"^(?:pid|process_name|used_(?:gpu_)?memory|index|name|uuid|gpu_uuid|gpu_name|timestamp|pci\.bus_id|memory\.\w+|utilization\.\w+)"
        r"(?:, ?[\w.]+(?: \[[\w%]+\])?)+\r?$|^(?:\d+, )?(?:NVIDIA|Tesla|Quadro|GeForce)\b[^,\n]{0,60}, "
        r"|^(?:[^,\n]{1,60}, ){0,8}GPU-[0-9a-f]{8}-[0-9a-f-]{27}(?:, |\r?$)",
    ),
    _gpus_only(
        "`dcgmi`",
        _run("dcgmi")
        + r"|^#Entity\b|^\|[ \t]*GPU ID[ \t]*\|[ \t]*Device Information|^\|[ \t]*Topology Information",
    ),
    _of_amd(
        "the table of devices of `rocm-smi`",
        _run("rocm-smi") + r"|^[ \t=]*ROCm System Management Interface|^[ \t=]*ROCM-SMI",
        "rocm-smi --showtopo",
    ),
    _of_amd("the table of devices of `amd-smi`", _run("amd-smi|AMD-SMI"), "amd-smi topology"),
    _gpus_only(
        "the first lines of p2pBandwidthLatencyTest",
        r"^\[?P2P \(Peer-to-Peer\) GPU Bandwidth Latency Test",
        "`nvidia-smi topo -p2p n` tells who may access whom; a text with the matrices of speeds goes to --measured",
    ),
    _gpus_only(
        "deviceQuery of the CUDA samples", r"^[ \t]*CUDA Device Query|^Detected \d+ CUDA Capable device"
    ),
    _of_amd(
        "`rocminfo`",
        r"^[ \t]*ROCk module (?:version|is loaded)|^[ \t]*HSA (?:System Attributes|Agents)[ \t\r]*$|"
        + _run("rocminfo"),
        "rocm-smi --showtopo",
    ),
    _no_gpus(
        "`lspci`",
        r"^[ \t]*(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] \S"
        r"|^[ \t]*[-+\\|]*\[[0-9a-f]{4}:[0-9a-f]{2}(?:-[0-9a-f]{2})?\]-|" + _run("lspci"),
        f"`lstopo --of xml` prints the same devices with their paths; or {_TOPO}",
    ),
    _no_gpus("`ibstat`", r"^CA '[^'\n]+'|^Infiniband device '|" + _run("ibstat(?:us)?"), _NETWORK),
    _no_gpus("`ibv_devinfo`", r"^hca_id:|" + _run("ibv_devinfo"), _NETWORK),
    _no_gpus(
        "the adapters that `ip` or `ifconfig` prints",
        r"^\d+: [\w@.-]+: <[A-Z_,]*>|^\w+: flags=\d+<",
        _NETWORK,
    ),
    _no_gpus(
        "`lscpu`",
        r"^Architecture:[ \t]+\S|^CPU op-mode\(s\):|^NUMA node0 CPU\(s\):",
        f"{_TOPO}; `numactl --hardware` goes to --numa",
    ),
    _no_gpus(
        "`df`, `free`, `uname` or `ps`",
        r"^Filesystem[ \t]+(?:Type|Size|1[KM]-blocks|Inodes)|^[ \t]+total[ \t]+used[ \t]+free\b|^Linux \S+ \d+\.\d+|"
        r"^[ \t]*(?:PID[ \t]+(?:TTY|USER|PPID)\b|US?E?R?(?:ID)?[ \t]+PID[ \t]+(?:%CPU|PPID)\b)",
        _TOPO,
    ),
    Unread(
        "nodes as `sinfo` prints them",
        r"^[ \t]*(?:PARTITION[ \t]+AVAIL|NODELIST[ \t]+NODES|HOSTNAMES[ \t])",
        "it has no column GRES",
        "give what `scontrol show node` prints, or `sinfo -N -O nodehost,gres:200,gresused:200`",
    ),
    Unread(
        "a table of nodes as `sinfo --noheader` prints it",
        r"^[A-Za-z_][\w.-]{0,80}(?:\[[0-9,-]{1,200}\])?(?:[ \t|]+[^ \t|\n]{1,200}){0,8}?[ \t|]+gpu:\S",
        "it has no titles, and its cells do not tell which column is which, or are cut",
        "give what `sinfo -N -O nodehost:60,gres:200,gresused:200,statelong` prints, with its titles",
        use="give what `sinfo -N -O nodehost:60,gres:200,gresused:200,statelong` prints, with its titles",
    ),
    _no_gpus(
        "`kubectl get nodes` without labels", r"^NAME[ \t]+STATUS[ \t]+ROLES\b", f"give what {_NODES} prints"
    ),
    _no_gpus(
        "the table of ResourceSlices",
        r"^NAME[ \t]+NODE[ \t]+DRIVER[ \t]+POOL\b",
        "give what `kubectl get resourceslices -o yaml` prints",
    ),
    _no_gpus(
        "`iblinkinfo` or `ibnodes`",
        r"^(?:CA|Switch): ?(?:0x[0-9a-f]+|[^\n]{0,80}:$)|^Switch[ \t]*: 0x[0-9a-f]+|^Ca[ \t]*: 0x[0-9a-f]+",
        _NETWORK,
    ),
    _gpus_only(
        "`nvbandwidth`",
        r"^[ \t]*nvbandwidth Version|^memcpy (?:CE|SM) [CG]PU\(row\)|^Running \w+_to_\w+_memcpy|\"nvbandwidth\"[ \t]*:",
        "what p2pBandwidthLatencyTest or `sendrecv_perf` of nccl-tests prints goes to --measured",
    ),
    _of_amd("what `amd-smi list`, `static` or `metric` prints", r"^GPU: \d+[ \t\r]*$", "amd-smi topology"),
    Unread(
        "an object of Kubernetes that is no node",
        rf"\A(?![\s\S]*\bkind\"?:[ \t]*\"?(?:{_READ_KINDS})\"?[ \t\r]*(?:[,}}]|$))[\s\S]{{0,400}}?"
        r"^[ \t]*\"?apiVersion\"?:[ \t]*\S",
        "it does not tell which GPUs there are",
        f"give what {_NODES} prints, or `kubectl get resourceslices -o yaml`",
    ),
    # What people paste above or below a text; a tool that is known precedes it.
    _no_gpus(
        "the message that a command was not found",
        r"^[^\n]{0,80}(?:: command not found\b|: not found$|' is not recognized as)",
        _TOPO,
    ),
    _no_gpus(
        "the error of a Python program", r"^Traceback \(most recent call last\)", "give what its tool prints"
    ),
    _no_gpus(
        "an error of the shell",
        r"^[\w./-]{1,40}: [^\n]{0,200}: (?:Permission denied|No such file or directory)\r?$",
        "give what the tool prints",
    ),
)

_COMPILED = tuple((tool, re.compile(tool.pattern, re.MULTILINE)) for tool in TOOLS)
_CELLS = re.compile(r"[^,\n]{1,200}(?:,[^,\n]{0,200}){2,}")


def hidden_format(text: str) -> str | None:
    """Return why `text` is refused although it looks like a known format; None if it is not of such a tool."""
    return None if (found := _tool(text, hides_formats=True)) is None else _without_topology(*found)


def refusal(text: str) -> str | None:
    """Return what `text` is, what it lacks and what to give instead; None if unknown."""
    if (found := _tool(text, hides_formats=False)) is not None:
        return _without_topology(*found)
    return _of_json(text) or _of_csv(text)


def refusal_of_use(text: str) -> str | None:
    """Return what `text` is, and what to give for GPUs in use; None for JSON, and if unknown."""
    found = _tool(text, hides_formats=True) or _tool(text, hides_formats=False)
    if found is not None:
        return (
            f"line {found[1]}: this is {found[0].name}, from which GPUs in use are not read; {found[0].use}"
        )
    if _of_json(text) or not text.strip():
        return None
    number, start = next((number, line) for number, line in decode.numbered_lines(text) if line.strip())
    return (
        f"line {number}: no known format begins with {_checks.shown(start.strip())}; for GPUs in use {_USE}"
    )


def _without_topology(tool: Unread, line: int) -> str:
    return f"line {line}: this is {tool.name}: {tool.lacks}; {tool.remedy}"


def _tool(text: str, *, hides_formats: bool) -> tuple[Unread, int] | None:
    """Return the tool whose text it is, and the line that says so; None if it is not known."""
    head = text[:_HEAD]
    for tool, pattern in _COMPILED:
        if tool.hides_formats == hides_formats and (found := pattern.search(head)):
            return tool, head.count("\n", 0, found.end()) + 1
    return None


def _of_json(text: str) -> str | None:
    """Describe JSON by its keys."""
    start = text.lstrip()
    if not start.startswith(("{", "[{", '["', "[\n", "[]")):
        return None
    try:
        found: object = json.loads(start)
    except json.JSONDecodeError as error:
        line = error.lineno + text[: len(text) - len(start)].count("\n")
        return f"line {line}: this begins as JSON, and is cut off or damaged: {error.msg}; give the complete text"
    except (RecursionError, ValueError):
        return "line 1: this is JSON that is nested too deeply, or has too long a number; give what a tool prints"
    what = "an object"
    if isinstance(found, list):
        what, found = "a list of objects", next(iter(cast("list[object]", found)), None)
    if not isinstance(found, dict):
        return "line 1: this is JSON without an object; give what `topoplace show --json` prints"
    keys = _listed(list(cast("dict[str, object]", found))) or "none"
    return (
        f"line 1: this is JSON, {what} with the keys {keys}, and of no known format: a topology has 'format', Slurm "
        "'nodes', 'sinfo' or 'jobs', Kubernetes 'kind' or 'items'; give what `topoplace show --json` prints"
    )


def _of_csv(text: str) -> str | None:
    """Describe CSV by its columns."""
    lines = [(number, line) for number, line in decode.numbered_lines(text[:_HEAD]) if line.strip()][:2]
    if len(lines) < 2 or not all(_CELLS.fullmatch(line) for _, line in lines):
        return None
    number, header = lines[0]
    columns = [cell.strip() for cell in header.split(",")]
    if len(columns) != lines[1][1].count(",") + 1:
        return None
    return (
        f"line {number}: this is CSV with the columns {_listed(columns)}, which no format has; a list of machines "
        "has machine and num_gpus; a list of jobs is a workload, with job_id, submit_s and num_gpus: "
        "`topoplace trace` reads it"
    )


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(_checks.shown(name) for name in names[:_MAX_NAMES]) + more
