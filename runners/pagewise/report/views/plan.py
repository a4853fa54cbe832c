"""What a session would run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from pagewise.core.plan import Step, Subject
from pagewise.core.units import count_text
from pagewise.report.documents import CellRow, PlacementRow, PlanDocument, PlannedKernel
from pagewise.report.model import Column, Report, Section, Table, output_of
from pagewise.session.session import Session, goal_text

_KERNELS = (
    Column("kernel", get="name"),
    Column("arguments", wrap=True, get=lambda planned: " ".join(planned.arguments)),
    Column("configurations", kind="integer", get=lambda planned: len(planned.configurations)),
    Column("runs per round", kind="integer", get="runs_a_round"),
    Column("sweeps", kind="integer"),
)
_CONFIGURATIONS = (
    Column("kernel", merged=True),
    Column("module", get=lambda row: row["cell"].module + " (baseline)" * row["cell"].is_baseline),
    Column("policy", get="cell.pages"),
    Column("placement", get="cell.placement"),
    Column("options", get="cell.options"),
    Column("also stands for", kind="integer", get=lambda row: row["cell"].alike or None),
)


def view(session: Session) -> Report:
    """All runs of a session."""
    options, planner = session.options, session.workload.planner
    rounds = [
        [step for step in planner.steps_of_round(number, ()) if planner.can_run(step)]
        for number in range(1, options.runs.rounds + 1)
    ]
    sweeps, every = planner.sweeps(), list(chain(*rounds))
    kernels = [_planned_kernel(subject, rounds[0], sweeps) for subject in session.workload.subjects]
    runs = len(every) + len(sweeps)
    rows = [{"kernel": planned.name, "cell": cell} for planned in kernels for cell in planned.configurations]
    placements = session.workload.placements
    tables = Table.of("Kernels", _KERNELS, kernels), Table.of("Configurations", _CONFIGURATIONS, rows)
    budget = None if options.runs.until is None else options.runs.budget
    further = goal_text(options).replace("\n", " ")
    return Report(
        f"pagewise: plan of {options.result.name}",
        f"{count_text(runs, 'run')}.{further} Nothing was started.",
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
            kernels=tuple(kernels),
            runs=runs,
        ),
    )


def _planned_kernel(subject: Subject, a_round: Sequence[Step], sweeps: Sequence[Step]) -> PlannedKernel:
    kernel = subject.benchmark
    steps, curves = ([each for each in of if each.benchmark.name == kernel.name] for of in (a_round, sweeps))
    keys = {step.cell.key for step in steps}
    cells = (output_of(CellRow, cell) for cell in subject.cells if cell.key in keys)
    return PlannedKernel(kernel.name, tuple(kernel.arguments), tuple(cells), len(steps), len(curves))
