"""Compares the user's program under page policies, as `pagewise compare` does kernels."""

from __future__ import annotations

import ctypes.util
import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console

import pagewise
from pagewise.core.configuration import Configuration
from pagewise.core.environment import influences
from pagewise.core.errors import SelectionError, SetupError
from pagewise.core.host import Host
from pagewise.core.kernel import SCHEMA as KERNEL_SCHEMA
from pagewise.core.kernel import Kernel
from pagewise.core.plan import Cell, Step, Subject, order_of_round, placed
from pagewise.core.record import RecordWriter
from pagewise.core.units import bytes_text, clock_text, count_text, percent_text
from pagewise.machine.host import read, read_host
from pagewise.machine.placement import Placement, placements
from pagewise.machine.settings import hugepages
from pagewise.session.comparison import Comparison, tell_placements
from pagewise.session.launch import Outcome, find_hyperfine
from pagewise.session.manifest import new_manifest
from pagewise.session.options import Options
from pagewise.stack.binary import Binary, examine, files_of
from pagewise.stack.c_code import find_compiler
from pagewise.stack.catalog import Entry
from pagewise.stack.elf import read_elf
from pagewise.stack.provenance import hyperfine_version
from pagewise.stack.setup import setup_facts
from pagewise.workloads.program.launch import UNCHANGED, Program, ProgramLauncher, trial_text
from pagewise.workloads.program.output import Pattern
from pagewise.workloads.program.policy import (
    Lack,
    Machine,
    Policy,
    advises,
    default_policies,
    lack,
    page_size,
    parse_policy,
    preloaded_actions,
    removed,
    settings,
)
from pagewise.workloads.program.preload import Libraries, compiled
from pagewise.workloads.program.proof import Memory
from pagewise.workloads.program.transparent import pmd_bytes

_HUGETLBFS_PLACES = ("/usr/lib/libhugetlbfs.so", "/usr/lib64/libhugetlbfs.so")
# What malloc maps is rounded up to pages, and each thread has an arena of its own.
_POOL_MARGIN = 1.25
_PAGES_A_CPU = 2


@dataclass(frozen=True)
class ProgramOptions(Options):
    """What the user asked for; see `pagewise compare --help`."""

    policies: tuple[str, ...] = ()
    interval: float | None = None
    enough: float = 0.8
    pool_memory: int | None = None


