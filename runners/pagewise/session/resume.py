"""Continues an interrupted session in its folder, if nothing has changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pagewise.core.errors import RefusedError, SelectionError
from pagewise.core.files import write_inside
from pagewise.core.manifest import Break, Digest, Manifest
from pagewise.core.plan import Step, key_of
from pagewise.core.record import Record, Skipped, digest_of, dump_record, lock, parse_record
from pagewise.core.record_parts import RunOf
from pagewise.core.result import Result, check_unaltered, read_manifest, read_result, utc_text
from pagewise.core.structure import to_data

#: The series of runs of an interrupted round, which is measured again.
ASIDE: Final = "aside"
# What must be unchanged; of the host, the settings and the parts that determine times.
_ASKED = ("kind", "seed", "rounds", "aa", "threads", "baseline", "sweep", "limit_seconds")
_HOST = (
    "hostname",
    "cpu",
    "architecture",
    "kernel",
    "base_page_size_bytes",
    "cpus",
    "smt",
    "thp",
    "governors",
    "scaling_drivers",
    "boost",
)
_PROGRAM = (
    "command",
    "service",
    "setup",
    "sha256",
    "metrics",
    "checks",
    "enough_coverage",
    "environment",
    "standard_input",
    "relative_to",
)
_PARTS = {
    "counters": ("events", "groups", "region"),
    "simulation": ("geometry", "tool", "standard_input"),
}
_MISSING = "missing"
_LONGEST = 160
_PRINTING = ("--json", "-q", "--quiet", "-v", "--verbose", "--plan")


@dataclass(frozen=True)
class Earlier:
    """What a session measured before an interruption; empty in a new one.

    rounds: how many of them are complete. Whole rounds are repeated: paired runs must be close in time.
    """

    records: tuple[Record, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    wall_seconds: float = 0.0
    rounds: int = 0

    @property
    def runs(self) -> Collection[RunOf]:
        """The runs that count, each once: a sweep has several records of one run."""
        runs = ((record.of_kernel, record.run) for record in self.records if record.run is not None)
        return {
            (kernel, key_of(run), run.series, run.round, run.position): run
            for kernel, run in runs
            if run.series not in (ASIDE, "trial")
        }.values()

    def remaining(self, steps: Sequence[Step], is_stopped: Callable[[Step], bool]) -> list[Step]:
        """The remaining steps in order, without those that failed before."""
        sweeps = {
            (record.of_kernel, key_of(record.run), record.run.sweep)
            for record in self.records
            if record.run is not None and record.run.series == "sweep"
        }

        def is_done(step: Step) -> bool:
            if step.sweep is None:
                return step.round <= self.rounds
            return (*step.of, step.swept) in sweeps

        return [step for step in steps if not (is_done(step) or is_stopped(step))]

    def complete(self) -> Earlier:
        """The same without the runs of an unfinished round."""
        kept = (record for record in self.records if not _is_unfinished(record, self.rounds))
        return replace(self, records=tuple(kept))

    @property
    def failed(self) -> list[Record]:
        """The records of runs that count and failed."""
        return [record for record in self.records if record.status != "ok" and record.series != ASIDE]


def command_of(arguments: Sequence[str]) -> tuple[str, ...]:
    """The command that these arguments are of, without --resume RESULT."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options, program = list(arguments[:end]), arguments[end:]
    for place, word in enumerate(options):
        if word.partition("=")[0] == "--resume":
            del options[place : place + (1 if "=" in word else 2)]
            break
    return ("pagewise", *options, *program)


def check_command(folder: Path, arguments: Sequence[str]) -> None:
    """Raises SelectionError unless these arguments, here, repeat the command that began the result.

    What runs is what the user typed. Nothing that a result names is executed: it may come from elsewhere.
    """
    manifest = read_manifest(folder)
    typed, before = (tuple(_measuring(words)) for words in (command_of(arguments), manifest.command))
    if (typed, str(Path.cwd())) != (before, manifest.started_in):
        raise SelectionError(
            "--resume continues with the command that began the result, in the folder where it was typed",
            where=folder,
            remedy="if the result is yours, repeat the command: "
            + manifest.command_line("--resume", str(folder)),
        )


def _measuring(command: Sequence[str]) -> Iterator[str]:
    """The words of a command without options that only change what is printed."""
    end = command.index("--") if "--" in command else len(command)
    yield from (word for word in command[:end] if word not in _PRINTING)
    yield from command[end:]


