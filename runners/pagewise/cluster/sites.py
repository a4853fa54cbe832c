"""ReFrame's configuration of a cluster: a site's reframe.yaml, else its site.yaml, else what is detected."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from pagewise.core.environment import C_LOCALE
from pagewise.core.errors import FormatError, SelectionError, SetupError
from pagewise.core.reading import parse_yaml, read_file
from pagewise.core.text import command_text
from pagewise.stack.paths import project_root
from pagewise.stack.site.folder import Site, read_site

FILE, SITE_FILE = "reframe.yaml", "site.yaml"
SETTINGS = Path(__file__).parent / "reframe_tests" / "settings.py"
_READS_YAML = (4, 8)
# ReFrame limits the number of jobs; a sweep submits all its nodes at once.
_JOBS = 10_000
_HEAD = """\
# This site for ReFrame (https://reframe-hpc.readthedocs.io, Configuration Reference).
# access: options that every job needs (account, reservation); time_limit, env_vars and
# prepare_cmds may be added.
"""


@dataclass(frozen=True)
class Partition:
    """A partition as ReFrame is configured for it."""

    system: str
    name: str
    scheduler: str
    access: tuple[str, ...]

    @property
    def fullname(self) -> str:
        """As ReFrame names it: `system:partition`."""
        return f"{self.system}:{self.name}"


@dataclass(frozen=True)
class Jobs:
    """A site's settings of jobs; none of a detected scheduler."""

    partition: str | None = None
    account: str | None = None
    launcher: str = "local"
    options: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()

    def entry(self, name: str, scheduler: str, *access: str) -> dict[str, Any]:
        """A partition in ReFrame's configuration."""
        entry = {
            "name": name,
            "scheduler": scheduler,
            "launcher": self.launcher,
            "environs": ["builtin"],
            "max_jobs": _JOBS,
            "access": [*access, *self.options],
            "prepare_cmds": list(self.commands),
        }
        return {key: value for key, value in entry.items() if value != []}


def site_folder(root: Path, site: str | None, environ: Mapping[str, str] = os.environ) -> Path | None:
    """The folder of the site named, else of PAGEWISE_SITE: one of envs/sites, or a path. None without one."""
    name = site or environ.get("PAGEWISE_SITE")
    if not name:
        return None
    return Path(name) if "/" in name else root / "envs" / "sites" / name


def system_of(folder: Path | None, partition: str | None = None) -> dict[str, Any]:
    """ReFrame's configuration from a site's site.yaml, else from the scheduler of this machine.

    `partition` overrides the site's. Raises as read_site and of_site.
    """
    if folder is not None and (folder / SITE_FILE).is_file():
        return of_site(read_site(str(folder)), partition)
    detectors = (("sinfo", _slurm), ("pbsnodes", _pbs), ("flux", _flux))
    describe = next((describe for command, describe in detectors if shutil.which(command)), _local)
    return _system("here", f"What was found on {socket.gethostname()}", describe(Jobs()))


def of_site(site: Site, partition: str | None = None) -> dict[str, Any]:
    """A configuration from a site's scheduler and modules; `partition` overrides its own.

    Raises SetupError if its scheduler is missing here or not supported by ReFrame.
    """
    scheduler, modules = site.data["scheduler"], site.data["modules"]
    load = [command_text(("module", "load", *modules["load"]))] if modules.get("load") else []
    jobs = Jobs(
        partition.rpartition(":")[2] if partition else scheduler.get("partition"),
        scheduler.get("account"),
        scheduler.get("launcher", "local"),
        tuple(scheduler.get("options", ())),
        (*([f". {modules['init']}"] if load and modules["init"] else []), *load),
    )
    # The schedulers of site.yaml that ReFrame supports.
    describe = {"slurm": _slurm, "pbs": _pbs, "none": _local}.get(scheduler["kind"])
    if describe is None:
        raise SetupError(
            f"ReFrame, which runs the jobs of pagewise cluster, has no scheduler {scheduler['kind']}",
            where=site.folder / SITE_FILE,
            remedy="submit pagewise compare by the scheduler's own command; or write reframe.yaml beside it",
        )
    return _system(site.name, site.data["summary"], describe(jobs))


def write_site(folder: Path, system: Mapping[str, Any], name: str | None = None) -> Path:
    """Writes a configuration to start with. Raises SelectionError if there is one."""
    file = folder / FILE
    if file.exists():
        raise SelectionError("this site already has one", where=file, remedy="edit it, or name another site")
    folder.mkdir(parents=True, exist_ok=True)
    systems = {"systems": [{**entry, "name": name or entry["name"]} for entry in system["systems"]]}
    file.write_text(_HEAD + yaml.safe_dump(systems, sort_keys=False), encoding="utf-8")
    return file


