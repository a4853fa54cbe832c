"""Plans a comparison: every configuration once per round, baselines twice, then the sweeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pagewise.analysis.analysis import Drafts, analyse, too_wide
from pagewise.core.plan import Step, Subject, order_of_round, order_of_sweeps
from pagewise.core.record import Record
from pagewise.session.workload import Scope


@dataclass(frozen=True)
class ComparisonPlanner:
    """Rounds in randomised order. `aa`: A/A pairs per round; `starts`: whether a step starts a program.

    `drafts` is what was analysed after earlier rounds.
    """

    subjects: list[Subject]
    seed: int
    aa: int = 1
    sweep: bool = False
    starts: Callable[[Step], bool] = lambda _: True
    drafts: Drafts = field(default_factory=dict)

    def steps_of_round(self, number: int, records: Sequence[Record]) -> list[Step]:
        """Every configuration of every kernel once, the baselines once more."""
        return order_of_round(self.subjects, number, self.seed, self.aa)

    def sweeps(self) -> list[Step]:
        """The sweeps, if they were requested."""
        return order_of_sweeps(self.subjects, self.seed) if self.sweep else []

    def can_run(self, step: Step) -> bool:
        """Whether the step starts a program."""
        return self.starts(step)

    def ruled_out(self, step: Step, records: Sequence[Record]) -> Scope:
        """Missing pages and crashes recur: they are reported once instead of in every round."""
        return "configuration"

    def too_wide(self, records: Sequence[Record], width: float) -> dict[str, float | None]:
        """The kernels with an interval wider than this."""
        return too_wide(analyse(self.subjects, records, self.seed, drafts=self.drafts), width)
