"""The geometry of this node: measured once by the kernel tlb, and kept by processor and Linux version."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import astuple, replace
from pathlib import Path
from statistics import median

import yaml
from rich.console import Console

from pagewise.core.errors import RefusedError, SelectionError, SetupError
from pagewise.core.files import make_private, user_folder, write_inside
from pagewise.core.reading import parse_json
from pagewise.core.structure import from_data, to_data
from pagewise.core.text import identifier
from pagewise.machine import memory
from pagewise.machine.host import read_host
from pagewise.stack.commands import run_to_end
from pagewise.stack.paths import project_root
from pagewise.workloads.simulation.geometry import Costs, Geometry, Translation, read_geometry

#: The name of this node's geometry.
NODE = "node"
#: The kernel that measures it.
KERNEL = "tlb"
_REMEDY = "name another geometry: --geometry zen4, or your file"
# Pages of 2 MiB that fill second levels of 512 entries four times; less where less memory is free.
_LARGEST = 4 << 30
_SMALLEST = 64 << 20
_PAGES_UNAVAILABLE = 3
# Each has other physical pages, which change the costs by up to a factor of 3.
_RUNS_OF_COSTS = 5
_LIMIT = 300.0
_UNCERTAIN = (
    "note: the geometry of this node is uncertain: {} and {} levels were found, although entries hold base "
    "pages. If other programs run, remove its file later, to measure it again"
)


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


def node_geometry(tlb: Path | None, costs: Path, console: Console) -> Geometry:
    """The geometry of this node as it was kept, or measured with the kernel tlb and `pagewise-costs`.

    Raises SelectionError without these programs, RefusedError, SetupError, FormatError.
    """
    file = kept_file()
    if file.exists():
        return read_geometry(file)
    if tlb is None or not costs.is_file():
        raise SelectionError(
            f"this build has no pw-{KERNEL} or no {costs.name}, which measure the geometry of this node",
            where="--geometry",
            remedy=f"build them there: ninja pw-{KERNEL} {costs.name}; or {_REMEDY}",
        )
    console.print(f"Measuring the TLBs of this node, once: {file}", soft_wrap=True)
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "node.yaml"
        command = [str(tlb), "--geometry", str(written), "--pages"]
        _output([*command, "none"])
        _output([*command, "thp", "--working-set", f"{_size(_LARGEST, 2) >> 20}MiB"], optional=True)
        geometry = read_geometry(written)
    size = str(_size(_LARGEST // 2, 4))
    measured = [_output([str(costs), size], optional=True) for _ in range(_RUNS_OF_COSTS)]
    if all(measured):
        each = [from_data(Costs, parse_json(text.encode())) for text in measured]
        geometry = replace(geometry, costs=median_of(each))
    levels = [sum(tlb.pages == pages for tlb in geometry.tlbs) for pages in ("base", "huge")]
    if geometry.entry_bytes == geometry.pages.base and len(set(levels)) > 1:
        console.print(_UNCERTAIN.format(*levels), soft_wrap=True)
    write_inside(file.parent, file.name, yaml.safe_dump(to_data(geometry), sort_keys=False))
    return geometry


def median_of(each: Sequence[Costs]) -> Costs:
    """The median of each cost."""
    rows = zip(*(costs.translations for costs in each), strict=True)
    return Costs(
        median(costs.base_fault_ns for costs in each),
        median(costs.huge_fault_ns for costs in each),
        tuple(Translation(*map(median, zip(*map(astuple, row), strict=True))) for row in rows),
    )


def _size(largest: int, part: int) -> int:
    """Bytes, a power of two: at most `largest`, and at most this part of the free memory."""
    room = (memory.available() or part * _SMALLEST) // part
    return max(_SMALLEST, min(largest, 1 << room.bit_length() - 1))


def _output(command: Sequence[str], *, optional: bool = False) -> str:
    """What it prints; nothing where its pages are unavailable and it is optional. Raises RefusedError."""
    try:
        done = run_to_end(command, seconds=_LIMIT)
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise RefusedError(
            f"the TLBs of this node cannot be measured: {fault}", where=command[0], remedy=_REMEDY
        ) from fault
    if optional and done.returncode == _PAGES_UNAVAILABLE:
        return ""
    if done.returncode != 0:
        raise RefusedError(
            "the TLBs of this node cannot be measured:\n    " + done.stderr.strip(),
            where=" ".join(command),
            remedy=_REMEDY,
        )
    return done.stdout
