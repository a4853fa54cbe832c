"""Switches hardware prefetchers off while something is measured, when the user asks; puts them back."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pagewise.errors import Interrupted, PagewiseError, RefusedError, SelectionError
from pagewise.host import read
from pagewise.placement import Placement

ALL = "off"
_MANUAL = "docs/prefetchers.md"
_WITHOUT = "or measure without --hardware-prefetchers"


@dataclass(frozen=True)
class Register:
    """A model-specific register whose set bits switch prefetchers off: bits by the prefetcher's name."""

    address: int
    bits: dict[str, int]


@dataclass(frozen=True)
class Processors:
    """Processors whose vendor documents a register; `models` None stands for all of the family."""

    vendor: str
    family: int
    models: frozenset[int] | None
    register: Register


# MSR_MISC_FEATURE_CONTROL: Intel, Disclosure of Hardware Prefetcher Control on Some Intel Processors (2014),
# and Software Developer's Manual, volume 4, the table of each processor.
_CORE = Register(0x1A4, {"l2-hardware": 0, "l2-adjacent": 1, "dcu-streamer": 2, "dcu-ip": 3})
_PHI = Register(0x1A4, {"dcu-streamer": 0, "l2-hardware": 1})
# Core::X86::Msr::PrefetchControl, MSRC000_0108: AMD, Processor Programming Reference for family 19h model 11h
# (55901) and family 1Ah model 02h (57238).
_ZEN = Register(0xC0000108, {"l1-stream": 0, "l1-stride": 1, "l1-region": 2, "l2-stream": 3, "up-down": 5})

_INTEL_CORE = (
    *(0x1A, 0x1E, 0x1F, 0x2E),  # Nehalem
    *(0x25, 0x2C, 0x2F),  # Westmere
    *(0x2A, 0x2D),  # Sandy Bridge
    *(0x3A, 0x3E),  # Ivy Bridge
    *(0x3C, 0x3F, 0x45, 0x46),  # Haswell
    *(0x3D, 0x47, 0x4F, 0x56),  # Broadwell
    *(0x4E, 0x5E, 0x8E, 0x9E, 0xA5, 0xA6),  # Skylake, Kaby Lake, Coffee Lake, Comet Lake
    0x55,  # Skylake, Cascade Lake and Cooper Lake servers
    0x66,  # Cannon Lake
    *(0x7D, 0x7E, 0x6A, 0x6C),  # Ice Lake
    *(0x8C, 0x8D, 0xA7),  # Tiger Lake, Rocket Lake
    *(0x8F, 0xCF),  # Sapphire Rapids, Emerald Rapids
    *(0xAD, 0xAE),  # Granite Rapids
)
_KNOWN = (
    Processors("GenuineIntel", 6, frozenset(_INTEL_CORE), _CORE),
    Processors("GenuineIntel", 6, frozenset((0x57, 0x85)), _PHI),  # Knights Landing, Knights Mill
    Processors("AuthenticAMD", 0x19, None, _ZEN),  # Zen 3, Zen 4
    Processors("AuthenticAMD", 0x1A, None, _ZEN),  # Zen 5
)

# Fujitsu A64FX: implementer and part in MIDR_EL1. By name: the cache in sysfs, and the option of hwpfctl.
_A64FX = ("0x46", "0x001")
_A64FX_CACHES = {"l1": ("index0", "--disableL1"), "l2": ("index2", "--disableL2")}


class Knob(Protocol):
    """A number that the machine lets one read and write."""

    @property
    def place(self) -> str:
        """Where it is, for people."""

    def read(self) -> int:
        """The value now. Raises OSError."""

    def write(self, value: int) -> None:
        """Sets the value. Raises OSError."""


@dataclass(frozen=True)
class Msr:
    """A model-specific register of a CPU, through the kernel's msr device."""

    file: Path
    address: int

    @property
    def place(self) -> str:
        """The device and the register."""
        return f"{self.file}, MSR {self.address:#x}"

    def read(self) -> int:
        """The register's 64 bits."""
        descriptor = os.open(self.file, os.O_RDONLY)
        try:
            content = os.pread(descriptor, 8, self.address)
        finally:
            os.close(descriptor)
        if len(content) != 8:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return int.from_bytes(content, "little")

    def write(self, value: int) -> None:
        """Sets the register's 64 bits."""
        descriptor = os.open(self.file, os.O_WRONLY)
        try:
            os.pwrite(descriptor, value.to_bytes(8, "little"), self.address)
        finally:
            os.close(descriptor)


