"""`pagewise where`."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import rich_click as click
from rich.console import Console

from pagewise.cli import options as opt
from pagewise.cli.commands.simulate import BUILD, takes_geometry
from pagewise.cli.measuring import Measuring, Parameters, Session, TakesProgram, complete, options_of
from pagewise.cli.output import make_messages
from pagewise.cli.reporting import publish_session
from pagewise.cli.types import Number
from pagewise.core.text import command_text
from pagewise.core.units import bytes_text

if TYPE_CHECKING:
    from pagewise.workloads.simulation.run import SimulationOptions


class _Locating(Measuring, TakesProgram):
    """Takes a program after `--`; with --measure, compares huge pages on its origins."""

    def publish(self, prepared: Session, as_json: bool) -> int:
        """Publishes the origins, and with --measure their comparison; the exit code."""
        from pagewise.workloads.simulation.run import Simulation

        workload = prepared.workload
        if not isinstance(workload, Simulation) or not workload.options.measures:
            return super().publish(prepared, as_json)
        if as_json:
            raise click.UsageError("--measure prints no JSON: the results have it (pagewise results show).")
        if code := super().publish(prepared, as_json):
            return code
        return _measure(prepared, workload.options)


@opt.command(
    "pagewise where -- ./my_app input.dat",
    "pagewise where --geometry a64fx --origins 30 -- ./my_app input.dat",
    "pagewise where -- python3 my_script.py",
    "pagewise where --measure -- ./my_app input.dat",
    "pagewise where --fast -- ./my_app input.dat",
    cls=_Locating,
    subject=(takes_geometry("node"), BUILD),
    runs=(opt.TIMEOUT,),
    result=(
        opt.option("--origins", "Number of origins to show.", type=Number(1), default=15),
        opt.flag(
            "--measure measures",
            "Then compare huge pages on the first origins, one at a time and together, and select the "
            "smallest set with 90 % of the gain for pagewise exec --where.",
        ),
        opt.flag(
            "--fast",
            "Sample the time that the program spends at each origin instead of simulating: at its own speed, "
            "with its child processes, without a forecast.",
        ),
        *opt.SESSION_RESULT,
    ),
)
def command(parameters: Parameters, console: Console) -> Session:
    """Find the memory of a program that misses the TLB: by allocation site, static array, stack and mapping.

    The program runs in QEMU's user-mode emulation under the simulator of `pagewise simulate`, without its
    caches, 10 to 60 times slower than natively. Give it a small input. The table has, for each origin of
    memory, its size, lifetime and page faults, its share of the simulated TLB misses and page walks, and the
    time that huge pages are forecast to save: docs/explanation/origins.md. Two native runs on base pages
    give the time. Compile with -g for files and lines. For a large input, or a program that starts others:
    --fast.
    """
    from pagewise.workloads.simulation.node import NODE
    from pagewise.workloads.simulation.run import SimulationOptions, prepare

    options = options_of(SimulationOptions, parameters)
    if not options.command:
        raise click.UsageError("Name a program after --.")
    if options.fast and options.geometry != NODE:
        raise click.UsageError("--fast simulates nothing: omit --geometry.")
    return prepare(options, console)


def _measure(located: Session, options: SimulationOptions) -> int:
    """Compares base pages, huge pages, and huge pages on some origins; writes the smallest sufficient set."""
    from pagewise.analysis.analysis import analyse_result
    from pagewise.cli.commands.compare import command as compare
    from pagewise.report.views.simulation import listed_origins
    from pagewise.workloads.program.command import prepare_command
    from pagewise.workloads.program.prepare import ORIGINS
    from pagewise.workloads.program.workload import ProgramOptions
    from pagewise.workloads.simulation import measured
    from pagewise.workloads.simulation.selection import SELECTION, is_selectable, write_selection

    console, folder, began = make_messages(), located.result.folder, time.monotonic()
    simulated, listed = listed_origins(located.result)
    selectable = [origin for origin in listed if is_selectable(origin)]
    numbers = measured.worth_measuring(simulated, selectable)
    if not numbers:
        console.print("Nothing to measure: no origin that can be selected may gain 1 % of the time.")
        return 0
    every = folder / "origins.txt"
    write_selection(every, selectable)
    os.environ["PAGEWISE_WHERE"] = str(every.resolve())
    varied = ",".join((measured.ALL, *measured.sets_of(numbers)))
    words = ["--policies", "none,thp,where", "--vary", f"{ORIGINS}={varied}", "--output", str(folder.parent)]
    # Enough to choose between sets of origins.
    words += ["--until", "5%", "--budget", "5m"]
    words += ["--timeout", f"{options.runs.limit:g}s", "--", *options.command]
    parameters = complete(compare.make_context("compare", words).params, "none")
    session = prepare_command(options_of(ProgramOptions, parameters), console)
    session.began = began
    if (code := publish_session(session, as_json=False)) not in (0, 1):
        return code
    (result,) = analyse_result(session.result)
    choice = measured.smallest(result.ranked, selectable)
    if choice is None:
        text = f"No measured set of origins has 90 % of a gain; {SELECTION} keeps all listed origins."
        console.print(text, soft_wrap=True)
        return code
    selected = [selectable[number - 1] for number in choice.numbers]
    write_selection(folder / SELECTION, selected)
    forecast = simulated.forecast
    lines = [
        f"Time ratio with thp or all origins {choice.full:.3f}, with these {choice.time_ratio:.3f}:",
        *(f"  {origin.name} {origin.place or ''}, {bytes_text(origin.bytes)}" for origin in selected),
        f"Apply it: pagewise exec --where {folder} -- {command_text(options.command)}",
    ]
    if forecast is not None:
        lines.insert(0, "Forecast for thp: {:.2f} to {:.2f} of the time.".format(*forecast.time_ratio))
    console.print("\n".join(lines), soft_wrap=True)
    return code
