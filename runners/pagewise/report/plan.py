"""What a session would run and how long that takes: as a table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pagewise.core.plan import Step, Subject
from pagewise.core.units import clock_text, count_text, percent_text
from pagewise.session.estimate import Known, known_times
from pagewise.session.session import Session

SCHEMA = "pagewise.plan/1"


def planned(session: Session) -> dict[str, Any]:
    """All that would be run, by subject, with the time it takes as far as earlier results show."""
    options, manifest, workload = session.options, session.manifest, session.workload
    planner, place = workload.planner, workload.placements[0]
    rounds = [
        [step for step in planner.steps_of_round(number, ()) if planner.can_run(step)]
        for number in range(1, options.rounds + 1)
    ]
    sweeps, every = planner.sweeps(), list(chain(*rounds))
    known = known_times(options.results, manifest, [*every, *sweeps])
    return {
        "schema": SCHEMA,
        "name": options.name,
        "tree": manifest["modules"]["tree"],
        "rounds": options.rounds,
        "until": options.until,
        "budget_seconds": None if options.until is None else options.budget,
        "seed": options.seed,
        "baseline": options.baseline,
        "threads": place.threads,
        "cpus": list(place.cpus),
        "placements": [
            {"name": one.name, "threads": one.threads, "cpus": list(one.cpus), "memory": one.memory.told}
            for one in workload.placements
        ],
        "kernels": [_kernel(one, rounds[0], sweeps, known, options.rounds) for one in workload.subjects],
        "runs": len(every) + len(sweeps),
        "seconds": {
            "rounds": known.seconds(every),
            "sweeps": known.seconds(sweeps),
            "own": known.own_seconds,
        },
        "runs_known": known.steps,
        "estimated_from": [str(folder) for folder in known.results],
    }


def print_plan(console: Console, plan: dict[str, Any]) -> None:
    """Prints the plan, and that the time is an estimate."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1))
    for name in ("kernel", "arguments"):
        table.add_column(name, overflow="fold")
    for name in ("configurations", "runs a round", "sweeps", "about"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in plan["kernels"]:
        table.add_row(
            one["name"],
            " ".join(one["arguments"]),
            str(len(one["configurations"])),
            str(one["runs_a_round"]),
            str(one["sweeps"]),
            _about(one["seconds"]),
        )
    console.print()
    console.print(table)
    for one in plan["kernels"]:
        console.print()
        console.print(Text(one["name"], style="bold"))
        for cell in one["configurations"]:
            told = " (baseline)" if cell["is_baseline"] else ""
            pages = "" if cell["pages"] is None else f" --pages {cell['pages']}"
            pages += "" if cell["placement"] is None else f", {cell['placement']}"
            also = f", stands for {cell['alike']} more" if cell["alike"] else ""
            console.print(Text(f"  {cell['module']}{pages}{told}{also}"), soft_wrap=True)
    console.print()
    console.print(time_text(plan), highlight=False, soft_wrap=True)
    console.print("Nothing was started, and no folder was made.")


def time_text(plan: dict[str, Any]) -> str:
    """How long it takes, in a sentence or two."""
    rounds, sweeps, own = plan["seconds"].values()
    until = ""
    if plan["until"] is not None:
        until = (
            f" Rounds are added until all intervals are narrower than {percent_text(plan['until'])}, "
            f"until all rounds have taken {clock_text(plan['budget_seconds'])} at most."
        )
    if rounds is None or sweeps is None:
        return "How long it takes is not known: no earlier result on this machine has such runs." + until
    first = f"Estimated from {count_text(len(plan['estimated_from']), 'earlier result')} on this machine: "
    text = f"{first}about {clock_text(rounds + sweeps + own)} for {count_text(plan['runs'], 'run')}."
    unknown = plan["runs"] - plan["runs_known"]
    if unknown:
        text += f" {count_text(unknown, 'run')} among them were never made so: guessed from the others."
    return text + until


def _kernel(
    one: Subject, a_round: Sequence[Step], sweeps: Sequence[Step], known: Known, rounds: int
) -> dict[str, Any]:
    mine = [step for step in a_round if step.kernel.name == one.kernel.name]
    curves = [step for step in sweeps if step.kernel.name == one.kernel.name]
    run = {step.cell.key for step in mine}
    return {
        "name": one.kernel.name,
        "arguments": list(one.kernel.arguments),
        "configurations": [
            {
                "module": cell.measured.module,
                "pages": cell.pages,
                "placement": cell.placement,
                "is_baseline": cell.is_baseline,
                "alike": len(cell.stands_for) - 1,
            }
            for cell in one.cells
            if cell.key in run
        ],
        "runs_a_round": len(mine),
        "sweeps": len(curves),
        "seconds": known.seconds([*mine * rounds, *curves]),
    }


def _about(seconds: float | None) -> str:
    return "not known" if seconds is None else clock_text(seconds)
