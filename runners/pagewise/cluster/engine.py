"""Has ReFrame run a comparison on nodes, and keeps its word and the scheduler's of each job."""

from __future__ import annotations

import math
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pagewise.cluster import campaign
from pagewise.cluster.schedulers import Node, last_word, nodes_of
from pagewise.cluster.sites import SETTINGS, Partition
from pagewise.core.errors import Interrupted, SetupError
from pagewise.core.reading import parse_json, read_file
from pagewise.core.result import create_folder, utc_text
from pagewise.core.signals import interruptible
from pagewise.stack.paths import project_root

TESTS = SETTINGS.parent
_REPORT = "run-report.json"
_START = "from reframe.frontend.cli import main; main()"


@dataclass(frozen=True)
class Request:
    """What to run where. `options` are those of `pagewise compare`; no `nodes`: the scheduler chooses one.

    `job_options` go to the scheduler (account=perf as --account=perf); `time_limit` is that of each job in
    seconds.
    """

    name: str
    environment: str
    options: tuple[str, ...]
    partition: Partition
    nodes: tuple[Node, ...]
    configuration: tuple[Path, ...]
    results: Path
    time_limit: float = 3600.0
    job_options: tuple[str, ...] = ()

    @property
    def asked(self) -> list[str]:
        """The nodes that jobs are submitted for."""
        return [node.name for node in self.nodes if node.usable]


def begin(request: Request) -> tuple[Path, dict[str, Any]]:
    """Makes the folder and its cluster.json; nothing is submitted yet. Raises RefusedError."""
    now = datetime.now(timezone.utc)
    folder = create_folder(request.results.absolute(), request.name, now)
    nodes = request.nodes or (Node(campaign.ANY, "the scheduler's choice", True),)
    told = {
        "schema": campaign.SCHEMA,
        "name": request.name,
        "created": utc_text(now),
        "finished": None,
        "state": "running",
        "command": ["pagewise", *sys.argv[1:]],
        "environment": request.environment,
        "options": list(request.options),
        "system": request.partition.system,
        "partition": request.partition.name,
        "scheduler": request.partition.scheduler,
        "reframe": version("reframe-hpc"),
        "nodes": [
            {"name": node.name, "state": node.state, "reason": node.reason, "asked": node.usable}
            for node in nodes
        ],
        "jobs": [],
    }
    campaign.write(folder, told)
    return folder, told


def command(request: Request, folder: Path) -> list[str]:
    """ReFrame's command line."""
    work = folder / campaign.WORK
    files = [word for file in request.configuration for word in ("-C", str(file))]
    arguments = [*files, "--system", request.partition.fullname, "-c", str(TESTS), "--prefix", str(work)]
    arguments += ["-n", f"comparison%env={request.environment}"]
    settings = {
        "results": str(folder / campaign.NODES),
        "options": shlex.join(request.options),
        "time_limit": f"{math.ceil(request.time_limit)}s",
    }
    arguments += [word for name, value in settings.items() for word in ("-S", f"{name}={value}")]
    arguments += [f"--job-option={option}" for option in request.job_options]
    if request.nodes:
        arguments += ["-P", f"node={','.join(request.asked)}"]
    return [sys.executable, "-I", "-c", _START, *arguments, "--run"]


def run(request: Request, folder: Path, told: dict[str, Any], quiet: bool = False) -> None:
    """Runs all jobs to their end. Interrupted, jobs are cancelled, and what there is is kept.

    What ReFrame prints goes to standard error, with `quiet` to its log only. Raises SetupError when ReFrame
    ran none.
    """
    work = folder / campaign.WORK
    work.mkdir()
    for file in request.configuration[1:]:
        shutil.copy(file, work)
    environment = {
        **os.environ,
        "PAGEWISE_CLUSTER_WORK": str(work),
        "PAGEWISE_ROOT": str(project_root()),
        "COLUMNS": "120",
    }
    state, process = "complete", None
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
    told["jobs"] = _jobs(report, request.partition) if report.exists() else []
    told |= {"state": state, "finished": utc_text()}
    campaign.write(folder, told)
    if not told["jobs"] and state == "complete" and (request.asked or not request.nodes):
        raise SetupError(
            "ReFrame ran no job: its message is above",
            where=work / "reframe.log",
            remedy="./pagewise list shows the environments that are built; correct the site's reframe.yaml",
        )


def _jobs(report: Path, partition: Partition) -> list[dict[str, Any]]:
    cases = parse_json(read_file(report))["runs"][-1]["testcases"]
    failed = any(case.get("result") != "pass" for case in cases)
    unusable = _unusable(partition) if failed else {}
    return [_job(case, partition, unusable) for case in cases]


def _unusable(partition: Partition) -> dict[str, Node]:
    """The nodes that are not usable now, as far as the scheduler tells."""
    try:
        return {
            node.name: node for node in nodes_of(partition.scheduler, partition.access) if not node.usable
        }
    except SetupError:
        return {}


def _job(case: Mapping[str, Any], partition: Partition, unusable: Mapping[str, Node]) -> dict[str, Any]:
    number, name = case.get("jobid"), case.get("node") or campaign.ANY
    word = last_word(partition.scheduler, str(number)) if number else None
    node = unusable.get(name)
    return {
        "node": name,
        "id": number,
        "result": case.get("result"),
        "phase": case.get("fail_phase"),
        "reason": case.get("fail_reason"),
        "said": None if case.get("result") == "pass" else _said(case),
        "ran_on": list(case.get("job_nodelist") or []),
        "scheduler_state": word.state if word else None,
        "scheduler_reason": word.reason if word else None,
        "restarts": word.restarts if word else None,
        "node_state": node.state if node else None,
        "node_reason": node.reason if node else None,
    }


def _said(case: Mapping[str, Any]) -> str | None:
    """The error that the job's own output ends in, None without one."""
    file = Path(case.get("stagedir") or "") / (case.get("job_stderr") or "")
    try:
        lines = [line.strip() for line in file.read_text(errors="replace").splitlines() if line.strip()]
    except OSError:
        return None
    return next((line for line in lines if "error:" in line), lines[-1] if lines else None)
