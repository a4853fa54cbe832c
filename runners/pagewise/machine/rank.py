"""Starts one MPI rank: binds it to its CPUs, reports where it is, and executes its program.

The launcher runs it as `python rank.py SPEC PROGRAM ARGUMENTS`. SPEC is a JSON file (session/ranks.py). Each
rank imports the standard library only, because its start counts as a part of the launch.
"""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False  # typing takes long to import
if TYPE_CHECKING:
    from typing import Any, NoReturn

_RUNNERS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
_REFUSED = 4


def main(spec_file: str, command: list[str]) -> None:
    """Becomes the program of this rank."""
    with open(spec_file, encoding="utf-8") as stream:  # noqa: PTH123 pathlib takes long to import
        spec = json.load(stream)
    number = next((os.environ[name] for name in spec["variables"] if name in os.environ), None)
    if number is None:
        names = " or ".join(spec["variables"])
        refuse(f"the launcher sets no {names}\n  remedy: name its kind in the site's site.yaml")
    rank = int(number)
    if rank >= len(spec["cpus"]):
        refuse(f"rank {rank} on this node, but {len(spec['cpus'])} ranks were requested")
    if spec["inherits"]:
        execute(spec, rank, command)
    # A daemon of Slurm starts the ranks of srun, without the settings of the runner.
    sys.path.insert(0, _RUNNERS)
    from pagewise.machine.numa import MemoryPolicy

    with MemoryPolicy(**spec["memory"]).apply_policy():
        execute(spec, rank, command)


def execute(spec: dict[str, Any], rank: int, command: list[str]) -> None:
    """Binds this process, writes what it has, and executes the command."""
    cpus = spec["cpus"][rank]
    os.sched_setaffinity(0, cpus)
    os.environ["OMP_PLACES"] = ",".join(f"{{{cpu}}}" for cpu in cpus)
    report = {
        "pid": os.getpid(),
        "host": os.uname().nodename,
        "cpus": sorted(os.sched_getaffinity(0)),
        "memory": memory_policy(),
    }
    file = os.path.join(spec["folder"], str(rank))  # noqa: PTH118
    with open(f"{file}.new", "w", encoding="utf-8") as stream:  # noqa: PTH123
        json.dump(report, stream)
    os.rename(f"{file}.new", file)  # noqa: PTH104
    try:
        os.execvp(command[0], command)
    except OSError as fault:
        refuse(f"{command[0]}: {fault.strerror}")


def refuse(reason: str) -> NoReturn:
    """Ends this rank with a message."""
    print(f"pagewise: error: {reason}", file=sys.stderr)
    sys.exit(_REFUSED)


def memory_policy() -> str | None:
    """The policy of this process, as the kernel reports it."""
    try:
        with open("/proc/self/numa_maps", encoding="utf-8") as stream:  # noqa: PTH123
            return stream.readline().split()[1]
    except (OSError, IndexError):
        return None


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
