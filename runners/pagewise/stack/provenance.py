"""From which sources the compared programs come, as far as it can be told."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pagewise
from pagewise.core.manifest import ProgramDigest, Provenance
from pagewise.core.plan import Subject
from pagewise.stack import lmod
from pagewise.stack.catalog import Entry
from pagewise.stack.setup import SetupFacts

_SECONDS_TO_TELL = 20


def provenance(root: Path, environment: str | None, facts: SetupFacts | None) -> Provenance:
    """Spack and its recipes as the set-up verified them, the project's commit, the environment's lockfile."""
    spack = (facts or SetupFacts()).spack
    lockfile = _lockfile(root, environment)
    status = _git(root, "status", "--porcelain")
    return Provenance(
        spack_version=spack.version,
        spack_tree=spack.tree,
        packages_commit=spack.packages_commit,
        project_commit=_git(root, "rev-parse", "HEAD"),
        project_dirty=None if status is None else status != "",
        lockfile=None if lockfile is None else str(lockfile.relative_to(root)),
        lockfile_sha256=None if lockfile is None else hashlib.sha256(lockfile.read_bytes()).hexdigest(),
    )


def programs(entries: Iterable[Entry], subjects: Iterable[Subject]) -> list[ProgramDigest]:
    """The digests of the programs that a comparison runs, except the user's own."""
    by_module = {entry.configuration.module: entry for entry in entries}
    named = sorted({(cell.measured.module, one.kernel.executable) for one in subjects for cell in one.cells})
    return [
        ProgramDigest(module, name, digest(by_module[module].program(name)))
        for module, name in named
        if by_module[module].configuration.builder != "own"
    ]


@cache
def digest(program: str | None) -> str | None:
    """The sha256 of a file, None where there is none to be read."""
    try:
        return None if program is None else hashlib.sha256(Path(program).read_bytes()).hexdigest()
    except OSError:
        return None


def software(hyperfine: str, init: Path | None = None) -> dict[str, str | None]:
    """The versions of what measured."""
    versions = {
        "pagewise": pagewise.__version__,
        "python": platform.python_version(),
        "hyperfine": hyperfine_version(hyperfine),
    }
    return versions if init is None else {**versions, "lmod": lmod.version(init)}


def hyperfine_version(hyperfine: str) -> str | None:
    """hyperfine's version, or None when it reports none."""
    try:
        told = subprocess.run(
            [hyperfine, "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS_TO_TELL,
            check=False,
        ).stdout.split()
    except (OSError, subprocess.TimeoutExpired):
        return None
    return told[1] if len(told) == 2 and told[0] == "hyperfine" else None


def _lockfile(root: Path, environment: str | None) -> Path | None:
    if environment is None:
        return None
    places = [
        root / ".pagewise" / "envs" / environment / "spack.lock",
        root / "envs" / environment / "spack.lock",
    ]
    if environment == "default":
        places.append(root / "spack.lock")
    return next((file for file in places if file.is_file()), None)


def _git(root: Path, *arguments: str) -> str | None:
    """What git says, None without git or outside a repository."""
    try:
        answer = subprocess.run(
            # A centre's checkout belongs to another user. Whoever runs its programs trusts it.
            ["git", "-c", f"safe.directory={root}", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None
