"""Which CPU this is, which of its events this user may count, and what would permit more."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
import shutil
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pagewise.core.errors import PagewiseError, SelectionError, SetupError
from pagewise.core.events import GENERIC, PERF, SOFTWARE, Cpu, EventFile
from pagewise.core.findings import Finding, good, note
from pagewise.core.host import Host
from pagewise.core.text import choose_of
from pagewise.machine.host import field, read
from pagewise.stack.catalog import module_files

EVENTS = Path(__file__).parent / "events"
DESCRIBE = "describe its events in a new file: docs/how-to/counters.md"
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+")
# perf_event_open(2): its number by architecture; types and numbers of two events; flags of the attributes.
_SYSTEM_CALLS = {"x86_64": 298, "aarch64": 241, "ppc64le": 319, "riscv64": 241}
_HARDWARE, _SOFTWARE = 0, 1
_CYCLES, _PAGE_FAULTS = 0, 2
_WITHOUT_KERNEL = 1 << 5 | 1 << 6  # exclude_kernel, exclude_hv
_ATTRIBUTES = "=IIQQQQQ"
_ATTRIBUTE_BYTES = 64  # PERF_ATTR_SIZE_VER0
_CAP_SYS_ADMIN, _CAP_PERFMON = 21, 38
_NO_COUNTER = (errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP, errno.ENXIO)
_NOT_PERMITTED = (errno.EACCES, errno.EPERM)

INSTALL_PERF = "apt-get install linux-perf (Ubuntu: linux-tools-generic)"

Opens = Callable[[int, int, bool], int]


@dataclass(frozen=True)
class EventChoice:
    """The event file that is used, why, and what would permit more where something does."""

    file: EventFile
    reason: str
    remedy: str | None = None

    @property
    def text(self) -> str:
        """What is counted and why, and what would permit more; in lines."""
        more = f"\nFor more: {self.remedy}." if self.remedy else ""
        return f"To count: {self.file.title} ({self.reason}).{more}"


def read_cpu(root: Path = Path("/")) -> Cpu:
    """The first CPU of this machine; `root` stands for /."""
    file = root / "proc/cpuinfo"
    texts = (field(file, name) or "" for name in ("cpu family", "model", "CPU implementer", "CPU part"))
    family, model, implementer, part = (int(n, 0) if _NUMBER.fullmatch(n) else None for n in texts)
    return Cpu(field(file, "vendor_id"), family, model, implementer, part, field(file, "cpu"))


def kernel_events() -> dict[str, EventFile]:
    """The event files of this package: events that the kernel names, on any CPU. Raises FormatError."""
    return {file.stem: EventFile.from_file(file) for file in sorted(EVENTS.glob("*.yaml"))}


def event_folder(prefix: str) -> Path:
    """The folder of an installation's event files."""
    return Path(prefix) / "share" / "pagewise" / "events"


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
    hardware: Finding,
    named: str | None = None,
) -> EventChoice:
    """The file to count by: PAPI's events of this CPU, then the kernel's generic ones, then software events.

    papi: whether the programs were built with it. hardware: whether the CPU's counters can be used. named:
    the file that the user chose. Raises SelectionError, or SetupError when there is none.
    """
    by_name = {file.name: file for file in files}
    if named is not None:
        return EventChoice(find_file(by_name, named), "named by --events")
    fitting = file_for(cpu, files)
    if hardware.state != "good":
        known = f"this is {fitting.title}, but its" if fitting else "the"
        name, reason, remedy = SOFTWARE, f"{known} hardware counters: {hardware.detail}", hardware.remedy
    elif not papi:
        name, reason = PERF, "the programs were built without PAPI"
        remedy = "build with PAPI (Spack: +papi, CMake: -DPAGEWISE_PAPI=ON) for the events of this CPU"
    elif fitting is not None:
        return EventChoice(fitting, "the file for this CPU")
    else:
        name, reason, remedy = GENERIC, "no event file fits this CPU, so PAPI's presets", DESCRIBE
    if name not in by_name:
        raise SetupError(f"the event file {name}.yaml is not installed", remedy="build the environment again")
    return EventChoice(by_name[name], reason, remedy)


def file_for(cpu: Cpu, files: Sequence[EventFile]) -> EventFile | None:
    """The event file that is about this CPU; None without one."""
    return next((file for file in files if file.matches is not None and file.matches.fits(cpu)), None)


def permissions(
    host: Host, tree: Path | None, root: Path = Path("/"), opens: Opens | None = None
) -> Iterator[Finding]:
    """All preconditions. `tree` is the module tree, None without one; `opens` asks the kernel."""
    opens = opens or open_error
    hardware = hardware_counters(host, root, opens)
    yield hardware
    yield _software(opens)
    if (
        hardware.state == "good"
        and read(root / "proc/sys/kernel/nmi_watchdog") == "1"
        and platform.machine() in ("x86_64", "i686")
    ):
        yield note(
            "counters taken",
            "the kernel's watchdog uses one of the CPU's counters: full groups may not fit",
            "as root, until counting ends: sysctl kernel.nmi_watchdog=0",
        )
    yield _events(tree, root, hardware)
    yield _perf()
    if tree is not None:
        yield _papi(tree)


