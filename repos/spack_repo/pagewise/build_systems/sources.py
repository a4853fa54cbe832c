"""The clone of this repository that contains the recipes, from which Spack takes the sources too.

The project therefore needs no fixed address: a fork, a mirror or a local checkout provides recipes
and sources together.
"""

import os
import re
from pathlib import Path

from spack.package import *

#: The folder of the recipes. Clones may be reached through links.
RECIPES = Path(__file__).resolve().parents[1]


def git(*arguments):
    """The output of git in the clone; empty if it fails, such as in a copy without history."""
    program = which("git")
    if program is None:
        return ""
    output = program(
        "-C", str(RECIPES), *arguments, output=str, error=os.devnull, fail_on_error=False
    )
    return output.strip() if program.returncode == 0 else ""


#: The folder of the clone.
CLONE = git("rev-parse", "--show-toplevel") or str(RECIPES.parents[2])

#: The address that the clone was made from; empty if there is none.
ORIGIN = git("config", "--get", "remote.origin.url")

#: The project's page: the clone's origin, if it is a web address.
HOMEPAGE = re.sub(r"\.git$", "", ORIGIN) if re.match("https?://", ORIGIN) else None


def address_of(commit):
    """Where Spack finds a commit: the clone, or its origin, because Spack's clones are shallow."""
    return CLONE if git("cat-file", "-t", commit) or not ORIGIN else ORIGIN
