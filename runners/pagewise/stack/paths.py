"""The checkout if there is one, and the module tree: of an environment, or of the user's own Spack.

Without a checkout, the user's Spack has the configurations, and writes a module tree of them.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from pagewise.core.errors import RefusedError, SelectionError, SetupError
from pagewise.core.files import is_private, make_private, temporary_folder, user_folder
from pagewise.core.text import choose_of
from pagewise.stack.commands import output_of, run_to_end

DEFAULT_ENVIRONMENT = "default"
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
_PAGEWISE = "namespace=pagewise"
_INSTALL = "spack install pagewise-micro hugepages=thp"


def checkout() -> Path | None:
    """The checkout: PAGEWISE_ROOT (the wrapper sets it), else the nearest parent folder with `.pagewise`.

    None without one, such as for a pagewise that Spack or pip installed, or with an empty PAGEWISE_ROOT. A
    folder that is not named counts only if no other user can write to it: its programs and modules are run.
    """
    if (named := os.environ.get("PAGEWISE_ROOT")) is not None:
        return Path(named) if named else None
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if is_private(folder / ".pagewise")), None)


def project_root() -> Path:
    """The checkout, else the working folder: where files of a checkout are looked for."""
    return checkout() or Path.cwd()


def needed_checkout(message: str) -> Path:
    """The checkout. Raises SetupError: what the message names needs one."""
    root = checkout()
    if root is None:
        raise SetupError(
            f"{message} needs a checkout of pagewise",
            where=Path.cwd(),
            remedy="git clone <address of pagewise>; make setup; and run it there",
        )
    return root


def module_tree(environment: str, named: Path | None) -> Path:
    """The module tree: the named one, PAGEWISE_MODULES, or that of an environment of the checkout.

    Without a checkout: the first one on MODULEPATH with configurations, else the modules of the user's Spack.
    Raises SetupError when it is missing, SelectionError for an invalid name of an environment.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", environment):
        raise SelectionError(
            f"{environment!r} is not the name of an environment",
            where="--env",
            remedy="`pagewise doctor` lists the built ones; name another module tree with --modules",
        )
    if named is not None:
        tree, remedy = named, "name a folder that contains pagewise-micro/... with --modules"
    elif from_environment := os.environ.get("PAGEWISE_MODULES"):
        tree, remedy = Path(from_environment), "correct or unset PAGEWISE_MODULES"
    elif (root := checkout()) is None:
        if environment != DEFAULT_ENVIRONMENT:
            needed_checkout(f"the environment {environment}")
        return tree_on_path() or spack_tree()
    else:
        tree = root / ".pagewise" / "modules" / environment
        built = built_environments()
        remedy = f"build the environment first: make stack ENV={environment}"
        if built:
            remedy = f"{choose_of(environment, built)}; to build another: make stack ENV={environment}"
    if not tree.is_dir():
        raise SetupError("this module tree is missing", where=tree, remedy=remedy)
    return tree


def built_environments() -> list[str]:
    """The environments of this checkout that have modules."""
    folder = project_root() / ".pagewise" / "modules"
    return sorted(tree.name for tree in folder.glob("[a-z]*") if tree.is_dir() and tree.suffix != ".new")


def find_spack() -> Path:
    """The program `spack`: of SPACK_ROOT, on PATH, or that of the module pagewise (PAGEWISE_SPACK).

    Raises SetupError.
    """
    named = shutil.which(Path(os.environ.get("SPACK_ROOT") or "/nonexistent", "bin", "spack"))
    on_path = shutil.which("spack", path=os.environ.get("PATH", ""))
    program = named or on_path or shutil.which(os.environ.get("PAGEWISE_SPACK") or "/nonexistent")
    if program is None:
        raise SetupError(
            "there is no checkout of pagewise here, and no Spack",
            where=f"{Path.cwd()}, SPACK_ROOT and PATH",
            remedy=". <spack>/share/spack/setup-env.sh; or run pagewise from a checkout; "
            "or name a module tree with --modules",
        )
    return Path(program)


def spack_version() -> str | None:
    """The version of the user's Spack, None without one."""
    try:
        program = find_spack()
    except SetupError:
        return None
    return (output_of([str(program), "--version"], _environment()) or "").partition(" ")[0] or None


def tree_on_path() -> Path | None:
    """The first folder of MODULEPATH that has a module of a configuration."""
    folders = [Path(name) for name in os.environ.get("MODULEPATH", "").split(":") if name]
    return next((folder for folder in folders if any(map(is_pagewise, folder.rglob("*.lua")))), None)


def is_pagewise(module: Path) -> bool:
    """Whether a module describes a configuration."""
    try:
        return b"PAGEWISE_PACKAGE" in module.read_bytes()
    except OSError:
        return False


def spack_tree() -> Path:
    """The modules of all configurations that the user's Spack has installed, written by Spack.

    The folder's name is the digest of its content: other installations get another folder, and a result that
    is resumed finds its modules unchanged. Raises SetupError, RefusedError.
    """
    spack = find_spack()
    try:
        folder = _folder()
        with tempfile.TemporaryDirectory(prefix="new-", dir=folder) as fresh:
            output = _refresh(spack, Path(fresh))
            tree = Path(fresh, "Core")
            if not any(map(is_pagewise, tree.rglob("*.lua"))):
                raise SetupError(
                    "this Spack has installed no configuration of pagewise",
                    where=f"{spack}, environment {os.environ.get('SPACK_ENV') or 'none'}",
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


def _refresh(spack: Path, fresh: Path) -> str:
    """Lets Spack write the modules below a folder; its messages. Raises SetupError."""
    settings = (f"modules:default:roots:lmod:{fresh}", *_SETTINGS)
    command = [str(spack), *(word for setting in settings for word in ("-c", setting))]
    command += ["module", "lmod", "refresh", "--upstream-modules", "--yes-to-all", _PAGEWISE]
    try:
        done = run_to_end(command, _environment(), _SECONDS)
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
            remedy=f"correct what it reports; to see it again: spack module lmod refresh {_PAGEWISE}",
        )
    return output


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _OF_PYTHON}


def _folder() -> Path:
    """A private folder in the user's cache, else one for this process: modules are executed."""
    cache = user_folder("XDG_CACHE_HOME", ".cache")
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
