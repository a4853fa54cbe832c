"""What this node is and how it is set: read from /proc and /sys, never written."""

from __future__ import annotations

import os
import platform
import re
import socket
from pathlib import Path

from pagewise.core.cpus import cpu_list
from pagewise.core.host import Cache, Host, NumaNode, PoolState, Thp

_THP = Path("sys/kernel/mm/transparent_hugepage")
_POOLS = Path("sys/kernel/mm/hugepages")
_CPUS = Path("sys/devices/system/cpu")
_NODES = Path("sys/devices/system/node")
_PMUS = ("cpu", "cpu_core", "cpu_atom", "armv8_*", "arm_pmu*", "POWER*", "a64fx*")


def read_host(root: Path = Path("/")) -> Host:
    """This node. `root` stands for / (tests give another)."""
    return Host(
        hostname=socket.gethostname(),
        cpu=_cpu_name(root),
        architecture=platform.machine(),
        microcode=_field(root / "proc/cpuinfo", "microcode"),
        kernel=platform.release(),
        base_page_size_bytes=os.sysconf("SC_PAGESIZE"),
        memory_bytes=_memory(root),
        cpus=len(_cpus(root / _CPUS / "online")) or 1,
        smt=_smt(root),
        numa_nodes=_numa_nodes(root),
        caches=_caches(root),
        thp=_thp(root),
        thp_allowed={"1": True, "0": False}.get(_field(root / "proc/self/status", "THP_enabled") or ""),
        pools=_pools(root),
        governors=_governors(root),
        virtual_machine=_virtual_machine(root),
        container=_container(root),
        pmu=_has_pmu(root),
        perf_event_paranoid=_number(read(root / "proc/sys/kernel/perf_event_paranoid")),
    )


def read(file: Path) -> str | None:
    """A small file's text without white space around it, None when it is not there or not readable."""
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _numa_nodes(root: Path = Path("/")) -> tuple[NumaNode, ...]:
    """The NUMA nodes; empty on a kernel without them."""
    nodes = []
    for number, folder in _numbered(root / _NODES, "node", ""):
        total = re.search(r"MemTotal:\s+(\d+) kB", read(folder / "meminfo") or "")
        memory = int(total[1]) * 1024 if total else None
        nodes.append(NumaNode(number, tuple(_cpus(folder / "cpulist")), memory))
    return tuple(nodes)


def _numbered(folder: Path, before: str, after: str) -> list[tuple[int, Path]]:
    """The entries of a folder whose names are a number between these texts, by number."""
    name = re.compile(rf"{before}([0-9]+){after}")
    found = ((name.fullmatch(entry.name), entry) for entry in folder.glob(f"{before}*{after}"))
    return sorted((int(match[1]), entry) for match, entry in found if match)


def _cpus(file: Path) -> list[int]:
    """The CPUs that a file of the kernel's lists; none where it is not there or says something else."""
    try:
        return cpu_list(read(file) or "")
    except ValueError:
        return []


def chosen(text: str | None) -> str | None:
    """The setting in brackets: `always [madvise] never` is `madvise`."""
    match = re.search(r"\[(\S+)\]", text or "")
    return match[1] if match else None


def _cpu_name(root: Path) -> str | None:
    text = read(root / "proc/cpuinfo") or ""
    match = re.search(r"^(?:model name|Model|cpu)\s*:\s*(.+)$", text, re.MULTILINE)
    return match[1].strip() if match else None


def _field(file: Path, name: str) -> str | None:
    """The first `name: value` of a file of the kernel's."""
    match = re.search(rf"^{name}\s*:\s*(\S.*)$", read(file) or "", re.MULTILINE)
    return match[1].strip() if match else None


def _memory(root: Path) -> int | None:
    match = re.search(r"^MemTotal:\s+(\d+) kB", read(root / "proc/meminfo") or "", re.MULTILINE)
    return int(match[1]) * 1024 if match else None


def _smt(root: Path) -> bool | None:
    text = read(root / _CPUS / "smt" / "active")
    return None if text is None else text == "1"


def _caches(root: Path) -> tuple[Cache, ...]:
    """The data and unified caches which the first CPU sees, by level."""
    caches = []
    for folder in sorted((root / _CPUS / "cpu0" / "cache").glob("index[0-9]*")):
        kind, size = read(folder / "type"), re.match(r"(\d+)K", read(folder / "size") or "")
        if kind in ("Data", "Unified") and size:
            shared_by = len(_cpus(folder / "shared_cpu_list")) or 1
            caches.append(Cache(int(read(folder / "level") or 0), int(size[1]) * 1024, shared_by))
    return tuple(sorted(caches, key=lambda cache: cache.level))


def _thp(root: Path) -> Thp | None:
    enabled = chosen(read(root / _THP / "enabled"))
    if enabled is None:
        return None
    sizes = [folder for _, folder in _numbered(root / _THP, "hugepages-", "kB")]
    by_size = {path.name.removeprefix("hugepages-"): chosen(read(path / "enabled")) for path in sizes}
    return Thp(enabled, chosen(read(root / _THP / "defrag")), by_size)


def _pools(root: Path) -> tuple[PoolState, ...]:
    return tuple(
        PoolState(
            kib * 1024,
            _number(read(folder / "nr_hugepages")) or 0,
            _number(read(folder / "free_hugepages")) or 0,
        )
        for kib, folder in _numbered(root / _POOLS, "hugepages-", "kB")
    )


def _governors(root: Path) -> tuple[str, ...] | None:
    names = {read(file) for file in (root / _CPUS).glob("cpu[0-9]*/cpufreq/scaling_governor")}
    return tuple(sorted(name for name in names if name)) or None


def _virtual_machine(root: Path) -> str | None:
    """The product or hypervisor name (`unnamed hypervisor` by the CPU flag alone), None on bare metal."""
    product = " ".join(
        filter(None, (read(root / f"sys/class/dmi/id/{name}") for name in ("sys_vendor", "product_name")))
    )
    flagged = re.search(r"^flags\s*:.*\bhypervisor\b", read(root / "proc/cpuinfo") or "", re.MULTILINE)
    named = re.search(
        r"KVM|QEMU|VMware|VirtualBox|Virtual Machine|Xen|Bochs|Amazon EC2|Google Compute", product
    )
    if flagged:
        return product or read(root / "sys/hypervisor/type") or "unnamed hypervisor"
    return product if named and not re.search(r"metal", product) else None


def _container(root: Path) -> bool:
    return (root / ".dockerenv").exists() or (root / "run/.containerenv").exists()


def _has_pmu(root: Path) -> bool:
    devices = root / "sys/bus/event_source/devices"
    return any(next(devices.glob(name), None) for name in _PMUS)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"-?\d+", text) else None
