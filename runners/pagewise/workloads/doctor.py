"""Check what this node provides for a comparison, with remedies for what is missing. Changes nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from rich.console import Console
from rich.text import Text

from pagewise.core.errors import PagewiseError
from pagewise.core.findings import Finding, FindingState, good, missing, note
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
)
from pagewise.machine.node_state import predict, unit_of_process
from pagewise.machine.placement import Where, placements
from pagewise.machine.settings.prefetchers import ALL, find_control
from pagewise.machine.settings.session import traces
from pagewise.machine.topology import read_topology
from pagewise.stack import lmod
from pagewise.stack.paths import checkout, find_spack, module_tree, project_root
from pagewise.stack.provenance import find_hyperfine
from pagewise.stack.setup import SetupFacts, setup_facts
from pagewise.workloads.counters.machine import permissions
from pagewise.workloads.simulation.build import TracedBuild
from pagewise.workloads.simulation.tracer import MACHINES, find_tracer

_NOISE_SECONDS = 2.0
_FEWEST_TIMES = 10
# Of the memory that new programs can use.
_ENOUGH_IN_BLOCKS = 0.5
_STEADY = 0.03
_MARKS: dict[FindingState, tuple[str, str]] = {
    "good": ("✓", "green"),
    "note": ("•", "yellow"),
    "missing": ("✗", "bold red"),
}


@dataclass(frozen=True)
class FindingsDocument:
    """What a node has for comparisons (doctor --json)."""

    schema: Literal["pagewise.findings/1"]
    ready: bool
    findings: tuple[Finding, ...]
    huge_pages: Annotated[HugePageSupply | None, "that programs would get now; null: no THP"]


def examine(environment: str, modules: Path | None, measure_noise: bool = True) -> FindingsDocument:
    """Checks tools, compilers, modules, pages and the machine; measuring noise takes two seconds."""
    host, facts, facts_fault = read_host(), None, []
    supply = predict(host.thp)
    try:
        facts = setup_facts()
    except PagewiseError as fault:
        facts_fault = [missing("set-up", fault.message, fault.remedy)]
    topics = {
        "Tools": [*facts_fault, *_tools(facts, environment, modules)],
        "Compilers": _compilers(facts),
        "Pages": [*page_findings(host), *supply_findings(supply)],
        "Settings": setting_findings(),
        "Counters": counter_findings(host, environment, modules),
        "Simulation": simulation_findings(),
        "Machine": [*_machine(host), *([noise_finding(measure_spread())] if measure_noise else [])],
    }
    findings = tuple(replace(finding, topic=topic) for topic, of in topics.items() for finding in of)
    is_ready = not any(finding.is_missing for finding in findings)
    return FindingsDocument("pagewise.findings/1", is_ready, findings, supply)


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
    number = sum(finding.is_missing for finding in findings)
    console.print(f"\nMissing for a comparison: {number}." if number else "\nReady for a comparison.")


def measure_spread(seconds: float = _NOISE_SECONDS) -> list[float]:
    """Times of one fixed piece of work, repeated on one core for this long and often enough for a spread."""
    data = np.arange(200_000, dtype=np.float64)
    times: list[float] = []
    with placements(Where(threads=(1,)))[0].bind():
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
        return good("noise", detail)
    return note("noise", detail, "end other programs; more --rounds compensate in part")


def _attempt(name: str, find: Callable[..., str], *arguments: object, is_needed: bool = False) -> Finding:
    """What `find` returns for the arguments, or why it raises a PagewiseError."""
    try:
        return good(name, find(*arguments))
    except PagewiseError as fault:
        detail = f"{fault.message} ({fault.where})" if fault.where else fault.message
        return (missing if is_needed else note)(name, detail, fault.remedy)


def _tools(facts: SetupFacts | None, environment: str, modules: Path | None) -> Iterator[Finding]:
    if checkout() is None:
        yield _attempt("Spack", lambda: str(find_spack()))
    elif facts is None:
        yield note("set-up", "has not run here", "make setup")
    else:
        spack = facts.spack
        if spack.available:
            yield good("Spack", f"{spack.version} in {spack.root}")
        else:
            yield note("Spack", f"unavailable: {spack.reason}", spack.remedy)
        for package in facts.missing:
            yield note(package.package, f"missing, needed for {package.needed_for}", package.remedy)
    needed: dict[str, Callable[[], str]] = {
        "hyperfine": find_hyperfine,
        "hwloc": _topology_text,
        "Lmod": lambda: str(lmod.find_init(facts)),
        "modules": lambda: str(module_tree(environment, modules)),
    }
    for name, find in needed.items():
        # Without a checkout, programs can be compared, which need no modules.
        yield _attempt(name, find, is_needed=checkout() is not None or name not in ("Lmod", "modules"))


def _topology_text() -> str:
    """The number of cores, hardware threads and NUMA nodes. Raises SetupError."""
    topology = read_topology()
    cpus = [len(core.cpus) for core in topology.cores]
    nodes = count_text(len(topology.nodes), "NUMA node")
    return f"{count_text(len(cpus), 'core')} with {count_text(sum(cpus), 'hardware thread')}, {nodes}"


def _compilers(facts: SetupFacts | None) -> Iterator[Finding]:
    if facts is None:
        return
    for compiler in facts.compilers:
        name = f"{compiler.name} {compiler.version}"
        if compiler.entered:
            passed = ", ".join(test.program for test in compiler.proof if test.ok)
            yield good(name, f"verified by running {passed}")
        else:
            failed = "; ".join(f"{test.program}: {test.detail}" for test in compiler.proof if not test.ok)
            yield note(name, f"excluded: {compiler.reason} {failed}".rstrip())
    if not any(compiler.entered for compiler in facts.compilers):
        remedy = "apt-get install gcc gfortran; make setup"
        yield missing("any", "no compiler passed its tests", remedy)


def page_findings(host: Host, root: Path = Path("/")) -> Iterator[Finding]:
    """The base page, transparent huge pages and hugetlb pools of this kernel."""
    yield good("base page", bytes_text(host.base_page_size_bytes))
    thp = host.thp
    if not (root / "proc/meminfo").exists():
        yield missing("/proc", "missing: the pages of programs are unknown", MOUNT_PROC)
    if thp is None and not (root / "sys/kernel/mm").is_dir():
        yield note("THP", "unknown: /sys/kernel/mm is missing", MOUNT_SYS)
    elif thp is None:
        yield note("THP", "not in this kernel: configurations with thp will be excluded", "a kernel with THP")
    elif thp.enabled == "never":
        remedy = "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"
        yield note("THP", "never: configurations with thp will be excluded", remedy)
    else:
        yield good("THP", f"{thp.enabled}, defrag {thp.defrag}{_sizes_text(thp.sizes)}")
    default = default_pool_size(root)
    for pool in host.pools:
        name = f"{bytes_text(pool.page_bytes)} hugetlb pool"
        allowed = pool_pages_left(pool.page_bytes, root)
        limit = "" if allowed is None else f"; control groups leave {allowed} to this process"
        if allowed is not None and allowed < max(pool.free, 1):
            remedy = "ask the batch system or the container for such pages (hugetlb.*.max)"
            yield note(name, f"{pool.free} of {pool.total} pages free{limit}", remedy)
        elif pool.total:
            yield good(name, f"{pool.free} of {pool.total} pages free{limit}")
        elif pool.page_bytes == default:
            remedy = "as root: pagewise kernels --prepare-pages, or compare"
            yield note(name, "empty: configurations with hugetlbfs will be excluded", remedy)
        else:
            policy = f"hugetlbfs:{size_name(pool.page_bytes)}"
            yield note(name, f"empty; only compare --policies {policy} needs it")


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
        yield note(name, detail, remedy)
        return
    obtainable = supply.obtainable * supply.page_bytes
    detail = f"{supply.obtainable} of {size} without compaction ({bytes_text(obtainable)})"
    if supply.usable_share is not None:
        detail += f"; {percent_text(supply.usable_share)} of free memory is in such blocks"
    if supply.process == "advised":
        detail += "; for this process only in memory that it advises (PR_THP_DISABLE_EXCEPT_ADVISED)"
    if obtainable < (supply.limit_bytes or 0) * _ENOUGH_IN_BLOCKS:
        remedy = "as root: echo 3 > /proc/sys/vm/drop_caches; echo 1 > /proc/sys/vm/compact_memory"
        yield note(name, detail, remedy)
    else:
        yield good(name, detail)


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
        yield missing(name, f"unknown: {fault.message} ({fault.where})", fault.remedy)
        return
    for trace in traced:
        for change in trace.changes:
            detail = f"{change.setting.place}: {change.before} before, {change.now or 'unknown'} set "
            detail += f"by {trace.owner}"
            if trace.is_running:
                yield note(name, f"{detail}, which restores it at its end")
            else:
                remedy = "as root: pagewise doctor --restore"
                yield missing(name, f"{detail}, which was killed", remedy)
    if not traced:
        yield good(name, "none")


def _machine(host: Host) -> Iterator[Finding]:
    yield good("CPU", f"{host.cpu or host.architecture}, {host.cpus} CPUs, {host.kernel}")
    yield good("NUMA", count_text(len(host.numa_nodes) or 1, "node"))
    if host.virtual_machine:
        detail = f"yes ({host.virtual_machine}): the host's page size limits what huge pages do here"
        yield note("virtual machine", detail, "for the full effect, measure on a bare machine")
    else:
        yield good("virtual machine", "no")
    smt = {
        None: "not reported by the kernel",
        True: "on; runs get one hardware thread per core",
        False: "off",
    }
    yield good("SMT", smt[host.smt])
    if host.governors is None:
        yield note("governor", "not reported: firmware or host control the clock")
    elif host.governors == ("performance",):
        yield good("governor", "performance")
    else:
        detail = f"{', '.join(host.governors)}: the clock may change between runs"
        yield note("governor", detail, "as root: cpupower frequency-set -g performance")
    yield prefetcher_finding()
    yield energy_finding()


def energy_finding(root: Path | None = None) -> Finding:
    """What measures the energy of runs, and why nothing does."""
    part = find_meter(root).part
    if part.unavailable is None:
        return good("energy", part.text)
    return note("energy", part.text, part.remedy)


def prefetcher_finding(root: Path = Path("/")) -> Finding:
    """Whether hardware prefetchers can be switched off for a comparison, and why not."""

    def find() -> str:
        control = find_control([ALL], os.sched_getaffinity(0), root)
        return f"{', '.join(control.names)} can be switched off by {control.method}: --vary prefetchers=off"

    return _attempt("prefetchers", find)


def counter_findings(host: Host, environment: str, modules: Path | None) -> Iterator[Finding]:
    """Which events this user may count, and what would permit more."""
    try:
        tree = module_tree(environment, modules)
    except PagewiseError:
        tree = None
    yield from permissions(host, tree)


def simulation_findings() -> Iterator[Finding]:
    """Whether `pagewise simulate` can trace programs here: QEMU for each machine, and its plug-in."""
    for machine in MACHINES:
        text = f"{machine} programs"
        yield _attempt(text, lambda machine: f"can be traced by {find_tracer(machine).name}", machine)
    build = TracedBuild.of_checkout(project_root(), "gcc")
    if build.plugin.is_file():
        yield good("plug-in", str(build.plugin))
    elif build.has_sources:
        yield good("plug-in", "is built when `pagewise simulate` first runs")
    else:
        remedy = "run pagewise from a checkout, or name a build: pagewise simulate --build DIR"
        yield note("plug-in", f"there is no checkout in {build.root} to build it from", remedy)
