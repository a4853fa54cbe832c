"""The environment of a run: the settings of its page policy, and the libraries that are preloaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pagewise.core.environment import ENV
from pagewise.stack.c_code import Product, compiled
from pagewise.workloads.program.applied import AppliedPolicy

_HERE = Path(__file__).parent
LIBRARY = Product(
    "the library to be preloaded", "preload", ("-std=c11", "-O2", "-fPIC", "-shared"), suffix=".so"
)
PROGRAM = Product("the program that moves memory onto huge pages", LIBRARY.kind, ("-std=c11", "-O2"))


@dataclass(frozen=True)
class Libraries:
    """Compiled C files: two libraries and a program.

    remap: asks for huge pages. snapshot: writes the memory of untimed runs. collapse, the program: runs
    another, and moves its memory onto huge pages.
    """

    remap: Path
    snapshot: Path
    collapse: Path

    @classmethod
    def compiled(cls, compiler: list[str]) -> Libraries:
        """Compiles those that are missing. Raises SetupError with the compiler's message."""
        kinds = {"remap.c": LIBRARY, "snapshot.c": LIBRARY, "collapse.c": PROGRAM}
        return cls(*(compiled(_HERE / name, kind, compiler) for name, kind in kinds.items()))


def command_of_run(
    applied: AppliedPolicy,
    arguments: tuple[str, ...],
    inherited: Mapping[str, str],
    libraries: Libraries | None,
    *,
    log: Path,
    snapshots: Path | None,
) -> list[str]:
    """The program's command line, with changes to the inherited environment by its page policy.

    log: for messages of the preloaded library. snapshots: a folder in which the program's processes write
    their memory at their end, if it can preload that.
    """
    chosen = applied.chosen
    changed = chosen.changes(inherited)
    preloaded, binary, machine = [], applied.binary, applied.machine
    if "libhugetlbfs" in applied.policy.parts and machine.hugetlbfs_library:
        preloaded.append(machine.hugetlbfs_library)
    if libraries is not None and snapshots is not None and binary.can_preload(machine.elf_machine):
        preloaded.append(str(libraries.snapshot))
        changed["PAGEWISE_SNAPSHOT"] = str(snapshots / "smaps")
    if libraries is not None and chosen.actions:
        preloaded.append(str(libraries.remap))
        changed["PAGEWISE_PRELOAD"] = ",".join(chosen.actions)
        changed["PAGEWISE_PRELOAD_SIZE"] = str(applied.transparent_size)
        changed["PAGEWISE_PRELOAD_POOL"] = str(applied.pool_size)
        changed["PAGEWISE_PRELOAD_LOG"] = str(log)
    if preloaded:
        changed["LD_PRELOAD"] = ":".join(filter(None, [*preloaded, inherited.get("LD_PRELOAD", "")]))
    removed = [f"--unset={name}" for name, value in changed.items() if value is None]
    added = [f"{name}={value}" for name, value in changed.items() if value is not None]
    watched = [str(libraries.collapse)] if libraries is not None and applied.is_watched else []
    return [ENV, *removed, *added, *watched, str(binary.program), *arguments]
