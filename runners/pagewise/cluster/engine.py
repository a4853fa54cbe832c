"""Runs a comparison on nodes by ReFrame, and keeps its report and the scheduler's on each job."""

from __future__ import annotations

import math
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal

from pagewise.cluster import campaign
from pagewise.cluster.campaign import Campaign, Job, RequestedNode
from pagewise.cluster.schedulers import ClusterNode, job_state, nodes_of
from pagewise.cluster.sites import SETTINGS, Partition, reframe_version
from pagewise.core.errors import Interrupted, SetupError
from pagewise.core.reading import parse_json, read_file
from pagewise.core.result import create_folder, utc_text
from pagewise.core.signals import interruptible
from pagewise.stack.paths import checkout, module_tree

TESTS = SETTINGS.parent
_REPORT = "run-report.json"
_REFRAME = "from reframe.frontend.cli import main; main()"


@dataclass(frozen=True)
class Request:
    """What to run where. `options` are those of `pagewise compare`; no `nodes`: the scheduler chooses one.

    `job_options` are for the scheduler (account=perf as --account=perf); `time_limit` is that of each job in
    seconds.
    """

    name: str
    environment: str
    options: tuple[str, ...]
    partition: Partition
    nodes: tuple[ClusterNode, ...]
    configuration: tuple[Path, ...]
    results: Path
    time_limit: float = 3600.0
    job_options: tuple[str, ...] = ()

    @property
    def usable(self) -> list[str]:
        """The nodes that jobs are submitted for."""
        return [node.name for node in self.nodes if node.usable]


def begin(request: Request) -> tuple[Path, Campaign]:
    """Creates the folder and its cluster.json; nothing is submitted yet. Raises RefusedError."""
    now = datetime.now(timezone.utc)
    folder = create_folder(request.results.absolute(), request.name, now)
    nodes = request.nodes or (ClusterNode(campaign.ANY, "the scheduler's choice", True),)
    started = Campaign(
        schema=campaign.SCHEMA,
        name=request.name,
        created=utc_text(now),
        finished=None,
        state="running",
        command=("pagewise", *sys.argv[1:]),
        environment=request.environment,
        options=request.options,
        system=request.partition.system,
        partition=request.partition.name,
        scheduler=request.partition.scheduler,
        reframe=reframe_version(),
        nodes=tuple(RequestedNode(node.name, node.state, node.reason, node.usable) for node in nodes),
        jobs=(),
    )
    campaign.write(folder, started)
    return folder, started


def python_command(statement: str) -> list[str]:
    """A statement in this process's Python, isolated: no variable and no file of the caller adds code.

    An exception is PYTHONPATH without a checkout, by which Spack names the packages that it has installed.
    """
    if checkout() is None and (
        folders := [name for name in os.environ.get("PYTHONPATH", "").split(":") if name]
    ):
        statement = f"import sys; sys.path[1:1] = {folders!r}; {statement}"
    return [sys.executable, "-I", "-c", statement]


def _places(request: Request) -> dict[str, str]:
    """Where jobs find the modules: the checkout, or one module tree, because jobs need not run Spack."""
    root = checkout()
    if root is not None:
        return {"PAGEWISE_ROOT": str(root)}
    if "--modules" in request.options:
        return {"PAGEWISE_ROOT": ""}
    return {"PAGEWISE_ROOT": "", "PAGEWISE_MODULES": str(module_tree(request.environment, None))}


def command(request: Request, folder: Path) -> list[str]:
    """ReFrame's command line."""
    settings = {
        "results": str(folder / campaign.NODES),
        "options": shlex.join(request.options),
        "time_limit": f"{math.ceil(request.time_limit)}s",
    }
    return [
        *python_command(_REFRAME),
        *(word for file in request.configuration for word in ("-C", str(file))),
        *("--system", request.partition.fullname, "-c", str(TESTS), "--prefix", str(folder / campaign.WORK)),
        *("-n", f"comparison%env={request.environment}"),
        *(word for name, value in settings.items() for word in ("-S", f"{name}={value}")),
        *(f"--job-option={option}" for option in request.job_options),
        *(("-P", f"node={','.join(request.usable)}") if request.nodes else ()),
        "--run",
    ]


def run(request: Request, folder: Path, started: Campaign, quiet: bool = False) -> None:
    """Runs all jobs to their end. On an interrupt, jobs are cancelled and all results are kept.

    ReFrame's output goes to standard error, with `quiet` to its log only. Raises SetupError if ReFrame ran no
    job.
    """
    work = folder / campaign.WORK
    work.mkdir()
    for file in request.configuration[1:]:
        shutil.copy(file, work)
    environment = {
        **os.environ,
        "PAGEWISE_CLUSTER_WORK": str(work),
        **_places(request),
        "COLUMNS": "120",
    }
    state: Literal["complete", "interrupted"] = "complete"
    process = None
    try:
        with interruptible():
            output = subprocess.DEVNULL if quiet else sys.stderr.fileno()
            process = subprocess.Popen(
                command(request, folder), env=environment, stdout=output, start_new_session=True
            )
            process.wait()
    except Interrupted:
        # ReFrame cancels its jobs on an interrupt.
        state = "interrupted"
        if process is not None:
            process.send_signal(2)
            process.wait()
    report = work / _REPORT
    jobs = _jobs(report, request.partition) if report.exists() else ()
    campaign.write(folder, replace(started, jobs=jobs, state=state, finished=utc_text()))
    if not jobs and state == "complete" and (request.usable or not request.nodes):
        raise SetupError(
            "ReFrame ran no job: its message is above",
            where=work / "reframe.log",
            remedy="./pagewise list shows the environments that are built; correct the site's reframe.yaml",
        )


def _jobs(report: Path, partition: Partition) -> tuple[Job, ...]:
    cases = parse_json(read_file(report))["runs"][-1]["testcases"]
    nodes: list[ClusterNode] = []
    if any(case.get("result") != "pass" for case in cases):
        try:
            nodes = nodes_of(partition.scheduler, partition.access)
        except SetupError:
            # The scheduler does not report its nodes.
            nodes = []
    unusable = {node.name: node for node in nodes if not node.usable}
    return tuple(_job(case, partition, unusable) for case in cases)


def _job(case: Mapping[str, Any], partition: Partition, unusable: Mapping[str, ClusterNode]) -> Job:
    name = case.get("node") or campaign.ANY
    # A number in reports of ReFrame before 4.8.
    number = str(case["jobid"]) if case.get("jobid") else None
    state = job_state(partition.scheduler, number) if number else None
    node = unusable.get(name)
    return Job(
        node=name,
        id=number,
        result=case.get("result"),
        phase=case.get("fail_phase"),
        reason=case.get("fail_reason"),
        said=None if case.get("result") == "pass" else _error(case),
        ran_on=tuple(case.get("job_nodelist") or ()),
        scheduler_state=state.state if state else None,
        scheduler_reason=state.reason if state else None,
        restarts=state.restarts if state else None,
        node_state=node.state if node else None,
        node_reason=node.reason if node else None,
    )


def _error(case: Mapping[str, Any]) -> str | None:
    """The error that the job's own output ends in, None without one."""
    file = Path(case.get("stagedir") or "") / (case.get("job_stderr") or "")
    try:
        lines = [line.strip() for line in file.read_text(errors="replace").splitlines() if line.strip()]
    except OSError:
        return None
    return next((line for line in lines if "error:" in line), lines[-1] if lines else None)
