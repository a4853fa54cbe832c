"""The cluster's configuration for ReFrame: a site's own file, or what is found here."""

from __future__ import annotations

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

from pagewise.errors import FormatError, SelectionError, SetupError
from pagewise.paths import project_root

FILE = "reframe.yaml"
SETTINGS = Path(__file__).parents[2] / "reframe" / "settings.py"
# ReFrame holds back jobs beyond so many; a sweep submits all its nodes.
_JOBS = 10_000
_LOCAL = ("local",)


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


def site_file(root: Path, site: str | None, environ: Mapping[str, str] = os.environ) -> Path | None:
    """ReFrame's configuration of a site: the one named, else that of PAGEWISE_SITE; None without one.

    A site is a folder of envs/sites, or a path. Raises SelectionError when the named one has no such file.
    """
    named = site or environ.get("PAGEWISE_SITE")
    if not named:
        return None
    folder = Path(named) if "/" in named else root / "envs" / "sites" / named
    file = folder if folder.is_file() else folder / FILE
    if file.is_file():
        return file
    if site is None:
        return None
    raise SelectionError(
        f"the site {site} has no configuration for ReFrame",
        where=file,
        remedy=f"pagewise cluster configure {site}",
    )


def found_here() -> dict[str, Any]:
    """A configuration for ReFrame from the scheduler that is found on this machine, to begin with."""
    if shutil.which("sinfo"):
        scheduler = "slurm" if _works(["sacct", "-n", "-X", "-j", "1"]) else "squeue"
        told = _lines(["sinfo", "-h", "-o", "%R"])
        partitions = [_partition(name, scheduler, [f"--partition={name}"]) for name in dict.fromkeys(told)]
    elif shutil.which("pbsnodes"):
        partitions = [_partition("default", "pbs", [])]
    elif shutil.which("flux"):
        partitions = [_partition("default", "flux", [])]
    else:
        partitions = [_partition("local", "local", [])]
    return {
        "systems": [
            {
                "name": "here",
                "descr": f"What was found on {socket.gethostname()}",
                "hostnames": [".*"],
                "partitions": partitions,
            }
        ]
    }


def write_site(folder: Path, found: Mapping[str, Any], name: str) -> Path:
    """Writes a configuration to begin with. Raises SelectionError when there is one."""
    file = folder / FILE
    if file.exists():
        raise SelectionError("this site has one already", where=file, remedy="edit it, or name another site")
    folder.mkdir(parents=True, exist_ok=True)
    named = {"systems": [{**found["systems"][0], "name": name}]}
    head = (
        "# This site for ReFrame (https://reframe-hpc.readthedocs.io, Configuration Reference).\n"
        "# access: options that every job needs (account, reservation); time_limit, env_vars and\n"
        "# prepare_cmds may stand beside it.\n"
    )
    file.write_text(head + yaml.safe_dump(named, sort_keys=False), encoding="utf-8")
    return file


@contextmanager
def located(site: str | None) -> Iterator[list[Path]]:
    """ReFrame's configuration files, while the block lasts: ours, and the site's or what is found here."""
    with tempfile.TemporaryDirectory(prefix="pagewise-site-") as folder:
        # Without it, reading the settings would make a folder where the user is.
        os.environ.setdefault("PAGEWISE_CLUSTER_WORK", folder)
        file = site_file(project_root(), site)
        yield [SETTINGS, file or write_site(Path(folder), found_here(), "here")]


def partitions_of(files: Sequence[Path]) -> list[Partition]:
    """The partitions of the system that ReFrame takes this machine for. Raises FormatError, SetupError."""
    config = _reframe_config()
    try:
        site = config.load_config(*map(str, files))
        site.validate()
        site.select_subconfig(ignore_resolve_errors=True)
        system, partitions = site.get("systems/0/name"), site.get("systems/0/partitions")
    except Exception as fault:  # ReFrame's own and those of the file's Python or YAML
        raise FormatError(
            f"ReFrame cannot read its configuration: {fault}", where=", ".join(map(str, files[1:]))
        ) from fault
    return [
        Partition(system, one["name"], one["scheduler"], tuple(one.get("access", ()))) for one in partitions
    ]


def choose(partitions: Sequence[Partition], named: str | None) -> Partition:
    """The partition of this name, or the only one beside the login node. Raises SelectionError."""
    known = ", ".join(one.name for one in partitions)
    if named is not None:
        for one in partitions:
            if named in (one.name, one.fullname):
                return one
        raise SelectionError(
            f"there is no partition {named!r}; there are: {known}",
            where="--partition",
            remedy="name one of these",
        )
    remote = [one for one in partitions if one.scheduler not in _LOCAL] or list(partitions)
    if len(remote) == 1:
        return remote[0]
    raise SelectionError(
        f"one partition must be chosen; there are: {known}", where="--partition", remedy="name one of these"
    )


def _reframe_config() -> Any:
    try:
        from reframe.core import config
    except ImportError as fault:
        raise SetupError("ReFrame is not here", remedy="make setup (or: pip install reframe-hpc)") from fault
    return config


def _partition(name: str, scheduler: str, access: list[str]) -> dict[str, Any]:
    told = {"name": name, "scheduler": scheduler, "launcher": "local", "environs": ["builtin"]}
    return told | {"max_jobs": _JOBS} | ({"access": access} if access else {})


def _works(command: list[str]) -> bool:
    return shutil.which(command[0]) is not None and _run(command).returncode == 0


def _lines(command: list[str]) -> list[str]:
    answer = _run(command)
    if answer.returncode != 0:
        raise SetupError(f"{command[0]} failed: {answer.stderr.strip()}", where=" ".join(command))
    return answer.stdout.split()


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)
