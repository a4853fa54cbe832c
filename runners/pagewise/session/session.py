"""A session from beginning to end: the round loop, whatever the workload."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType

from pagewise.analysis.statistics import largest
from pagewise.core.errors import Interrupted, PagewiseError, refused_by_system
from pagewise.core.manifest import Last, Manifest, SessionState, Until, goal_of
from pagewise.core.node_state import change
from pagewise.core.plan import CellOf, Step, key_of
from pagewise.core.record import Record
from pagewise.core.result import Result, find_alteration
from pagewise.core.signals import interruptible
from pagewise.core.units import bytes_text, clock_text, percent_text, seconds_text
from pagewise.machine.node_state import read_state
from pagewise.machine.settings.session import removed_if_killed
from pagewise.session.node_states import NodeStates, check_states
from pagewise.session.options import SessionOptions
from pagewise.session.progress import ProgressReporter
from pagewise.session.recorder import Recorder
from pagewise.session.resume import Earlier
from pagewise.session.settings import changed_settings
from pagewise.session.work import Work
from pagewise.session.workload import Launcher, Outcome, Trial, Workload
from pagewise.stack.files import Watch


@dataclass
class Session:
    """A session, prepared and then under way. `began` is when its work started, by the monotonic clock.

    `verdicts`: what a terminal shows of the result so far. `is_verbose`: whether each run is printed.
    """

    options: SessionOptions
    workload: Workload
    recorder: Recorder
    console: Console
    began: float = field(default_factory=time.monotonic)
    earlier: Earlier = field(default_factory=Earlier)
    verdicts: Callable[[Result], RenderableType] | None = None
    is_verbose: bool = False
    ending: PagewiseError | Interrupted | None = None
    _watch: Watch = field(default_factory=lambda: Watch({}))
    _ruled_out: set[tuple[Any, ...]] = field(default_factory=set)
    _launcher: Launcher | None = None
    _states: NodeStates = field(default_factory=lambda: NodeStates(Path()))
    _work: Work = field(default_factory=Work)
    _altered: str | None = None

    @property
    def manifest(self) -> Manifest:
        """The manifest of the result; on the disk from `begin` on."""
        return self.recorder.manifest

    def begin(self) -> None:
        """Makes the result's folder, or takes up that of an interrupted session.

        Raises RefusedError, SelectionError or FormatError.
        """
        check_states(self.options.machine.node_states)
        self._watch = Watch(self.workload.watched_files())
        self.recorder.note(files=self._watch.digests())
        if self.options.result.resume is None:
            self.recorder.create(self.options.result.results, self.options.result.name)
        else:
            self.earlier = self.recorder.resume(self.options.result.resume)
            for record in self.earlier.failed:
                self._rule_out([record])
        self.recorder.save()

    @property
    def result(self) -> Result:
        """The records so far, with the manifest as it is now."""
        recorder, subjects = self.recorder, self.workload.subjects
        records, skipped = recorder.records, recorder.skipped
        return Result(recorder.folder, self.manifest, subjects, records, skipped, self._altered)

    def measure(self) -> None:
        """Runs all rounds and sweeps. What ends them early is kept in `ending`, not raised.

        In every case the records so far are in the folder, and the machine's settings are restored.
        """
        with tempfile.TemporaryDirectory(prefix="pagewise-") as scratch, removed_if_killed(Path(scratch)):
            self._states = NodeStates(Path(scratch))
            try:
                # Trial runs, too, start with the settings of all runs, so that these are undone in any case.
                with (
                    interruptible(),
                    self.recorder.writing(),
                    self._states,
                    self.workload.settings.set_for_all(self.recorder.note),
                ):
                    self._measure(Path(scratch))
            except (PagewiseError, Interrupted) as ending:
                self.ending = ending
            except OSError as fault:
                self.ending = refused_by_system(fault)
                if self.ending is None:
                    raise
            finally:
                self._note_work()
        self.recorder.note_changed(self._watch.verify())
        self._altered = find_alteration(self.recorder.folder, replace(self.manifest, state="complete"))

    def _measure(self, scratch: Path) -> None:
        """Trial runs of the baselines, then of all others, then the rounds, each as those before decide."""
        trials = self._try(scratch, of_baselines=True)
        self.workload = self._decide(trials)
        placements, needs = self.workload.placements, self.workload.needs()
        with changed_settings(self.recorder.note, placements, self.options.machine.prepare, needs):
            self.recorder.save()
            trials += self._try(scratch, of_baselines=False)
            self.workload = self._decide(trials)
            self._launcher = self.workload.launcher(scratch)
            self._run_all()

    def _try(self, scratch: Path, *, of_baselines: bool) -> list[Trial]:
        trials: list[Trial] = []
        self._launcher = self.workload.launcher(scratch)
        for step in self.workload.trials(of_baselines=of_baselines):
            if self.workload.planner.can_run(step) and not self.is_ruled_out(step):
                trials.append(Trial(step, *self.run([step])))
                self.console.print(f"trial run, {trial_text(trials[-1])}", soft_wrap=True)
        return trials

    def _decide(self, trials: Sequence[Trial]) -> Workload:
        decision = self.workload.decide(trials)
        self.recorder.note(**decision.fields)
        if decision.text:
            self.console.print(decision.text, soft_wrap=True)
        return decision.workload

    def _note_work(self) -> None:
        cells = [cell for subject in self.workload.subjects for cell in subject.cells]
        differing = self._work.differences(cells, self.workload.references())
        known = self.manifest.differing_work
        self.recorder.note(differing_work=tuple(dict.fromkeys((*known, *differing))))

    def close(self) -> None:
        """Writes how the session ended and the runner overhead so far. Raises RefusedError.

        May be called again, after more of the runner's work.
        """
        state: SessionState = "complete" if self.ending is None else "failed"
        if isinstance(self.ending, Interrupted):
            state = "interrupted"
        self.recorder.finish(state, self.earlier.wall_seconds + time.monotonic() - self.began)

    def run(self, steps: Sequence[Step]) -> list[Outcome]:
        """Runs a step, or several in turns, and keeps their records. Raises RefusedError.

        What need not be tried again is ruled out.
        """
        assert self._launcher is not None
        modules = {step.cell.measured.module for step in steps}
        changed = {module: self._watch.look(module) for module in modules}
        starts = all(map(self.workload.planner.can_run, steps))
        self._states.enter(steps[0].cell.settings.machine.get("node-state") if starts else None)
        before = read_state()
        outcomes = [self._launcher.run(*steps)] if len(steps) == 1 else self._launcher.run_in_turns(steps)
        self._states.check()
        node = change(before, read_state()) if starts else None
        changed = {module: changed[module] or self._watch.look(module) for module in modules}
        self.recorder.note_changed(changed)
        return [
            self._keep(step, outcome.with_run(node=node), changed)
            for step, outcome in zip(steps, outcomes, strict=True)
        ]

    def _keep(self, step: Step, outcome: Outcome, changed: Mapping[str, Sequence[Path]]) -> Outcome:
        # Why a run took no turns, if the plan decided that.
        if step.series != "trial" and (because := self.workload.planner.whole_because(step)):
            outcome = outcome.with_run(whole_because=because)
        self.recorder.keep(step, outcome)
        run = outcome.records[0].run
        if outcome.printed is not None and run is not None:
            self._work.note(step.cell.key, outcome.printed, run.exit_code)
        if changed[step.cell.measured.module]:
            self._ruled_out.add(step.of)
        elif outcome.failed:
            self._rule_out(outcome.records)
        return outcome

    def _run_all(self) -> None:
        began = time.monotonic() - self.earlier.wall_seconds
        rounds = [
            self.earlier.remaining(self._steps_of_round(number), self.is_ruled_out)
            for number in range(1, self.options.runs.rounds + 1)
        ]
        sweeps = self.earlier.remaining(self.workload.planner.sweeps(), self.is_ruled_out)
        all_steps, count = [*chain(*rounds), *sweeps], self.options.runs.rounds
        with ProgressReporter(self.console, count, all_steps, is_verbose=self.is_verbose) as progress:
            for number, steps in enumerate(rounds, start=1):
                self._run_steps(steps, progress)
                self._end_round(number, progress)
            until = self.manifest.until
            if self.options.runs.until is not None and (until is None or until.ended is None):
                self._run_until(self.options.runs.until, began, progress)
            self._run_steps(sweeps, progress)

    def _steps_of_round(self, number: int) -> list[Step]:
        return self.workload.planner.steps_of_round(number, self.recorder.records)

    def _run_steps(self, steps: Iterable[Step], progress: ProgressReporter) -> None:
        for together in self.workload.planner.together(list(steps)):
            runs = []
            for step in together:
                if self.is_ruled_out(step):
                    progress.skip(step)
                else:
                    runs.append(step)
            if not runs:
                continue
            progress.begin(runs[0])
            started = time.monotonic()
            self.run(runs)
            seconds = (time.monotonic() - started) / len(runs)
            for step in runs:
                progress.end(step, seconds)

    def _end_round(self, number: int, progress: ProgressReporter) -> None:
        self.recorder.note(rounds_done=max(number, self.manifest.rounds_done))
        self.recorder.save()
        if (verdicts := self.verdicts) is not None:
            progress.show(lambda: verdicts(self.result))

    def _run_until(self, width: float, began: float, progress: ProgressReporter) -> None:
        """Further rounds of the configurations whose intervals are still wider, as the budget allows.

        Each has its baseline with it. After an interruption this is decided again round by round, from what
        was measured up to each: the same rounds come about.
        """
        number, runs = self.options.runs.rounds, self.options.runs
        names = [subject.benchmark.name for subject in self.workload.subjects]
        baselines = {step.of for step in self._steps_of_round(number) if step.cell.is_baseline}
        until = Until(width, runs.clear_suffices, runs.budget, None, dict.fromkeys(names, number), {})
        ended: set[CellOf] = set()
        while until.ended is None:
            widths = self._widths(number, until)
            wide = {one: value for one, value in widths.items() if value is None or value >= width}
            # What needs no more rounds stays so. What is excluded may recover, as long as its kernel runs.
            done = [one for one in widths if one not in {*wide, *ended, *baselines}]
            last = (Last(name, *key, number) for name, key in done)
            until, ended = replace(until, last=(*until.last, *last)), ended | set(done)
            wide = {one: value for one, value in wide.items() if one not in ended and one[0] in names}
            names = list(dict.fromkeys(name for name, _ in wide))
            kernels = {name: largest([wide[one] for one in wide if one[0] == name]) for name in names}
            steps = [
                step
                for step in self._steps_of_round(number + 1)
                if step.benchmark.name in kernels and step.of not in ended
            ]
            remaining = self.earlier.remaining(steps, self.is_ruled_out)
            over = time.monotonic() - began + (progress.expect(remaining) or 0.0) > runs.budget
            if not wide:
                until = replace(until, ended="narrow", widest=kernels)
            elif all(self.is_ruled_out(step) for step in steps if step.of in wide) or (remaining and over):
                until = replace(until, ended="budget", widest=kernels)
            else:
                number += 1
                rounds = {**until.rounds, **dict.fromkeys(kernels, number)}
                until = replace(until, rounds=rounds, widest=kernels)
            self.recorder.note(until=until)
            if until.ended is None:
                budget = runs.budget - (time.monotonic() - began)
                progress.add(remaining, until_text(kernels, width), budget)
                self._run_steps(remaining, progress)
                self._end_round(number, progress)
        self.recorder.save()

    def _widths(self, number: int, until: Until) -> dict[CellOf, float | None]:
        """The widest intervals of configurations after a round."""
        known = [record for record in self.recorder.records if record.round <= number]
        return self.workload.planner.widths(known, until.last, clear_suffices=until.clear_suffices)

    def is_ruled_out(self, step: Step) -> bool:
        """Whether the step is not run, because such a run failed before or its files changed."""
        return not self._ruled_out.isdisjoint((step.of, (*step.of, step.group)))

    def _rule_out(self, records: Sequence[Record]) -> None:
        """Rules out later runs because of a failed one, of which these are the records."""
        scope, first = self.workload.planner.ruled_out(records), records[0]
        if scope is not None and first.run is not None:
            group = (first.run.group,) if scope == "group" else ()
            self._ruled_out.add((first.of_kernel, key_of(first.run), *group))


def trial_text(trial: Trial) -> str:
    """The result of a trial run in a line."""
    policy, record = trial.step.cell.measured.hugepages, trial.outcome.records[0]
    if record.failure is not None:
        return f"{policy}: {record.failure.message}"
    text = f"{policy}: {seconds_text(record.repetitions[0])}"
    if record.program is None:
        return f"{text}, too short to sample its memory"
    peak = record.program.total.peak
    share = f", {peak.huge_coverage:.0%} of it on huge pages" if peak.huge_bytes else ""
    return f"{text}, {bytes_text(peak.resident_bytes)} in memory{share}"


def goal_text(options: SessionOptions) -> str:
    """What --until adds to the plan, on a line; empty without it."""
    if options.runs.until is None:
        return ""
    goal, budget = goal_of(options.runs.until, options.runs.clear_suffices), clock_text(options.runs.budget)
    return f"\nThen further rounds, all rounds within {budget}. Goal: {goal}."


def until_text(wide: Mapping[str, float | None], width: float) -> str:
    """How wide the intervals still are: `intervals up to 3.4 %, goal 2.5 %`."""
    known = [value for value in wide.values() if value is not None]
    now = f"intervals up to {percent_text(max(known))}" if len(known) == len(wide) else "intervals missing"
    return f"{now}, goal {percent_text(width)}"
