"""What a session would run, and how long that takes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from pagewise.core.plan import Cell, Step, Subject
from pagewise.core.units import clock_text, count_text, percent_text
from pagewise.report.model import Column, Report, Section, Table, Text
from pagewise.session.estimate import Known, known_times
from pagewise.session.session import Session


def view(session: Session) -> Report:
    """All that would be run, with the time it takes as far as earlier results show."""
    options, manifest, workload = session.options, session.manifest, session.workload
    planner, place = workload.planner, workload.placements[0]
    rounds = [
        [step for step in planner.steps_of_round(number, ()) if planner.can_run(step)]
        for number in range(1, options.rounds + 1)
    ]
    sweeps, every = planner.sweeps(), list(chain(*rounds))
    known = known_times(options.results, manifest, [*every, *sweeps])
    kernels = [_Planned(one, rounds[0], sweeps, known, options.rounds) for one in workload.subjects]
    seconds = {
        "rounds": known.seconds(every),
        "sweeps": known.seconds(sweeps),
        "own": known.own_seconds,
    }
    runs = len(every) + len(sweeps)
    until = None if options.until is None else (options.until, options.budget)
    return Report(
        f"pagewise: plan of {options.name}",
        f"{_duration(seconds, runs, known)}{_until(until)}",
        (Section("Plan", (_kernels(kernels), _configurations(kernels))),),
        (Text("Nothing was started, and no folder was made."),),
        data={
            "schema": "pagewise.plan/1",
            "name": options.name,
            "tree": manifest["modules"]["tree"],
            "rounds": options.rounds,
            "until": options.until,
            "budget_seconds": None if options.until is None else options.budget,
            "seed": options.seed,
            "baseline": options.baseline,
            "threads": place.threads,
            "cpus": place.cpus,
            "placements": [
                {"name": one.name, "threads": one.threads, "cpus": one.cpus, "memory": one.memory.reported}
                for one in workload.placements
            ],
            "kernels": [one.data() for one in kernels],
            "runs": runs,
            "seconds": seconds,
            "runs_known": known.steps,
            "estimated_from": known.results,
        },
    )


class _Planned:
    """What would be run of a kernel."""

    def __init__(
        self, one: Subject, a_round: Sequence[Step], sweeps: Sequence[Step], known: Known, rounds: int
    ) -> None:
        self.kernel = one.kernel
        steps = [step for step in a_round if step.kernel.name == one.kernel.name]
        curves = [step for step in sweeps if step.kernel.name == one.kernel.name]
        planned = {step.cell.key for step in steps}
        self.cells: list[Cell] = [cell for cell in one.cells if cell.key in planned]
        self.runs, self.sweeps = len(steps), len(curves)
        self.seconds = known.seconds([*steps * rounds, *curves])

    def data(self) -> dict[str, object]:
        """For JSON."""
        return {
            "name": self.kernel.name,
            "arguments": self.kernel.arguments,
            "configurations": [
                {
                    "module": cell.measured.module,
                    "pages": cell.pages,
                    "placement": cell.placement,
                    "is_baseline": cell.is_baseline,
                    "alike": len(cell.stands_for) - 1,
                }
                for cell in self.cells
            ],
            "runs_a_round": self.runs,
            "sweeps": self.sweeps,
            "seconds": self.seconds,
        }


def _kernels(kernels: Sequence[_Planned]) -> Table:
    columns = (
        Column("kernel"),
        Column("arguments", wrap=True),
        Column("configurations", kind="integer"),
        Column("runs per round", kind="integer"),
        Column("sweeps", kind="integer"),
        Column("duration", kind="clock"),
    )
    rows = tuple(
        (one.kernel.name, " ".join(one.kernel.arguments), len(one.cells), one.runs, one.sweeps, one.seconds)
        for one in kernels
    )
    return Table("Kernels", columns, rows)


def _configurations(kernels: Sequence[_Planned]) -> Table:
    columns = (
        Column("kernel", merged=True),
        Column("module"),
        Column("policy"),
        Column("placement"),
        Column("also stands for", kind="integer"),
    )
    rows = (
        (
            one.kernel.name,
            f"{cell.measured.module}{' (baseline)' if cell.is_baseline else ''}",
            *(cell.pages, cell.placement, len(cell.stands_for) - 1 or None),
        )
        for one in kernels
        for cell in one.cells
    )
    return Table("Configurations", columns, tuple(rows))


def _duration(seconds: dict[str, float | None], runs: int, known: Known) -> str:
    if None in seconds.values():
        return "Duration unknown: no earlier result on this machine has such runs."
    total = sum(filter(None, seconds.values()))
    text = (
        f"About {clock_text(total)} for {count_text(runs, 'run')}, estimated from "
        f"{count_text(len(known.results), 'earlier result')} on this machine."
    )
    new = runs - known.steps
    return f"{text} {count_text(new, 'run')} of them have no earlier times." if new else text


def _until(until: tuple[float, float] | None) -> str:
    if until is None:
        return ""
    width, budget = until
    return (
        f" Rounds are added until all intervals are narrower than {percent_text(width)}, or all rounds have "
        f"taken {clock_text(budget)}."
    )
