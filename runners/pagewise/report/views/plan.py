"""What a session would run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from pagewise.core.plan import Cell, Step, Subject
from pagewise.core.units import clock_text, count_text, percent_text
from pagewise.report.model import Column, Getter, Report, Section, Table, Text
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
    Column("kernel", merged=True, get="kernel"),
    Column("module", get=lambda row: row["cell"].measured.module + " (baseline)" * row["cell"].is_baseline),
    Column("policy", get="cell.pages"),
    Column("placement", get="cell.placement"),
    Column("options", get="cell.options"),
    Column("also stands for", kind="integer", get=lambda row: len(row["cell"].stands_for) - 1 or None),
)
_CELL: Mapping[str, Getter] = {
    "module": "measured.module",
    "pages": "pages",
    "placement": "placement",
    "options": "options",
    "is_baseline": "is_baseline",
    "alike": lambda cell: len(cell.stands_for) - 1,
}
_PLACEMENT: Mapping[str, Getter] = {
    **{name: name for name in ("name", "ranks", "threads", "cpus")},
    "memory": "memory.reported",
}


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
    tables = Table.of("Kernels", _KERNELS, kernels), Table.of("Configurations", _CONFIGURATIONS, rows)
    budget = None if options.runs.until is None else options.runs.budget
    return Report(
        f"pagewise: plan of {options.result.name}",
        f"{count_text(runs, 'run')}.{_until(options.runs.until, budget)}",
        (Section("Plan", tables),),
        (Text("Nothing was started, and no folder was made."),),
        data={
            **_request(session),
            "budget_seconds": budget,
            "kernels": [_kernel_data(planned) for planned in kernels],
            "runs": runs,
        },
    )


def _planned(subject: Subject, a_round: Sequence[Step], sweeps: Sequence[Step]) -> _Planned:
    steps = [step for step in a_round if step.kernel.name == subject.kernel.name]
    curves = [step for step in sweeps if step.kernel.name == subject.kernel.name]
    keys = {step.cell.key for step in steps}
    cells = [cell for cell in subject.cells if cell.key in keys]
    return _Planned(subject, cells, len(steps), len(curves))


def _request(session: Session) -> dict[str, object]:
    """What schema pagewise.plan/1 repeats of the request."""
    options, placements = session.options, session.workload.placements
    return {
        "schema": "pagewise.plan/1",
        "name": options.result.name,
        "tree": session.manifest.modules.tree,
        "rounds": options.runs.rounds,
        "until": options.runs.until,
        "seed": options.runs.seed,
        "baseline": options.baseline,
        "threads": placements[0].threads,
        "cpus": placements[0].cpus,
        "placements": Table.of_fields(_PLACEMENT, placements),
    }


def _kernel_data(planned: _Planned) -> dict[str, object]:
    return {
        "name": planned.subject.kernel.name,
        "arguments": planned.subject.kernel.arguments,
        "configurations": Table.of_fields(_CELL, planned.cells),
        "runs_a_round": planned.runs,
        "sweeps": planned.sweeps,
    }


def _until(width: float | None, budget: float | None) -> str:
    if width is None or budget is None:
        return ""
    return (
        f" Rounds are added until all intervals are narrower than {percent_text(width)}, or all rounds have "
        f"taken {clock_text(budget)}."
    )