@contextmanager
def located(site: str | None, partition: str | None = None) -> Iterator[list[Path]]:
    """ReFrame's configuration files within the block: those of pagewise and of the site.

    The site's is its reframe.yaml, else made by `system_of`. Raises SelectionError for a named site with
    neither reframe.yaml nor site.yaml, and as system_of.
    """
    with tempfile.TemporaryDirectory(prefix="pagewise-site-") as aside:
        # Without it, reading the settings would create a folder in the working folder.
        os.environ.setdefault("PAGEWISE_CLUSTER_WORK", aside)
        folder = site_folder(project_root(), site)
        file = folder if folder is None or folder.is_file() else folder / FILE
        if file is None or not file.is_file():
            if site and not (file and file.with_name(SITE_FILE).is_file()):
                raise SelectionError(
                    f"the site {site} has neither {SITE_FILE} nor {FILE}",
                    where=folder,
                    remedy=f"pagewise site new {site}; or pagewise cluster configure {site}",
                )
            file = write_site(Path(aside), system_of(folder, partition))
        yield [SETTINGS, readable(file, Path(aside))]


def readable(file: Path, aside: Path, version: str | None = None) -> Path:
    """A configuration in a format that ReFrame reads: before 4.8 not YAML.

    aside: the folder of a copy. version: ReFrame's, if not the one that is installed.
    """
    installed = version or reframe_version()
    if file.suffix != ".yaml" or tuple(map(int, installed.split(".")[:2])) >= _READS_YAML:
        return file
    copy = aside / "reframe.json"
    copy.write_text(json.dumps(parse_yaml(read_file(file))), encoding="utf-8")
    return copy


def reframe_version() -> str:
    """ReFrame's version. Its own variable, because Spack installs it without the metadata of pip.

    Raises SetupError.
    """
    try:
        from reframe import VERSION
    except ImportError as fault:
        raise SetupError(
            "ReFrame is not installed", remedy="make setup (or: pip install reframe-hpc)"
        ) from fault
    return str(VERSION)


def partitions_of(files: Sequence[Path]) -> list[Partition]:
    """The partitions of the system that ReFrame selects for this machine. Raises FormatError, SetupError."""
    try:
        from reframe.core import config
    except ImportError as fault:
        raise SetupError(
            "ReFrame is not installed", remedy="make setup (or: pip install reframe-hpc)"
        ) from fault
    try:
        site = config.load_config(*map(str, files))
        site.validate()
        site.select_subconfig(ignore_resolve_errors=True)
        system, partitions = site.get("systems/0/name"), site.get("systems/0/partitions")
    except Exception as fault:  # of ReFrame, or of the file's Python or YAML
        raise FormatError(
            f"ReFrame cannot read its configuration: {fault}", where=", ".join(map(str, files[1:]))
        ) from fault
    return [
        Partition(system, entry["name"], entry["scheduler"], tuple(entry.get("access", ())))
        for entry in partitions
    ]


def choose(partitions: Sequence[Partition], name: str | None) -> Partition:
    """The partition of this name, or the only one except the login node. Raises SelectionError."""
    if name is not None:
        candidates = [partition for partition in partitions if name in (partition.name, partition.fullname)]
        problem = f"there is no partition {name!r} among these"
    else:
        remote = [partition for partition in partitions if partition.scheduler != "local"]
        candidates = remote or list(partitions)
        problem = "there are several partitions"
    if candidates and (name is not None or len(candidates) == 1):
        return candidates[0]
    known = ", ".join(partition.name for partition in partitions)
    raise SelectionError(f"{problem}: {known}", where="--partition", remedy="name one of these")


def _system(name: str, summary: str, partitions: Sequence[dict[str, Any]]) -> dict[str, Any]:
    system = {"name": name, "descr": summary, "hostnames": [".*"], "partitions": list(partitions)}
    return {"systems": [system]}


def _slurm(jobs: Jobs) -> list[dict[str, Any]]:
    """The partition that is named, else all of Slurm. Raises SelectionError for an unknown one."""
    has_accounting = shutil.which("sacct") and _run("sacct", "-n", "-X", "-j", "1").returncode == 0
    account = [f"--account={jobs.account}"] if jobs.account else []
    if shutil.which("sinfo") is None:
        raise SetupError("sinfo is not installed", remedy="call pagewise where jobs are submitted")
    answer = _run("sinfo", "-h", "-o", "%R")
    if answer.returncode != 0:
        raise SetupError(
            f"sinfo failed: {answer.stderr.strip()}",
            where="sinfo -h -o %R",
            remedy="call pagewise where jobs are submitted, or name a site with another scheduler: --site",
        )
    names = list(dict.fromkeys(answer.stdout.split()))
    if jobs.partition and jobs.partition not in names:
        raise SelectionError(
            f"Slurm has no partition {jobs.partition!r}; it has: {', '.join(names)}",
            where="--partition, or site.yaml: scheduler.partition",
            remedy="name one of these",
        )
    return [
        jobs.entry(name, "slurm" if has_accounting else "squeue", f"--partition={name}", *account)
        for name in ([jobs.partition] if jobs.partition else names)
    ]


def _pbs(jobs: Jobs) -> list[dict[str, Any]]:
    """The queue that is named, else the scheduler's own choice."""
    access = [f"-q {jobs.partition}"] if jobs.partition else []
    account = [f"-A {jobs.account}"] if jobs.account else []
    return [jobs.entry(jobs.partition or "default", "pbs", *access, *account)]


def _flux(jobs: Jobs) -> list[dict[str, Any]]:
    return [jobs.entry("default", "flux")]


def _local(jobs: Jobs) -> list[dict[str, Any]]:
    return [jobs.entry("local", "local")]


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env={**os.environ, **C_LOCALE}, capture_output=True, text=True, check=False
    )
