"""Sets hardware prefetchers during a measurement, if the user requests it, and restores them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from pagewise.core.errors import RefusedError, SelectionError
from pagewise.core.manifest import SwitchedOff, SwitchValue
from pagewise.core.signals import interruptible, postpone_signals, shell_code
from pagewise.machine.host import field, is_guest
from pagewise.machine.settings.kinds import MSR_SAFE, Hwpfctl, Msr, Word
from pagewise.machine.settings.session import keep_journal

ALL = "off"
_WITHOUT = "or leave the prefetchers as they are"
_MANUAL = "docs/reference/prefetchers.md"
_CPUS = "sys/devices/system/cpu"


@dataclass(frozen=True)
class Processors:
    """Processors whose vendor documents a model-specific register with bits that switch prefetchers off.

    models: None for all of a family. bits: by the prefetchers' names.
    """

    vendor: str
    family: int
    models: frozenset[int] | None
    address: int
    bits: dict[str, int]


# MSR_MISC_FEATURE_CONTROL: Intel, Disclosure of Hardware Prefetcher Control on Some Intel Processors (2014),
# and Software Developer's Manual, volume 4, the table of each processor.
_CORE = (0x1A4, {"l2-hardware": 0, "l2-adjacent": 1, "dcu-streamer": 2, "dcu-ip": 3})
_PHI = (0x1A4, {"dcu-streamer": 0, "l2-hardware": 1})
# Core::X86::Msr::PrefetchControl, MSRC000_0108: AMD, Processor Programming Reference for family 19h model 11h
# (55901) and family 1Ah model 02h (57238).
_ZEN = (0xC0000108, {"l1-stream": 0, "l1-stride": 1, "l1-region": 2, "l2-stream": 3, "up-down": 5})

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
    Processors("GenuineIntel", 6, frozenset(_INTEL_CORE), *_CORE),
    Processors("GenuineIntel", 6, frozenset((0x57, 0x85)), *_PHI),  # Knights Landing, Knights Mill
    Processors("AuthenticAMD", 0x19, None, *_ZEN),  # Zen 3, Zen 4
    Processors("AuthenticAMD", 0x1A, None, *_ZEN),  # Zen 5
)

# Fujitsu A64FX: implementer and part in MIDR_EL1. By name: the cache in sysfs, and the option of hwpfctl.
_A64FX = ("0x46", "0x001")
_A64FX_CACHES = {"l1": ("index0", "--disableL1"), "l2": ("index2", "--disableL2")}
_A64FX_LINE_BYTES = 256


@dataclass(frozen=True)
class Adjustment:
    """How a prefetcher of the A64FX works, as hwpfctl calls its options: the prefetcher and its distance.

    most: the largest distance in cache lines, a multiple of `unit`; 0 for the strength, which has no number.
    """

    prefetcher: str
    most: int = 0
    unit: int = 1


# Fujitsu, A64FX Microarchitecture Guide, hwpfctl; the register's fields: A64FX Specification, HPC Extension.
_ADJUSTMENTS = {
    "distL1": Adjustment("l1", 15),
    "distL2": Adjustment("l2", 60, 4),
    "weakL1": Adjustment("l1"),
    "weakL2": Adjustment("l2"),
}


@dataclass(frozen=True)
class PrefetcherSwitch:
    """A place that sets prefetchers of one CPU, and its value during the measurement."""

    cpu: int
    place: Msr | Word
    value: str


@dataclass(frozen=True)
class Control:
    """How to switch the named prefetchers off on these CPUs, and to adjust others.

    switches: places that are set and read back. program: a prefix of each command, which sets prefetchers
    for that command and reports no values; restored CPUs have their defaults.
    """

    names: tuple[str, ...]
    method: str
    cpus: tuple[int, ...]
    switches: tuple[PrefetcherSwitch, ...]
    program: tuple[str, ...] = ()
    root: Path = Path("/")
    adjusted: tuple[str, ...] = ()

    @property
    def setting(self) -> tuple[object, ...]:
        """What it sets; equal for two ways to request the same."""
        return self.names, frozenset(self.adjusted)

    def read(self) -> list[str]:
        """The current values, including the registers' other bits. Raises RefusedError."""
        return [switch.place.full_text() for switch in self.switches]


