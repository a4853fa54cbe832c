"""ReFrame's configuration where there is no file with it: of a site's own words, or of what is found here."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pagewise.core.errors import SelectionError, SetupError
from pagewise.stack.site.folder import Site

# ReFrame holds back jobs beyond so many; a sweep submits all its nodes.
_JOBS = 10_000


@dataclass(frozen=True)
class Jobs:
    """What is said of jobs beforehand: nothing where a scheduler is but found."""

    partition: str | None = None
    account: str | None = None
    launcher: str = "local"
    options: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


def of_site(site: Site, partition: str | None = None) -> dict[str, Any]:
    """A configuration from what a site says of its scheduler and modules; `partition` goes before its own.

    Raises SetupError where its scheduler is not here, or none of ReFrame's.
    """
    told, modules = site.data["scheduler"], site.data["modules"]
    load = [f"module load {' '.join(modules['load'])}"] if modules.get("load") else []
    jobs = Jobs(
        partition.rpartition(":")[2] if partition else told.get("partition"),
        told.get("account"),
        told.get("launcher", "local"),
        tuple(told.get("options", ())),
        (*([f". {modules['init']}"] if load and modules["init"] else []), *load),
    )
    describe = _SCHEDULERS.get(told["kind"])
    if describe is None:
        raise SetupError(
            f"ReFrame, which runs the jobs of pagewise cluster, has no scheduler {told['kind']}",
            where=site.folder / "site.yaml",
            remedy="submit pagewise compare by the scheduler's own command; or write reframe.yaml beside it",
        )
    return _system(site.name, site.data["summary"], describe(jobs))


def found_here() -> dict[str, Any]:
    """A configuration from the scheduler that is found on this machine."""
    found = (("sinfo", _slurm), ("pbsnodes", _pbs), ("flux", _flux))
    describe = next((describe for command, describe in found if shutil.which(command)), _local)
    return _system("here", f"What was found on {socket.gethostname()}", describe(Jobs()))


def _system(name: str, summary: str, partitions: Sequence[dict[str, Any]]) -> dict[str, Any]:
    system = {"name": name, "descr": summary, "hostnames": [".*"], "partitions": list(partitions)}
    return {"systems": [system]}


def _partition(name: str, scheduler: str, jobs: Jobs, *access: str) -> dict[str, Any]:
    told = {"name": name, "scheduler": scheduler, "launcher": jobs.launcher, "environs": ["builtin"]}
    further = {"access": [*access, *jobs.options], "prepare_cmds": list(jobs.commands)}
    return told | {"max_jobs": _JOBS} | {key: value for key, value in further.items() if value}


def _slurm(jobs: Jobs) -> list[dict[str, Any]]:
    """The partition that is named, else all of Slurm. Raises SelectionError for one that it has not."""
    scheduler = "slurm" if _works(["sacct", "-n", "-X", "-j", "1"]) else "squeue"
    account = [f"--account={jobs.account}"] if jobs.account else []
    names = list(dict.fromkeys(_lines(["sinfo", "-h", "-o", "%R"])))
    if jobs.partition and jobs.partition not in names:
        raise SelectionError(
            f"Slurm has no partition {jobs.partition!r}; it has: {', '.join(names)}",
            where="--partition, or site.yaml: scheduler.partition",
            remedy="name one of these",
        )
    names = [jobs.partition] if jobs.partition else names
    return [_partition(name, scheduler, jobs, f"--partition={name}", *account) for name in names]


def _pbs(jobs: Jobs) -> list[dict[str, Any]]:
    """The queue that is named, else the scheduler's own choice."""
    access = [f"-q {jobs.partition}"] if jobs.partition else []
    account = [f"-A {jobs.account}"] if jobs.account else []
    return [_partition(jobs.partition or "default", "pbs", jobs, *access, *account)]


def _flux(jobs: Jobs) -> list[dict[str, Any]]:
    return [_partition("default", "flux", jobs)]


def _local(jobs: Jobs) -> list[dict[str, Any]]:
    return [_partition("local", "local", jobs)]


#: The schedulers that a site may name, as far as ReFrame has them.
_SCHEDULERS = {"slurm": _slurm, "pbs": _pbs, "none": _local}


def _works(command: list[str]) -> bool:
    return shutil.which(command[0]) is not None and _run(command).returncode == 0


def _lines(command: list[str]) -> list[str]:
    if shutil.which(command[0]) is None:
        raise SetupError(f"{command[0]} is not here", remedy="call pagewise where jobs are submitted")
    answer = _run(command)
    if answer.returncode != 0:
        raise SetupError(
            f"{command[0]} failed: {answer.stderr.strip()}",
            where=" ".join(command),
            remedy="call pagewise where jobs are submitted, or name a site with another scheduler: --site",
        )
    return answer.stdout.split()


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)
