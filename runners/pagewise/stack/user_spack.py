"""The user's own Spack, for a pagewise without a checkout: its packages of pagewise, as a module tree."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pagewise.core.errors import RefusedError, SetupError
from pagewise.core.files import make_private, temporary_folder, user_folder
from pagewise.stack.commands import ended, output_of

#: Variables for the Python of pagewise, which must not reach Spack's.
_OF_PYTHON = ("PYTHONPATH", "PYTHONHOME")
_SECONDS = 600
#: Names are those of the user's own settings. All modules are in one folder, and load no dependencies, which
#: are not in it; programs find their libraries without modules.
_SETTINGS = (
    "modules:default:arch_folder:false",
    "modules:default:lmod:core_compilers:[gcc,llvm,acfl,cce,fj,aocc,oneapi,nvhpc]",
    "modules:default:lmod:hierarchy::[]",
    "modules:default:lmod:all:autoload:none",
)
_OURS = "namespace=pagewise"
_INSTALL = "spack install pagewise-micro hugepages=thp"


def find_spack(environ: Mapping[str, str] = os.environ) -> Path:
    """The program `spack`: of SPACK_ROOT, on PATH, or that of the module pagewise (PAGEWISE_SPACK).

    Raises SetupError.
    """
    named = shutil.which(Path(environ.get("SPACK_ROOT") or "/nonexistent", "bin", "spack"))
    on_path = shutil.which("spack", path=environ.get("PATH", ""))
    program = named or on_path or shutil.which(environ.get("PAGEWISE_SPACK") or "/nonexistent")
    if program is None:
        raise SetupError(
            "there is no checkout of pagewise here, and no Spack",
            where=f"{Path.cwd()}, SPACK_ROOT and PATH",
            remedy=". <spack>/share/spack/setup-env.sh; or run pagewise from a checkout; "
            "or name a module tree with --modules",
        )
    return Path(program)


def spack_version(environ: Mapping[str, str] = os.environ) -> str | None:
    """The version of the user's Spack, None without one."""
    try:
        program = find_spack(environ)
    except SetupError:
        return None
    return (output_of([str(program), "--version"], _environment(environ)) or "").partition(" ")[0] or None


def tree_on_path(environ: Mapping[str, str] = os.environ) -> Path | None:
    """The first folder of MODULEPATH that has a module of a configuration."""
    folders = [Path(name) for name in environ.get("MODULEPATH", "").split(":") if name]
    return next((folder for folder in folders if any(map(is_ours, folder.rglob("*.lua")))), None)


def is_ours(module: Path) -> bool:
    """Whether a module describes a configuration."""
    try:
        return b"PAGEWISE_PACKAGE" in module.read_bytes()
    except OSError:
        return False


def spack_tree(environ: Mapping[str, str] = os.environ) -> Path:
    """The modules of all configurations that the user's Spack has installed, written by Spack.

    The folder's name is the digest of its content: other installations get another folder, and a result that
    is resumed finds its modules unchanged. Raises SetupError, RefusedError.
    """
    spack = find_spack(environ)
    try:
        folder = _folder(environ)
        with tempfile.TemporaryDirectory(prefix="new-", dir=folder) as fresh:
            output = _refresh(spack, Path(fresh), environ)
            tree = Path(fresh, "Core")
            if not any(map(is_ours, tree.rglob("*.lua"))):
                raise SetupError(
                    "this Spack has installed no configuration of pagewise",
                    where=f"{spack}, environment {environ.get('SPACK_ENV') or 'none'}",
                    remedy=f"{_INSTALL}\n{output}".rstrip(),
                )
            final = folder / _digest(tree)
            if not final.is_dir():
                tree.rename(final)
    except OSError as fault:
        raise RefusedError(
            f"the modules of this Spack cannot be kept: {fault.strerror}",
            where=fault.filename,
            remedy="set XDG_CACHE_HOME to a folder of this user with free space",
        ) from fault
    return final


def _refresh(spack: Path, fresh: Path, environ: Mapping[str, str]) -> str:
    """Lets Spack write the modules below a folder; its messages. Raises SetupError."""
    settings = (f"modules:default:roots:lmod:{fresh}", *_SETTINGS)
    command = [str(spack), *(word for setting in settings for word in ("-c", setting))]
    command += ["module", "lmod", "refresh", "--upstream-modules", "--yes-to-all", _OURS]
    try:
        done = ended(command, _environment(environ), _SECONDS)
    except subprocess.TimeoutExpired as fault:
        raise SetupError(
            "Spack does not end", where=spack, remedy="try: spack find pagewise-micro"
        ) from fault
    # Spack only warns about a module that it cannot write: a line with its file.
    output = done.stdout + done.stderr
    unwritten = any(line.startswith(str(fresh)) for line in output.splitlines())
    if done.returncode != 0 or unwritten:
        raise SetupError(
            f"Spack cannot write the modules of its configurations:\n{output.strip()}",
            where=spack,
            remedy=f"correct what it reports; to see it again: spack module lmod refresh {_OURS}",
        )
    return output


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name not in _OF_PYTHON}


def _folder(environ: Mapping[str, str]) -> Path:
    """A private folder in the user's cache, else one for this process: modules are executed."""
    cache = user_folder("XDG_CACHE_HOME", ".cache", environ)
    if cache is not None and make_private(folder := cache / "pagewise" / "modules"):
        return folder
    return temporary_folder()


def _digest(tree: Path) -> str:
    """The digest of all modules' names and contents, except comments, in which Spack writes the time."""
    digest = hashlib.sha256()
    for file in sorted(tree.rglob("*.lua")):
        lines = [line for line in file.read_bytes().splitlines() if not line.startswith(b"--")]
        digest.update(b"\0".join((str(file.relative_to(tree)).encode(), *lines, b"\n")))
    return digest.hexdigest()[:16]
