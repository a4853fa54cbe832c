"""List what the users of a deployment cannot reach, by the permissions of every folder and link on the way.

reachable.py [--group GROUP] [PATH...]   without PATH: the Python that runs this, with its standard library

Users are the members of GROUP (default: everybody). Prints one line per obstacle; exit code 1 if any.
"""

from __future__ import annotations

import argparse
import grp
import importlib
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

OLDEST = (3, 10)
MOST_LINKS = 40
READ, ENTER = 4, 1


def steps(path: Path) -> Iterator[Path]:
    """All folders on the way to the path's target, also through links, then the target itself.

    Raises OSError for a loop of links.
    """
    remaining, links = list(path.absolute().parts), 0
    current = Path(remaining.pop(0))
    yield current
    while remaining:
        name = remaining.pop(0)
        following = current.parent if name == ".." else current / name
        if following.is_symlink():
            links += 1
            if links > MOST_LINKS:
                raise OSError("too many links")
            target = following.readlink()
            remaining[:0] = target.parts
            following = current
        current = following
        yield current


def is_open(path: Path, group: int | None, needed: int) -> bool:
    """Whether users have the needed permissions, given as the bits for others in a mode."""
    # With an access control list, the mode alone does not decide.
    if "system.posix_acl_access" in os.listxattr(path):
        return True
    status = path.stat()
    mode = status.st_mode >> 3 if status.st_gid == group else status.st_mode
    return (mode & needed) == needed


def needed_at_the_end(path: Path) -> int:
    """The permissions that users need; a file that its owner may run counts as a program."""
    is_program = path.stat().st_mode & stat.S_IXUSR and ".so" not in path.name
    return READ | ENTER if path.is_dir() or is_program else READ


def obstacles(paths: Iterable[Path], group: int | None) -> Iterator[str]:
    """One line per path that users cannot reach, with the folder or file that is closed to them."""
    for path in paths:
        try:
            *folders, end = steps(path)
            asked = [*((folder, ENTER) for folder in folders), (end, needed_at_the_end(end))]
            closed = [place for place, needed in asked if not is_open(place, group, needed)]
            if closed:
                yield f"{path}: {closed[0]} is closed to them ({stat.filemode(closed[0].stat().st_mode)})"
        except OSError as fault:
            yield f"{path}: {fault.strerror or fault}"


def own_files() -> list[Path]:
    """The files of this Python: the program, the modules that the runner needs, the loaded libraries."""
    for name in ("ctypes", "encodings.idna", "hashlib", "json", "multiprocessing", "ssl", "zlib"):
        importlib.import_module(name)
    modules = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    libraries = re.findall(r" (/\S+\.so\S*)$", Path("/proc/self/maps").read_text(), re.MULTILINE)
    # In a virtual environment: the Python that it was created from.
    program = getattr(sys, "_base_executable", None) or sys.executable
    return [Path(file) for file in dict.fromkeys([program, *modules, *libraries]) if file]


def faults_of_python(group: int | None) -> list[str]:
    """Why this Python cannot be the one of a deployment."""
    if sys.version_info[:2] < OLDEST:
        return [f"{sys.executable}: version {sys.version.split()[0]} is older than {OLDEST[0]}.{OLDEST[1]}"]
    try:
        for name in ("venv", "ensurepip"):
            importlib.import_module(name)
        return list(obstacles(own_files(), group))
    except ImportError as fault:
        return [f"{sys.executable}: {fault}"]


def main() -> int:
    """Print the obstacles; returns the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--group")
    parser.add_argument("paths", nargs="*", type=Path)
    arguments = parser.parse_args()
    group = grp.getgrnam(arguments.group).gr_gid if arguments.group else None
    lines = list(obstacles(arguments.paths, group)) if arguments.paths else faults_of_python(group)
    print("\n".join(lines), end="\n" if lines else "")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
