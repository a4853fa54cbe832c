"""A comparison on nodes of a cluster: its folder, cluster.json, and the outcome of each node.

<results>/<utc>-<name>/cluster.json     what was requested, and the reports of ReFrame and the scheduler
                       nodes/<node>/    the node's results, one per attempt
                       work/            files of ReFrame: job scripts, their output, its log and report
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pagewise.analysis.analysis import analyse_result
from pagewise.analysis.rows import Row
from pagewise.core.errors import FormatError, PagewiseError, RefusedError
from pagewise.core.files import write_inside
from pagewise.core.manifest import Manifest
from pagewise.core.reading import parse_json, read_file
from pagewise.core.result import MANIFEST, RECORDS, Result, read_manifest, read_result
from pagewise.core.schemas import faults
from pagewise.core.structure import structured, unstructured
from pagewise.core.text import json_text

FILE, NODES, WORK = "cluster.json", "nodes", "work"
SCHEMA = "pagewise.cluster/1"
ANY = "any"
_ENDINGS = {
    "TIMEOUT": "its time limit ended it",
    "NODE_FAIL": "the node failed",
    "OUT_OF_MEMORY": "it ran out of memory",
    "CANCELLED": "it was cancelled",
    "PREEMPTED": "another job preempted it",
    "DEADLINE": "its deadline ended it",
    "BOOT_FAIL": "the node did not boot",
}


@dataclass(frozen=True)
class RequestedNode:
    """A node as the scheduler reported it beforehand; `asked`: a job was to run on it."""

    name: str
    state: str
    reason: str | None
    asked: bool


@dataclass(frozen=True)
class Job:
    """The reports of ReFrame and of the scheduler on a job; `said` is the error that its output ends in."""

    node: str
    id: str | None
    result: str | None
    phase: str | None
    reason: str | None
    said: str | None
    ran_on: tuple[str, ...]
    scheduler_state: str | None
    scheduler_reason: str | None
    restarts: int | None
    node_state: str | None
    node_reason: str | None


@dataclass(frozen=True)
class Campaign:
    """The content of cluster.json, schema pagewise.cluster/1."""

    schema: str
    name: str
    created: str
    finished: str | None
    state: Literal["running", "complete", "interrupted"]
    command: tuple[str, ...]
    environment: str
    options: tuple[str, ...]
    system: str
    partition: str
    scheduler: str
    reframe: str | None
    nodes: tuple[RequestedNode, ...]
    jobs: tuple[Job, ...]


@dataclass(frozen=True)
class Attempt:
    """A result folder with its manifest, whose `state` is `running` if it was killed."""

    folder: Path
    manifest: Manifest

    @property
    def is_complete(self) -> bool:
        """Whether it came to its end."""
        return self.manifest.state == "complete"

    @property
    def has_records(self) -> bool:
        """Whether anything was measured."""
        file = self.folder / RECORDS
        return file.exists() and file.stat().st_size > 0

    def read(self) -> Result:
        """The result. Raises FormatError, RefusedError."""
        return read_result(self.folder)


@dataclass(frozen=True)
class NodeOutcome:
    """The outcome of a node. `attempt` is the result that counts, None without one.

    `why` reports what is missing and why, None if nothing is; `attempts` is how often it was started.
    """

    name: str
    attempt: Attempt | None
    attempts: int
    job: str | None
    why: str | None

    @property
    def is_complete(self) -> bool:
        """Whether the comparison was completed here."""
        return self.attempt is not None and self.attempt.is_complete

    @property
    def state(self) -> str:
        """`complete`, `partial` or `missing`."""
        if self.is_complete:
            return "complete"
        return "partial" if self.attempt is not None and self.attempt.has_records else "missing"


def write(folder: Path, campaign: Campaign) -> None:
    """Writes cluster.json in one step. Raises RefusedError."""
    try:
        write_inside(folder, FILE, json_text(unstructured(campaign)))
    except OSError as fault:
        raise RefusedError(f"{FILE} cannot be written: {fault.strerror}", where=folder / FILE) from fault


def read(folder: Path) -> Campaign:
    """Reads cluster.json. Raises FormatError."""
    file = folder / FILE
    try:
        data = parse_json(read_file(file))
        if wrong := faults("cluster", data):
            raise ValueError("\n    ".join([f"it does not follow {SCHEMA}:", *wrong]))
        return structured(Campaign, data)
    except FileNotFoundError as fault:
        raise FormatError(
            f"this folder contains no comparison on a cluster: {FILE} is missing",
            where=folder,
            remedy="name a folder that `pagewise cluster run` created",
        ) from fault
    except (OSError, ValueError) as fault:
        raise FormatError(f"{FILE} cannot be read: {fault}", where=file) from fault


def attempts(folder: Path) -> list[Attempt]:
    """The attempts below a node's folder, oldest first; folders without a readable manifest are ignored.

    A job that is requeued leaves several.
    """
    items = []
    for file in folder.glob(f"*/{MANIFEST}"):
        try:
            items.append(Attempt(file.parent, read_manifest(file.parent)))
        except FormatError:
            continue
    return sorted(items, key=lambda attempt: (attempt.manifest.created, attempt.folder.name))


def newest(folder: Path) -> Attempt | None:
    """The newest attempt below a node's folder, None without any."""
    return next(reversed(attempts(folder)), None)