def find_control(requested: Sequence[str], cpus: Iterable[int], root: Path = Path("/")) -> Control:
    """How the requested prefetchers (`off`: all) can be switched off, or adjusted, on these CPUs.

    Changes nothing, but reads every value once. Raises RefusedError when this machine does not support it,
    and SelectionError for a name that this processor does not have. `root` stands for / (tests pass another).
    """
    used = tuple(sorted(set(cpus)))
    file = root / "proc/cpuinfo"
    is_a64fx = (field(file, "CPU implementer"), field(file, "CPU part")) == _A64FX
    control = (_a64fx if is_a64fx else _msr)(requested, used, root)
    control.read()
    return control


@contextmanager
def switched_off(control: Control) -> Iterator[SwitchedOff]:
    """Sets the prefetchers during the block, and restores them; yields a description of the change.

    Raises RefusedError when a write is refused or has no effect. However the process ends, the prefetchers
    are restored.
    """
    with keep_journal(control.root) as journal:
        change = describe(control)
        for switch in control.switches:
            journal.change(switch.place, switch.value)
        if control.program:
            # It sets them for each command that it starts.
            journal.change(Hwpfctl(Path(control.program[0]), control.cpus), "off", before="default")
        yield change


def describe(control: Control) -> SwitchedOff:
    """What a control changes, with the values before the change. Raises RefusedError."""
    registers = (
        SwitchValue(switch.cpu, switch.place.place, value)
        for switch, value in zip(control.switches, control.read(), strict=True)
    )
    read_back = bool(control.switches)
    return SwitchedOff(control.names, control.method, read_back, tuple(registers), control.adjusted)


def _msr(requested: Sequence[str], cpus: tuple[int, ...], root: Path) -> Control:
    file = root / "proc/cpuinfo"
    vendor, family, model = (field(file, name) for name in ("vendor_id", "cpu family", "model"))
    number = int(model) if model and model.isdigit() else -1
    kinds = (known for known in _KNOWN if (vendor, family) == (known.vendor, str(known.family)))
    register = next((known for known in kinds if known.models is None or number in known.models), None)
    if register is None:
        name = field(file, "model name") or vendor or field(file, "CPU implementer") or "unnamed"
        numbers = f" ({vendor}, family {family}, model {model})" if family else ""
        raise RefusedError(
            f"no document describes how to switch off the prefetchers of this processor: {name}{numbers}",
            where="prefetchers",
            remedy=f"{_MANUAL} lists the supported ones; the firmware's setup may have a switch; {_WITHOUT}",
        )
    names = _select_names(requested, tuple(register.bits))
    mask = sum(1 << register.bits[name] for name in names)
    device = MSR_SAFE if _has_msr_safe(root, cpus, register.address) else "msr"
    devices = [root / f"dev/cpu/{cpu}/{device}" for cpu in cpus]
    missing = next((device for device in devices if not device.exists()), None)
    if missing is not None:
        guest = ". This is a virtual machine: most hypervisors refuse this register" if is_guest(root) else ""
        raise RefusedError(
            "the msr device that switches the prefetchers is missing" + guest,
            where=missing,
            remedy=f"as root: modprobe msr (for a container: on its host, and pass it in); {_WITHOUT}",
        )
    switches = [
        PrefetcherSwitch(cpu, Msr(device, register.address, mask), hex(mask))
        for cpu, device in zip(cpus, devices, strict=True)
    ]
    method = f"MSR {register.address:#x}" + (" through msr-safe" if device == MSR_SAFE else "")
    return Control(names, method, cpus, tuple(switches), root=root)


def _has_msr_safe(root: Path, cpus: tuple[int, ...], address: int) -> bool:
    """Whether msr-safe serves all CPUs: it grants the register, or the kernel has no other device."""
    files = [root / f"dev/cpu/{cpu}/{MSR_SAFE}" for cpu in cpus]
    if not all(file.exists() for file in files):
        return False
    try:
        for file in files:
            Msr(file, address).value()
    except RefusedError:
        return not all(file.with_name("msr").exists() for file in files)
    return True


