"""Runs a program once under a page policy, through hyperfine, and samples its memory."""

from __future__ import annotations

import mmap
import os
import shutil
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from statistics import fmean

from pagewise.core.environment import ENV
from pagewise.core.plan import Step
from pagewise.core.record import Record, Status
from pagewise.core.record_parts import (
    Failure,
    LeftProcess,
    PageFaults,
    RecordedHost,
    ThreadPlaces,
    Times,
    Validation,
)
from pagewise.core.result import utc_text
from pagewise.core.signals import signal_name
from pagewise.machine.groups import freezing
from pagewise.machine.memory import request_back
from pagewise.machine.placement import Placement
from pagewise.machine.settings.thp import only_size, pages_in_use
from pagewise.session.launch import (
    LARGEST_OUTPUT,
    Measurement,
    Start,
    StartedRun,
    Stopwatch,
    about_run,
    build_of,
    failed_record,
    limited_by,
)
from pagewise.session.processes import Shell
from pagewise.session.ranks import Ranks
from pagewise.session.settings import MachineSettings
from pagewise.session.turns import SlicedRun, run_in_slices
from pagewise.session.workload import Launcher, Outcome
from pagewise.workloads.program import memory
from pagewise.workloads.program.applied import AppliedPolicy, PolicyAnswer
from pagewise.workloads.program.program import Program
from pagewise.workloads.program.runs import CheckOptions, ProgramOutcome, ProgramRuns, computing_seconds
from pagewise.workloads.program.sampler import Sampler, Samples
from pagewise.workloads.program.service import ServiceError, Serving, run_all
from pagewise.workloads.program.verification import UNVERIFIED, verify

# Of the CPU time of the trial run: a program that computes less in slices ended earlier, by a clock.
_SAME_WORK = 0.6
# One that computes longer loses its place in the caches: its slices are then longer. By whether it serves:
# the wall time of its load varies more, and each slice begins with waiting.
_MOST_LOST = {False: 1.1, True: 1.25}
_SLICE_SECONDS = {False: (0.010, 0.040), True: (0.040, 0.100)}


@dataclass(frozen=True)
class Observation:
    """A run with its output (and that of its files) if it is not too large, why its result is wrong, and its
    memory if observed.
    """

    measured: Measurement
    minor_faults: int
    output: str | None
    values: Mapping[str, float]
    fault: str | None
    memory: memory.Memory | None
    samples: Samples
    has_written: bool
    service_log: str


@dataclass
class _Active:
    """A run under way, that of the load for a service, and what was seen of it when it is over."""

    run: StartedRun = field(init=False)
    serving: Serving | None = None
    seen: Observation | None = None


