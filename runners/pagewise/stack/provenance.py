"""The sources of the compared programs, as far as they are known."""

from __future__ import annotations

import platform
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

import pagewise
from pagewise.core.errors import SetupError
from pagewise.core.manifest import ProgramDigest, Provenance
from pagewise.core.plan import Subject
from pagewise.stack import lmod
from pagewise.stack.catalog import Entry
from pagewise.stack.commands import output_of
from pagewise.stack.files import sha256
from pagewise.stack.paths import spack_version
from pagewise.stack.setup import SetupFacts

# Versions of hyperfine with -N and --output, and a known layout of the export.
_OLDEST, _TOO_NEW = (1, 15), (2, 0)


def provenance(root: Path | None, environment: str | None, facts: SetupFacts | None) -> Provenance:
    """Spack and its recipes as the setup verified them, the project's commit, the environment's lockfile.

    Without a checkout: the version of the user's Spack.
    """
    if root is None:
        return Provenance(spack_version(), None, None, None, None, None, None)
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
        lockfile_sha256=None if lockfile is None else sha256(lockfile),
    )


def programs(entries: Mapping[str, Entry], subjects: Iterable[Subject]) -> tuple[ProgramDigest, ...]:
    """The digests of the kernels' programs that a comparison runs. entries: by module."""
    used = sorted(
        {
            (cell.measured.module, subject.benchmark.executable)
            for subject in subjects
            for cell in subject.cells
        }
    )
    files = ((module, name, entries[module].program(name)) for module, name in used)
    return tuple(
        ProgramDigest(module, name, None if file is None else sha256(Path(file)))
        for module, name, file in files
    )


def software(hyperfine: str, init: Path | None = None) -> dict[str, str | None]:
    """The versions of the software that measures."""
    versions = {
        "pagewise": pagewise.__version__,
        "python": platform.python_version(),
        "hyperfine": hyperfine_version(hyperfine),
    }
    return versions if init is None else {**versions, "lmod": lmod.version(init)}


def hyperfine_version(hyperfine: str) -> str | None:
    """hyperfine's version, None if it reports none."""
    match = re.fullmatch(r"hyperfine (\S+)", output_of([hyperfine, "--version"], check=False) or "")
    return match[1] if match else None


def find_hyperfine() -> str:
    """The path of hyperfine. Raises SetupError if it is missing, or of a version that is not supported."""
    path = shutil.which("hyperfine")
    if path is None:
        raise SetupError("hyperfine is missing, which times runs", remedy="apt-get install hyperfine")
    reported = hyperfine_version(path) or "none"
    version = re.fullmatch(r"(\d{1,4})\.(\d{1,4})(\.\d{1,4})?", reported)
    if version is None or not _OLDEST <= (int(version[1]), int(version[2])) < _TOO_NEW:
        known = " and before ".join(".".join(map(str, limit)) for limit in (_OLDEST, _TOO_NEW))
        raise SetupError(
            f"hyperfine has version {reported[:40]}; runs are timed by versions from {known}",
            where=path,
            remedy="apt-get install hyperfine (Debian 12 or later), or put another first on PATH",
        )
    return path


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
    """The output of git, None without git or outside a repository."""
    # A centre's checkout belongs to another user. Users who run its programs trust it.
    return output_of(["git", "-c", f"safe.directory={root}", "-C", str(root), *arguments])