@dataclass(frozen=True)
class Attribute:
    """A number in a file of sysfs."""

    file: Path

    @property
    def place(self) -> str:
        """The file."""
        return str(self.file)

    def read(self) -> int:
        """The file's number."""
        return int(self.file.read_text(encoding="ascii"))

    def write(self, value: int) -> None:
        """Writes the number."""
        self.file.write_text(f"{value}\n", encoding="ascii")


@dataclass(frozen=True)
class Switch:
    """A knob of one CPU, the bits of it that matter, and what they are when the prefetchers are off."""

    cpu: int
    knob: Knob
    bits: int
    off: int

    def read(self) -> int:
        """The knob's value now. Raises RefusedError."""
        try:
            return self.knob.read()
        except (OSError, ValueError) as fault:
            raise _refused("cannot be read", self.knob, fault) from fault

    def turn_off(self, before: int) -> None:
        """Switches off and reads back. Raises RefusedError."""
        self._set((before & ~self.bits) | self.off)

    def put_back(self, before: int) -> None:
        """Writes the value from before, where it is another now, and reads back. Raises RefusedError."""
        if self.read() != before:
            self._set(before)

    def _set(self, value: int) -> None:
        try:
            self.knob.write(value)
        except OSError as fault:
            raise _refused("cannot be written", self.knob, fault) from fault
        now = self.read()
        if (now ^ value) & self.bits:
            raise RefusedError(
                f"{value:#x} was written and {now:#x} is read back: the setting does not stick",
                where=self.knob.place,
                remedy=f"a hypervisor or the firmware keeps it: measure on the bare machine, {_WITHOUT}",
            )


@dataclass(frozen=True)
class Control:
    """How to switch the named prefetchers off on these CPUs.

    `switches` are turned and read back. `program` is one that switches off for what it starts (a prefix of
    each command) and tells no values; after it, the CPUs have their defaults.
    """

    names: tuple[str, ...]
    method: str
    cpus: tuple[int, ...]
    switches: tuple[Switch, ...]
    program: tuple[str, ...] = ()

    def read(self) -> list[int]:
        """The values now. Raises RefusedError."""
        return [switch.read() for switch in self.switches]


def find_control(asked: Sequence[str], cpus: Iterable[int], root: Path = Path("/")) -> Control:
    """How the prefetchers that were asked for (`off`: all) can be switched off on these CPUs.

    Nothing is changed, but every value is read once. Raises RefusedError when it cannot be done here, and
    SelectionError for a name that this processor does not have. `root` stands for / (tests give another).
    """
    used = tuple(sorted(set(cpus)))
    facts = _cpuinfo(root)
    if (facts.get("CPU implementer"), facts.get("CPU part")) == _A64FX:
        control = _a64fx(asked, used, root)
    else:
        control = _msr(asked, used, facts, root)
    control.read()
    return control


@contextmanager
def switched_off(control: Control) -> Iterator[dict[str, object]]:
    """Has the prefetchers off while the block lasts, and all as before at its end; yields what was done.

    Raises RefusedError when a write is refused or does not stick; what was written until then is put back. An
    exception or a signal turned into one ends the block like any other end.
    """
    before = control.read()
    try:
        for switch, value in zip(control.switches, before, strict=True):
            switch.turn_off(value)
        yield {
            "off": list(control.names),
            "method": control.method,
            "read_back": bool(control.switches),
            "before": [
                {"cpu": switch.cpu, "place": switch.knob.place, "value": hex(value)}
                for switch, value in zip(control.switches, before, strict=True)
            ],
        }
    finally:
        try:
            _put_back(control, before)
        except Interrupted:
            # The one signal that is turned into an exception (see signals.py) came just now: begin again.
            _put_back(control, before)
            raise


def _put_back(control: Control, before: Sequence[int]) -> None:
    """Puts all back that can be, and then tells what cannot."""
    faults = []
    for switch, value in zip(control.switches, before, strict=True):
        try:
            switch.put_back(value)
        except PagewiseError as fault:
            faults.append(f"{switch.knob.place} was {value:#x}: {fault.what}")
    if control.program:
        reset = [control.program[0], "--reset"]
        with Placement(len(control.cpus), control.cpus).bound():
            done = subprocess.run(reset, capture_output=True, text=True, check=False)
        if done.returncode:
            faults.append(f"{' '.join(reset)}: {(done.stderr or done.stdout).strip()}")
    if faults:
        raise RefusedError(
            "the hardware prefetchers could not be put back:\n    " + "\n    ".join(faults),
            remedy="write these values by hand, or restart the machine",
        )


