"""What the reports of all sessions show: facts, notes, machine and provenance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pagewise.analysis.nodes import UNKNOWN, host_facts
from pagewise.analysis.series import fewest_rounds
from pagewise.core.manifest import Break, Manifest, SwitchedOff, WorkDifference, goal_of
from pagewise.core.result import Result
from pagewise.core.structure import to_data
from pagewise.core.text import command_text, printable
from pagewise.core.units import bytes_text, clock_text, count_text, percent_text
from pagewise.report.model import Block, Column, Facts, Section, Table, Text
from pagewise.session.processes import left_by, left_text

_HOW = {"running": "was killed", "failed": "ended with an error", "interrupted": "was interrupted"}


def title(manifest: Manifest) -> str:
    """`pagewise: default on node7`."""
    return f"pagewise: {manifest.name} on {manifest.host.hostname}"


def facts(result: Result) -> list[tuple[str, str]]:
    """Node, CPUs, memory, kernel, threads, time and rounds, target."""
    manifest = result.manifest
    host, configurations = manifest.host, manifest.configurations
    threads = ", ".join(map(str, dict.fromkeys(place.threads for place in manifest.placements)))
    if ranks := [str(number) for number in dict.fromkeys(p.ranks for p in manifest.placements) if number]:
        threads += f" in each of {', '.join(ranks)} {'rank' if ranks == ['1'] else 'ranks'}"
    targets = dict.fromkeys(each.target for each in configurations if each.target)
    day, _, clock = manifest.created.partition("T")
    return [
        ("Node", host.hostname),
        ("CPU", f"{host.cpu or host.architecture}, {count_text(host.cpus, 'CPU')}"),
        *([("Memory", bytes_text(host.memory_bytes))] if host.memory_bytes else []),
        ("Kernel", host.kernel),
        ("Threads", threads),
        ("Measured", f"{day} {clock[:5]} UTC, {rounds_text(result)}"),
        *([("Method", method)] if (method := _method(result)) else []),
        *([("Built for", ", ".join(targets))] if targets else []),
    ]


def _method(result: Result) -> str:
    """How benchmarks were compared: `in turns, 40 per run; ember: whole runs (why)`; empty without turns."""
    whole: dict[str, list[str]] = {}
    turns, slices = 0, 0
    for record in result.records:
        run = record.run
        if run is None or run.series != "compare":
            continue
        if run.method == "runs":
            names = whole.setdefault(run.whole_because or "", [])
            names += [record.of_kernel] * (record.of_kernel not in names)
        turns = max(turns, 0 if run.turns is None else len(run.turns.baseline_seconds))
        slices = max(slices, run.slices or 0)
    if not (turns or slices or any(whole)):
        return ""
    texts = [f"in turns, {turns} per run"] * bool(turns) + [f"in slices, {slices} per run"] * bool(slices)
    for reason, names in whole.items():
        texts.append(f"{', '.join(names)}: whole runs" + (f" ({reason})" if reason else ""))
    return "; ".join(texts)


def condition(manifest: Manifest) -> str:
    """The state of the node that advice holds for, as a sentence: with what the session changed."""
    host = manifest.host
    thp = "not reported" if host.thp is None else host.thp.enabled
    if manifest.switches:
        thp += " (switched on for the session)"
    pages = {pool.page_bytes: pool.total for pool in host.pools}
    pages |= {pool.page_bytes: pool.now for pool in manifest.pool or ()}
    pools = [f"{number} of {bytes_text(size)}" for size, number in pages.items() if number]
    changes = {"clocks": manifest.clocks, "hardware prefetchers": manifest.prefetchers}
    changed = "".join(f", {name} set for the session" for name, setting in changes.items() if setting)
    threads = ", ".join(map(str, dict.fromkeys(place.threads for place in manifest.placements)))
    return (
        f"Holds for {host.hostname} in this state: transparent huge pages {thp}, reserved huge pages "
        f"{', '.join(pools) or 'none'}, threads {threads}{changed}."
    )


def fields_of(result: Result, notes: Sequence[str]) -> dict[str, Any]:
    """The values of SessionFields, which the outputs of all sessions have."""
    manifest = result.manifest
    names = ("name", "state", "rounds", "rounds_done", "seed", "threads")
    return {
        "folder": str(result.folder),
        **{name: getattr(manifest, name) for name in names},
        **{name: to_data(getattr(manifest, name)) for name in ("timing", "until")},
        "excluded": tuple(map(str, result.skipped)),
        "notes": tuple(notes),
    }


def notes(result: Result) -> list[str]:
    """What a reader must know about machine and session before trusting a number."""
    manifest, texts = result.manifest, []
    if left := left_text(left_by(result.records)):
        texts.append(left)
    texts += map(_work, manifest.differing_work)
    texts += _silent_input(manifest)
    machine = manifest.host.virtual_machine
    if machine and manifest.kind != "simulation":
        texts.append(
            f"This is a virtual machine ({machine}): the page size of its host limits what huge pages can do "
            "for the TLB here. A bare-metal node may gain more."
        )
    if manifest.host.free_page_reporting and manifest.kind != "simulation":
        texts.append(
            "The hypervisor takes back free memory (free page reporting). Its next first touch takes longer, "
            "above all on huge pages. Programs of a comparison get memory that was touched before."
        )
    if manifest.prefetchers:
        texts.append(f"Hardware prefetchers were changed: {_prefetchers(manifest.prefetchers)}.")
    if manifest.compared_prefetchers:
        several = "; ".join(map(_prefetchers, manifest.compared_prefetchers.values()))
        texts.append(f"Hardware prefetchers were set for each run: {several}.")
    if manifest.clocks:
        set_to = ", ".join(dict.fromkeys(f"{Path(each.file).name} {each.now}" for each in manifest.clocks))
        texts.append(f"The clocks were set for the session: {set_to}.")
    if manifest.state == "interrupted":
        texts.append(
            f"The session was interrupted after {manifest.rounds_done} complete rounds "
            f"({'at least ' if manifest.until else ''}{manifest.rounds} were requested); "
            "this is what was measured until then."
        )
    elif manifest.state != "complete":
        texts.append("The session did not finish; this is what was measured until then.")
    texts += [scaled.text for scaled in manifest.scaled]
    texts += map(_interruption, manifest.breaks)
    if manifest.until is not None and manifest.until.ended == "budget":
        texts.append(until_text(manifest))
    if manifest.provenance.project_dirty:
        texts.append("The checkout had uncommitted changes.")
    if result.skipped:
        lines = "; ".join(str(line) for line in result.skipped)
        texts.append(f"{count_text(len(result.skipped), 'line')} of the records were not valid: {lines}")
    return texts


_MODULES = (
    Column("module", kind="code"),
    Column("builder"),
    Column("target"),
    Column("hash", kind="code", get=lambda configuration: configuration.hash[:16]),
)


def sections(result: Result) -> list[Section]:
    """Machine and provenance."""
    manifest = result.manifest
    modules = Table.of("Modules of this session", _MODULES, manifest.configurations)
    broken = "; ".join(f"{each.module} ({each.reason})" for each in manifest.broken_modules)
    provenance: list[Block] = [
        Facts(tuple(_provenance(result))),
        Section("Modules", (modules,), folded=True),
        *([Text(f"Excluded modules: {broken}", style="note")] if broken else []),
    ]
    return [
        Section("Machine", (Facts(tuple(_machine(manifest))),), only="page"),
        Section("Provenance", tuple(provenance), only="page"),
    ]


def runs_text(result: Result) -> str:
    """`7 of 7 rounds, 42 runs in 1:07, 0:12 of it in sweeps; runner overhead: 2.1 %.`, or empty."""
    timing = result.manifest.timing
    if not timing:
        return ""
    runs = (record.run for record in result.records if record.run is not None)
    sweeps = {run.position: run.wall_seconds or 0.0 for run in runs if run.series == "sweep"}
    part = f", {clock_text(sum(sweeps.values()))} of it in sweeps" if sweeps else ""
    return (
        f"{rounds_text(result)}, {timing.runs} runs in {clock_text(timing.wall_seconds)}{part}; "
        f"runner overhead: {percent_text(timing.overhead_share)}."
    )


def rounds_text(result: Result) -> str:
    """`7 of 7 rounds`, `18 rounds (at least 7)`; `2 to 7 rounds of 7` if a configuration has fewer."""
    done, asked = result.manifest.rounds_done, result.manifest.rounds
    fewest = fewest_rounds(result.records)
    if fewest == done:
        fewest = None
    if done > asked:
        return f"{'' if fewest is None else f'{fewest} to '}{done} rounds (at least {asked})"
    return f"{done} of {asked} rounds" if fewest is None else f"{fewest} to {done} rounds of {asked}"


def until_text(manifest: Manifest) -> str:
    """Why no more rounds were added; empty if --until was not requested."""
    until = manifest.until
    if until is None or until.ended is None:
        return ""
    goal = goal_of(until.width, until.clear_suffices)
    rounds = ", ".join(f"{name} {number}" for name, number in until.rounds.items())
    if until.ended == "narrow":
        return f"Goal: {goal}; reached in rounds: {rounds}."
    wide = ", ".join(
        f"{name} {'has no interval' if width is None else percent_text(width)}"
        for name, width in until.widest.items()
    )
    return (
        f"Goal: {goal}; not reached within {clock_text(until.budget_seconds)} (rounds: {rounds}). "
        f"Widest: {wide}. A larger --budget narrows them."
    )


def _silent_input(manifest: Manifest) -> Iterator[str]:
    described = [*manifest.programs.values(), to_data(manifest.simulation)]
    if any((part.get("standard_input") or {}).get("kind") == "silent" for part in described if part):
        yield (
            "The standard input was a pipe that gave nothing in time: runs of the program had no input. If "
            "it needs one, give it from a file."
        )


def _work(difference: WorkDifference) -> str:
    """What a program did otherwise under a policy: its times are not those of the same work."""
    facts = [
        f"exit code {' or '.join(map(str, difference.exit_codes))} instead of "
        f"{' or '.join(map(str, difference.baseline_exit_codes))}"
        if difference.exit_codes
        else "",
        *(f"only the baseline prints {printable(line)!r}" for line in difference.missing),
        *(f"only the policy prints {printable(line)!r}" for line in difference.added),
    ]
    places = ", ".join(filter(None, (difference.module, difference.placement, difference.options)))
    return f"The program works otherwise under {places}: {'; '.join(filter(None, facts))}."


def _interruption(entry: Break) -> str:
    again = f", {count_text(entry.aside, 'run')} of an unfinished round repeated" if entry.aside else ""
    return (
        f"The session {_HOW[entry.state]} at {entry.stopped} after "
        f"{count_text(entry.rounds_done, 'complete round')} ({count_text(entry.runs, 'run')}) and was "
        f"resumed at {entry.resumed}{again}. Each ratio pairs runs from the same side of the interruption."
    )


def _prefetchers(switched: SwitchedOff) -> str:
    proof = "read back" if switched.read_back else "values cannot be read back"
    texts = [*(f"{name} off" for name in switched.off), *switched.adjusted]
    return f"{', '.join(texts)} (by {switched.method}, {proof})"


def _machine(manifest: Manifest) -> list[tuple[str, str]]:
    host = manifest.host
    known = {name: value for name, value in host_facts(host).items() if value != UNKNOWN}
    if host.numa_nodes:
        known["NUMA nodes"] = "; ".join(f"{each.node}: {len(each.cpus)} CPUs" for each in host.numa_nodes)
    khugepaged = [f"{name} {value}" for name, value in (host.khugepaged or {}).items()]
    reserved = [f"{pool.needed} pages of {bytes_text(pool.page_bytes)}" for pool in manifest.pool or ()]
    switches = (*(manifest.switches or ()), *(manifest.clocks or ()))
    changed = [f"{switch.file} from {switch.before} to {switch.now}" for switch in switches]
    facts = [
        ("host", host.hostname),
        *((name, bytes_text(value) if isinstance(value, float) else value) for name, value in known.items()),
        ("khugepaged", ", ".join(khugepaged)),
        ("free page reporting", "the hypervisor takes back freed memory" if host.free_page_reporting else ""),
        ("energy", manifest.energy.text if manifest.energy else ""),
        *_placements(manifest),
        ("hardware prefetchers", _prefetchers(manifest.prefetchers) if manifest.prefetchers else ""),
        ("reserved for the session", f"{', '.join(reserved)}, then restored" if reserved else ""),
        ("changed for the session", f"{', '.join(changed)}, then restored" if changed else ""),
    ]
    return [(name, value) for name, value in facts if value]


def _placements(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Threads, the CPU of each, and the memory policy, by placement where there are several."""
    placements = manifest.placements
    for placement in placements:
        memory = placement.memory
        name = "threads" if len(placements) == 1 else f"placement {placement.name}"
        cpus = ", ".join(map(str, placement.cpus))
        ranks = f" in each of {count_text(placement.ranks, 'rank')}" if placement.ranks else ""
        yield (
            name,
            f"{placement.threads}{ranks}, on CPU {cpus}"
            + (f"; memory {memory}" if memory != "default" else ""),
        )


def _provenance(result: Result) -> list[tuple[str, str]]:
    """When, how and from what sources it was measured."""
    manifest = result.manifest
    sources, software = manifest.provenance, manifest.software
    dirty = " with uncommitted changes" if sources.project_dirty else ""
    finished = manifest.finished or "not finished"
    return [
        ("Measured", f"{manifest.created} to {finished}, {manifest.state}"),
        ("Command", command_text(manifest.command)),
        ("Rounds", f"{rounds_text(result)}, seed {manifest.seed}. {until_text(manifest)}".rstrip()),
        ("Project commit", (sources.project_commit or "unknown") + dirty),
        ("Spack", f"{sources.spack_version or 'unknown'}, tree {sources.spack_tree or 'unknown'}"),
        ("Spack packages", sources.packages_commit or "unknown"),
        ("Lockfile", f"{sources.lockfile or 'not found'} {sources.lockfile_sha256 or ''}".rstrip()),
        ("Software", ", ".join(f"{name} {value or 'unknown'}" for name, value in software.items())),
        *([("Runs", str(manifest.timing.runs))] if manifest.timing else []),
    ]
