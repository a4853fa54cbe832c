"""A comparison on nodes of a cluster: its folder, cluster.json, and what became of each node.

<results>/<utc>-<name>/cluster.json     what was asked for, and the word of ReFrame and the scheduler
                       nodes/<node>/    the node's results, one for each attempt
                       work/            what ReFrame wrote: job scripts, their output, its log and report
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pagewise.cluster.attempts import Attempt, attempts, best
from pagewise.core.errors import FormatError, RefusedError
from pagewise.core.files import write_inside
from pagewise.core.reading import parse_json, read_file
from pagewise.core.schemas import faults
from pagewise.core.text import json_text

FILE, NODES, WORK = "cluster.json", "nodes", "work"
SCHEMA = "pagewise.cluster/1"
ANY = "any"
_ENDINGS = {
    "TIMEOUT": "its time limit ended it",
    "NODE_FAIL": "the node died",
    "OUT_OF_MEMORY": "it ran out of memory",
    "CANCELLED": "it was cancelled",
    "PREEMPTED": "another job took its place",
    "DEADLINE": "its deadline ended it",
    "BOOT_FAIL": "the node did not boot",
}


@dataclass(frozen=True)
class NodeOutcome:
    """What became of a node. `attempt` is the result that counts, None where there is none.

    `why` tells what is missing and why, None where nothing is; `attempts` is how often it began.
    """

    name: str
    attempt: Attempt | None
    attempts: int
    job: str | None
    why: str | None

    @property
    def is_complete(self) -> bool:
        """Whether the comparison came to its end here."""
        return self.attempt is not None and self.attempt.state == "complete"

    @property
    def state(self) -> str:
        """`complete`, `partial` or `missing`."""
        if self.is_complete:
            return "complete"
        return "partial" if self.attempt is not None and self.attempt.has_records else "missing"


def write(folder: Path, told: Mapping[str, Any]) -> None:
    """Writes cluster.json in one step. Raises RefusedError."""
    try:
        write_inside(folder, FILE, json_text(told))
    except OSError as fault:
        raise RefusedError(f"{FILE} cannot be written: {fault.strerror}", where=folder / FILE) from fault


def read(folder: Path) -> dict[str, Any]:
    """Reads cluster.json. Raises FormatError."""
    file = folder / FILE
    try:
        told: dict[str, Any] = parse_json(read_file(file))
    except FileNotFoundError as fault:
        raise FormatError(
            f"this folder holds no comparison on a cluster: it has no {FILE}",
            where=folder,
            remedy="name a folder that `pagewise cluster run` made",
        ) from fault
    except (OSError, ValueError) as fault:
        raise FormatError(f"{FILE} cannot be read: {fault}", where=file) from fault
    found = faults("cluster", told)
    if found:
        raise FormatError(f"{FILE} does not follow {SCHEMA}:\n    " + "\n    ".join(found), where=file)
    return told


def outcomes(folder: Path, told: Mapping[str, Any]) -> list[NodeOutcome]:
    """What became of each node that was asked for, in order."""
    jobs = {job["node"]: job for job in told["jobs"]}
    return [_outcome(folder, node, jobs.get(node["name"], {}), told["state"]) for node in told["nodes"]]


def _outcome(folder: Path, node: Mapping[str, Any], job: Mapping[str, Any], state: str) -> NodeOutcome:
    found = attempts(folder / NODES / node["name"])
    chosen = best(found)
    if chosen is not None and chosen.state == "complete":
        broken = len(found) - 1
        why = None if broken == 0 else f"begun {broken + 1} times: {_broken(found[0])}"
        return NodeOutcome(node["name"], chosen, len(found), job.get("id"), why)
    reasons = [_why_not(node, job, state)]
    if chosen is not None:
        reasons.append(f"{chosen.rounds} of {chosen.manifest['rounds']} rounds are there")
    if len(found) > 1:
        reasons.append(f"begun {len(found)} times")
    return NodeOutcome(node["name"], chosen, len(found), job.get("id"), "; ".join(reasons))


def _why_not(node: Mapping[str, Any], job: Mapping[str, Any], state: str) -> str:
    if not node["asked"]:
        return f"not asked for: the node is {node['state']}{_after_colon(node['reason'])}"
    if not job:
        return "still running" if state == "running" else "no job was submitted"
    word, reason, told = job.get("scheduler_state"), _first_line(job.get("reason") or ""), []
    if job.get("node_state"):
        told.append(f"the node is {job['node_state']}{_after_colon(job.get('node_reason'))}")
    if word in _ENDINGS and not (word == "CANCELLED" and reason):
        told.append(f"{_ENDINGS[word]} ({word})")
    # Why ReFrame misses a result is told by the scheduler or by the job itself, where they tell anything.
    if reason and not (reason.startswith("sanity error") and (told or job.get("said"))):
        told.append(reason)
    if job.get("said") and not told:
        told.append(job["said"])
    return "; ".join(told) or "the job ended, and left no result"


def _after_colon(reason: str | None) -> str:
    return f": {reason}" if reason else ""


def _broken(attempt: Attempt) -> str:
    created = attempt.manifest.get("created")
    return f"the attempt of {created} broke off after {attempt.rounds} of {attempt.manifest['rounds']} rounds"


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