@dataclass(frozen=True)
class ProgramLauncher(Launcher):
    """Runs programs. `programs` are by module, `placements` by the name that cells have.

    slices: by benchmark, the seconds of its slices, shortest first, without those that were too short.
    whole: by benchmark, why its runs cannot be in slices, as slices have shown.
    """

    programs: Mapping[str, ProgramRuns]
    placements: Mapping[str | None, Placement]
    stopwatch: Stopwatch
    checked: CheckOptions
    settings: MachineSettings
    slices: dict[str, list[float]] = field(default_factory=dict)
    whole: dict[str, str] = field(default_factory=dict)

    def run(self, step: Step) -> Outcome:
        """Runs the program once, unless its policy is unavailable; the one record then has the reason.

        A step of the series `trial` is not timed: it shows whether the policy works and, if the program can
        preload that, the memory at its end. One that fails counts as a run of its configuration.
        """
        module, placement = step.cell.measured.module, self.placements[step.cell.placement]
        runs = self.programs[module]
        program, applied = runs.program, runs.policies[module]
        command = program.command_on(placement.threads)
        started, left = datetime.now(timezone.utc), list[LeftProcess]()
        if applied.unavailable is not None:
            record = failed_record(step, started, "pages_unavailable", applied.unavailable)
            return Outcome([replace(record, run=about_run(step, None, 3, command))], None, "", [])
        launcher = runs.rank_launcher
        ranks = None if launcher is None else Ranks(launcher, placement, self.stopwatch.scratch / "ranks")
        try:
            with self._observing(step, runs, ranks, left) as active:
                active.run.wait(self.stopwatch.limit)
        except ServiceError as fault:
            record = failed_record(step, started, "failed", _with_hint(fault.failure, applied, fault.limit))
            run = about_run(step, None, fault.failure.exit_code, command)
            series = "compare" if step.series == "trial" else step.series
            run = replace(run, series=series, left_behind=tuple(left) or None)
            return Outcome([replace(record, run=run)], None, fault.log, [])
        return self._outcome(step, active, ranks, left)

    def run_in_turns(self, steps: Sequence[Step]) -> list[Outcome]:
        """Runs programs at the same time, in slices; those that cannot take it as whole runs from then on."""
        name, program = steps[0].benchmark.name, self.programs[steps[0].cell.measured.module].program
        lengths = self.slices.setdefault(name, list(_SLICE_SECONDS[program.service is not None]))
        while lengths:
            try:
                outcomes = self._run_in_slices(steps, lengths[0])
                reason, is_final = self._find_spoiled(steps, outcomes)
            except ServiceError as fault:  # Which one, whole runs show.
                reason, is_final = f"of runs at the same time, one failed: {fault}", True
            if reason is None:
                return outcomes
            self.whole[name] = reason
            del lengths[: None if is_final else 1]
        return [self.run(step).with_run(whole_because=self.whole[name]) for step in steps]

    def _find_spoiled(self, steps: Sequence[Step], outcomes: Sequence[Outcome]) -> tuple[str | None, bool]:
        """Why these runs could not be in slices, and whether in no longer ones either; None: they could."""
        times_as_long, most = list[float](), 1.0
        for step, outcome in zip(steps, outcomes, strict=True):
            record = outcome.records[0]
            if record.failure is not None and not self.run(step).failed:
                return f"only in slices, a run failed: {record.failure.message}", True
            if step.cell.is_baseline and record.status == "ok":
                runs = self.programs[step.cell.measured.module]
                alone, most = runs.trial_seconds, _MOST_LOST[runs.program.service is not None]
                if (seconds := computing_seconds(record)) > most * alone:
                    # The machine may be slower now than in the trial run.
                    alone = max(alone, computing_seconds(self.run(step).records[0]))
                times_as_long.append(seconds / alone)
        change = fmean(times_as_long or [1.0])
        if _SAME_WORK <= change <= most:
            return None, False
        why = "it lost caches" if change > 1.0 else "a clock ends it"
        return f"in slices, it computed {change:.2f} times as long as alone: {why}", change < 1.0

    def _run_in_slices(self, steps: Sequence[Step], seconds: float) -> list[Outcome]:
        left = [list[LeftProcess]() for _ in steps]
        observed, sliced = [], []
        with ExitStack() as stack:
            for number, step in enumerate(steps):
                runs, freezer = self.programs[step.cell.measured.module], stack.enter_context(freezing())
                active = stack.enter_context(self._observing(step, runs, None, left[number], number))
                if active.serving is not None and freezer is not None:
                    active.serving.join(freezer)
                sliced.append(stack.enter_context(SlicedRun.start_stopped(active.run, freezer)))
                observed.append(active)
            run_in_slices(sliced, seconds, self.stopwatch.limit, f"{steps[0].round}")
        return [
            self._outcome(step, active, None, own).with_run(method="turns", slices=run.slices)
            for step, active, own, run in zip(steps, observed, left, sliced, strict=True)
        ]

    def _outcome(
        self, step: Step, active: _Active, ranks: Ranks | None, left: Sequence[LeftProcess]
    ) -> Outcome:
        """The record of a run that is over."""
        module, placement = step.cell.measured.module, self.placements[step.cell.placement]
        runs, seen = self.programs[module], active.seen
        assert seen is not None
        program, applied, is_trial = runs.program, runs.policies[module], step.series == "trial"
        printed = seen.output if seen.measured.exit_code in program.case.exit_codes else None
        targets = {kind for part in applied.answer.reached for kind in part.kinds}
        trial = seen.memory if is_trial else runs.memory.get(step.cell.key)
        used = memory.select_memory(seen.memory, trial, targets)
        of_trial, images = (seen.memory, seen.samples.images) if is_trial else (None, {})
        seen = replace(seen, memory=used)
        record = self._record(step, runs, seen)
        if ranks is not None:
            record = self._of_ranks(record, ranks, applied.answer, used)
        run = seen.measured.run_of(step, program.command_on(placement.threads), placement)
        series = "compare" if is_trial and record.status != "ok" else run.series
        run = replace(run, series=series, left_behind=(*(run.left_behind or ()), *left) or None)
        record = replace(record, program=None if used is None else used.to_record(), run=run)
        return ProgramOutcome(
            [record],
            seen.measured.wall,
            seen.measured.log + seen.service_log,
            [],
            printed,
            of_trial,
            images,
            seen.has_written,
            sum(seen.samples.queued.values()),
            seen.samples.exchanges,
        )

    @contextmanager
    def _observing(
        self,
        step: Step,
        runs: ProgramRuns,
        ranks: Ranks | None,
        left: list[LeftProcess],
        number: int | None = None,
    ) -> Iterator[_Active]:
        """A run, for which the block waits; what was seen of it is known after the block.

        In a trial the program's processes write their memory at their end, too. number: of one of several at
        the same time, whose metrics are not valid, because clocks continue. left: gets what the commands
        around the run left behind.
        """
        active = _Active()
        placement = self.placements[step.cell.placement]
        program, applied = runs.program, runs.policies[step.cell.measured.module]
        scratch, is_trial = self.stopwatch.scratch / f"program-{number or 0}", step.series == "trial"
        snapshots = scratch / "snapshots"
        shutil.rmtree(snapshots, ignore_errors=True)
        snapshots.mkdir(parents=True)
        command, environment = self._command(step, runs, ranks)
        if is_trial:
            # The launcher preloads a library that writes there.
            environment["PAGEWISE_SNAPSHOT"] = str(snapshots / "smaps")
        page = applied.answer.page_size_bytes
        counter = pages_in_use(page) if applied.answer.by_counter else None
        # Measured before the run: both write to the same files.
        overhead = self.stopwatch.measure_overhead(is_timed=number is None)
        launchers = (Path(ENV), Path(self.stopwatch.hyperfine), applied.launcher.file, Path(command[0]))
        others = sorted(os.sched_getaffinity(0) - set(placement.cpus))
        with (
            self.settings.set_for(step.cell),
            program.run_folder(scratch, placement.ranks) as folder,
            only_size(applied.switched_size),
            Shell(folder, program.environment, scratch, self.stopwatch.end_leftovers, left) as shell,
        ):
            sampler = Sampler(
                page, self.checked.interval, launchers, counter, others, ranks=ranks, identify=is_trial
            )
            with placement.bind():
                request_back(2 * runs.peak_bytes)
            began, log = time.time(), ""
            start = Start(command, environment, placement.bind(), folder)
            try:
                if program.service is None:
                    run_all(program.case.setup, shell, self.stopwatch.limit)
                    with self.stopwatch.start_run(start, number) as active.run:
                        sampler.watch(active.run.running.pid, itself=number is not None)
                        yield active
                    measured = active.run.measurement()
                else:
                    active.serving = Serving(program.service, shell, self.stopwatch)
                    with active.serving.loading(start, sampler.watching, number) as active.run:
                        yield active
                    measured, log = active.serving.place(active.run.measurement()), active.serving.log
            finally:
                samples = sampler.finish()
            has_written = _has_written(folder, began)
            room = LARGEST_OUTPUT - measured.output_bytes
            files = program.write(folder, began, room) if room >= 0 else None
            output = None if files is None else measured.output + files
            is_valid = measured.implausible is None and measured.exit_code in program.case.exit_codes
            values, fault = program.judge(output, shell) if is_valid else ({}, None)
        written = memory.read_snapshots(snapshots, page, samples)
        used = memory.observed_memory(samples, list(written.values()))
        if used is not None and ranks is not None:
            used = replace(used, ranks=memory.memory_by_rank(ranks, sampler, written))
        faults = max(0, measured.faults[0] - overhead)
        active.seen = Observation(
            measured, faults, output, values if number is None else {}, fault, used, samples, has_written, log
        )

    def _command(
        self, step: Step, runs: ProgramRuns, ranks: Ranks | None
    ) -> tuple[list[str], dict[str, str]]:
        """The program's command under its policy, with ranks if there are any, and its environment."""
        program, placement = runs.program, self.placements[step.cell.placement]
        environment = step.cell.environment({**program.environment, **placement.environment})
        applied = runs.policies[step.cell.measured.module]
        command = applied.command(program.command_on(placement.threads)[1:])
        if ranks is not None:
            command = ranks.command(command)
            environment |= ranks.launcher.environment
        return [*self.settings.prefix(step.cell), *command], environment

    def _record(self, step: Step, runs: ProgramRuns, seen: Observation) -> Record:
        program, applied = runs.program, runs.policies[step.cell.measured.module]
        measured, placement = seen.measured, self.placements[step.cell.placement]
        started = measured.started
        if measured.exit_code not in program.case.exit_codes or measured.wall is None:
            if measured.exit_code == UNVERIFIED and (refusal := applied.refusal()) is not None:
                return failed_record(step, started, "pages_unavailable", refusal)
            return failed_record(step, started, "failed", self._failure(measured, program, applied))
        if measured.implausible is not None:
            return failed_record(step, started, "failed", Failure(4, measured.implausible))
        if seen.fault is not None:
            return failed_record(step, started, "check_failed", Failure(1, seen.fault))
        pages, unverified = verify(applied.answer, self.checked.enough, seen.memory, mmap.PAGESIZE)
        if unverified is not None:
            return replace(failed_record(step, started, "pages_unavailable", unverified), pages=pages)
        metrics = {**seen.values, **measured.energy, **(measured.cpu_seconds if runs.is_accounted else {})}
        if seen.memory is not None:
            metrics |= seen.memory.metrics
        return Record(
            kernel=step.benchmark.name,
            started=utc_text(started),
            status="ok",
            configuration=build_of(step.cell.measured),
            seconds=Times(repetitions=(measured.wall,)),
            metrics=metrics,
            validation=Validation(True, program.validation),
            pages=pages,
            page_faults=PageFaults(compute_minor=seen.minor_faults, compute_major=measured.faults[1])
            if runs.is_accounted
            else None,
            placement=ThreadPlaces(placement.threads, placement.cpus),
            host=RecordedHost(hostname=socket.gethostname(), kernel=os.uname().release),
        )

    def _failure(self, measured: Measurement, program: Program, applied: AppliedPolicy) -> Failure:
        failure = self.stopwatch.failure(measured)
        if failure.exit_code != measured.exit_code or measured.fault is not None:
            return failure
        if program.service is not None:
            failure = limited_by(measured.limit, replace(failure, message=f"the load {failure.message}"))
        else:
            failure = _with_hint(failure, applied, measured.limit)
        # Launchers draw lines around their messages.
        last = [line for line in measured.log.splitlines() if line.strip(" -=")][-1:]
        return replace(failure, message=": ".join([failure.message, *last])[:500])

    def _of_ranks(
        self, record: Record, ranks: Ranks, answer: PolicyAnswer, used: memory.Memory | None
    ) -> Record:
        """The record with the observed pages of each rank; one rank on wrong pages excludes the run.

        The kernel's counter of pages (mTHP) is that of the machine: such pages are verified for all ranks
        together.
        """
        by_rank = dict(enumerate(() if used is None or answer.by_counter else used.ranks))
        uses, faults = [], [fault] if (fault := ranks.failure()) is not None else []
        for use in ranks.rank_uses():
            pages = None
            if use.rank in by_rank:
                pages, fault = verify(answer, self.checked.enough, by_rank[use.rank], mmap.PAGESIZE)
                if fault is not None:
                    faults.append(replace(fault, message=f"rank {use.rank}: {fault.message}"))
            uses.append(replace(use, pages=pages))
        record = replace(record, ranks=tuple(uses))
        if record.status not in ("ok", "pages_unavailable") or not faults:
            return record
        status: Status = "pages_unavailable" if faults[0].exit_code == UNVERIFIED else "failed"
        return replace(record, status=status, failure=faults[0])


def _with_hint(failure: Failure, applied: AppliedPolicy, limit: str | None) -> Failure:
    """The failure, with the limit that explains it, its likely cause where a pool ran short, or a remedy."""
    if limit is not None:
        return limited_by(limit, failure)
    if signal_name(failure.exit_code) is None:
        remedy = "if this code means success, add it to exit_codes of a case file: pagewise list case"
        return replace(failure, remedy=failure.remedy or remedy)
    if not applied.answer.from_pool or signal_name(failure.exit_code) not in ("SIGBUS", "SIGKILL"):
        return failure
    text = "the hugetlb pool may have run short, because glibc's arenas and children of fork use its pages"
    remedy = "more pages in the pool: --prepare-pages 2M:4GiB"
    return replace(failure, message=f"{failure.message}: {text}", remedy=remedy)


def _has_written(folder: Path, since: float) -> bool:
    """Whether a run has written files in its folder, or one below it, as others would at the same time."""
    for file in (*folder.glob("*"), *folder.glob("*/*")):
        with suppress(OSError):
            if file.lstat().st_mtime >= since:
                return True
    return False