def hardware_counters(host: Host, root: Path = Path("/"), opens: Opens | None = None) -> Finding:
    """Whether the CPU's counters may be used: `good`, or why not and what would permit it."""
    opens = opens or open_error
    name, paranoid = "hardware counters", host.perf_event_paranoid
    refused = opens(_HARDWARE, _CYCLES, True)
    if refused == 0:
        modes = "user and kernel mode" if opens(_HARDWARE, _CYCLES, False) == 0 else "user mode"
        return good(name, f"may be used, in {modes} (perf_event_paranoid {paranoid})")
    if refused not in _NO_COUNTER:
        return note(name, _refusal(refused, paranoid), _permit(refused, host, root))
    where, remedy = "the kernel supports none on this CPU", "use a kernel that supports this CPU"
    if host.virtual_machine:
        where = f"the virtual machine ({host.virtual_machine}) exposes none"
        remedy = "count on a bare machine, or ask for a host that exposes its PMU"
    return note(name, f"unavailable: {where}; measuring times does not need them", remedy)


def open_error(kind: int, event: int, user_only: bool) -> int:
    """Opens a counter of this process and closes it again: 0, or the errno with which the kernel refused."""
    number = _SYSTEM_CALLS.get(platform.machine())
    if number is None:
        return errno.ENOSYS
    flags = _WITHOUT_KERNEL if user_only else 0
    packed = struct.pack(_ATTRIBUTES, kind, _ATTRIBUTE_BYTES, event, 0, 0, 0, flags)
    attributes = ctypes.create_string_buffer(packed, _ATTRIBUTE_BYTES)
    system = ctypes.CDLL(None, use_errno=True)
    descriptor = system.syscall(ctypes.c_long(number), attributes, *map(ctypes.c_long, (0, -1, -1, 0)))
    if descriptor < 0:
        return ctypes.get_errno()
    os.close(descriptor)
    return 0


def _software(opens: Opens) -> Finding:
    name = "software events"
    whole, user = opens(_SOFTWARE, _PAGE_FAULTS, False), opens(_SOFTWARE, _PAGE_FAULTS, True)
    if whole == 0:
        return good(name, "may be counted: faults, context switches, migrations, task clock")
    if user == 0:
        detail = "may be counted in user mode only: no context switches, no faults in system calls"
        return note(name, detail, "as root: sysctl kernel.perf_event_paranoid=1, or CAP_PERFMON")
    return note(name, f"not permitted ({os.strerror(user)}); programs use getrusage(2)")


def _perf() -> Finding:
    """Whether perf is installed, which counts the user's own programs."""
    path = shutil.which("perf")
    if path is not None:
        return good("perf", path)
    detail = "not installed: of your own programs only page faults and task clock can be counted"
    return note("perf", detail, INSTALL_PERF)


def _events(tree: Path | None, root: Path, hardware: Finding) -> Finding:
    """The event file for this CPU, and whether its events can be counted."""
    name = "events"
    try:
        files = _installed_files(tree)
    except PagewiseError as fault:
        return note(name, f"{fault.where}: {fault.message}", "build the environment again")
    if not files:
        return note(name, "no event files are installed", "build an environment")
    fitting = file_for(read_cpu(root), files)
    if fitting is None:
        return note(name, f"no event file fits this CPU: {GENERIC} ones are used", DESCRIBE)
    groups = ", ".join(group.name for group in fitting.groups)
    text = f"{fitting.title}: {len(fitting.events)} in groups {groups}"
    if hardware.state == "good":
        return good(name, text)
    return note(name, f"software events only, without hardware counters; with them {text}")


def _papi(tree: Path) -> Finding:
    """Whether the modules' programs were built with PAPI."""
    values = _settings(tree, "PAPI")
    on = values.count("on")
    if values and on == len(values):
        return good("PAPI", f"in all {on} modules")
    return note(
        "PAPI",
        f"in {on} of {len(values)} modules: without it only the kernel's own events can be counted",
        "apt-get install libpapi-dev, and build with PAPI (Spack: +papi, CMake: -DPAGEWISE_PAPI=ON)",
    )


def _installed_files(tree: Path | None) -> list[EventFile]:
    """The event files that some module's programs brought. Raises FormatError."""
    prefixes = [] if tree is None else _settings(tree, "PREFIX")
    folder = next(filter(Path.is_dir, map(event_folder, prefixes)), None)
    return [] if folder is None else [EventFile.from_file(path) for path in sorted(folder.glob("*.yaml"))]


def _settings(tree: Path, name: str) -> list[str]:
    """What the module files of a tree set PAGEWISE_`name` to; they are read, not executed."""
    pattern = rf'"PAGEWISE_{name}",\s*"([^"]+)"'
    matches = (re.search(pattern, read(file) or "") for file in module_files(tree).values())
    return [match[1] for match in matches if match]


def _refusal(refused: int, paranoid: int | None) -> str:
    if refused in _NOT_PERMITTED:
        return f"not permitted to this user (perf_event_paranoid {paranoid}, {os.strerror(refused)})"
    return f"the kernel refuses them: {os.strerror(refused)}"


def _permit(refused: int, host: Host, root: Path) -> str | None:
    if refused == errno.ENOSYS or refused not in _NOT_PERMITTED:
        return None
    if host.container and (host.perf_event_paranoid or 0) <= 2:
        return "start the container with --cap-add PERFMON, or a seccomp profile that allows perf_event_open"
    capability = "" if has_capability(root) else ", or give the programs CAP_PERFMON (setcap cap_perfmon+ep)"
    return f"as root: sysctl kernel.perf_event_paranoid=2{capability}"


def has_capability(root: Path = Path("/")) -> bool:
    """Whether this process has CAP_PERFMON or CAP_SYS_ADMIN."""
    held = int(field(root / "proc/self/status", "CapEff") or "0", 16)
    return bool(held >> _CAP_PERFMON & 1 or held >> _CAP_SYS_ADMIN & 1)
