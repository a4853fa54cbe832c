"""The runs of the user's program under page policies: what is known of them before and after trial runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from pagewise.core.environment import influences
from pagewise.core.errors import SelectionError
from pagewise.core.plan import CellKey
from pagewise.core.record import Record
from pagewise.core.record_parts import Failure
from pagewise.machine.groups import can_freeze
from pagewise.machine.placement import Placement
from pagewise.session.options import Method
from pagewise.session.standard_input import StandardInput
from pagewise.session.workload import Outcome, Trial
from pagewise.stack.binary import Binary, examine
from pagewise.stack.launcher import RankLauncher
from pagewise.workloads.program.applied import AppliedPolicy
from pagewise.workloads.program.memory import Memory
from pagewise.workloads.program.program import Program

# Programs with a smaller share of the largest one's memory do not decide on page policies.
_LEAST_MEMORY = 0.1
# Disks and partners continue while a program that waits for them is stopped.
_BUSY = 0.9
# The start of a run is one slice.
_SHORTEST_SECONDS = 0.1


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """How runs of a program are judged, as the user wrote it.

    interval: seconds between samples of memory; None: adaptive. enough: the share of a policy's memory that
    must be on the requested pages.
    """

    metrics: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    interval: float | None = None
    enough: float = 0.8


@dataclass(frozen=True)
class ProgramOutcome(Outcome):
    """A run of a program: the memory that it used, and the files of all programs that ran (see Samples).

    has_written: whether there are new files in its folder. queued: the seconds of its threads in queues of
    CPUs, if it is a trial run. has_exchanged: whether its processes had a pipe in common, too.
    """

    memory: Memory | None = None
    images: Mapping[str, int] = field(default_factory=dict)
    has_written: bool = False
    queued: float = 0.0
    has_exchanged: bool = False


def computing_seconds(record: Record) -> float:
    """The time that a run of a program used the CPUs, or of a service that of its load; 0 if it failed."""
    used = [record.figures[name] for name in ("user_seconds", "system_seconds") if name in record.figures]
    return sum(used or record.repetitions)


@dataclass(frozen=True)
class ProgramRuns:
    """The runs of a program. `policies` are by the module of their configuration, the baseline's first.

    rank_launcher: what starts MPI ranks, None for one process. ran: the programs that ran in its trial run,
    None unless they decide on policies. memory: that of trial runs. not_sliced: why its runs cannot be in
    slices; empty if they can, as far as the baseline's trial run shows, which computed for `trial_seconds`.
    """

    program: Program
    policies: Mapping[str, AppliedPolicy]
    rank_launcher: RankLauncher | None = None
    ran: tuple[Binary, ...] | None = None
    memory: Mapping[CellKey, Memory] = field(default_factory=dict)
    not_sliced: str = "it has not been tried"
    trial_seconds: float = 0.0

    @property
    def baseline(self) -> str:
        """The module of the page policy to compare against."""
        return next(iter(self.policies))

    @property
    def peak_bytes(self) -> int:
        """The most memory that a trial run used."""
        return max((memory.total.peak.resident for memory in self.memory.values()), default=0)

    @property
    def is_accounted(self) -> bool:
        """Whether the kernel accounts the program to its launcher: not the service, whose load is timed.

        srun has a daemon start ranks.
        """
        launcher = self.rank_launcher
        return self.program.service is None and (launcher is None or launcher.kind.inherits)

    @property
    def unavailable(self) -> dict[str, Failure]:
        """Why policies are unavailable, by module."""
        reasons = {name: applied.unavailable for name, applied in self.policies.items()}
        return {name: reason for name, reason in reasons.items() if reason is not None}

    @property
    def from_pool(self) -> list[AppliedPolicy]:
        """The available policies that take pages of a pool."""
        every = self.policies.values()
        return [applied for applied in every if applied.answer.from_pool and applied.unavailable is None]

    def describe(
        self, checked: CheckOptions, placement: Placement, given: StandardInput
    ) -> dict[str, object]:
        """The program, its policies and what the caller's environment decides, for the manifest."""
        program, service = self.program, self.program.service
        related = {} if program.relation is None else {"relative_to": asdict(program.relation)}
        ran = {} if self.ran is None else {"programs": [binary.to_dict() for binary in self.ran]}
        return {
            "command": list(program.command),
            "service": None if service is None else asdict(service),
            "setup": list(() if service else program.case.setup) or None,
            "folder": None if program.folder is None else str(program.folder),
            "inputs": [*map(str, program.inputs), *(program.case.input or ())],
            "reads": list(program.case.reads),
            **program.binary.to_dict(),
            "metrics": [metric.to_dict() for metric in program.metrics],
            "checks": [check.text for check in program.checks],
            "enough_coverage": checked.enough,
            "memory_budget": program.case.budget,
            "sample_interval_seconds": checked.interval,
            "policies": [applied.to_dict() for applied in self.policies.values()],
            "environment": self._environment(placement),
            "standard_input": given.to_dict(),
            **related,
            **ran,
        }

    def _environment(self, placement: Placement) -> dict[str, dict[str, str]]:
        """What the caller's environment decides about memory, libraries and threads of the runs."""
        every, baseline = self.program.environment, self.policies[self.baseline]
        given = {name: text for name, text in every.items() if name not in placement.environment}
        none = baseline.launcher.ask("none", baseline.binary.image, given).settings
        passed = {name: none.environment.get(name, text) for name, text in influences(given).items()}
        return {
            "passed": {name: text for name, text in passed.items() if text is not None},
            "removed": dict(none.removed),
        }

    def decide(self, trials: Sequence[Trial], method: Method) -> tuple[ProgramRuns, list[str]]:
        """The runs as trial runs decide them, and what of that is printed.

        The programs that a script or launcher started decide which policies are available.
        """
        outcomes = [
            (trial.step.cell, trial.outcome)
            for trial in trials
            if trial.step.cell.measured.module in self.policies and isinstance(trial.outcome, ProgramOutcome)
        ]
        memory = {cell.key: outcome.memory for cell, outcome in outcomes if outcome.memory is not None}
        trial_outcomes = [outcome for _, outcome in outcomes]
        runs = replace(
            self,
            memory=memory,
            not_sliced=self._why_not_sliced(trial_outcomes, method),
            trial_seconds=computing_seconds(trial_outcomes[0].records[0]) if trial_outcomes else 0.0,
        )
        images = outcomes[0][1].images if outcomes else {}
        least = max(images.values(), default=0) * _LEAST_MEMORY
        every = sorted(images, key=images.__getitem__, reverse=True)
        files = [file for file in every if images[file] >= least and Path(file).is_file()]
        if self.ran is not None or set(files) <= {str(self.program.binary.image)}:
            return runs, []
        binaries, unread = self._examine(files)
        policies = {name: replace(each, programs=binaries) for name, each in self.policies.items()}
        runs = replace(runs, ran=binaries, policies=policies)
        return runs, [
            "Page policies are decided by the programs that ran:",
            *(f"  {binary.image} ({binary.text})" for binary in binaries or [self.program.binary]),
            *unread,
            *(f"unavailable: {name}: {failure.message}" for name, failure in runs.unavailable.items()),
        ]

    def _why_not_sliced(self, trials: Sequence[ProgramOutcome], method: Method) -> str:
        """Why its runs cannot be in slices, at the same time as others; empty if they can."""
        program = self.program
        has_written = any(trial.has_written for trial in trials)
        record = trials[0].records[0] if trials and not trials[0].failed else None
        seconds = 0.0 if record is None else record.repetitions[0]
        used = 0.0 if record is None else computing_seconds(record)
        # While others have the CPUs, it waits for nothing else.
        ready = used + (trials[0].queued if trials else 0.0)
        of_machine = [
            applied.answer.policy
            for applied in self.policies.values()
            if applied.unavailable is None and (applied.switched_size or applied.answer.by_counter)
        ]
        reasons = {
            "a service is under load": program.service is not None and method != "turns",
            "a service is frozen by a control group, which is not available": program.service is not None
            and not can_freeze(),
            "it runs as MPI ranks": self.rank_launcher is not None,
            f"{', '.join(of_machine)} switches or counts pages of the whole machine": bool(of_machine),
            "its metrics may use a clock, which continues": bool(program.metrics) and method != "turns",
            "it has no valid trial run": record is None,
            "its runs write to one folder": program.folder is not None and has_written,
            # A write that is stopped may be cut short, and not all programs repeat the rest (Python's print).
            "its processes exchange data by a pipe": any(trial.has_exchanged for trial in trials),
            "it is too short": seconds < _SHORTEST_SECONDS,
            f"it waits: it used the CPU for {used:.2f} of {seconds:.2f} s": ready < _BUSY * seconds,
        }
        return next((reason for reason, applies in reasons.items() if applies), "")

    def _examine(self, files: Iterable[str]) -> tuple[tuple[Binary, ...], list[str]]:
        """The programs of these files, and a line for each that cannot be examined."""
        binaries, unread, environment = [], [], self.program.environment
        launcher = self.policies[self.baseline].launcher
        for file in files:
            try:
                binaries.append(launcher.examine(examine(file, environment), environment))
            except SelectionError as fault:
                unread.append(f"  not examined: {file}: {fault.message}")
        return tuple(binaries), unread