def _a64fx(requested: Sequence[str], cpus: tuple[int, ...], root: Path) -> Control:
    asked = [text for text in requested if text.partition("=")[0] not in _ADJUSTMENTS]
    adjusted = dict(_adjustment(text) for text in requested if text not in asked)
    names = _select_names(asked, tuple(_A64FX_CACHES), tuple(_ADJUSTMENTS)) if asked or not adjusted else ()
    useless = [name for name in adjusted if _ADJUSTMENTS[name].prefetcher in names]
    if useless or len(adjusted) < len(requested) - len(asked):
        twice = "an adjustment is given twice"
        raise SelectionError(
            f"{useless[0]} adjusts a prefetcher that is switched off" if useless else twice,
            where="prefetchers",
            remedy="omit one of them",
        )
    texts = tuple(name if lines is None else f"{name}={lines}" for name, lines in adjusted.items())
    words = [("enable", _A64FX_CACHES[name][0], "0") for name in names]
    for name, lines in adjusted.items():
        part, word = ("strength", "weak") if lines is None else ("dist", str(lines * _A64FX_LINE_BYTES))
        words.append((part, _A64FX_CACHES[_ADJUSTMENTS[name].prefetcher][0], word))
    # Files of Fujitsu's driver (Documentation/ABI of its patches, 2022).
    folder, name = "prefetch_control", "stream_detect_prefetcher"
    switches = [
        PrefetcherSwitch(cpu, Word(root / f"{_CPUS}/cpu{cpu}/cache/{cache}/{folder}/{name}_{part}"), word)
        for cpu in cpus
        for part, cache, word in words
    ]
    if all(switch.place.file.exists() for switch in switches):
        method = "prefetch_control of the kernel"
        return Control(names, method, cpus, tuple(switches), (), root, texts)
    program = shutil.which("hwpfctl")
    if program is None:
        raise RefusedError(
            "neither this kernel nor a program hwpfctl gives access to the prefetchers of the A64FX",
            where=switches[0].place.file,
            remedy=f"load the environment of Fujitsu's job software, which has hwpfctl; {_WITHOUT}",
        )
    options = (*(_A64FX_CACHES[name][1] for name in names), *(f"--{text}" for text in texts))
    return Control(names, "hwpfctl", cpus, (), (program, *options), root, texts)


def _adjustment(text: str) -> tuple[str, int | None]:
    """The name and the distance in cache lines, rounded up as the processor does. Raises SelectionError."""
    name, equals, number = text.partition("=")
    limits = _ADJUSTMENTS[name]
    if limits.most == 0 and not equals:
        return name, None
    if limits.most == 0 or not number.isdecimal() or not 1 <= int(number) <= limits.most:
        values = f"=1 to {name}={limits.most}, in cache lines" if limits.most else " without a value"
        raise SelectionError(
            f"{text!r} does not adjust a prefetcher",
            where="prefetchers",
            remedy=f"write {name}{values}",
        )
    return name, -(-int(number) // limits.unit) * limits.unit


def _select_names(
    requested: Sequence[str], available: tuple[str, ...], further: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Those of the available that are requested; `further` names are only listed. Raises SelectionError."""
    unknown = [name for name in requested if name not in (ALL, *available)]
    if unknown or not requested:
        raise SelectionError(
            f"this processor has no prefetcher {', '.join(unknown) or 'without a name'}",
            where="prefetchers",
            remedy=f"'{ALL}' for all, or some of: {', '.join((*available, *further))}",
        )
    return available if ALL in requested else tuple(name for name in available if name in requested)


def run_without_prefetchers(
    names: Sequence[str], command: Sequence[str], environment: Mapping[str, str], root: Path = Path("/")
) -> int:
    """Runs a command with hardware prefetchers off on the CPUs of this process; its exit code.

    Raises SelectionError or RefusedError before anything is run, Interrupted when the user ends it.
    """
    control = find_control(names, os.sched_getaffinity(0), root) if names else None
    process: subprocess.Popen[bytes] | None = None
    with interruptible(), nullcontext() if control is None else switched_off(control):
        try:
            # An interrupt between its start and our knowing of it would leave it running.
            with postpone_signals():
                process = subprocess.Popen([*(control.program if control else ()), *command], env=environment)
            process.wait()
        finally:
            if process is not None and process.poll() is None:
                process.terminate()
                process.wait()
    return shell_code(process.returncode)
