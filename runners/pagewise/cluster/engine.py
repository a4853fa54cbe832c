"""Has ReFrame run a comparison on nodes, and keeps its word and the scheduler's of each job."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pagewise.cluster import campaign
from pagewise.cluster.schedulers import Node, last_word
from pagewise.cluster.sites import SETTINGS, Partition
from pagewise.errors import Interrupted, SetupError
from pagewise.paths import project_root
from pagewise.result import create_folder, utc_text
from pagewise.signals import interruptible

TESTS = SETTINGS.parent
_REPORT = "run-report.json"
_START = "from reframe.frontend.cli import main; main()"


@dataclass(frozen=True)
class Request:
    """What to run where. `options` are those of `pagewise compare`; no `nodes`: one, of the scheduler's choice.

    `job_options` go to the scheduler as they are, `time_limit` as ReFrame writes it (1h30m).
    """

    name: str
    environment: str
    options: tuple[str, ...]
    partition: Partition
    nodes: tuple[Node, ...]
    configuration: tuple[Path, ...]
    results: Path
    time_limit: str | None = None
    job_options: tuple[str, ...] = ()

    @property
    def asked(self) -> list[str]:
        """The nodes that jobs are submitted for."""
        return [node.name for node in self.nodes if node.usable]


def begin(request: Request) -> tuple[Path, dict[str, Any]]:
    """Makes the folder and its cluster.json; nothing is submitted yet. Raises RefusedError, SelectionError."""
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
    settings = {"results": str(folder / campaign.NODES), "options": shlex.join(request.options)}
    if request.time_limit is not None:
        settings["time_limit"] = request.time_limit
    arguments += [word for name, value in settings.items() for word in ("-S", f"{name}={value}")]
    arguments += [word for option in request.job_options for word in ("-J", option)]
    if request.nodes:
        arguments += ["-P", f"node={','.join(request.asked)}"]
    return [sys.executable, "-c", _START, *arguments, "--run"]


def run(request: Request, folder: Path, told: dict[str, Any], quiet: bool = False) -> None:
    """Runs all jobs to their end; `quiet` keeps what ReFrame prints in its log alone. Interrupted, jobs are cancelled, and what there is is kept.

    Raises SetupError when ReFrame did not come to run them.
    """
    work = folder / campaign.WORK
    work.mkdir()
    environment = {
        **os.environ,
        "PAGEWISE_CLUSTER_WORK": str(work),
        "PAGEWISE_ROOT": str(project_root()),
        "COLUMNS": "120",
    }
    state, process = "complete", None
    try:
        with interruptible():
            output = subprocess.DEVNULL if quiet else None
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
    told["jobs"] = _jobs(report, request.partition.scheduler) if report.exists() else []
    told |= {"state": state, "finished": utc_text()}
    campaign.write(folder, told)
    if request.asked and not told["jobs"] and state == "complete":
        raise SetupError(
            "ReFrame ran no job: its message is above",
            where=work / "reframe.log",
            remedy="./pagewise list shows the environments that are built; correct the site's reframe.yaml",
        )


def _jobs(report: Path, scheduler: str) -> list[dict[str, Any]]:
    cases = json.loads(report.read_text(encoding="utf-8"))["runs"][-1]["testcases"]
    return [_job(case, scheduler) for case in cases]


def _job(case: Mapping[str, Any], scheduler: str) -> dict[str, Any]:
    number = case.get("jobid")
    word = last_word(scheduler, str(number)) if number else None
    return {
        "node": case.get("node") or campaign.ANY,
        "id": number,
        "result": case.get("result"),
        "phase": case.get("fail_phase"),
        "reason": case.get("fail_reason"),
        "ran_on": list(case.get("job_nodelist") or []),
        "scheduler_state": word.state if word else None,
        "scheduler_reason": word.reason if word else None,
        "restarts": word.restarts if word else None,
    }


