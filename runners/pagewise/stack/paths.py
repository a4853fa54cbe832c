"""Where things are: the checkout, its state folder, the module tree of an environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from pagewise.core.errors import SelectionError, SetupError
from pagewise.core.private import is_private
from pagewise.core.suggestions import choose_of


def project_root(environ: Mapping[str, str] = os.environ) -> Path:
    """The checkout: PAGEWISE_ROOT (the wrapper sets it), else the nearest folder up with `.pagewise`.

    One that nobody named counts only if no other user can write to it: programs and modules in it are run.
    """
    if named := environ.get("PAGEWISE_ROOT"):
        return Path(named)
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if is_private(folder / ".pagewise")), here)


def module_tree(environment: str, named: Path | None, environ: Mapping[str, str] = os.environ) -> Path:
    """The module tree: the one named, else PAGEWISE_MODULES, else that of an environment of this checkout.

    Raises SetupError when it is not there, SelectionError for an environment that is no name.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", environment):
        raise SelectionError(
            f"{environment!r} is not the name of an environment",
            where="--env",
            remedy="`pagewise doctor` lists those that are built; name any other module tree with --modules",
        )
    if named is not None:
        tree, remedy = named, "give --modules a folder which holds pagewise-micro/..."
    elif from_environment := environ.get("PAGEWISE_MODULES"):
        tree, remedy = Path(from_environment), "correct or unset PAGEWISE_MODULES"
    else:
        tree = project_root(environ) / ".pagewise" / "modules" / environment
        built = built_environments(environ)
        remedy = f"build the environment first: make stack ENV={environment}"
        if built:
            remedy = f"{choose_of(environment, built)}; another is built first: make stack ENV={environment}"
    if not tree.is_dir():
        raise SetupError("there is no module tree here", where=tree, remedy=remedy)
    return tree


def built_environments(environ: Mapping[str, str] = os.environ) -> list[str]:
    """The environments of this checkout that have modules."""
    folder = project_root(environ) / ".pagewise" / "modules"
    return sorted(one.name for one in folder.glob("[a-z]*") if one.is_dir() and one.suffix != ".new")
