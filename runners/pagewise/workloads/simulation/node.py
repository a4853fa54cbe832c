"""The geometry of this node: measured once by the kernel tlb, and kept by processor and Linux version."""

from __future__ import annotations

import mmap
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import yaml
from rich.console import Console

from pagewise.core.errors import RefusedError, SelectionError, SetupError
from pagewise.core.files import make_private, user_folder, write_inside
from pagewise.core.text import identifier
from pagewise.machine import memory
from pagewise.machine.host import read_host
from pagewise.stack.paths import project_root
from pagewise.workloads.simulation.geometry import Geometry, read_geometry

#: The name of this node's geometry.
NODE = "node"
#: The kernel that measures it.
KERNEL = "tlb"
_REMEDY = "name another geometry: --geometry zen4, or your file"
# Pages of 2 MiB that fill second levels of 512 entries four times; less where less memory is free.
_LARGEST = 4 << 30
_SMALLEST = 64 << 20
_PROBED_BYTES = 64 << 20
_PROBES = 5
_PAGES_UNAVAILABLE = 3
_LIMIT = 300.0
# Each page size is measured so often. Costs that differ by more than this factor are reported.
_RUNS, _UNCERTAIN = 3, 1.5


def kept_file() -> Path:
    """Where the geometry of this node is kept: in the checkout's state, or in the user's cache.

    Raises SetupError.
    """
    host, state = read_host(), project_root() / ".pagewise"
    cache = user_folder("XDG_CACHE_HOME", ".cache")
    folder = state if state.is_dir() or cache is None else cache / "pagewise"
    if not make_private(folder / "geometry"):
        raise SetupError(
            "no geometry can be kept here", where=folder / "geometry", remedy="make it a folder of this user"
        )
    return folder / "geometry" / f"{identifier(f'{host.cpu or host.architecture}-{host.kernel}')}.yaml"


def node_geometry(program: Path | None, console: Console) -> Geometry:
    """The geometry of this node as it was kept, or measured with `program`, the kernel tlb.

    Raises SelectionError without the program, RefusedError, SetupError, FormatError.
    """
    file = kept_file()
    if file.exists():
        return read_geometry(file)
    if program is None:
        raise SelectionError(
            f"this build has no pw-{KERNEL}, which measures the geometry of this node",
            where="--geometry",
            remedy=f"build it there: ninja pw-{KERNEL}; or {_REMEDY}",
        )
    console.print(
        f"Measuring the TLBs of this node, once: {file}", highlight=False, soft_wrap=True, markup=False
    )
    room = (memory.available() or 2 * _SMALLEST) // 2
    size = max(_SMALLEST, min(_LARGEST, 1 << room.bit_length() - 1))
    huge = ("thp", "--working-set", f"{size >> 20}MiB")
    with tempfile.TemporaryDirectory() as folder:
        base = _measure(program, None, ("none",), Path(folder), console)
        assert base is not None
        geometry = read_geometry(_measure(program, base, huge, Path(folder), console) or base)
    levels = [sum(tlb.pages == pages for tlb in geometry.tlbs) for pages in ("base", "huge")]
    if geometry.entry_bytes == geometry.pages.base and len(set(levels)) > 1:
        _note_uncertainty(
            f"{levels[0]} and {levels[1]} levels were found, although entries hold base pages", console
        )
    base_ns, huge_ns = fault_costs(geometry.pages.base, geometry.pages.huge)
    geometry = replace(geometry, pages=replace(geometry.pages, base_fault_ns=base_ns, huge_fault_ns=huge_ns))
    write_inside(file.parent, file.name, yaml.safe_dump(geometry.data, sort_keys=False))
    return geometry


def _measure(
    program: Path, before: Path | None, pages: Sequence[str], folder: Path, console: Console
) -> Path | None:
    """A geometry file with the TLBs of one page size: that of several runs whose misses cost the median.

    before: a file with the TLBs of another page size. None: such pages are unavailable. Raises RefusedError.
    """
    files: dict[Path, float] = {}
    for attempt in range(_RUNS):
        file = folder / f"{pages[0]}{attempt}.yaml"
        if before is not None:
            shutil.copy(before, file)
        command = [str(program), "--geometry", str(file), "--pages", *pages]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=_LIMIT, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as fault:
            raise RefusedError(
                f"the TLBs of this node cannot be measured: {fault}", where=program, remedy=_REMEDY
            ) from fault
        if before is not None and done.returncode == _PAGES_UNAVAILABLE:
            return None
        if done.returncode != 0 or not file.exists():
            raise RefusedError(
                "the TLBs of this node cannot be measured:\n    " + done.stderr.strip(),
                where=" ".join(command),
                remedy=_REMEDY,
            )
        files[file] = sum(read_geometry(file).miss_costs("base" if before is None else "huge") or (0.0,))
    least, *_, most = sorted(files.values())
    if most > _UNCERTAIN * least:
        _note_uncertainty(f"a miss of the TLBs costs {least:.1f} to {most:.1f} ns", console)
    middle = statistics.median_low(files.values())
    return next(file for file, cost in files.items() if cost == middle)


def _note_uncertainty(why: str, console: Console) -> None:
    console.print(
        f"note: the geometry of this node is uncertain: {why}. If other programs run, remove its file "
        "later, to measure it again",
        highlight=False,
        soft_wrap=True,
        markup=False,
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
