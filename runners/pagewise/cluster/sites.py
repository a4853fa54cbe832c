"""The cluster's configuration for ReFrame: a site's own file, its site.yaml, or what is found here."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from pagewise.cluster.systems import found_here, of_site
from pagewise.core.errors import FormatError, SelectionError, SetupError
from pagewise.stack.paths import project_root
from pagewise.stack.site.folder import read_site

FILE = "reframe.yaml"
SETTINGS = Path(__file__).parent / "reframe_tests" / "settings.py"
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


def site_folder(root: Path, site: str | None, environ: Mapping[str, str] = os.environ) -> Path | None:
    """The folder of the site named, else of PAGEWISE_SITE: one of envs/sites, or a path. None without one."""
    named = site or environ.get("PAGEWISE_SITE")
    if not named:
        return None
    return Path(named) if "/" in named else root / "envs" / "sites" / named


def system_of(folder: Path | None, partition: str | None = None) -> dict[str, Any]:
    """ReFrame's configuration from what a site's folder says, or without one from what is found here.

    `partition` goes before the site's. Raises as read_site and of_site.
    """
    if folder is None or not (folder / "site.yaml").is_file():
        return found_here()
    return of_site(read_site(str(folder)), partition)


def write_site(folder: Path, system: Mapping[str, Any], name: str | None = None) -> Path:
    """Writes a configuration to begin with. Raises SelectionError when there is one."""
    file = folder / FILE
    if file.exists():
        raise SelectionError("this site has one already", where=file, remedy="edit it, or name another site")
    folder.mkdir(parents=True, exist_ok=True)
    named = {"systems": [{**one, "name": name or one["name"]} for one in system["systems"]]}
    head = (
        "# This site for ReFrame (https://reframe-hpc.readthedocs.io, Configuration Reference).\n"
        "# access: options that every job needs (account, reservation); time_limit, env_vars and\n"
        "# prepare_cmds may stand beside it.\n"
    )
    file.write_text(head + yaml.safe_dump(named, sort_keys=False), encoding="utf-8")
    return file


@contextmanager
def located(site: str | None, partition: str | None = None) -> Iterator[list[Path]]:
    """ReFrame's configuration files, while the block lasts: ours, and the site's.

    That is its reframe.yaml, else what its site.yaml says, else what is found here. Raises SelectionError for
    a named site with neither file, and as system_of.
    """
    with tempfile.TemporaryDirectory(prefix="pagewise-site-") as aside:
        # Without it, reading the settings would make a folder where the user is.
        os.environ.setdefault("PAGEWISE_CLUSTER_WORK", aside)
        folder = site_folder(project_root(), site)
        file = folder if folder is None or folder.is_file() else folder / FILE
        if file is None or not file.is_file():
            if site and not (file and file.with_name("site.yaml").is_file()):
                raise SelectionError(
                    f"the site {site} has neither site.yaml nor {FILE}",
                    where=folder,
                    remedy=f"pagewise site new {site}; or pagewise cluster configure {site}",
                )
            file = write_site(Path(aside), system_of(folder, partition))
        yield [SETTINGS, file]


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
