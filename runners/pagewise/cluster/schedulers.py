"""What a scheduler reports on its nodes and on a job that has ended, and how a job runs on one node."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pagewise.core.environment import C_LOCALE
from pagewise.core.errors import SelectionError, SetupError

_SECONDS = 60
# sinfo(1), NODE STATE CODES: nodes that a job can run on, now or later.
_USABLE = {"idle", "allocated", "mixed", "completing", "planned", "reserved", "allocated+"}
_USABLE_PBS = {"free", "job-busy", "job-exclusive", "resv-exclusive", "busy"}
# Options for one node of the schedulers for which ReFrame has no list of nodes: PBS Professional's chunks
# (qsub(1B), pbs_resources(7B)), LSF's bsub -m, Grid Engine's qsub -l, OAR's oarsub -p.
_PIN_OPTIONS = {
    "pbs": "host={node}",
    "pbspro": "host={node}",
    "lsf": "-m {node}",
    "sge": "-l hostname={node}",
    "oar": "-p \"host='{node}'\"",
}


@dataclass(frozen=True)
class ClusterNode:
    """A node as its scheduler reports it. `reason` is why it is not usable, if it is reported."""

    name: str
    state: str
    usable: bool
    reason: str | None = None


@dataclass(frozen=True)
class JobState:
    """How a job ended by its scheduler's report: `TIMEOUT`, `NODE_FAIL`, ...; how often it was requeued."""

    state: str
    reason: str | None
    restarts: int


def expand(text: str) -> list[str]:
    """The names of a list of nodes: `n[1-3],login` are n1, n2, n3 and login. Raises SelectionError."""
    from ClusterShell.NodeSet import NodeSet, NodeSetException

    try:
        names = list(NodeSet(text))
    except NodeSetException as fault:
        raise SelectionError(
            f"{text!r} is not a list of nodes: {fault}", where="--nodes", remedy="write it like n[1-4],n7"
        ) from fault
    if not names:
        raise SelectionError("this list of nodes is empty", where="--nodes")
    return names


def fold(names: Sequence[str]) -> str:
    """Names of nodes as a short list: `n[1-3]`."""
    from ClusterShell.NodeSet import NodeSet

    return str(NodeSet.fromlist(list(names)))


def nodes_of(scheduler: str, access: Sequence[str]) -> list[ClusterNode]:
    """All nodes of a partition, by name, usable or not. `access` are the partition's options for jobs.

    Raises SetupError if the scheduler does not report them.
    """
    reader = _READERS.get(scheduler)
    if reader is None:
        raise SetupError(
            f"the nodes of the scheduler {scheduler} cannot be listed",
            where="--nodes all",
            remedy="name them, as in --nodes 'n[1-4]'",
        )
    nodes = reader(access)
    if not nodes:
        raise SetupError(
            "the scheduler reports no node in this partition",
            where=" ".join(access) or scheduler,
            remedy="correct `access` of the partition in ReFrame's configuration",
        )
    return nodes


def job_state(scheduler: str, job: str) -> JobState | None:
    """How a job ended, None if the scheduler does not report it (any more)."""
    if scheduler not in ("slurm", "squeue"):
        return None
    return parse_job(_output(["scontrol", "show", "job", "-o", job], check=False))


def pin(job: Any, partition: Any, node: str) -> None:
    """Makes ReFrame's job run on this node only; `extras: {pin: OPTION}` of the partition overrides how.

    Raises SetupError for a scheduler that cannot request a node.
    """
    scheduler = partition.scheduler.registered_name
    option = partition.extras.get("pin") or _PIN_OPTIONS.get(scheduler)
    if option is not None:
        job.options = [*job.options, option.format(node=node)]
    elif scheduler in ("slurm", "squeue", "ssh"):
        job.pin_nodes = [node]
    elif scheduler == "flux":
        # RFC 31: a constraint by host names.
        job.fluxjob.setattr("system.constraints", {"hostlist": [node]})
    else:
        raise SetupError(
            f"pagewise cannot request the node {node} from the scheduler {scheduler}",
            where=f"the partition {partition.fullname} of ReFrame's configuration",
            remedy="give the partition `extras: {pin: OPTION}`, with {node} for the node's name",
        )


