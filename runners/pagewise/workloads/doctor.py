"""Check what this node provides for a comparison, with remedies for what is missing. Changes nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from rich.console import Console
from rich.text import Text

from pagewise.core.errors import PagewiseError
from pagewise.core.host import Host
from pagewise.core.node_state import HugePageSupply
from pagewise.core.page_policy import size_name
from pagewise.core.units import bytes_text, count_text, percent_text
from pagewise.machine.energy import find_meter
from pagewise.machine.groups import pool_pages_left
from pagewise.machine.host import (
    MOUNT_PROC,
    MOUNT_SYS,
    default_pool_size,
    read_host,
    shows_huge_pages,
    shows_processes,
)
from pagewise.machine.node_state import predict, unit_of_process
from pagewise.machine.placement import Where, placements
from pagewise.machine.settings.prefetchers import ALL, find_control
from pagewise.machine.settings.session import traces
from pagewise.machine.topology import read_topology
from pagewise.session.launch import find_hyperfine
from pagewise.stack import lmod
from pagewise.stack.paths import checkout, module_tree, project_root
from pagewise.stack.setup import SetupFacts, setup_facts
from pagewise.stack.user_spack import find_spack

FindingState = Literal["good", "note", "lack"]
_NOISE_SECONDS = 2.0
_FEWEST_TIMES = 10
# Of the memory that new programs can use.
_ENOUGH_IN_BLOCKS = 0.5
_STEADY = 0.03
_MARKS: dict[FindingState, tuple[str, str]] = {
    "good": ("✓", "green"),
    "note": ("•", "yellow"),
    "lack": ("✗", "bold red"),
}


@dataclass(frozen=True)
class Finding:
    """The result of one check. `note`: it works with a limitation. `lack`: missing for a comparison."""

    topic: str
    name: str
    state: FindingState
    detail: str
    remedy: str | None

    @property
    def is_missing(self) -> bool:
        """Whether something that a comparison needs is missing."""
        return self.state == "lack"


@dataclass(frozen=True)
class _Topic:
    """Makes the findings of a topic."""

    topic: str

    def good(self, name: str, detail: str) -> Finding:
        return Finding(self.topic, name, "good", detail, None)

    def note(self, name: str, detail: str, remedy: str | None = None) -> Finding:
        return Finding(self.topic, name, "note", detail, remedy)

    def missing(self, name: str, detail: str, remedy: str | None = None) -> Finding:
        return Finding(self.topic, name, "lack", detail, remedy)

    def attempted(self, name: str, find: Callable[[], str], *, is_needed: bool) -> Finding:
        """What `find` returns, or why it raises a PagewiseError."""
        try:
            return self.good(name, find())
        except PagewiseError as fault:
            detail = f"{fault.what} ({fault.where})" if fault.where else fault.what
            return (self.missing if is_needed else self.note)(name, detail, fault.remedy)


_TOOLS, _COMPILERS, _PAGES = _Topic("Tools"), _Topic("Compilers"), _Topic("Pages")
_SETTINGS, _SIMULATION, _MACHINE = _Topic("Settings"), _Topic("Simulation"), _Topic("Machine")


@dataclass(frozen=True)
class FindingsDocument:
    """What a node has for comparisons (doctor --json)."""

    schema: Literal["pagewise.findings/1"]
    ready: bool
    findings: tuple[Finding, ...]
    huge_pages: Annotated[HugePageSupply | None, "that programs would get now; null: no THP"]


def examine(environment: str, modules: Path | None, measure_noise: bool = True) -> FindingsDocument:
    """Check tools, compilers, modules, pages and the machine; measuring noise takes two seconds."""
    findings, facts, host = [], None, read_host()
    supply = predict(host.thp)
    try:
        facts = setup_facts()
    except PagewiseError as fault:
        findings.append(_TOOLS.missing("set-up", fault.what, fault.remedy))
    findings += [*_tools(facts, environment, modules), *_compilers(facts), *page_findings(host)]
    findings += [*supply_findings(supply), *setting_findings()]
    findings += [*counter_findings(host, environment, modules), *simulation_findings(), *_machine(host)]
    if measure_noise:
        findings.append(noise_finding(measure_spread()))
    is_ready = not any(finding.is_missing for finding in findings)
    return FindingsDocument("pagewise.findings/1", is_ready, tuple(findings), supply)


def print_findings(console: Console, findings: Sequence[Finding]) -> None:
    """Print the findings by topic, with remedies."""
    topic = ""
    for finding in findings:
        if finding.topic != topic:
            console.print(Text(("\n" if topic else "") + finding.topic, style="bold"))
            topic = finding.topic
        mark, style = _MARKS[finding.state]
        console.print(
            Text.assemble("  ", (mark, style), f" {finding.name:<20} ", finding.detail), soft_wrap=True
        )
        if finding.remedy:
            console.print(Text(f"      remedy: {finding.remedy}"), soft_wrap=True)
    missing = sum(finding.is_missing for finding in findings)
    summary = f"Missing for a comparison: {missing}." if missing else "Ready for a comparison."
    console.print(f"\n{summary}", highlight=False)


def measure_spread(seconds: float = _NOISE_SECONDS) -> list[float]:
    """Times of one fixed piece of work, repeated on one core for this long and often enough for a spread."""
    data = np.arange(200_000, dtype=np.float64)
    times: list[float] = []
    with placements(Where(threads=(1,)))[0].bound():
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or len(times) < _FEWEST_TIMES:
            began = time.perf_counter()
            for _ in range(20):
                np.sqrt(data).sum()
            times.append(time.perf_counter() - began)
    # The first ones warm the caches.
    return times[len(times) // 10 :]


def noise_finding(times: list[float]) -> Finding:
    """The distance of the 10th and the 90th percentile of the times, relative to their median."""
    low, median, high = np.percentile(times, [10, 50, 90])
    spread = float((high - low) / median)
    detail = (
        f"fixed work on one core varies by {percent_text(spread)} (10th to 90th percentile of {len(times)})"
    )
    if spread <= _STEADY:
        return _MACHINE.good("noise", detail)
    return _MACHINE.note("noise", detail, "end other programs; more --rounds compensate in part")


def _tools(facts: SetupFacts | None, environment: str, modules: Path | None) -> Iterator[Finding]:
    if checkout() is None:
        yield _TOOLS.attempted("Spack", lambda: str(find_spack()), is_needed=False)
    elif facts is None:
        yield _TOOLS.note("set-up", "has not run here", "make setup")
    else:
        spack = facts.spack
        if spack.available:
            yield _TOOLS.good("Spack", f"{spack.version} in {spack.root}")
        else:
            yield _TOOLS.note("Spack", f"unavailable: {spack.reason}", spack.remedy)
        for missing in facts.missing:
            yield _TOOLS.note(missing.package, f"missing, needed for {missing.needed_for}", missing.remedy)
    needed: dict[str, Callable[[], str]] = {
        "hyperfine": find_hyperfine,
        "hwloc": _topology_text,
        "Lmod": lambda: str(lmod.find_init(facts)),
        "modules": lambda: str(module_tree(environment, modules)),
    }
    for name, find in needed.items():
        yield _TOOLS.attempted(name, find, is_needed=True)


def _topology_text() -> str:
    """The number of cores, hardware threads and NUMA nodes. Raises SetupError."""
    topology = read_topology()
    cpus = [len(core.cpus) for core in topology.cores()]
    nodes = count_text(len(topology.nodes), "NUMA node")
    return f"{count_text(len(cpus), 'core')} with {count_text(sum(cpus), 'hardware thread')}, {nodes}"


def _compilers(facts: SetupFacts | None) -> Iterator[Finding]:
    if facts is None:
        return
    for compiler in facts.compilers:
        name = f"{compiler.name} {compiler.version}"
        if compiler.entered:
            passed = ", ".join(test.program for test in compiler.proof if test.ok)
            yield _COMPILERS.good(name, f"verified by running {passed}")
        else:
            failed = "; ".join(f"{test.program}: {test.detail}" for test in compiler.proof if not test.ok)
            yield _COMPILERS.note(name, f"excluded: {compiler.reason} {failed}".rstrip())
    if not any(compiler.entered for compiler in facts.compilers):
        remedy = "apt-get install gcc gfortran; make setup"
        yield _COMPILERS.missing("any", "no compiler passed its tests", remedy)


def page_findings(host: Host, root: Path = Path("/")) -> Iterator[Finding]:
    """The base page, transparent huge pages and hugetlb pools of this kernel."""
    yield _PAGES.good("base page", bytes_text(host.base_page_size_bytes))
    thp = host.thp
    if not shows_processes(root):
        yield _PAGES.missing("/proc", "missing: the pages of programs are unknown", MOUNT_PROC)
    if thp is None and not shows_huge_pages(root):
        yield _PAGES.note("THP", "unknown: /sys/kernel/mm is missing", MOUNT_SYS)
    elif thp is None:
        yield _PAGES.note(
            "THP", "not in this kernel: configurations with thp will be excluded", "a kernel with THP"
        )
    elif thp.enabled == "never":
        remedy = "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"
        yield _PAGES.note("THP", "never: configurations with thp will be excluded", remedy)
    else:
        yield _PAGES.good("THP", f"{thp.enabled}, defrag {thp.defrag}{_sizes_text(thp.sizes)}")
    default = default_pool_size(root)
    for pool in host.pools:
        name = f"{bytes_text(pool.page_bytes)} hugetlb pool"
        allowed = pool_pages_left(pool.page_bytes, root)
        limit = "" if allowed is None else f"; control groups leave {allowed} to this process"
        if allowed is not None and allowed < max(pool.free, 1):
            remedy = "ask the batch system or the container for such pages (hugetlb.*.max)"
            yield _PAGES.note(name, f"{pool.free} of {pool.total} pages free{limit}", remedy)
        elif pool.total:
            yield _PAGES.good(name, f"{pool.free} of {pool.total} pages free{limit}")
        elif pool.page_bytes == default:
            remedy = "as root: pagewise kernels --prepare-pages, or compare"
            yield _PAGES.note(name, "empty: configurations with hugetlbfs will be excluded", remedy)
        else:
            policy = f"hugetlbfs:{size_name(pool.page_bytes)}"
            yield _PAGES.note(name, f"empty; only compare --policies {policy} needs it")


def supply_findings(supply: HugePageSupply | None, root: Path = Path("/")) -> Iterator[Finding]:
    """How many huge pages programs would get now; none where the THP setting refuses them all."""
    if supply is None or supply.mode == "never":
        return
    name, size = "huge pages now", bytes_text(supply.page_bytes)
    if supply.process == "refused":
        unit = unit_of_process(root)
        origin = f" of the unit {unit}" if unit else ""
        detail = (
            "none: this process may not use THP: one that started it called prctl(PR_SET_THP_DISABLE), as "
            f"systemd does for MemoryTHP={origin}"
        )
        remedy = "remove MemoryTHP= from the unit, or start programs elsewhere; pagewise's own runs reset it"
        yield _PAGES.note(name, detail, remedy)
        return
    obtainable = supply.obtainable * supply.page_bytes
    detail = f"{supply.obtainable} of {size} without compaction ({bytes_text(obtainable)})"
    if supply.usable_share is not None:
        detail += f"; {percent_text(supply.usable_share)} of free memory is in such blocks"
    if supply.process == "advised":
        detail += "; for this process only in memory that it advises (PR_THP_DISABLE_EXCEPT_ADVISED)"
    if obtainable < (supply.limit_bytes or 0) * _ENOUGH_IN_BLOCKS:
        remedy = "as root: echo 3 > /proc/sys/vm/drop_caches; echo 1 > /proc/sys/vm/compact_memory"
        yield _PAGES.note(name, detail, remedy)
    else:
        yield _PAGES.good(name, detail)


def _sizes_text(sizes: Mapping[str, str | None]) -> str:
    """The sizes that `--policies thp:SIZE` can name, and those that are switched on."""
    modes = {size_name(int(size.removesuffix("kB")) * 1024): mode for size, mode in sizes.items() if mode}
    active = [name for name, mode in modes.items() if mode in ("always", "madvise")]
    return f"; sizes {', '.join(modes)}, switched on: {', '.join(active) or 'none'}" if modes else ""


def setting_findings(root: Path = Path("/")) -> Iterator[Finding]:
    """Settings of the machine that a session changed, which is still running or was killed."""
    name = "changed by pagewise"
    try:
        traced = traces(root)
    except PagewiseError as fault:
        yield _SETTINGS.missing(name, f"unknown: {fault.what} ({fault.where})", fault.remedy)
        return
    for trace in traced:
        for change in trace.changes:
            detail = f"{change.setting.place}: {change.before} before, {change.now or 'unknown'} set "
            detail += f"by {trace.owner}"
            if trace.running:
                yield _SETTINGS.note(name, f"{detail}, which restores it at its end")
            else:
                remedy = "as root: pagewise doctor --restore"
                yield _SETTINGS.missing(name, f"{detail}, which was killed", remedy)
    if not traced:
        yield _SETTINGS.good(name, "none")


def _machine(host: Host) -> Iterator[Finding]:
    yield _MACHINE.good("CPU", f"{host.cpu or host.architecture}, {host.cpus} CPUs, {host.kernel}")
    yield _MACHINE.good("NUMA", count_text(len(host.numa_nodes) or 1, "node"))
    if host.virtual_machine:
        detail = f"yes ({host.virtual_machine}): the host's page size limits what huge pages do here"
        yield _MACHINE.note("virtual machine", detail, "for the full effect, measure on a bare machine")
    else:
        yield _MACHINE.good("virtual machine", "no")
    smt = {
        None: "not reported by the kernel",
        True: "on; runs get one hardware thread per core",
        False: "off",
    }
    yield _MACHINE.good("SMT", smt[host.smt])
    if host.governors is None:
        yield _MACHINE.note("governor", "not reported: firmware or host control the clock")
    elif host.governors == ("performance",):
        yield _MACHINE.good("governor", "performance")
    else:
        detail = f"{', '.join(host.governors)}: the clock may change between runs"
        yield _MACHINE.note("governor", detail, "as root: cpupower frequency-set -g performance")
    yield prefetcher_finding()
    yield energy_finding()


def energy_finding(root: Path | None = None) -> Finding:
    """What measures the energy of runs, and why nothing does."""
    part = find_meter(root).part
    if part.unavailable is None:
        return _MACHINE.good("energy", part.text)
    return _MACHINE.note("energy", part.text, part.remedy)


def prefetcher_finding(root: Path = Path("/")) -> Finding:
    """Whether hardware prefetchers can be switched off for a comparison, and why not."""

    def find() -> str:
        control = find_control([ALL], os.sched_getaffinity(0), root)
        return f"{', '.join(control.names)} can be switched off by {control.method}: --vary prefetchers=off"

    return _MACHINE.attempted("prefetchers", find, is_needed=False)


def counter_findings(host: Host, environment: str, modules: Path | None) -> Iterator[Finding]:
    """Which events this user may count, and what would permit more."""
    from pagewise.workloads.counters.machine import permissions

    try:
        tree = module_tree(environment, modules)
    except PagewiseError:
        tree = None
    for row in permissions(host, tree):
        yield Finding("Counters", row.name, row.state, row.detail, row.remedy)


def simulation_findings() -> Iterator[Finding]:
    """Whether `pagewise simulate` can trace programs here: QEMU for each machine, and its plug-in."""
    from pagewise.workloads.simulation.build import TracedBuild
    from pagewise.workloads.simulation.tracer import MACHINES, find_tracer

    def tracer(machine: str) -> str:
        return f"can be traced by {find_tracer(machine).name}"

    for machine in MACHINES:
        yield _SIMULATION.attempted(f"{machine} programs", partial(tracer, machine), is_needed=False)
    build = TracedBuild.of_checkout(project_root(), "gcc")
    if build.plugin.is_file():
        yield _SIMULATION.good("plug-in", str(build.plugin))
    elif build.has_sources:
        yield _SIMULATION.good("plug-in", "is built when `pagewise simulate` first runs")
    else:
        remedy = "run pagewise from a checkout, or name a build: pagewise simulate --build DIR"
        yield _SIMULATION.note("plug-in", f"there is no checkout in {build.root} to build it from", remedy)
