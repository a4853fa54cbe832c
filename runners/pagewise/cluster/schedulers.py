"""What a scheduler says of its nodes and of a job that is over."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pagewise.core.errors import SelectionError, SetupError

_SECONDS = 60
# sinfo(1), NODE STATE CODES: what a job can come to run on, now or later.
_USABLE = {"idle", "allocated", "mixed", "completing", "planned", "reserved", "allocated+"}


@dataclass(frozen=True)
class Node:
    """A node as its scheduler tells of it. `reason` is why it is not usable, where that is told."""

    name: str
    state: str
    usable: bool
    reason: str | None = None


@dataclass(frozen=True)
class LastWord:
    """How a job ended, as its scheduler has it: `TIMEOUT`, `NODE_FAIL`, ...; how often it was requeued."""

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
            f"{text!r} is no list of nodes: {fault}", where="--nodes", remedy="write it like n[1-4],n7"
        ) from fault
    if not names:
        raise SelectionError("this list of nodes is empty", where="--nodes")
    return names


def fold(names: Sequence[str]) -> str:
    """Names of nodes as a list that is short: `n[1-3]`."""
    from ClusterShell.NodeSet import NodeSet

    return str(NodeSet.fromlist(list(names)))


def nodes_of(scheduler: str, access: Sequence[str]) -> list[Node]:
    """All nodes of a partition, by name, usable or not. `access` are the partition's options for jobs.

    Raises SetupError where the scheduler does not tell them.
    """
    reader = _READERS.get(scheduler)
    if reader is None:
        raise SetupError(
            f"the nodes of the scheduler {scheduler} are not known here",
            where="--nodes all",
            remedy="name them, as in --nodes 'n[1-4]'",
        )
    found = reader(access)
    if not found:
        raise SetupError(
            "the scheduler tells of no node in this partition",
            where=" ".join(access) or scheduler,
            remedy="correct `access` of the partition in ReFrame's configuration",
        )
    return found


def last_word(scheduler: str, job: str) -> LastWord | None:
    """How a job ended, None where the scheduler does not tell (any more)."""
    if scheduler not in ("slurm", "squeue"):
        return None
    told = _say(["scontrol", "show", "job", "-o", job], check=False)
    return parse_job(told)


def parse_job(text: str) -> LastWord | None:
    """Reads `scontrol show job -o`; None without a job in it."""
    facts = dict(re.findall(r"(?:^|\s)(JobState|Reason|Restarts)=(\S+)", text))
    if "JobState" not in facts:
        return None
    reason = facts.get("Reason", "None")
    return LastWord(facts["JobState"], None if reason == "None" else reason, int(facts.get("Restarts", 0)))


def parse_sinfo(text: str) -> list[Node]:
    """Reads `sinfo -h -N -o '%N|%T|%E'`; a node that is in several partitions is one."""
    found: dict[str, Node] = {}
    for line in text.splitlines():
        name, _, rest = line.strip().partition("|")
        state, _, reason = rest.partition("|")
        if name:
            usable = state.lower() in _USABLE
            told = "not responding" if state.endswith("*") and reason in ("", "none") else reason
            found[name] = Node(name, state, usable, None if usable or told in ("", "none") else told)
    return [found[name] for name in sorted(found, key=_natural)]


def parse_pbsnodes(text: str) -> list[Node]:
    """Reads `pbsnodes -a -F json` of PBS Professional and OpenPBS."""
    found = []
    for name, told in json.loads(text).get("nodes", {}).items():
        states = str(told.get("state", "unknown")).split(",")
        usable = all(
            state in ("free", "job-busy", "job-exclusive", "resv-exclusive", "busy") for state in states
        )
        found.append(Node(name, ",".join(states), usable, None if usable else told.get("comment")))
    return sorted(found, key=lambda node: _natural(node.name))


def parse_flux(text: str) -> list[Node]:
    """Reads `flux resource list -n -o '{state}|{nodelist}'`."""
    found = {}
    for line in text.splitlines():
        state, _, names = line.strip().partition("|")
        for name in expand(names) if names else ():
            found[name] = Node(name, state, state in ("free", "allocated"))
    return [found[name] for name in sorted(found, key=_natural)]


def _slurm(access: Sequence[str]) -> list[Node]:
    named = re.findall(r"(?:^|\s)(?:-p\s*|--partition[=\s])(\S+)", " ".join(access))
    partition = named[-1] if named else _default_partition()
    chosen = ["-p", partition] if partition else []
    return parse_sinfo(_say(["sinfo", "-h", "-N", *chosen, "-o", "%N|%T|%E"]))


def _default_partition() -> str | None:
    partitions = _say(["sinfo", "-h", "-o", "%P"]).split()
    return next((name.rstrip("*") for name in partitions if name.endswith("*")), None)


def _pbs(access: Sequence[str]) -> list[Node]:
    return parse_pbsnodes(_say(["pbsnodes", "-a", "-F", "json"]))


def _flux(access: Sequence[str]) -> list[Node]:
    format_ = "{state}|{nodelist}"
    return parse_flux(_say(["flux", "resource", "list", "-n", "-s", "free,allocated,down", "-o", format_]))


_READERS: Mapping[str, Callable[[Sequence[str]], list[Node]]] = {
    "slurm": _slurm,
    "squeue": _slurm,
    "pbs": _pbs,
    "pbspro": _pbs,
    "flux": _flux,
}


def _say(command: Sequence[str], check: bool = True) -> str:
    if shutil.which(command[0]) is None:
        raise SetupError(f"{command[0]} is not here", remedy="call pagewise where jobs are submitted")
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired as fault:
        raise SetupError(f"the scheduler does not answer: {' '.join(command)}") from fault
    if check and answer.returncode != 0:
        raise SetupError(f"{command[0]} failed: {answer.stderr.strip()}", where=" ".join(command))
    return answer.stdout


def _natural(name: str) -> list[tuple[bool, int, str]]:
    """n2 before n10."""
    return [
        (not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.split(r"(\d+)", name)
    ]
