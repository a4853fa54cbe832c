"""The life of a session, whatever it runs: trials, rounds, interruption, resuming. Nothing is started."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path

import pytest
from rich.console import Console

from builders import BASE, SOFTWARE, THP, a_host, a_manifest, kernel, record, subject_of
from pagewise.analysis.analysis import analyse, analyse_result
from pagewise.core.errors import FormatError, Interrupted, RefusedError, SelectionError
from pagewise.core.manifest import Manifest, ProgramDigest, RecordsDigest
from pagewise.core.plan import Step, Subject, order_of_round
from pagewise.core.record import digest_of
from pagewise.core.record_parts import Failure
from pagewise.core.result import Result, read_result
from pagewise.machine.placement import Placement
from pagewise.report.views import session as view
from pagewise.session.launch import failed_record
from pagewise.session.options import ResultOptions, RunOptions, SessionOptions
from pagewise.session.recorder import Recorder
from pagewise.session.resume import differences
from pagewise.session.session import Session
from pagewise.session.settings import MachineSettings, Needs
from pagewise.session.workload import ComparisonPlanner, Decision, Outcome, Trial

SEED = 5
SUBJECT = subject_of(kernel(sweeps=[]), BASE, THP, SOFTWARE)
PLACE = Placement(1, (0,))


@dataclass(frozen=True)
class Fake:
    """A workload whose launcher makes up records, and is interrupted before it makes `most` of them.

    failing: modules whose runs fail. fast: those that take half of the time. disturbed: those that others
    disturb in the first five rounds. tried: how often trial runs have decided it; made: all runs, with that.
    """

    most: int = 10_000
    failing: frozenset[str] = frozenset()
    fast: frozenset[str] = frozenset()
    disturbed: frozenset[str] = frozenset()
    has_trials: bool = False
    tried: int = 0
    made: list[tuple[int, str, str]] = field(default_factory=list)
    subjects: list[Subject] = field(default_factory=lambda: [SUBJECT])
    placements: list[Placement] = field(default_factory=lambda: [PLACE])
    planner: ComparisonPlanner = field(default_factory=lambda: ComparisonPlanner([SUBJECT], SEED))
    settings: MachineSettings = field(default_factory=MachineSettings)

    def watched_files(self) -> dict[str, tuple[Path, ...]]:
        return {}

    def references(self) -> Mapping[str, str]:
        return {THP.module: BASE.module}

    def launcher(self, scratch: Path) -> Fake:
        return self

    def run(self, step: Step) -> Outcome:
        if len(self.made) >= self.most:
            raise Interrupted(signal.SIGINT)
        module = step.cell.measured.module
        self.made.append((self.tried, step.series, module))
        seconds = 1.0 + 0.01 * ((7 * step.round + 3 * step.position) % 5)
        seconds /= 2.0 if module in self.fast else 1.0
        one = record(step.cell.measured, seconds, number=step.round, series=step.series, kernel="triad")
        run = replace(one.run, position=step.position, kernel="triad")
        is_disturbed = module in self.disturbed and step.round < 6
        run = replace(run, involuntary_switches=10**9 if is_disturbed else 0, wall_seconds=10.0)
        if module in self.failing:
            one = failed_record(step, datetime.now(timezone.utc), "failed", Failure(1, "wrong"))
        return Outcome(
            [replace(one, run=run)], 0.5, "", [], "with THP" if module == THP.module else "without"
        )

    def trials(self, *, of_baselines: bool) -> list[Step]:
        cells = [cell for cell in SUBJECT.cells if cell.is_baseline == of_baselines]
        return [Step(SUBJECT.benchmark, cell, "trial", 1, 1) for cell in cells] if self.has_trials else []

    def decide(self, trials: Sequence[Trial]) -> Decision[Fake]:
        fields = {"name": f"after-{len(trials)}"} if self.has_trials else {}
        return Decision(replace(self, tried=len(trials)), fields)

    def needs(self) -> Needs:
        return Needs()


def manifest_of(rounds: int) -> Manifest:
    empty = digest_of(b"")
    return a_manifest(
        state="running",
        finished=None,
        timing=None,
        seed=SEED,
        rounds=rounds,
        rounds_done=0,
        records=RecordsDigest(empty.lines, empty.sha256),
        configurations=(BASE, THP, SOFTWARE),
        subjects=(SUBJECT.planned_subject(),),
    )


def session_of(folder: Path, workload: Fake, *, resume: Path | None = None, **runs: float) -> Session:
    """A session that has ended."""
    made = Session(
        SessionOptions(
            runs=RunOptions(seed=SEED, **{"rounds": 4, **runs}),
            result=ResultOptions(results=folder, name="x", resume=resume),
        ),
        workload,
        Recorder(manifest_of(int(runs.get("rounds", 4)))),
        Console(quiet=True),
        time.monotonic(),
    )
    made.begin()
    made.measure()
    made.close()
    return made


def counted(result: Result) -> Counter[tuple[str, str, int]]:
    """How often each run that counts was made, by module, series and round."""
    runs = [one.run for one in result.records if one.run.series not in ("aside", "trial")]
    return Counter((run.module, run.series, run.round) for run in runs)


def planned(rounds: int, subjects: Sequence[Subject] = (SUBJECT,)) -> Counter[tuple[str, str, int]]:
    steps = [step for number in range(1, rounds + 1) for step in order_of_round(subjects, number, SEED)]
    return Counter((step.cell.measured.module, step.series, step.round) for step in steps)


@pytest.mark.long
@pytest.mark.parametrize("most", [0, 3, 4, 6, 15])
def test_an_interrupted_round_is_measured_again_and_all_others_once(tmp_path: Path, most: int):
    broken = session_of(tmp_path, Fake(most))
    folder = broken.recorder.folder
    assert isinstance(broken.ending, Interrupted) and broken.manifest.state == "interrupted"
    assert broken.manifest.rounds_done == most // 4 and len(broken.result.records) == most
    session_of(tmp_path, Fake(), resume=folder)
    after = read_result(folder)
    assert list(tmp_path.iterdir()) == [folder] and after.altered is None
    assert (after.manifest.state, after.manifest.rounds_done) == ("complete", 4)
    assert counted(after) == planned(4)
    order = [(one.round, one.run.position) for one in after.records if one.series != "aside"]
    assert order == sorted(order)
    (reported,) = after.manifest.breaks
    assert (reported.runs, reported.aside) == (most, most % 4)
    assert any(reported.resumed in note for note in view.notes(after)) and after.manifest.timing.runs == 16
    (analysed,) = analyse(after.subjects, after.records, SEED)
    assert {row.time_ratio.pairs for row in analysed.ranked if row.time_ratio} == {4}


def test_rounds_that_were_added_stay_and_the_budget_counts_on(tmp_path: Path):
    broken = session_of(tmp_path, Fake(14), rounds=3, until=1e-9, budget=3600.0)
    assert broken.manifest.rounds_done == 3 and broken.manifest.until.rounds == {"triad": 4}
    after = session_of(tmp_path, Fake(), resume=broken.recorder.folder, rounds=3, until=1e-9, budget=1e-6)
    assert after.manifest.until.ended == "budget" and after.manifest.rounds_done == 3
    assert counted(after.result) == planned(3)


def test_further_rounds_run_the_baseline_and_all_that_is_not_clear(tmp_path: Path):
    options = {"rounds": 3, "until": 1e-9, "clear_suffices": True, "budget": 3600.0}
    broken = session_of(tmp_path, Fake(60, fast=frozenset({THP.module})), **options)
    done, actual = broken.manifest.rounds_done, counted(broken.result)
    rounds = {
        one: {number for module, _, number in actual if module == one.module} for one in (THP, SOFTWARE)
    }
    clear = max(rounds[THP])
    assert 3 <= clear < done and rounds[THP] == {*range(1, clear + 1)}
    assert rounds[SOFTWARE] >= {*range(1, done)}
    assert actual.total() == 60 and all(actual[BASE.module, "aa", number] == 1 for number in range(1, done))
    assert broken.manifest.until.rounds["triad"] >= done
    assert [(one.module, one.round) for one in broken.manifest.last_rounds] == [(THP.module, clear)]
    (analysed,) = analyse_result(broken.result)
    (thp,) = (row for row in analysed.ranked if row.cell.measured == THP)
    assert (thp.verdict, thp.note, thp.rounds, thp.rounds_made) == ("faster", None, clear, clear)
    # The same is decided again.
    after = Fake(20, fast=frozenset({THP.module}))
    session_of(tmp_path, after, resume=broken.recorder.folder, **options)
    assert len(after.made) == 20 and THP.module not in {module for _, _, module in after.made}


def test_narrow_intervals_end_all_configurations(tmp_path: Path):
    until = session_of(tmp_path, Fake(), rounds=5, until=0.5, budget=3600.0).manifest.until
    assert (until.ended, until.rounds, until.widest) == ("narrow", {"triad": 5}, {})
    assert {(one.module, one.round) for one in until.last} == {(THP.module, 5), (SOFTWARE.module, 5)}


def test_further_rounds_run_excluded_configurations_that_may_recover(tmp_path: Path):
    options = {"rounds": 5, "until": 1e-9, "clear_suffices": True, "budget": 3600.0}
    made = session_of(tmp_path, Fake(60, disturbed=frozenset({THP.module})), **options)
    first = [one for one in made.result.records if one.round <= 5]
    (analysed,) = analyse(made.result.subjects, first, SEED)
    (thp,) = (row for group in analysed.groups for row in group.unranked)
    assert (thp.cell.measured, thp.code) == (THP, "disturbed") and made.manifest.last_rounds == ()
    assert THP in {row.cell.measured for row in analyse_result(made.result)[0].ranked}
    assert {one.round for one in made.result.records if one.run.module == THP.module} >= {*range(1, 15)}


def test_a_run_with_a_truncated_line_is_repeated(tmp_path: Path):
    """A killed session leaves its manifest as it was; a power cut may leave half a line."""
    folder = session_of(tmp_path, Fake(6)).recorder.folder
    file = folder / "manifest.json"
    digest = digest_of(b"")
    data = json.loads(file.read_text())
    records = {"lines": digest.lines, "sha256": digest.sha256}
    file.write_text(json.dumps({**data, "state": "running", "finished": None, "records": records}))
    lines = folder / "records.jsonl"
    lines.write_bytes(lines.read_bytes()[:-40])
    session_of(tmp_path, Fake(), resume=folder)
    after = read_result(folder)
    assert len(after.skipped) == 1 and counted(after) == planned(4)


def test_failed_builds_are_not_repeated(tmp_path: Path):
    failing = frozenset({THP.module})
    broken = session_of(tmp_path, Fake(7, failing))
    workload = Fake(failing=failing)
    after = session_of(tmp_path, workload, resume=broken.recorder.folder)
    assert after.manifest.state == "complete"
    assert THP.module not in {module for _, _, module in workload.made}
    assert [one.round for one in after.result.records if one.run.module == THP.module] == [1]


def test_trial_runs_decide_the_runs_of_a_round(tmp_path: Path):
    workload = Fake(has_trials=True)
    made = session_of(tmp_path, workload, rounds=1)
    assert workload.tried == 0 and made.workload.tried == 3, "a plan is never changed"
    assert workload.made[:3] == [
        (0, "trial", BASE.module),
        *((1, "trial", cell.measured.module) for cell in SUBJECT.cells if not cell.is_baseline),
    ]
    assert {tried for tried, _, _ in workload.made[3:]} == {3} and made.manifest.name == "after-3"
    (difference,) = made.manifest.differing_work
    assert (difference.module, difference.added) == (THP.module, ("with THP",))


def test_a_result_that_is_written_to_complete_or_altered_is_not_resumed(tmp_path: Path):
    folder = session_of(tmp_path, Fake(6)).recorder.folder
    open_one = session_of(tmp_path, Fake(2), rounds=1)
    open_one.recorder.folder = folder
    with open_one.recorder.writing(), pytest.raises(RefusedError):
        session_of(tmp_path, Fake(), resume=folder)
    session_of(tmp_path, Fake(), resume=folder)
    with pytest.raises(SelectionError):
        session_of(tmp_path, Fake(), resume=folder)
    records = folder / "records.jsonl"
    records.write_bytes(records.read_bytes().replace(b'"huge_coverage":1', b'"huge_coverage":0', 1))
    with pytest.raises(FormatError):
        session_of(tmp_path, Fake(), resume=folder)


NOW = manifest_of(4)
PROGRAM = {
    "app": {"command": ["./app"], "sha256": "1", "policies": [{"name": "none", "unavailable_reason": None}]}
}
UNAVAILABLE = [{"name": "none", "unavailable_reason": "too small"}]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"host": a_host(hostname="elsewhere")}, "elsewhere"),
        ({"rounds": 9}, "rounds"),
        ({"configurations": (BASE, replace(THP, hash="new"), SOFTWARE)}, THP.module),
        ({"configurations": (BASE, THP)}, SOFTWARE.module),
        ({"executables": (ProgramDigest(BASE.module, "pw-triad", "2"),)}, "pw-triad"),
        ({"subjects": ()}, "triad"),
        ({"files": {"/a": "2"}}, "/a"),
        ({"programs": {"app": {**PROGRAM["app"], "sha256": "2"}}}, "app's sha256"),
        ({"programs": {"app": {**PROGRAM["app"], "standard_input": {"kind": "file"}}}}, "standard_input"),
        ({"programs": {"app": {**PROGRAM["app"], "policies": [{"name": "thp"}]}}}, "app's policies"),
        ({}, None),
        # What a trial run decided.
        ({"programs": {"app": {**PROGRAM["app"], "programs": [], "policies": UNAVAILABLE}}}, None),
    ],
)
def test_changes_are_listed(changes: dict[str, object], named: str | None):
    known = (ProgramDigest(BASE.module, "pw-triad", "1"),)
    before = replace(NOW, files={"/a": "1"}, programs=PROGRAM, executables=known)
    lines = list(differences(before, replace(before, **changes)))
    assert len(lines) == (named is not None) and all(named in line for line in lines)
