"""The places of the checkout, its state folder, and the module tree of an environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from pagewise.core.errors import SelectionError, SetupError
from pagewise.core.private import is_private
from pagewise.core.suggestions import choose_of


def project_root(environ: Mapping[str, str] = os.environ) -> Path:
    """The checkout: PAGEWISE_ROOT (the wrapper sets it), else the nearest parent folder with `.pagewise`.

    A folder that is not named counts only if no other user can write to it: its programs and modules are run.
    """
    if named := environ.get("PAGEWISE_ROOT"):
        return Path(named)
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if is_private(folder / ".pagewise")), here)


def module_tree(environment: str, named: Path | None, environ: Mapping[str, str] = os.environ) -> Path:
    """The module tree: the named one, PAGEWISE_MODULES, or that of an environment of this checkout.

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
    else:
        tree = project_root(environ) / ".pagewise" / "modules" / environment
        built = built_environments(environ)
        remedy = f"build the environment first: make stack ENV={environment}"
        if built:
            remedy = f"{choose_of(environment, built)}; to build another: make stack ENV={environment}"
    if not tree.is_dir():
        raise SetupError("this module tree is missing", where=tree, remedy=remedy)
    return tree


def built_environments(environ: Mapping[str, str] = os.environ) -> list[str]:
    """The environments of this checkout that have modules."""
    folder = project_root(environ) / ".pagewise" / "modules"
    return sorted(tree.name for tree in folder.glob("[a-z]*") if tree.is_dir() and tree.suffix != ".new")
