"""What this node is and how it is set: read from /proc and /sys, never written."""

from __future__ import annotations

import os
import platform
import re
import socket
from collections.abc import Iterator
from pathlib import Path

from pagewise.core.fields import cpu_list
from pagewise.core.host import Cache, Host, NumaNode, PoolState, Thp

THP = Path("sys/kernel/mm/transparent_hugepage")
MOUNT_PROC = "as root: mount -t proc proc /proc"
MOUNT_SYS = "as root: mount -t sysfs sysfs /sys; for a container, pass /sys/kernel/mm in"
_BALLOON = Path("sys/bus/virtio/drivers/virtio_balloon")
# VIRTIO_BALLOON_F_REPORTING, the number of a feature bit (linux/virtio_balloon.h).
_REPORTING = 5
_CPUS = Path("sys/devices/system/cpu")
_PMUS = ("cpu", "cpu_core", "cpu_atom", "armv8_*", "arm_pmu*", "POWER*", "a64fx*")
_HYPERVISORS = re.compile(r"KVM|QEMU|VMware|VirtualBox|Virtual Machine|Xen|Bochs|Amazon EC2|Google Compute")


def read_host(root: Path = Path("/")) -> Host:
    """Describes this node. `root` stands for / (tests pass another)."""
    return Host(
        hostname=socket.gethostname(),
        cpu=field(root / "proc/cpuinfo", "(?:model name|Model|cpu)"),
        architecture=platform.machine(),
        microcode=field(root / "proc/cpuinfo", "microcode"),
        kernel=platform.release(),
        base_page_size_bytes=os.sysconf("SC_PAGESIZE"),
        memory_bytes=size(root / "proc/meminfo", "MemTotal"),
        cpus=len(_cpus(root / _CPUS / "online")) or 1,
        smt={None: None, "1": True}.get(read(root / _CPUS / "smt/active"), False),
        numa_nodes=tuple(
            NumaNode(number, _cpus(folder / "cpulist"), size(folder / "meminfo", "MemTotal"))
            for number, folder in _numbered_entries(root / "sys/devices/system/node", "node", "")
        ),
        caches=tuple(sorted(_caches(root), key=lambda cache: cache.level)),
        thp=_thp(root),
        thp_allowed={"1": True, "0": False}.get(field(root / "proc/self/status", "THP_enabled") or ""),
        pools=tuple(
            PoolState(
                kib * 1024, number(folder / "nr_hugepages") or 0, number(folder / "free_hugepages") or 0
            )
            for kib, folder in _numbered_entries(root / "sys/kernel/mm/hugepages", "hugepages-", "kB")
        ),
        governors=_cpufreq(root, "scaling_governor"),
        virtual_machine=_virtual_machine(root),
        container=(root / ".dockerenv").exists() or (root / "run/.containerenv").exists(),
        pmu=any(next((root / "sys/bus/event_source/devices").glob(name), None) for name in _PMUS),
        perf_event_paranoid=number(root / "proc/sys/kernel/perf_event_paranoid"),
        khugepaged=khugepaged_settings(root),
        free_page_reporting=free_page_reporting(root),
        scaling_drivers=_cpufreq(root, "scaling_driver"),
        boost=_boost(root),
    )


def read(file: Path) -> str | None:
    """The text of a small file without surrounding white space; None if it cannot be read."""
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def field(file: Path, name: str) -> str | None:
    """The first value of a file with lines `name: value`; `name` is a regular expression."""
    match = re.search(rf"^{name}\s*:[ \t]*(\S.*)$", read(file) or "", re.MULTILINE)
    return match[1].strip() if match else None


def size(file: Path, name: str) -> int | None:
    """A size in bytes from a file such as /proc/meminfo, or from a NUMA node's meminfo."""
    kib = re.fullmatch(r"(\d+) kB", field(file, rf"(?:Node \d+ )?{re.escape(name)}") or "")
    return int(kib[1]) * 1024 if kib else None


def thp_size(root: Path = Path("/")) -> int | None:
    """The size of transparent huge pages: 512 MiB with base pages of 64 KiB on Arm; None without them."""
    return number(root / THP / "hpage_pmd_size")