@dataclass
class ProgramComparison(Comparison):
    """A comparison of one program under way."""

    program: Program | None = None
    policies: dict[str, Policy] = field(default_factory=dict)
    machine: Machine | None = None
    lacks: dict[str, Lack] = field(default_factory=dict)
    trials: list[tuple[Step, Outcome]] = field(default_factory=list)
    launcher: ProgramLauncher | None = None

    def _launcher(self, scratch: Path) -> ProgramLauncher:
        assert self.program is not None and self.machine is not None
        assert isinstance(self.options, ProgramOptions)
        libraries = _libraries(self.machine, self.console)
        self.launcher = ProgramLauncher(
            self.hyperfine,
            self.places,
            self.options.limit,
            scratch,
            self.program,
            self.policies,
            self.machine,
            libraries,
            self.lacks,
            self.options.enough,
            self.options.interval,
            self.options.end_leftovers,
        )
        return self.launcher

    @contextmanager
    def _settings(self) -> Iterator[None]:
        """The trial of the baseline first: it tells how many pages of a pool the program needs."""
        assert self.launcher is not None and self.machine is not None
        self.launcher.calibrate()
        self._try(self._baseline())
        with super()._settings():
            yield

    def watched_files(self) -> dict[str, tuple[Path, ...]]:
        """The program's files, for every policy."""
        assert self.program is not None
        files = files_of(self.program.binary.program, self.program.environment)
        inputs = [file for file in self.program.inputs if file.is_file()]
        return dict.fromkeys(self.policies, (*files, *inputs))

    def switched_policies(self) -> set[str]:
        """Transparent huge pages, where a policy takes those that the system gives."""
        return {"thp" for policy in self.policies.values() if _is_transparent(policy)}

    def pool_pages(self) -> dict[int, int]:
        """By page size: what the baseline's trial run used, shared among the pools."""
        assert self.launcher is not None
        memory = self.launcher.proved.get(self._baseline().key)
        if memory is None:
            return {}
        return {
            size: -(-self._pages_needed(memory, size) // len(self.pools(size))) for size in self._pool_sizes()
        }

    def can_run(self, step: Step) -> bool:
        """Whether the policy can be had."""
        return step.cell.measured.hugepages not in self.lacks

    def _baseline(self) -> Cell:
        return next(cell for cell in self.subjects[0].cells if cell.is_baseline)

    def _run_all(self, launcher: Any, writer: RecordWriter) -> None:
        self._keep_trial(writer)
        for cell in self.subjects[0].cells:
            in_vain = (self.subjects[0].kernel.name, cell.key) in self.stopped
            if not cell.is_baseline and cell.measured.hugepages not in self.lacks and not in_vain:
                self._try(cell)
                self._keep_trial(writer)
        super()._run_all(launcher, writer)

    def _keep_trial(self, writer: RecordWriter) -> None:
        step, outcome = self.trials[-1]
        if outcome.failed:
            self.stopped.add((step.kernel.name, step.cell.key))
        self._keep(step, outcome, writer)

    def _try(self, cell: Cell) -> None:
        """An untimed run. One that fails stands for its cell in the result, and the cell is not run again."""
        assert self.launcher is not None
        step = Step(self.subjects[0].kernel, cell, "compare", 1, len(self.trials) + 1)
        policy = cell.measured.hugepages
        outcome = self.launcher.trial(step, self.entries[cell.measured.module])
        if outcome.failed:
            outcome.records[0]["run"]["series"] = "compare"
        self.trials.append((step, outcome))
        self.console.print(
            f"trial run, {trial_text(policy, outcome.records[0])}",
            highlight=False,
            soft_wrap=True,
        )

    def _pool_sizes(self) -> set[int]:
        assert self.machine is not None
        wanted = [one for name, one in self.policies.items() if one.from_pool and name not in self.lacks]
        return {page_size(policy, self.machine) for policy in wanted}

    def _pages_needed(self, memory: Memory, size: int) -> int:
        assert isinstance(self.options, ProgramOptions)
        margin = hugepages.MARGIN_PAGES if size <= hugepages.PAGE_BYTES else 2
        if self.options.pool_memory is not None:
            return -(-self.options.pool_memory // size)
        malloc = sum(memory.peak[kind].resident for kind in ("heap", "anonymous") if kind in memory.peak)
        most = max(len(one.cpus) for one in self.placements)
        arenas = _PAGES_A_CPU * most if size <= hugepages.PAGE_BYTES else 0
        return int(-(-malloc * _POOL_MARGIN // size)) + (margin + arenas) * max(1, memory.processes)


def prepare(options: ProgramOptions, program: Program, console: Console, began: float) -> ProgramComparison:
    """Looks at the program and at the machine; nothing is run or written yet.

    Raises SetupError or SelectionError.
    """
    hyperfine = find_hyperfine()
    host = read_host()
    machine = look_at_machine(host, options.set_thp_sizes, options.reserve)
    named = options.policies or default_policies(program.binary, machine)
    policies = {policy.name: policy for policy in map(parse_policy, named)}
    if options.baseline not in policies:
        policies = {parse_policy(options.baseline).name: parse_policy(options.baseline), **policies}
    base = parse_policy(options.baseline).name
    lacks = {
        name: found for name, policy in policies.items() if (found := lack(policy, program.binary, machine))
    }
    if base in lacks:
        raise SelectionError(
            f"the baseline {base} cannot be had: {lacks[base].reason}",
            where="--baseline",
            remedy=lacks[base].remedy,
        )
    where = placements(options.threads, options.where)
    tell_placements(console, where)
    (subject,) = placed([_subject(program, policies, base)], [one.name for one in where])
    console.print(_intended(program, subject, options, lacks), highlight=False, soft_wrap=True)
    entries = {
        cell.measured.module: Entry(cell.measured, dict(program.environment), {}) for cell in subject.cells
    }
    about = {
        "command": list(program.command),
        "folder": None if program.folder is None else str(program.folder),
        "inputs": [*map(str, program.inputs), *program.texts],
        "reads": list(program.reads),
        **program.binary.to_dict(),
        "environment": _environment(program, where[0], machine),
        "metrics": [one.to_dict() for one in program.metrics],
        "checks": [one.text for one in program.checks],
        "enough_coverage": options.enough,
        "sample_interval_seconds": options.interval,
        "policies": [
            {
                "name": name,
                "meaning": policy.meaning,
                "preloaded": preloaded_actions(policy, machine, program.binary),
                "advised": advises(policy, machine),
                "lack": None if name not in lacks else lacks[name].reason,
            }
            for name, policy in policies.items()
        ],
    }
    manifest = new_manifest(
        replace(options, baseline=base),
        entries=entries.values(),
        subjects=[subject],
        placements=where,
        tree=program.binary.program.parent,
        environment=None,
        host=host,
        facts=setup_facts(),
        software={
            "pagewise": pagewise.__version__,
            "python": platform.python_version(),
            "hyperfine": hyperfine_version(hyperfine),
        },
        program=about,
    )
    return ProgramComparison(
        options,
        console,
        began,
        entries,
        [subject],
        where,
        hyperfine,
        manifest,
        None,
        program=program,
        policies=policies,
        machine=machine,
        lacks=lacks,
    )


def _environment(program: Program, placement: Placement, machine: Machine) -> dict[str, dict[str, str]]:
    """What the caller's environment decides about memory, libraries and threads of the runs."""
    given = {name: text for name, text in program.environment.items() if name not in placement.environment}
    gone = removed(given)
    base = settings(parse_policy("none"), machine, given)
    passed = {name: base.get(name, text) for name, text in influences(given).items()}
    return {"passed": {name: text for name, text in passed.items() if text is not None}, "removed": gone}


def look_at_machine(host: Host, settable: bool, reserving: bool) -> Machine:
    """What page policies need to know of this machine."""
    pool = re.search(r"^Hugepagesize:\s+(\d+) kB", read(Path("/proc/meminfo")) or "", re.MULTILINE)
    named = [place for place in _HUGETLBFS_PLACES if Path(place).exists()]
    return Machine.from_host(
        host,
        pmd=pmd_bytes(),
        default_pool=int(pool[1]) * 1024 if pool else 2 << 20,
        settable=settable,
        reserving=reserving,
        compiler=find_compiler() is not None,
        hugetlbfs_library=named[0] if named else ctypes.util.find_library("hugetlbfs"),
        elf_machine=read_elf(Path(sys.executable).resolve()).machine,
    )


def program_of(
    command: Sequence[str],
    *,
    folder: Path | None,
    inputs: Sequence[Path] = (),
    texts: Mapping[str, str] | None = None,
    reads: Sequence[str] = (),
    metrics: Sequence[Pattern] = (),
    checks: Sequence[Any] = (),
    ok: Sequence[int] = (0,),
    environment: Mapping[str, str] = os.environ,
    name: str | None = None,
) -> Program:
    """The program that a command line names, examined. Raises SelectionError."""
    binary = examine(command[0], environment)
    return Program(
        _name(name or binary.program.name),
        tuple(command),
        binary,
        dict(environment),
        folder,
        tuple(file.absolute() for file in inputs),
        tuple(reads),
        tuple(metrics),
        tuple(checks),
        tuple(ok),
        dict(texts or {}),
    )


def _libraries(machine: Machine, console: Console) -> Libraries | None:
    compiler = find_compiler()
    if compiler is None or not machine.compiler:
        return None
    try:
        return compiled(compiler)
    except SetupError as fault:
        console.print(f"pagewise: {fault}", style="yellow", highlight=False)
        return None


def _is_transparent(policy: Policy) -> bool:
    return any(part in ("text", "bss", "glibc") for part in policy.parts) or (
        "thp" in policy.parts and policy.size is None
    )


def _subject(program: Program, policies: Mapping[str, Policy], base: str) -> Subject:
    kernel = Kernel.from_dict(_kernel(program), program.binary.program)
    first = _configuration(program, base)
    cells = []
    for name in policies:
        measured = replace(first, module=name, hugepages=name)
        cells.append(Cell(measured, (measured,), name == base))
    return Subject(kernel, tuple(sorted(cells, key=lambda cell: not cell.is_baseline)))


def _configuration(program: Program, policy: str) -> Configuration:
    libraries = " ".join(Path(name).name for name in program.binary.libraries)
    return Configuration(
        module=policy,
        package=program.name,
        version="",
        compiler=UNCHANGED,
        hugepages=policy,
        prefetch="hardware",
        stores="regular",
        openmp="on" if re.search(r"\blib(g|i)?omp", libraries) else "off",
        papi="on" if "libpapi" in libraries else "off",
        target=platform.machine(),
        hash=program.binary.sha256,
        builder="own",
        prefix=str(program.binary.program.parent),
        digest=program.binary.sha256,
    )


def _kernel(program: Program) -> dict[str, Any]:
    """The program as kernels are described."""
    own = [
        {"field": "peak_memory_gib", "label": "Peak memory", "unit": "GiB", "better": "lower"},
        {"field": "system_seconds", "label": "Time in the kernel", "unit": "s", "better": "lower"},
        {"field": "user_seconds", "label": "Time in the program", "unit": "s", "better": "lower"},
    ]
    told = [
        {"field": one.field, "label": one.label, "unit": one.unit, "better": one.better}
        for one in program.metrics
    ]
    return {
        "schema": KERNEL_SCHEMA,
        "name": program.name,
        "group": "program",
        "title": program.binary.program.name,
        "summary": f"The user's own program, unchanged: {program.binary.text}.",
        "executable": program.binary.program.name,
        "program": True,
        "feels": ["hugepages"],
        "metrics": [*told, *own],
        "compare": {"arguments": list(program.command[1:])},
    }


def _intended(program: Program, subject: Subject, options: ProgramOptions, lacks: Mapping[str, Lack]) -> str:
    runnable = [cell for cell in subject.cells if cell.measured.hugepages not in lacks]
    a_round = len(order_of_round([replace(subject, cells=tuple(runnable))], 1, options.seed, options.aa))
    names = ", ".join(cell.measured.hugepages for cell in runnable)
    told = f"To measure: {program.binary.program} ({program.binary.text}).\nPage policies: {names}. "
    told += f"{count_text(options.rounds, 'round')} of {count_text(a_round, 'run')}, "
    told += f"and {count_text(len(runnable), 'trial run')} before them."
    if options.until is not None:
        told += f"\nThen further rounds until all intervals are narrower than {percent_text(options.until)}, "
        told += f"all rounds within {clock_text(options.budget)}."
    for name, found in lacks.items():
        told += f"\ncannot be had: {name}: {found.reason}"
    return told


def survey(program: Program, policies: Sequence[str], machine: Machine) -> list[tuple[Policy, Lack | None]]:
    """Each policy with why it cannot be had for this program here, or None."""
    return [(one, lack(one, program.binary, machine)) for one in map(parse_policy, policies)]


def memory_line(binary: Binary) -> str:
    """The static sizes of a program."""
    return f"text {bytes_text(binary.elf.text_bytes)}, .bss {bytes_text(binary.elf.zeroed_bytes)}"


def _name(file: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "_", file.lower()).strip("_")
    return name if re.match(r"[a-z]", name) else f"program_{name}"
