"""The checkout if there is one, and the module tree: of an environment, or of the user's own Spack."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from pagewise.core.errors import SelectionError, SetupError
from pagewise.core.files import is_private
from pagewise.core.text import choose_of
from pagewise.stack.user_spack import spack_tree, tree_on_path

DEFAULT_ENVIRONMENT = "default"


def checkout(environ: Mapping[str, str] = os.environ) -> Path | None:
    """The checkout: PAGEWISE_ROOT (the wrapper sets it), else the nearest parent folder with `.pagewise`.

    None without one, such as for a pagewise that Spack or pip installed, or with an empty PAGEWISE_ROOT. A
    folder that is not named counts only if no other user can write to it: its programs and modules are run.
    """
    if (named := environ.get("PAGEWISE_ROOT")) is not None:
        return Path(named) if named else None
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if is_private(folder / ".pagewise")), None)


def project_root(environ: Mapping[str, str] = os.environ) -> Path:
    """The checkout, else the working folder: where files of a checkout are looked for."""
    return checkout(environ) or Path.cwd()


def needed_checkout(what: str, environ: Mapping[str, str] = os.environ) -> Path:
    """The checkout. Raises SetupError: `what` needs one."""
    root = checkout(environ)
    if root is None:
        raise SetupError(
            f"{what} needs a checkout of pagewise",
            where=Path.cwd(),
            remedy="git clone <address of pagewise>; make setup; and run it there",
        )
    return root


def module_tree(environment: str, named: Path | None, environ: Mapping[str, str] = os.environ) -> Path:
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
    elif from_environment := environ.get("PAGEWISE_MODULES"):
        tree, remedy = Path(from_environment), "correct or unset PAGEWISE_MODULES"
    elif (root := checkout(environ)) is None:
        return _tree_without_checkout(environment, environ)
    else:
        tree = root / ".pagewise" / "modules" / environment
        built = built_environments(environ)
        remedy = f"build the environment first: make stack ENV={environment}"
        if built:
            remedy = f"{choose_of(environment, built)}; to build another: make stack ENV={environment}"
    if not tree.is_dir():
        raise SetupError("this module tree is missing", where=tree, remedy=remedy)
    return tree


def _tree_without_checkout(environment: str, environ: Mapping[str, str]) -> Path:
    if environment != DEFAULT_ENVIRONMENT:
        needed_checkout(f"the environment {environment}", environ)
    return tree_on_path(environ) or spack_tree(environ)


def built_environments(environ: Mapping[str, str] = os.environ) -> list[str]:
    """The environments of this checkout that have modules."""
    folder = project_root(environ) / ".pagewise" / "modules"
    return sorted(tree.name for tree in folder.glob("[a-z]*") if tree.is_dir() and tree.suffix != ".new")
