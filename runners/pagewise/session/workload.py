"""What a workload gives to a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar

from pagewise.analysis.analysis import Drafts, analyse, widths_of
from pagewise.core.manifest import Last
from pagewise.core.plan import CellOf, Step, Subject, order_of_round, order_of_sweeps
from pagewise.core.record import Record, Skipped
from pagewise.machine.placement import Placement
from pagewise.session.settings import MachineSettings, Needs

_WorkloadT = TypeVar("_WorkloadT")
_WorkloadT_co = TypeVar("_WorkloadT_co", covariant=True)
#: What a failed run rules out: every run of its configuration, those that count the same events, or nothing.
Scope = Literal["configuration", "group", None]


@dataclass(frozen=True)
class Outcome:
    """What a run gave: its records (one at least), its time as hyperfine took it, its output.

    printed: what shows whether runs do the same work, None where that is known otherwise.
    """

    records: list[Record]
    wall_seconds: float | None
    output: str
    skipped: list[Skipped]
    printed: str | None = None

    @property
    def failed(self) -> bool:
        """Whether the run ended otherwise than well."""
        return any(record.status != "ok" for record in self.records)

    def with_run(self, **changes: Any) -> Outcome:
        """The same, with these fields of the run in its records."""
        records = [
            replace(record, run=record.run and replace(record.run, **changes)) for record in self.records
        ]
        return replace(self, records=records)


@dataclass(frozen=True)
class Trial:
    """An untimed run before the rounds, and what it gave."""

    step: Step
    outcome: Outcome


@dataclass(frozen=True)
class Decision(Generic[_WorkloadT_co]):
    """A workload as trial runs decide it, fields of the manifest that this changes, and what is printed."""

    workload: _WorkloadT_co
    fields: Mapping[str, object] = field(default_factory=dict)
    text: str = ""


class WithoutTrials:
    """A workload that trial runs do not decide, and whose runs validate what they compute."""

    def references(self) -> dict[str, str]:
        """None: what runs print is not compared."""
        return {}

    def trials(self, *, of_baselines: bool) -> list[Step]:
        """None."""
        return []

    def decide(self: _WorkloadT, trials: Sequence[Trial]) -> Decision[_WorkloadT]:
        """The same."""
        return Decision(self)


class Planner(Protocol):
    """Which runs a session makes. Pure: the same arguments give the same runs, also after an interruption.

    By default there are no sweeps, every run starts a program, a failure recurs, and no round is added.
    """

    def steps_of_round(self, number: int, records: Sequence[Record]) -> list[Step]:
        """The runs of a round in order; `records` are those measured so far."""

    def sweeps(self) -> list[Step]:
        """The runs after all rounds, each of which stands alone."""
        return []

    def can_run(self, step: Step, /) -> bool:
        """Whether the run starts a program; if not, the launcher only reports why."""
        return True

    def ruled_out(self, records: Sequence[Record]) -> Scope:
        """Which later runs are not tried, because a run failed with these records."""
        return "configuration"

    def whole_because(self, step: Step, /) -> str | None:
        """Why the run takes no turns with others, empty if that needs no reason; None if it takes turns."""
        return ""

    def together(self, steps: Sequence[Step]) -> list[list[Step]]:
        """The same runs in the same order, in groups that are launched together."""
        return [[step] for step in steps]

    def widths(
        self, records: Sequence[Record], last: Sequence[Last], *, clear_suffices: bool
    ) -> dict[CellOf, float | None]:
        """The widest intervals of configurations (None: one is missing), see `widths_of`."""
        return {}


@dataclass(frozen=True)
class ComparisonPlanner(Planner):
    """Rounds in randomised order. `aa`: A/A pairs per round.

    `related`: see `order_of_round`. `drafts` is what was analysed after earlier rounds.
    """

    subjects: list[Subject]
    seed: int
    aa: int = 1
    sweep: bool = False
    can_run: Callable[[Step], bool] = lambda _: True
    whole_because: Callable[[Step], str | None] = lambda _: ""
    related: Mapping[str, str] = field(default_factory=dict)
    drafts: Drafts = field(default_factory=dict)

    def steps_of_round(self, number: int, records: Sequence[Record]) -> list[Step]:
        """Every configuration of every kernel once, the baselines once more."""
        return order_of_round(self.subjects, number, self.seed, self.aa, related=self.related)

    def sweeps(self) -> list[Step]:
        """The sweeps, if they were requested."""
        return order_of_sweeps(self.subjects, self.seed) if self.sweep else []

    def together(self, steps: Sequence[Step]) -> list[list[Step]]:
        """The runs of a kernel, or of one of its sweeps, that can take turns, and others alone."""
        groups: dict[tuple[str, str | None, int], list[Step]] = {}
        for step in steps:
            takes_turns = self.can_run(step) and self.whole_because(step) is None
            alone = 0 if takes_turns else step.position
            groups.setdefault((step.benchmark.name, step.swept, alone), []).append(step)
        return list(groups.values())

    def widths(
        self, records: Sequence[Record], last: Sequence[Last], *, clear_suffices: bool
    ) -> dict[CellOf, float | None]:
        """See `Planner`."""
        results = analyse(self.subjects, records, self.seed, last=last, drafts=self.drafts)
        return widths_of(results, clear_suffices=clear_suffices)


class Launcher(Protocol):
    """Runs steps."""

    def run(self, step: Step) -> Outcome:
        """Runs one step. What goes wrong is in the records; raises OSError when it cannot be started."""

    def run_in_turns(self, steps: Sequence[Step]) -> list[Outcome]:
        """The same of several steps at the same time."""
        return [self.run(step) for step in steps]


class Workload(Protocol):
    """What a session runs, as a value: its subjects, and how they are planned and launched.

    A session first makes the trial runs of baselines. These decide the workload that makes the other trial
    runs, and all of them decide that of the rounds.
    """

    @property
    def subjects(self) -> list[Subject]:
        """What is compared, and in which configurations."""

    @property
    def placements(self) -> list[Placement]:
        """Where runs may be; the first is that of baselines."""

    @property
    def planner(self) -> Planner:
        """Plans the runs."""

    @property
    def settings(self) -> MachineSettings:
        """Settings of the machine that runs have."""

    def watched_files(self) -> dict[str, tuple[Path, ...]]:
        """By module, the files whose change makes runs before and after it incomparable."""

    def references(self) -> Mapping[str, str]:
        """By module, the one whose runs must print the same."""

    def launcher(self, scratch: Path) -> Launcher:
        """Launches the runs; `scratch` is a folder for temporary files."""

    def trials(self, *, of_baselines: bool) -> list[Step]:
        """The trial runs of baselines, or all others."""

    def decide(self, trials: Sequence[Trial]) -> Decision[Workload]:
        """The workload as these trial runs decide it."""

    def needs(self) -> Needs:
        """What must change on the machine for the rounds."""
