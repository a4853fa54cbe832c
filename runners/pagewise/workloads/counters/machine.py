"""Which CPU this is, and the event file for it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pagewise.core.errors import SelectionError, SetupError
from pagewise.core.suggestions import choose_of
from pagewise.machine.host import read
from pagewise.stack.events import GENERIC, PERF, SOFTWARE, EventFile

EVENTS = Path(__file__).parent / "events"


@dataclass(frozen=True)
class Cpu:
    """What /proc/cpuinfo tells: vendor, family and model (x86); implementer and part (Arm); cpu (POWER)."""

    vendor: str | None = None
    family: int | None = None
    model: int | None = None
    implementer: int | None = None
    part: int | None = None
    cpu: str | None = None

    def fits(self, matches: Mapping[str, Any] | None) -> bool:
        """Whether a file's `matches` names this CPU; a fallback's has nothing to fit."""
        if not matches:
            return False
        if "vendor" in matches:
            same = (self.vendor, self.family) == (matches["vendor"], matches["family"])
            return same and self.model is not None and any(_within(self.model, m) for m in matches["models"])
        if "cpu" in matches:
            return self.cpu is not None and self.cpu.upper().startswith(matches["cpu"].upper())
        return (self.implementer, self.part) == (matches["implementer"], matches["part"])


@dataclass(frozen=True)
class Choice:
    """The event file that is used, why, and what would permit more where something does."""

    file: EventFile
    reason: str
    remedy: str | None = None


def read_cpu(root: Path = Path("/")) -> Cpu:
    """The first CPU of this machine; `root` stands for / (tests give another)."""
    text = read(root / "proc/cpuinfo") or ""

    def told(name: str) -> str | None:
        found = re.search(rf"^{name}\s*:\s*(.+)$", text, re.MULTILINE)
        return found[1].strip() if found else None

    def number(name: str) -> int | None:
        value = told(name)
        return int(value, 0) if value is not None and re.fullmatch(r"0x[0-9a-fA-F]+|\d+", value) else None

    return Cpu(
        told("vendor_id"),
        number("cpu family"),
        number("model"),
        number("CPU implementer"),
        number("CPU part"),
        told("cpu"),
    )


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
    lacking: tuple[str, str | None] | None = None,
    named: str | None = None,
) -> Choice:
    """The file to count by: PAPI's events of this CPU, then the kernel's generic ones, then software events.

    `papi`: whether the programs were built with it. `lacking`: why the CPU's counters cannot be used, and the
    remedy. `named`: the file that the user wants. Raises SetupError when there is none.
    """
    by_name = {file.name: file for file in files}
    if named is not None:
        return Choice(find_file(by_name, named), "named by --events")
    ours = next((file for file in files if cpu.fits(file.data.get("matches"))), None)
    if lacking is not None:
        reason, remedy = lacking
        known = f"this is {ours.title}, but its" if ours else "the"
        return Choice(_existing(by_name, SOFTWARE), f"{known} hardware counters: {reason}", remedy)
    if not papi:
        return Choice(
            _existing(by_name, PERF),
            "the programs were built without PAPI",
            "build with PAPI (Spack: +papi, CMake: -DPAGEWISE_PAPI=ON) for the events of this CPU",
        )
    if ours is not None:
        return Choice(ours, "the file for this CPU")
    return Choice(
        _existing(by_name, GENERIC),
        "no event file fits this CPU, so PAPI's presets",
        "describe its events in a file of its own: docs/counters.md",
    )


def _existing(files: Mapping[str, EventFile], name: str) -> EventFile:
    if name not in files:
        raise SetupError(f"the event file {name}.yaml is not installed", remedy="build the environment again")
    return files[name]


def _within(model: int, told: int | str) -> bool:
    if isinstance(told, int):
        return model == told
    first, _, last = told.partition("-")
    return int(first, 16) <= model <= int(last, 16)
