"""The geometry of this node: measured once by the kernel tlb, and kept by processor and Linux version."""

from __future__ import annotations

import mmap
import os
import resource
import statistics
import subprocess
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import yaml
from rich.console import Console

from pagewise.core.errors import RefusedError, SetupError
from pagewise.core.files import make_private, user_folder
from pagewise.core.text import identifier
from pagewise.machine import memory
from pagewise.machine.host import read_host
from pagewise.stack.paths import project_root
from pagewise.workloads.simulation.geometry import Geometry, read_geometry

#: The name of this node's geometry.
NODE = "node"
#: The kernel that measures it.
KERNEL = "tlb"
_REMEDY = "name another geometry: --geometry zen4, or a file of yours"
# Pages of 2 MiB that fill second levels of 512 entries four times; less where less memory is free.
_LARGEST = 4 << 30
_SMALLEST = 64 << 20
_PROBED_BYTES = 64 << 20
_PROBES = 5
_PAGES_UNAVAILABLE = 3
_LIMIT = 300.0


def kept_file(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the geometry of this node is kept: in the checkout's state, or in the user's cache.

    Raises SetupError.
    """
    host, state = read_host(), project_root(environ) / ".pagewise"
    cache = user_folder("XDG_CACHE_HOME", ".cache", environ)
    folder = state if state.is_dir() or cache is None else cache / "pagewise"
    if not make_private(folder / "geometry"):
        raise SetupError(
            "no geometry can be kept here", where=folder / "geometry", remedy="make it a folder of this user"
        )
    return folder / "geometry" / f"{identifier(f'{host.cpu or host.architecture}-{host.kernel}')}.yaml"


def node_geometry(program: Path, console: Console, file: Path) -> Geometry:
    """The geometry of this node, from its file, or measured with `program`, the kernel tlb.

    Raises RefusedError, FormatError.
    """
    if file.exists():
        return read_geometry(file)
    console.print(
        f"Measuring the TLBs of this node, once: {file}", highlight=False, soft_wrap=True, markup=False
    )
    written = file.with_suffix(f".{os.getpid()}.yaml")
    try:
        _run_kernel(program, written, "--pages", "none")
        room = (memory.available() or 2 * _SMALLEST) // 2
        size = max(_SMALLEST, min(_LARGEST, 1 << room.bit_length() - 1))
        _run_kernel(program, written, "--pages", "thp", "--working-set", f"{size >> 20}MiB")
        geometry = read_geometry(written)
        base, huge = fault_costs(geometry.pages.base, geometry.pages.huge)
        geometry = replace(geometry, pages=replace(geometry.pages, base_fault_ns=base, huge_fault_ns=huge))
        written.write_text(yaml.safe_dump(geometry.data, sort_keys=False), encoding="utf-8")
        written.replace(file)
    finally:
        written.unlink(missing_ok=True)
    return geometry


def _run_kernel(program: Path, file: Path, *arguments: str) -> None:
    """Measures the TLBs of one page size. Raises RefusedError, unless these pages are unavailable."""
    command = [str(program), "--geometry", str(file), "--threads", "1", *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_LIMIT, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise RefusedError(
            f"the TLBs of this node cannot be measured: {fault}", where=program, remedy=_REMEDY
        ) from fault
    if done.returncode not in (0, _PAGES_UNAVAILABLE) or not file.exists():
        raise RefusedError(
            "the TLBs of this node cannot be measured:\n    " + done.stderr.strip().replace("\n", "\n    "),
            where=" ".join(command),
            remedy=_REMEDY,
        )


def fault_costs(base: int, huge: int) -> tuple[float | None, float | None]:
    """Nanoseconds of the first access to a base page and to a huge page; None: such pages are unavailable."""
    seconds, faults = zip(*(_probe(base, mmap.MADV_NOHUGEPAGE) for _ in range(_PROBES)), strict=True)
    cost = statistics.median(seconds) / (_PROBED_BYTES / base) * 1e9
    seconds, faults = zip(*(_probe(base, mmap.MADV_HUGEPAGE) for _ in range(_PROBES)), strict=True)
    # A fault on a huge page replaces those on its base pages.
    each = huge // base
    costs = []
    for duration, number in zip(seconds, faults, strict=True):
        of_huge = round((_PROBED_BYTES / base - number) / (each - 1))
        if of_huge > 0:
            costs.append((duration * 1e9 - max(0, number - of_huge) * cost) / of_huge)
    return cost, max(0.0, statistics.median(costs)) if costs else None


def _probe(page: int, advice: int) -> tuple[float, int]:
    """CPU seconds and page faults of the first access to each base page of a mapping."""
    with mmap.mmap(-1, _PROBED_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as mapping:
        mapping.madvise(advice)
        values = bytes(_PROBED_BYTES // page)
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
        began = time.thread_time()
        mapping[::page] = values
        seconds = time.thread_time() - began
        return seconds, resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before
