"""Check what this node provides for a comparison, with remedies for what is missing. Changes nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.console import Console
from rich.text import Text

from pagewise.core.errors import PagewiseError
from pagewise.core.host import Host
from pagewise.core.page_policy import size_name
from pagewise.core.units import bytes_text, count_text, percent_text
from pagewise.machine.host import read_host
from pagewise.machine.placement import place
from pagewise.machine.settings.prefetchers import ALL, find_control
from pagewise.machine.settings.session import traces
from pagewise.machine.topology import read_topology
from pagewise.session.launch import find_hyperfine
from pagewise.stack import lmod
from pagewise.stack.paths import module_tree, project_root
from pagewise.stack.setup import SetupFacts, setup_facts

State = Literal["good", "note", "lack"]
_NOISE_SECONDS = 2.0
_FEWEST_TIMES = 10
_STEADY = 0.03
_MARKS: dict[State, tuple[str, str]] = {
    "good": ("✓", "green"),
    "note": ("•", "yellow"),
    "lack": ("✗", "bold red"),
}


@dataclass(frozen=True)
class Finding:
    """The result of one check. `note`: it works with a limitation. `lack`: missing for a comparison."""

    topic: str
    name: str
    state: State
    detail: str
    remedy: str | None = None

    @property
    def is_missing(self) -> bool:
        """Whether something that a comparison needs is missing."""
        return self.state == "lack"


def examine(environment: str, modules: Path | None, measure_noise: bool = True) -> list[Finding]:
    """Check tools, compilers, modules, pages and the machine; measuring noise takes two seconds."""
    try:
        facts, unreadable = setup_facts(), None
    except PagewiseError as fault:
        facts, unreadable = None, Finding("Tools", "set-up", "lack", fault.what, fault.remedy)
    host = read_host()
    findings = [*_tools(facts, environment, modules), *_compilers(facts), *_pages(host), *setting_findings()]
    findings += [*counter_findings(host, environment, modules), *model_findings(), *_machine(host)]
    if unreadable is not None:
        findings.insert(0, unreadable)
    if measure_noise:
        findings.append(noise_finding(measure_spread()))
    return findings


def to_dict(findings: list[Finding]) -> dict[str, Any]:
    """Schema pagewise.findings/1."""
    return {
        "schema": "pagewise.findings/1",
        "ready": not any(finding.is_missing for finding in findings),
        "findings": [asdict(finding) for finding in findings],
    }


def print_findings(console: Console, findings: list[Finding]) -> None:
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
    with place(1).bound():
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or len(times) < _FEWEST_TIMES:
            began = time.perf_counter()
            for _ in range(20):
                np.sqrt(data).sum()
            times.append(time.perf_counter() - began)
    # The first ones warm the caches.
    return times[len(times) // 10 :]


def noise_finding(times: list[float]) -> Finding:
    """Tells the spread: how far 9 of 10 repetitions lie from the fastest tenth, relative to the median."""
    low, middle, high = np.percentile(times, [10, 50, 90])
    spread = float((high - low) / middle)
    detail = (
        f"fixed work on one core varies by {percent_text(spread)} (10th to 90th percentile of {len(times)})"
    )
    if spread <= _STEADY:
        return Finding("Machine", "noise", "good", detail)
    return Finding(
        "Machine", "noise", "note", detail, "end other programs; more --rounds make up for it in part"
    )


def _tools(facts: SetupFacts | None, environment: str, modules: Path | None) -> Iterator[Finding]:
    if facts is None:
        yield Finding("Tools", "set-up", "note", "has not run here", "make setup")
    else:
        spack = facts.spack
        if spack.available:
            yield Finding("Tools", "Spack", "good", f"{spack.version} in {spack.root}")
        else:
            yield Finding("Tools", "Spack", "note", f"unavailable: {spack.reason}", spack.remedy)
        for missing in facts.missing:
            detail = f"missing, needed for {missing.needed_for}"
            yield Finding("Tools", missing.package, "note", detail, missing.remedy)
    yield _attempt("hyperfine", find_hyperfine)
    yield _attempt("hwloc", _topology_text)
    yield _attempt("Lmod", lambda: str(lmod.find_init(facts)))
    yield _attempt("modules", lambda: str(module_tree(environment, modules)))


def _topology_text() -> str:
    """The tree of the machine in a few words."""
    found = read_topology()
    cpus = [len(core.cpus) for core in found.cores()]
    nodes = count_text(len(found.nodes), "NUMA node")
    return f"{count_text(len(cpus), 'core')} with {count_text(sum(cpus), 'hardware thread')}, {nodes}"


def _attempt(name: str, find: Callable[[], str]) -> Finding:
    try:
        return Finding("Tools", name, "good", find())
    except PagewiseError as fault:
        return Finding("Tools", name, "lack", f"{fault.what} ({fault.where})", fault.remedy)


def _compilers(facts: SetupFacts | None) -> Iterator[Finding]:
    if facts is None:
        return
    for compiler in facts.compilers:
        name = f"{compiler.name} {compiler.version}"
        passed = ", ".join(proof.program for proof in compiler.proof if proof.ok)
        failed = "; ".join(f"{proof.program}: {proof.detail}" for proof in compiler.proof if not proof.ok)
        if compiler.entered:
            yield Finding("Compilers", name, "good", f"proved by running {passed}")
        else:
            yield Finding("Compilers", name, "note", f"excluded: {compiler.reason} {failed}".rstrip())
    if not any(compiler.entered for compiler in facts.compilers):
        yield Finding(
            "Compilers",
            "any",
            "lack",
            "no compiler passed its proof",
            "apt-get install gcc gfortran; make setup",
        )


def _pages(host: Host) -> Iterator[Finding]:
    yield Finding("Pages", "base page", "good", bytes_text(host.base_page_size_bytes))
    thp = host.thp
    if thp is None:
        yield Finding(
            "Pages", "THP", "note", "not in this kernel: thp rows will be missing", "a kernel with THP"
        )
    elif thp.enabled == "never":
        yield Finding(
            "Pages",
            "THP",
            "note",
            "never: thp rows will be missing",
            "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        )
    else:
        yield Finding("Pages", "THP", "good", f"{thp.enabled}, defrag {thp.defrag}{_multi_size(thp.sizes)}")
    for pool in host.pools:
        name = f"pool of {bytes_text(pool.page_bytes)}"
        if pool.total:
            yield Finding("Pages", name, "good", f"{pool.free} of {pool.total} pages free")
        elif pool.page_bytes == 2 * 1024 * 1024:
            yield Finding(
                "Pages",
                name,
                "note",
                "empty: hugetlbfs rows will be missing",
                "as root: pagewise compare --reserve-hugepages",
            )
        else:
            wanted = f"hugetlbfs:{size_name(pool.page_bytes)}"
            yield Finding("Pages", name, "note", f"empty; only compare --policies {wanted} needs it")


def _multi_size(sizes: Mapping[str, str | None]) -> str:
    """The sizes that `--pages thp:SIZE` can name, and those switched on by themselves."""
    there = {size_name(int(size.removesuffix("kB")) * 1024): mode for size, mode in sizes.items() if mode}
    active = [name for name, mode in there.items() if mode in ("always", "madvise")]
    return f"; sizes {', '.join(there)}, on by themselves: {', '.join(active) or 'none'}" if there else ""


def setting_findings(root: Path = Path("/")) -> Iterator[Finding]:
    """Settings of the machine that a session has changed: one that runs, or one that was killed."""
    topic, name = "Settings", "changed by pagewise"
    try:
        traced = traces(root)
    except PagewiseError as fault:
        yield Finding(topic, name, "lack", f"unknown: {fault.what} ({fault.where})", fault.remedy)
        return
    for trace in traced:
        for change in trace.changes:
            what = f"{change.setting.place}: {change.before} before, {change.now or 'unknown'} set"
            if trace.running:
                yield Finding(topic, name, "note", f"{what} by {trace.owner}, which restores it at its end")
            else:
                detail = f"{what} by {trace.owner}, which was killed"
                yield Finding(topic, name, "lack", detail, "as root: pagewise doctor --restore")
    if not traced:
        yield Finding(topic, name, "good", "none")


def _machine(host: Host) -> Iterator[Finding]:
    yield Finding(
        "Machine",
        "CPU",
        "good",
        f"{host.cpu or host.architecture}, {host.cpus} CPUs, {host.kernel}",
    )
    nodes = host.numa_nodes
    yield Finding("Machine", "NUMA", "good", f"{len(nodes) or 1} nodes" if len(nodes) > 1 else "one node")
    if host.virtual_machine:
        detail = f"yes ({host.virtual_machine}): the host's page size limits what huge pages do here"
        yield Finding(
            "Machine", "virtual machine", "note", detail, "for the full effect, measure on a bare machine"
        )
    else:
        yield Finding("Machine", "virtual machine", "good", "no")
    yield _smt(host.smt)
    yield _governor(host.governors)
    yield prefetcher_finding()


def _smt(active: bool | None) -> Finding:
    if active is None:
        return Finding("Machine", "SMT", "good", "the kernel does not tell")
    return Finding("Machine", "SMT", "good", "on; runs get a core each" if active else "off")


def _governor(governors: tuple[str, ...] | None) -> Finding:
    if governors is None:
        return Finding(
            "Machine", "governor", "note", "not told: the clock is in the hands of firmware or host"
        )
    if governors == ("performance",):
        return Finding("Machine", "governor", "good", "performance")
    return Finding(
        "Machine",
        "governor",
        "note",
        f"{', '.join(governors)}: the clock may change between runs",
        "as root: cpupower frequency-set -g performance",
    )


def prefetcher_finding(root: Path = Path("/")) -> Finding:
    """Whether hardware prefetchers can be switched off for a comparison, and why not."""
    try:
        control = find_control([ALL], os.sched_getaffinity(0), root)
    except PagewiseError as fault:
        return Finding(
            "Machine", "prefetchers", "note", f"cannot be switched off here: {fault.what}", fault.remedy
        )
    detail = f"{', '.join(control.names)} can be switched off by {control.method}: --hardware-prefetchers"
    return Finding("Machine", "prefetchers", "good", detail)


def counter_findings(host: Host, environment: str, modules: Path | None) -> Iterator[Finding]:
    """Which events this user may count, and what would permit more."""
    from pagewise.workloads.counters.permission import permissions

    try:
        tree = module_tree(environment, modules)
    except PagewiseError:
        tree = None
    for one in permissions(host, tree):
        yield Finding("Counters", one.name, one.state, one.detail, one.remedy)


def model_findings() -> Iterator[Finding]:
    """Whether `pagewise simulate` can trace programs here: QEMU for each machine, and its plug-in."""
    from pagewise.workloads.simulation.build import Build
    from pagewise.workloads.simulation.tracer import MACHINES, find_tracer

    for machine in MACHINES:
        try:
            tracer = find_tracer(machine)
        except PagewiseError as fault:
            yield Finding("Model", f"{machine} programs", "note", fault.what, fault.remedy)
        else:
            detail = f"can be traced by {tracer.name}"
            yield Finding("Model", f"{machine} programs", "good", detail)
    build = Build.of_checkout(project_root(), "gcc")
    if build.plugin.is_file():
        yield Finding("Model", "plug-in", "good", str(build.plugin))
    elif build.has_sources:
        yield Finding("Model", "plug-in", "good", "is built when `pagewise simulate` first runs")
    else:
        yield Finding(
            "Model",
            "plug-in",
            "note",
            f"there is no checkout in {build.root} to build it from",
            "run pagewise out of a checkout, or name a build: pagewise simulate --build DIR",
        )