def _msr(asked: Sequence[str], cpus: tuple[int, ...], facts: dict[str, str], root: Path) -> Control:
    register = _register_of(facts)
    if register is None:
        named = facts.get("model name") or facts.get("vendor_id") or facts.get("CPU implementer") or "unnamed"
        raise RefusedError(
            "it is not documented how this processor's prefetchers are switched off: "
            f"{named}{_numbers(facts)}",
            where="--hardware-prefetchers",
            remedy=f"{_MANUAL} lists those known; the firmware's set-up may have a switch; {_WITHOUT}",
        )
    names = _chosen(asked, tuple(register.bits))
    mask = sum(1 << register.bits[name] for name in names)
    devices = [(cpu, root / f"dev/cpu/{cpu}/msr") for cpu in cpus]
    for _, file in devices:
        if not file.exists():
            within = (
                ". This is a virtual machine: most hypervisors refuse this register" if _guest(root) else ""
            )
            raise RefusedError(
                "there is no msr device, and the prefetchers are switched through it" + within,
                where=file,
                remedy=f"as root: modprobe msr (for a container: on its host, and pass it in); {_WITHOUT}",
            )
    switches = [Switch(cpu, Msr(file, register.address), mask, mask) for cpu, file in devices]
    return Control(names, f"MSR {register.address:#x}", cpus, tuple(switches))


def _register_of(facts: dict[str, str]) -> Register | None:
    vendor, family, model = (facts.get(name, "") for name in ("vendor_id", "cpu family", "model"))
    for known in _KNOWN:
        alike = vendor == known.vendor and family == str(known.family)
        if alike and (known.models is None or (model.isdigit() and int(model) in known.models)):
            return known.register
    return None


def _a64fx(asked: Sequence[str], cpus: tuple[int, ...], root: Path) -> Control:
    names = _chosen(asked, tuple(_A64FX_CACHES))
    files = [
        (
            cpu,
            root
            / f"sys/devices/system/cpu/cpu{cpu}/cache"
            / _A64FX_CACHES[name][0]
            / "prefetch_control/stream_detect_prefetcher_enable",
        )
        for cpu in cpus
        for name in names
    ]
    if all(file.exists() for _, file in files):
        switches = [Switch(cpu, Attribute(file), 1, 0) for cpu, file in files]
        return Control(names, "prefetch_control of the kernel", cpus, tuple(switches))
    program = shutil.which("hwpfctl")
    if program is None:
        raise RefusedError(
            "neither this kernel nor a program hwpfctl gives access to the prefetchers of the A64FX",
            where=files[0][1],
            remedy=f"load the environment of Fujitsu's job software, which brings hwpfctl; {_WITHOUT}",
        )
    options = tuple(_A64FX_CACHES[name][1] for name in names)
    return Control(names, "hwpfctl", cpus, (), (program, *options))


def _chosen(asked: Sequence[str], there: tuple[str, ...]) -> tuple[str, ...]:
    unknown = [name for name in asked if name not in (ALL, *there)]
    if unknown or not asked:
        raise SelectionError(
            f"this processor has no prefetcher {', '.join(unknown) or 'without a name'}",
            where="--hardware-prefetchers",
            remedy=f"'{ALL}' for all, or some of: {', '.join(there)}",
        )
    return there if ALL in asked else tuple(name for name in there if name in asked)


def _refused(what: str, knob: Knob, fault: Exception) -> RefusedError:
    number = fault.errno if isinstance(fault, OSError) else None
    if number in (errno.EACCES, errno.EPERM):
        remedy = (
            "run as root (CAP_SYS_RAWIO); root too is refused under the kernel's lockdown (secure boot: "
            "/sys/kernel/security/lockdown) and with msr.allow_writes=off "
            "(echo on > /sys/module/msr/parameters/allow_writes)"
        )
    elif number == errno.EIO:
        remedy = "the processor or its hypervisor does not let it: measure on the bare machine"
    else:
        remedy = "see the kernel's log (dmesg)"
    reason = (fault.strerror if isinstance(fault, OSError) else None) or str(fault)
    return RefusedError(
        f"the setting of the hardware prefetchers {what}: {reason}",
        where=knob.place,
        remedy=f"{remedy}; {_WITHOUT}",
    )


def _cpuinfo(root: Path) -> dict[str, str]:
    """What the first CPU tells of itself."""
    first = (read(root / "proc/cpuinfo") or "").split("\n\n")[0]
    pairs = re.findall(r"^(.+?)\s*:[ \t]*(.*)$", first, re.MULTILINE)
    return {name.strip(): value.strip() for name, value in pairs}


def _numbers(facts: dict[str, str]) -> str:
    if "cpu family" not in facts:
        return ""
    return f" ({facts.get('vendor_id')}, family {facts['cpu family']}, model {facts.get('model')})"


def _guest(root: Path) -> bool:
    return bool(re.search(r"^flags\s*:.*\bhypervisor\b", read(root / "proc/cpuinfo") or "", re.MULTILINE))
