"""The result as tables on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from pagewise.analysis.analysis import Group, KernelResult, Row
from pagewise.core.kernel import Kernel
from pagewise.core.result import Result
from pagewise.core.units import clock_text, percent_text, seconds_text
from pagewise.report import advice, words
from pagewise.report.policies import print_policies

_STYLES = {"faster": "bold green", "slower": "bold red", "inconclusive": "dim"}
# A metric's name is broken into lines of so many characters.
_LABEL = 16
_UNLIMITED = 10000


def print_result(console: Console, result: Result, kernels: Sequence[KernelResult]) -> None:
    """Prints all tables, the rows that are missing, and what it means."""
    for one in kernels:
        _print_kernel(console, one)
    if method := words.method_text(kernels):
        console.print()
        console.print(Text(method, style="dim"))
    print_policies(console, kernels)
    console.print()
    console.print(Text(advice.headline(kernels), style="bold"))
    for answer in advice.answers(kernels)[1:]:
        console.print(Text.assemble((answer.question, "bold"), f" {answer.whole}"))
    for note in words.notes(result.manifest, kernels, result.records):
        console.print(Text("note: " + note, style="yellow"))
    if result.skipped:
        console.print(
            Text(f"{len(result.skipped)} lines were no valid records and were left out:", style="yellow")
        )
        for skipped in result.skipped:
            console.print(Text(f"  {skipped}"))


def print_summary(console: Console, result: Result) -> None:
    """Prints in one line how much was measured, and what share of the time was the runner's own."""
    timing = result.manifest["timing"]
    if timing:
        console.print(
            f"{words.rounds_text(result.manifest)}, "
            f"{timing['runs']} runs in {clock_text(timing['wall_seconds'])}; the runner's own share: "
            f"{percent_text(timing['own_share'])}.",
            highlight=False,
        )


def _print_kernel(console: Console, result: KernelResult) -> None:
    kernel = result.kernel
    equation = kernel.data.get("equation")
    console.print()
    console.rule(
        Text.assemble((kernel.title, "bold"), (f"   {equation}" if equation else "", "dim")), align="left"
    )
    for group in result.groups:
        if group.ranked:
            console.print()
            _print_table(console, result, group)
            console.print(Text(words.floor_text(group), style="dim"))
            for sentence in (*words.reasons(kernel, group), *words.findings(kernel, group)):
                console.print(Text(sentence, style="dim"))
            for row in (row for row in group.ranked if row.note):
                console.print(Text(f"{words.label(kernel, row.cell.measured)}: {row.note}", style="yellow"))
    missing = [(group, row) for group in result.groups for row in group.unranked]
    if missing:
        console.print()
        _print_missing(console, kernel, missing)
    sentences = words.factor_sentences(result)
    if sentences:
        console.print()
    for factor, sentence in sentences:
        console.print(Text.assemble((f"{factor + ':':<9} ", "bold"), sentence))


def _print_table(console: Console, result: KernelResult, group: Group) -> None:
    """With the time to populate where there is room. No value is cut off: a table may be wider than that."""
    unlimited = console.options.update(width=_UNLIMITED)
    table, width = _table(result, group, not result.kernel.is_program), console.width
    if Measurement.get(console, unlimited, table).maximum > width:
        table = _table(result, group, False)
    console.width = max(width, Measurement.get(console, unlimited, table).maximum)
    console.print(table, crop=False)
    console.width = width


def _table(result: KernelResult, group: Group, wide: bool) -> Table:
    kernel, dimensions = result.kernel, words.shown_dimensions(result)
    metric = kernel.headline
    head = [*wrap(metric.label, _LABEL), metric.unit, metric.convention]
    table = Table(
        title=Text(group.compiler, style="bold cyan"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        collapse_padding=True,
        padding=(0, 1),
    )
    for one in dimensions:
        table.add_column(one.name, no_wrap=True)
    table.add_column("time\na run" if kernel.is_program else "time\na pass", justify="right", no_wrap=True)
    table.add_column("\n".join(filter(None, head)), justify="right", no_wrap=True)
    if wide:
        table.add_column("populate", justify="right", no_wrap=True)
    table.add_column("pages\nseen", no_wrap=True)
    # Where all have all rounds, the noise floor's line names them.
    with_rounds = any(row.rounds < row.rounds_made for row in group.ranked)
    if with_rounds:
        table.add_column("rounds", justify="right", no_wrap=True)
    table.add_column("time ratio,\n95 % interval", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for row in group.ranked:
        values = [words.shown(kernel, row.cell, one) for one in dimensions]
        table.add_row(*values, *_cells(kernel, row, wide, with_rounds))
    return table


def _cells(kernel: Kernel, row: Row, wide: bool, with_rounds: bool) -> list[str | Text]:
    cells: list[str | Text] = [
        seconds_text(row.seconds or 0.0),
        words.metric_text(row, kernel.headline.field),
    ]
    if wide:
        cells.append(seconds_text(row.populate or 0.0))
    cells.append(words.pages_text(row))
    if with_rounds:
        cells.append(words.rounds_of(row))
    if row.cell.is_baseline:
        return [*cells, "1", Text("baseline", style="cyan")]
    ratio = Text.assemble(
        words.ratio_text(row.time_ratio), (" " + words.interval_text(row.time_ratio), "dim")
    )
    return [*cells, ratio, Text(row.verdict, style=_STYLES[row.verdict])]


def _print_missing(console: Console, kernel: Kernel, missing: Sequence[tuple[Group, Row]]) -> None:
    """Rows that are not ranked; those with one reason and remedy are told together."""
    together: dict[tuple[str, str], dict[str, list[str]]] = {}
    for group, row in missing:
        compilers = together.setdefault((row.invalid or "", row.remedy or ""), {})
        compilers.setdefault(group.compiler, []).append(words.label(kernel, row.cell.measured))
    for (reason, remedy), compilers in together.items():
        for compiler, names in compilers.items():
            console.print(Text.assemble(("not ranked: ", "bold yellow"), f"{compiler}: {', '.join(names)}"))
        console.print(Text(f"  why:    {reason}"))
        if remedy:
            console.print(Text(f"  remedy: {remedy}"))
