"""Which CPU this is, and the event file for it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pagewise.core.errors import SelectionError, SetupError
from pagewise.core.suggestions import choose_of
from pagewise.machine.host import field
from pagewise.stack.events import GENERIC, PERF, SOFTWARE, Cpu, EventFile

EVENTS = Path(__file__).parent / "events"
DESCRIBE = "describe its events in a new file: docs/how-to/counters.md"
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+")


@dataclass(frozen=True)
class EventChoice:
    """The event file that is used, why, and what would permit more where something does."""

    file: EventFile
    reason: str
    remedy: str | None = None


def read_cpu(root: Path = Path("/")) -> Cpu:
    """The first CPU of this machine; `root` stands for /."""
    file = root / "proc/cpuinfo"
    texts = (field(file, name) or "" for name in ("cpu family", "model", "CPU implementer", "CPU part"))
    family, model, implementer, part = (int(n, 0) if _NUMBER.fullmatch(n) else None for n in texts)
    return Cpu(field(file, "vendor_id"), family, model, implementer, part, field(file, "cpu"))


def kernel_events() -> dict[str, EventFile]:
    """The event files of this package: events that the kernel names, on any CPU. Raises FormatError."""
    return {file.stem: EventFile.from_file(file) for file in sorted(EVENTS.glob("*.yaml"))}


def find_file(files: Mapping[str, EventFile], name: str) -> EventFile:
    """The event file that the user named. Raises SelectionError."""
    if name not in files:
        raise SelectionError(
            f"there is no event file {name!r}", where="--events", remedy=choose_of(name, sorted(files))
        )
    return files[name]


def choose(
    files: Sequence[EventFile],
    cpu: Cpu,
    papi: bool,
    unavailable: tuple[str, str | None] | None = None,
    named: str | None = None,
) -> EventChoice:
    """The file to count by: PAPI's events of this CPU, then the kernel's generic ones, then software events.

    papi: whether the programs were built with it. unavailable: why the CPU's counters cannot be used, and the
    remedy. named: the file that the user chose. Raises SelectionError, or SetupError when there is none.
    """
    by_name = {file.name: file for file in files}
    if named is not None:
        return EventChoice(find_file(by_name, named), "named by --events")
    ours = file_for(cpu, files)
    if unavailable is not None:
        reason, remedy = unavailable
        known = f"this is {ours.title}, but its" if ours else "the"
        name, reason = SOFTWARE, f"{known} hardware counters: {reason}"
    elif not papi:
        name, reason = PERF, "the programs were built without PAPI"
        remedy = "build with PAPI (Spack: +papi, CMake: -DPAGEWISE_PAPI=ON) for the events of this CPU"
    elif ours is not None:
        return EventChoice(ours, "the file for this CPU")
    else:
        name, reason, remedy = GENERIC, "no event file fits this CPU, so PAPI's presets", DESCRIBE
    if name not in by_name:
        raise SetupError(f"the event file {name}.yaml is not installed", remedy="build the environment again")
    return EventChoice(by_name[name], reason, remedy)


def file_for(cpu: Cpu, files: Sequence[EventFile]) -> EventFile | None:
    """The event file that is about this CPU; None without one."""
    return next((file for file in files if file.matches is not None and file.matches.fits(cpu)), None)
