"""What the users of a deployment cannot reach, by the permissions of every folder and link on the way.

reachable.py [--group GROUP] [PATH...]   without PATH: the Python that runs this, with its standard library

Users are the members of GROUP, without it everybody. Each obstacle is a line; the exit code is then 1.
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
    """All folders that lead to what the path means, through links too, and that itself, last.

    Raises OSError for links without end.
    """
    left, links = list(path.absolute().parts), 0
    current = Path(left.pop(0))
    yield current
    while left:
        name = left.pop(0)
        following = current.parent if name == ".." else current / name
        if following.is_symlink():
            links += 1
            if links > MOST_LINKS:
                raise OSError("too many links")
            target = following.readlink()
            left[:0] = target.parts
            following = current
        current = following
        yield current


def is_open(path: Path, group: int | None, needed: int) -> bool:
    """Whether users have these permissions, written as those of others are in a mode."""
    # Beside an access control list the mode is not the whole truth.
    if "system.posix_acl_access" in os.listxattr(path):
        return True
    status = path.stat()
    mode = status.st_mode >> 3 if status.st_gid == group else status.st_mode
    return (mode & needed) == needed


def needed_at_the_end(path: Path) -> int:
    """What users need of a file or folder that they use: programs are those that their owner may run."""
    is_program = path.stat().st_mode & stat.S_IXUSR and ".so" not in path.name
    return READ | ENTER if path.is_dir() or is_program else READ


def obstacles(paths: Iterable[Path], group: int | None) -> Iterator[str]:
    """For each path that users cannot reach, a line with the place that stops them."""
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
    """The files of this Python: program, modules that the runner needs, libraries that are loaded then."""
    for name in ("ctypes", "encodings.idna", "hashlib", "json", "multiprocessing", "ssl", "zlib"):
        importlib.import_module(name)
    modules = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    libraries = re.findall(r" (/\S+\.so\S*)$", Path("/proc/self/maps").read_text(), re.MULTILINE)
    # A virtual environment leads to the Python that it was made of.
    program = getattr(sys, "_base_executable", None) or sys.executable
    return [Path(file) for file in dict.fromkeys([program, *modules, *libraries]) if file]


def faults_of_python(group: int | None) -> list[str]:
    """What keeps this Python from being the one of a deployment."""
    if sys.version_info[:2] < OLDEST:
        return [f"{sys.executable}: version {sys.version.split()[0]} is older than {OLDEST[0]}.{OLDEST[1]}"]
    try:
        for name in ("venv", "ensurepip"):
            importlib.import_module(name)
        return list(obstacles(own_files(), group))
    except ImportError as fault:
        return [f"{sys.executable}: {fault}"]


def main() -> int:
    """Prints what is closed; the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--group")
    parser.add_argument("paths", nargs="*", type=Path)
    chosen = parser.parse_args()
    group = grp.getgrnam(chosen.group).gr_gid if chosen.group else None
    found = list(obstacles(chosen.paths, group)) if chosen.paths else faults_of_python(group)
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