def seconds_by_configuration(attempt: Attempt | None) -> dict[str, float]:
    """Seconds per pass by `kernel/compiler/configuration`, of the rows that may be ranked."""
    if attempt is None:
        return {}
    try:
        kernels = analyse_result(attempt.read())
    except PagewiseError:
        return {}
    return {
        f"{result.kernel.name}/{configuration_name(row)}": row.seconds
        for result in kernels
        for row in result.ranked
        if row.seconds is not None
    }


def configuration_name(row: Row) -> str:
    """The name of a row's configuration on all nodes: `compiler/configuration`."""
    return f"{row.cell.compiler}/{row.cell.measured.label}"


def outcomes(folder: Path, campaign: Campaign) -> list[NodeOutcome]:
    """The outcome of each requested node, in order."""
    jobs = {job.node: job for job in campaign.jobs}
    return [_outcome(folder, node, jobs.get(node.name), campaign.state) for node in campaign.nodes]


def _outcome(folder: Path, node: RequestedNode, job: Job | None, state: str) -> NodeOutcome:
    """The newest complete attempt counts, else the one with the most rounds."""
    started = attempts(folder / NODES / node.name)
    complete = [attempt for attempt in started if attempt.is_complete]
    most = max(started, key=lambda attempt: attempt.manifest.rounds_done, default=None)
    best = complete[-1] if complete else most
    number = None if job is None else job.id
    if complete:
        first, reason = started[0].manifest, None
        if len(started) > 1:
            reason = (
                f"started {len(started)} times: the attempt of {first.created} ended after "
                f"{first.rounds_done} of {first.rounds} rounds"
            )
        return NodeOutcome(node.name, best, len(started), number, reason)
    reasons = [_why_missing(node, job, state)]
    if best is not None:
        reasons.append(f"{best.manifest.rounds_done} of {best.manifest.rounds} rounds are available")
    if len(started) > 1:
        reasons.append(f"started {len(started)} times")
    return NodeOutcome(node.name, best, len(started), number, "; ".join(reasons))


def _why_missing(node: RequestedNode, job: Job | None, state: str) -> str:
    if not node.asked:
        return _node_text("not requested: the node is", node.state, node.reason)
    if job is None:
        return "still running" if state == "running" else "no job was submitted"
    reasons = []
    if job.node_state:
        reasons.append(_node_text("the node is", job.node_state, job.node_reason))
    reason = next((line.strip() for line in (job.reason or "").splitlines() if line.strip()), "")
    word = job.scheduler_state
    if word in _ENDINGS and not (word == "CANCELLED" and reason):
        reasons.append(f"{_ENDINGS[word]} ({word})")
    # The scheduler or the job itself report better than ReFrame why there is no result.
    if reason and not (reason.startswith("sanity error") and (reasons or job.said)):
        reasons.append(reason)
    if job.said and not reasons:
        reasons.append(job.said)
    return "; ".join(reasons) or "the job ended without a result"


def _node_text(text: str, state: str, reason: str | None) -> str:
    return f"{text} {state}" + (f": {reason}" if reason else "")
