"""The files of a toy Slurm cluster: slurm.conf, gres.conf, and links to /dev/null as device files."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from pathlib import Path

from topoplace.errors import SlurmError
from topoplace.topology.topology import Topology
from topoplace_hosts.slurm import gres, shipped
from topoplace_hosts.slurm.request import BLOCK

SETTINGS: Mapping[str, str] = {
    "AuthType": "auth/none",
    "CredType": "cred/none",
    "CommunicationParameters": "NoCtldInAddrAny,NoInAddrAny",
    "ProctrackType": "proctrack/pgid",
    "TaskPlugin": "task/none",
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_Core",
    "SchedulerType": "sched/backfill",
    "SchedulerParameters": "sched_interval=1,sched_min_interval=50000,bf_interval=2,batch_sched_delay=0",
    "JobAcctGatherType": "jobacct_gather/none",
    "AccountingStorageType": "accounting_storage/none",
    "MpiDefault": "none",
    "SwitchType": "switch/none",
    "GresTypes": "gpu",
    "SlurmdParameters": "config_overrides",  # this host has fewer CPUs than its nodes
    "ReturnToService": "2",
    "KillWait": "1",
    "SlurmdTimeout": "30",
    "SlurmctldTimeout": "30",
    "MessageTimeout": "20",
    "MaxJobCount": "30000",
    "MaxArraySize": "1001",
}
"""Settings of every toy cluster in slurm.conf: no privileges, all traffic on this host, short waits."""

_MEMORY_MB = 64_000


def write(
    folder: Path,
    topology: Topology,
    ports: list[int],
    *,
    cpus: int,
    types: bool,
    job_submit: bool,
    task_prolog: bool,
    settings: Mapping[str, str],
) -> None:
    """Write the files of a cluster into `folder`; its nodes are the machines of `topology`.

    ports: the port of slurmctld, then one for each node. cpus: CPUs of each node. types: True for one gres type per
    device. job_submit, task_prolog: True for topoplace's job_submit.lua and task_prolog.sh. settings: added to
    `SETTINGS`, or replacing them; with TopologyPlugin=topology/block, the level "block" of `topology` becomes
    topology.conf.
    """
    for node, gpus in topology.gpus_of.items():
        (folder / "devices" / node).mkdir(parents=True)
        for number in range(len(gpus)):
            (folder / "devices" / node / f"nvidia{number}").symlink_to(os.devnull)
    for name in ("state", "spool", "log"):
        (folder / name).mkdir()
    device_file = f"{folder}/devices/{{node}}/nvidia{{number}}"
    (folder / "gres.conf").write_text(gres.gres_conf(topology, device_file=device_file, types=types), "utf-8")
    if job_submit:
        (folder / "job_submit.lua").write_text(shipped.text("job_submit.lua"), "utf-8")
    if settings.get("TopologyPlugin") == "topology/block":
        (folder / "topology.conf").write_text(_topology_conf(topology), "utf-8")
    prolog = folder / "task_prolog.sh"
    if task_prolog:
        prolog.write_text(shipped.text("task_prolog.sh"), "utf-8")
        prolog.chmod(0o755)
    user = pwd.getpwuid(os.getuid()).pw_name
    own = {
        "ClusterName": "toy",
        "SlurmctldHost": "localhost(127.0.0.1)",
        "SlurmctldPort": str(ports[0]),
        "SlurmUser": user,
        "SlurmdUser": user,
        "StateSaveLocation": f"{folder}/state",
        "SlurmdSpoolDir": f"{folder}/spool/%n",
        "SlurmctldPidFile": f"{folder}/slurmctld.pid",
        "SlurmdPidFile": f"{folder}/slurmd.%n.pid",
        "SlurmctldLogFile": f"{folder}/log/slurmctld",
        "SlurmdLogFile": f"{folder}/log/slurmd.%n",
        **({"JobSubmitPlugins": "lua"} if job_submit else {}),
        **({"TaskProlog": str(prolog)} if task_prolog else {}),
    }
    lines = [f"{key}={value}" for key, value in {**SETTINGS, **own, **settings}.items()]
    held = gres.node_gres(topology, types=types)
    lines += [
        f"NodeName={node} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs={cpus}"
        f" RealMemory={_MEMORY_MB} Gres={held[node]}"
        for node, port in zip(topology.gpus_of, ports[1:], strict=True)
    ]
    nodes = ",".join(topology.gpus_of)
    lines.append(f"PartitionName=all Nodes={nodes} Default=YES MaxTime=INFINITE State=UP")
    (folder / "slurm.conf").write_text("\n".join(lines) + "\n", "utf-8")


def _topology_conf(topology: Topology) -> str:
    """Return the blocks of a topology as a topology.conf; SlurmError if it has none."""
    levels = topology.fabric.levels if topology.fabric else ()
    domains = next((level.domains for level in levels if level.name == BLOCK), ())
    nodes: dict[str | None, list[str]] = {}
    for node, block in zip(topology.machine_names, domains, strict=False):
        nodes.setdefault(block, []).append(node)
    if not nodes or None in nodes:
        raise SlurmError("topology/block needs the block of each machine")
    lines = [f"BlockName={block} Nodes={','.join(names)}" for block, names in nodes.items()]
    return "\n".join([*lines, f"BlockSizes={min(map(len, nodes.values()))}", ""])
