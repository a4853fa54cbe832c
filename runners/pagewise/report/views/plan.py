"""What a session would run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from pagewise.core.plan import Cell, Step, Subject
from pagewise.core.units import clock_text, count_text, percent_text
from pagewise.report.documents import CellRow, PlacementRow, PlanDocument, PlannedKernel
from pagewise.report.model import Column, Report, Section, Table, output_of
from pagewise.session.session import Session


@dataclass(frozen=True)
class _Planned:
    """A subject with the cells that can run, its runs per round and of sweeps."""

    subject: Subject
    cells: Sequence[Cell]
    runs: int
    sweeps: int


_KERNELS = (
    Column("kernel", get="subject.kernel.name"),
    Column("arguments", wrap=True, get=lambda planned: " ".join(planned.subject.kernel.arguments)),
    Column("configurations", kind="integer", get=lambda planned: len(planned.cells)),
    Column("runs per round", kind="integer", get="runs"),
    Column("sweeps", kind="integer"),
)
_CONFIGURATIONS = (
    Column("kernel", merged=True),
    Column("module", get=lambda row: row["cell"].measured.module + " (baseline)" * row["cell"].is_baseline),
    Column("policy", get="cell.pages"),
    Column("placement", get="cell.placement"),
    Column("options", get="cell.options"),
    Column("also stands for", kind="integer", get=lambda row: len(row["cell"].stands_for) - 1 or None),
)


def view(session: Session) -> Report:
    """All runs of a session."""
    options, planner = session.options, session.workload.planner
    rounds = [
        [step for step in planner.steps_of_round(number, ()) if planner.can_run(step)]
        for number in range(1, options.runs.rounds + 1)
    ]
    sweeps, every = planner.sweeps(), list(chain(*rounds))
    kernels = [_planned(subject, rounds[0], sweeps) for subject in session.workload.subjects]
    runs = len(every) + len(sweeps)
    rows = [
        {"kernel": planned.subject.kernel.name, "cell": cell} for planned in kernels for cell in planned.cells
    ]
    placements = session.workload.placements
    tables = Table.of("Kernels", _KERNELS, kernels), Table.of("Configurations", _CONFIGURATIONS, rows)
    budget = None if options.runs.until is None else options.runs.budget
    return Report(
        f"pagewise: plan of {options.result.name}",
        f"{count_text(runs, 'run')}.{_until(options.runs.until, budget)} Nothing was started.",
        (Section("Plan", tables),),
        data=PlanDocument(
            schema="pagewise.plan/1",
            name=options.result.name,
            tree=str(session.manifest.modules.tree),
            rounds=options.runs.rounds,
            until=options.runs.until,
            budget_seconds=budget,
            seed=options.runs.seed,
            baseline=options.baseline,
            threads=placements[0].threads,
            cpus=tuple(placements[0].cpus),
            placements=tuple(output_of(PlacementRow, place) for place in placements),
            kernels=tuple(map(_output, kernels)),
            runs=runs,
        ),
    )


def _planned(subject: Subject, a_round: Sequence[Step], sweeps: Sequence[Step]) -> _Planned:
    steps = [step for step in a_round if step.kernel.name == subject.kernel.name]
    curves = [step for step in sweeps if step.kernel.name == subject.kernel.name]
    keys = {step.cell.key for step in steps}
    cells = [cell for cell in subject.cells if cell.key in keys]
    return _Planned(subject, cells, len(steps), len(curves))


def _output(planned: _Planned) -> PlannedKernel:
    return PlannedKernel(
        planned.subject.kernel.name,
        tuple(planned.subject.kernel.arguments),
        tuple(output_of(CellRow, cell) for cell in planned.cells),
        planned.runs,
        planned.sweeps,
    )


def _until(width: float | None, budget: float | None) -> str:
    if width is None or budget is None:
        return ""
    return (
        f" Rounds are added until all intervals are narrower than {percent_text(width)}, or all rounds have "
        f"taken {clock_text(budget)}."
    )