def read_interrupted(folder: Path, planned: Manifest) -> tuple[Manifest, Earlier]:
    """The manifest and the records of an interrupted session that is resumed.

    `planned` is the manifest with which the same command would begin now. Raises FormatError, SelectionError
    when nothing is left to do, RefusedError with a list of everything that has changed.
    """
    result = check_unaltered(read_result(folder))
    manifest = result.manifest
    if manifest.state == "complete":
        raise SelectionError(
            "this session is complete: nothing is left to do",
            where=folder,
            remedy=f"measure again: {manifest.command_line()}",
        )
    if changes := list(differences(manifest, planned)):
        raise RefusedError(
            "this has changed since the session began:\n    " + "\n    ".join(changes),
            where=folder,
            remedy=f"restore it, or begin again: {manifest.command_line()}",
        )
    earlier = Earlier(
        tuple(result.records),
        tuple(result.skipped),
        manifest.timing.wall_seconds if manifest.timing is not None else 0.0,
        _complete_rounds(result),
    )
    stopped = manifest.finished or str(result.records[-1].started if result.records else manifest.created)
    interruption = Break(
        manifest.state, stopped, utc_text(), manifest.rounds_done, len(earlier.runs), aside=0
    )
    breaks = (*manifest.breaks, interruption)
    return replace(manifest, state="running", finished=None, breaks=breaks), earlier


def differences(before: Manifest, now: Manifest) -> Iterator[str]:
    """The differences that prevent resuming: machine, builds, programs, plan; a line each."""
    facts = [dict(_facts(manifest)) for manifest in (before, now)]
    for name in dict.fromkeys((*facts[0], *facts[1])):
        pair = [each.get(name, _MISSING) for each in facts]
        if pair[0] != pair[1]:
            yield f"{name}: {_short(pair[0])} is now {_short(pair[1])}"
    for file in sorted(before.files.keys() & now.files.keys()):
        if before.files[file] != now.files[file]:
            yield f"the file {file} has changed"


def _facts(manifest: Manifest) -> Iterator[tuple[str, Any]]:
    """What must be as it was, by its name."""
    for name in _HOST:
        yield f"this machine's {name}", getattr(manifest.host, name)
    yield (
        "the pools of huge pages (pages by size)",
        {pool.page_bytes: pool.total for pool in manifest.host.pools},
    )
    for name in _ASKED:
        yield name, getattr(manifest, name)
    yield "the placement", [(place.cpus, place.memory, place.ranks) for place in manifest.placements]
    for one in manifest.configurations:
        yield f"the build of the module {one.module}", (one.hash, one.digest, one.prefix)
    for digest in manifest.executables:
        yield f"the program {digest.program} of the module {digest.module}", digest.sha256
    for subject in manifest.subjects:
        yield f"what is measured of {subject.kernel.name}", subject
    for name, program in manifest.programs.items():
        yield from ((f"{name}'s {part}", program.get(part)) for part in _PROGRAM)
        # What policies set and whether they are available is decided by the trial run of a script.
        yield f"{name}'s policies", [policy["name"] for policy in program.get("policies") or ()]
    for part, names in _PARTS.items():
        described = to_data(getattr(manifest, part)) or {}
        yield from ((f"{name} of {part}", described.get(name)) for name in names)


def _complete_rounds(result: Result) -> int:
    """The number of complete rounds; a line that cannot be read is a run that the last round misses."""
    rounds = (record.round for record in result.records if record.run is not None)
    return min(result.manifest.rounds_done, max(rounds, default=0) - bool(result.skipped))


def _is_unfinished(record: Record, rounds: int) -> bool:
    """Whether the run is of a round after so many complete ones."""
    run = record.run
    return run is not None and run.series not in (ASIDE, "trial", "sweep") and run.round > rounds


def set_aside(file: Path, rounds: int, announce: Callable[[Digest], None]) -> None:
    """Marks the runs after so many rounds in a records file: their series is `aside`, they no longer count.

    Lines that are not records stay unchanged. `announce` gets the digest of the new content before it
    replaces the old one. Raises RefusedError, also while another program writes to the file.
    """
    lines = []
    try:
        with file.open("rb") as stream:
            lock(stream.fileno(), file)
            for line in stream.read().splitlines():
                record, _ = parse_record(line)
                if record is not None and record.run is not None and _is_unfinished(record, rounds):
                    line = dump_record(replace(record, run=replace(record.run, series=ASIDE)))  # noqa: PLW2901
                lines.append(line.rstrip() + b"\n")
            content = b"".join(lines)
            announce(digest_of(content))
            write_inside(file.parent, file.name, content)
    except FileNotFoundError:
        return
    except OSError as fault:
        raise RefusedError(
            f"the records cannot be written: {fault.strerror}",
            where=file,
            remedy="free some space or allow writing, and resume again",
        ) from fault


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(to_data(value), ensure_ascii=False)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " ..."