def default_pool_size(root: Path = Path("/")) -> int | None:
    """The page size of the default hugetlb pool; None without pools."""
    return size(root / "proc/meminfo", "Hugepagesize")


def bracketed_word(text: str | None) -> str | None:
    """The word in brackets: `madvise` in `always [madvise] never`."""
    match = re.search(r"\[(\S+)\]", text or "")
    return match[1] if match else None


def is_guest(root: Path = Path("/")) -> bool:
    """Whether the CPU reports that it runs under a hypervisor."""
    return "hypervisor" in (field(root / "proc/cpuinfo", "flags") or "").split()


def number(file: Path) -> int | None:
    """The whole number in a file; None if it cannot be read or holds something else."""
    text = read(file) or ""
    return int(text) if re.fullmatch(r"-?\d+", text) else None


def _numbered_entries(folder: Path, before: str, after: str) -> list[tuple[int, Path]]:
    """The entries of a folder whose names are a number between these texts, by number."""
    name = re.compile(rf"{before}([0-9]+){after}")
    entries = ((name.fullmatch(entry.name), entry) for entry in folder.glob(f"{before}*{after}"))
    return sorted((int(match[1]), entry) for match, entry in entries if match)


def _cpus(file: Path) -> tuple[int, ...]:
    """The CPUs that a file lists; none if it is missing or holds something else."""
    try:
        return tuple(cpu_list(read(file) or ""))
    except ValueError:
        return ()


def _caches(root: Path) -> Iterator[Cache]:
    """The data and unified caches of the first CPU."""
    for folder in sorted((root / _CPUS / "cpu0/cache").glob("index[0-9]*")):
        kib = re.match(r"(\d+)K", read(folder / "size") or "")
        if read(folder / "type") in ("Data", "Unified") and kib:
            shared_by = len(_cpus(folder / "shared_cpu_list")) or 1
            yield Cache(number(folder / "level") or 0, int(kib[1]) * 1024, shared_by)


def _thp(root: Path) -> Thp | None:
    enabled = bracketed_word(read(root / THP / "enabled"))
    if enabled is None:
        return None
    sizes = [folder for _, folder in _numbered_entries(root / THP, "hugepages-", "kB")]
    by_size = {path.name.removeprefix("hugepages-"): bracketed_word(read(path / "enabled")) for path in sizes}
    defrag, shared = (bracketed_word(read(root / THP / name)) for name in ("defrag", "shmem_enabled"))
    return Thp(enabled, defrag, by_size, shared)


def khugepaged_settings(root: Path = Path("/")) -> dict[str, int] | None:
    """The settings of khugepaged and its progress since the node started; None without it."""
    values = {file.name: number(file) for file in sorted((root / THP / "khugepaged").glob("*"))}
    return {name: value for name, value in values.items() if value is not None} or None


def free_page_reporting(root: Path = Path("/")) -> bool | None:
    """Whether the hypervisor takes back freed memory; None without a virtio balloon."""
    features = [read(file) or "" for file in (root / _BALLOON).glob("virtio*/features")]
    return any(bits[_REPORTING : _REPORTING + 1] == "1" for bits in features) if features else None


def _cpufreq(root: Path, name: str) -> tuple[str, ...] | None:
    """The values of a setting of all CPUs."""
    names = {read(file) for file in (root / _CPUS).glob(f"cpu[0-9]*/cpufreq/{name}")}
    return tuple(sorted(name for name in names if name)) or None


def _boost(root: Path) -> bool | None:
    """Whether clocks above the nominal one are allowed; None if the driver does not report it."""
    off = read(root / _CPUS / "intel_pstate/no_turbo")
    reported = {"0": "1", "1": "0"}.get(off or "", read(root / _CPUS / "cpufreq/boost") or "")
    return {"1": True, "0": False}.get(reported)


def _virtual_machine(root: Path) -> str | None:
    """The product or hypervisor name (`unnamed hypervisor` by the CPU flag alone), None on bare metal."""
    texts = (read(root / f"sys/class/dmi/id/{name}") for name in ("sys_vendor", "product_name"))
    product = " ".join(filter(None, texts))
    if is_guest(root):
        return product or read(root / "sys/hypervisor/type") or "unnamed hypervisor"
    return product if _HYPERVISORS.search(product) and "metal" not in product else None