def parse_job(text: str) -> JobState | None:
    """Reads `scontrol show job -o`; None without a job in it."""
    facts = dict(re.findall(r"(?:^|\s)(JobState|Reason|Restarts)=(\S+)", text))
    if "JobState" not in facts:
        return None
    reason = facts.get("Reason", "None")
    return JobState(facts["JobState"], None if reason == "None" else reason, int(facts.get("Restarts", 0)))


def parse_sinfo(text: str) -> list[ClusterNode]:
    """Reads `sinfo -h -N -o '%N|%T|%E'`; a node that is in several partitions is one."""
    nodes = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, state, reason = (*line.split("|", 2), "", "")[:3]
        usable = state.lower() in _USABLE
        reason = "" if reason == "none" else reason
        if state.endswith("*") and not reason:
            reason = "not responding"
        nodes[name] = ClusterNode(name, state, usable, None if usable else reason or None)
    return _sorted(nodes.values())


def parse_pbsnodes(text: str) -> list[ClusterNode]:
    """Reads `pbsnodes -a -F json` of PBS Professional and OpenPBS."""
    nodes = []
    for name, report in json.loads(text).get("nodes", {}).items():
        state = str(report.get("state", "unknown"))
        usable = _USABLE_PBS.issuperset(state.split(","))
        nodes.append(ClusterNode(name, state, usable, None if usable else report.get("comment")))
    return _sorted(nodes)


def parse_flux(text: str) -> list[ClusterNode]:
    """Reads `flux resource list -n -o '{state}|{nodelist}'`."""
    nodes = {}
    for line in text.splitlines():
        state, _, names = line.strip().partition("|")
        for name in expand(names) if names else ():
            nodes[name] = ClusterNode(name, state, state in ("free", "allocated"))
    return _sorted(nodes.values())


def _slurm(access: Sequence[str]) -> list[ClusterNode]:
    named = re.findall(r"(?:^|\s)(?:-p\s*|--partition[=\s])(\S+)", " ".join(access))
    # sinfo marks the default partition.
    known = () if named else _output(["sinfo", "-h", "-o", "%P"]).split()
    partition = named[-1] if named else next((name[:-1] for name in known if name.endswith("*")), None)
    chosen = ["-p", partition] if partition else []
    return parse_sinfo(_output(["sinfo", "-h", "-N", *chosen, "-o", "%N|%T|%E"]))


def _pbs(access: Sequence[str]) -> list[ClusterNode]:
    return parse_pbsnodes(_output(["pbsnodes", "-a", "-F", "json"]))


def _flux(access: Sequence[str]) -> list[ClusterNode]:
    format_ = "{state}|{nodelist}"
    return parse_flux(_output(["flux", "resource", "list", "-n", "-s", "free,allocated,down", "-o", format_]))


_READERS: Mapping[str, Callable[[Sequence[str]], list[ClusterNode]]] = {
    "slurm": _slurm,
    "squeue": _slurm,
    "pbs": _pbs,
    "pbspro": _pbs,
    "flux": _flux,
}


def _output(command: Sequence[str], check: bool = True) -> str:
    if shutil.which(command[0]) is None:
        raise SetupError(f"{command[0]} is not installed", remedy="call pagewise where jobs are submitted")
    try:
        answer = subprocess.run(
            command,
            env={**os.environ, **C_LOCALE},
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as fault:
        raise SetupError("the scheduler does not respond", where=" ".join(command)) from fault
    if check and answer.returncode != 0:
        raise SetupError(f"{command[0]} failed: {answer.stderr.strip()}", where=" ".join(command))
    return answer.stdout


def _sorted(nodes: Iterable[ClusterNode]) -> list[ClusterNode]:
    """The nodes by name, n2 before n10."""
    return sorted(
        nodes, key=lambda node: [int(x) if x.isdecimal() else x for x in re.split(r"(\d+)", node.name)]
    )
