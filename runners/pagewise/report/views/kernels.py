"""A comparison of configurations: kernels, or the user's program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pagewise.analysis.analysis import Drafts, analyse_result
from pagewise.analysis.choices import bests, choices
from pagewise.analysis.rows import KernelResult, Row, judgement
from pagewise.analysis.usage import MemoryRow
from pagewise.core.dimensions import PAGES, dimensions_of
from pagewise.core.plan import Cell as PlanCell
from pagewise.core.result import Result
from pagewise.core.units import count_text, percent_text
from pagewise.report.model import (
    Block,
    Column,
    Report,
    Section,
    Table,
    TableCell,
    Text,
    Values,
    output_of,
    style_of,
)
from pagewise.report.verdicts import AnswerRow, ComparisonRow, ConfigurationRow, FaultRow, KernelRow, Verdicts
from pagewise.report.views import advice, applying, comparisons, data, kernel, program, session, tables
from pagewise.report.views.data import DataRow, choice_text, label_of, method_text, pages_text, short_name
from pagewise.report.views.tables import evidence

# A noise floor above this hides most of what page sizes do.
_UNSTEADY = 0.1
# A remedy is a command or a sentence: longer reasons are in the report.
_LONGEST = 160
_CHOICES = (
    Column("choice", get=choice_text),
    Column("faster", kind="integer", get=lambda choice: len(choice.having("faster"))),
    Column("inconclusive", kind="integer", get=lambda choice: len(choice.having("inconclusive"))),
    Column("slower", kind="integer", get=lambda choice: len(choice.having("slower"))),
    Column("excluded", kind="integer", get="missing"),
    Column("geometric mean", unit="95 % interval", kind="ratio", get="mean"),
    Column("smallest", kind="factor", get=lambda choice: choice.ends and choice.ends[0]),
    Column("largest", kind="factor", get=lambda choice: choice.ends and choice.ends[1]),
)
_EXCLUDED = (
    Column("kernel", merged=True),
    Column("configurations", wrap=True),
    Column("rounds"),
    *(Column(name, wrap=True) for name in ("reason", "remedy")),
)


# During a comparison: what fits into a window.
_SO_FAR = (
    Column("kernel", merged=True, get="benchmark.name"),
    Column("compiler", get="group.compiler"),
    Column("best so far", get=lambda best: TableCell(label_of(best), "strong" if best.row else "")),
    comparisons.judged_columns(lambda best: best.row and best.row.time)[0],
)


def view(result: Result) -> Report:
    """The report of a comparison."""
    kernels = analyse_result(result)
    given = advice.answers(kernels, result.records, result.manifest.programs)
    several = sum(len(of_kernel.groups) for of_kernel in kernels) > 1
    whole = _whole(kernels) if several else ()
    pages = [kernel.section(of_kernel, result.manifest) for of_kernel in kernels]
    notes = [*notes_of(kernels), *evidence.node_notes(result, kernels), *session.notes(result)]
    output = _output(result, kernels, given, notes)
    return Report(
        session.title(result.manifest),
        output.headline,
        (
            *whole,
            *(pages if len(kernels) == 1 else [Section("Kernels", tuple(pages))]),
            *comparisons.states(kernels),
            *comparisons.structures(kernels),
            *comparisons.by_pages(kernels),
            *comparisons.loops(kernels),
            *_exclusions(kernels),
            *program.sections(result, kernels),
            *comparisons.energy(kernels, result.manifest.energy),
            *tables.sections(result, kernels),
            *session.sections(result),
        ),
        (*session.facts(result), *_facts(kernels)),
        tuple(notes),
        "kernels",
        {
            "summary.csv": Table.of_outputs(
                ConfigurationRow, [row for each in output.kernels for row in each.configurations]
            ),
            "comparisons.csv": Table.of_outputs(ComparisonRow, output.comparisons),
            "data.csv": data.medians(kernels, result.manifest),
            **({"memory.csv": Table.of_outputs(MemoryRow, output.program.memory)} if output.program else {}),
        },
        output,
        bool(output.findings) or any(row.verdict == "not met" for row in output.comparisons),
        method_text(kernels),
        output.condition,
        tuple(applying.recommendations(given, of_program=bool(result.manifest.programs))),
        (*_brief(kernels), *program.brief(result, kernels)),
        judgement(result, kernels),
    )


def verdicts(result: Result, drafts: Drafts | None = None) -> tuple[str, Table] | None:
    """Headline and table of the best configurations, during a comparison; None for other kinds of result.

    drafts: as in `analyse`.
    """
    if result.manifest.kind in ("counters", "simulation"):
        return None
    kernels = analyse_result(result, drafts)
    title = f"After {count_text(result.manifest.rounds_done, 'round')}"
    return advice.headline(kernels, advice.answers(kernels)), Table.of(title, _SO_FAR, bests(kernels))


def _output(
    result: Result, kernels: Sequence[KernelResult], given: Sequence[AnswerRow], notes: Sequence[str]
) -> Verdicts:
    """What --json prints."""
    return Verdicts(
        **session.fields_of(result, notes),
        altered=result.altered,
        headline=advice.headline(kernels, given),
        condition=session.condition(result.manifest),
        findings=tuple(output_of(FaultRow, entry) for entry in data.faults(kernels)),
        answers=tuple(given),
        kernels=tuple(
            KernelRow(
                name=of_kernel.benchmark.name,
                title=of_kernel.benchmark.title,
                metrics=of_kernel.benchmark.metrics,
                best=tuple(applying.best_row(best, result.records) for best in bests([of_kernel])),
                configurations=tuple(data.configurations([of_kernel])),
            )
            for of_kernel in kernels
        ),
        comparisons=tuple(data.comparisons(row for of_kernel in kernels for row in of_kernel.comparisons)),
        node_state=tuple(evidence.node_rows(result, kernels)),
        program=program.figures(result, given),
    )


def _brief(kernels: Sequence[KernelResult]) -> Iterator[Block]:
    """What a terminal shows without --verbose: a table per kernel, noise floors, excluded configurations."""
    for result in kernels:
        if ranked := data.ranked_rows([result]):
            yield Section(result.benchmark.title, (_brief_table(ranked),))
    if floors := _floors_text(kernels):
        yield Text(f"{floors}; smaller differences are inconclusive.", "Noise floor (A/A):")
    for count, reason, remedy in _reasons(kernels):
        more = f" Remedy: {remedy}." if remedy and len(remedy) <= _LONGEST else ""
        yield Text(f"{count_text(count, 'configuration')}: {reason[:_LONGEST]}.{more}", "Excluded:")


def _brief_table(ranked: Sequence[DataRow]) -> Table:
    """Words wrap, and numbers are short: it fits any width that a terminal has."""
    shown, has_memory = ranked[0].benchmark, any(entry.row.memory is not None for entry in ranked)
    ratio, gain, _ = kernel.time_columns()
    compiler = Column("compiler", merged=True, wrap=True, get="group.compiler")
    memory = Column("memory", unit="ratio", kind="quotient", get="row.memory")
    columns = (
        *([compiler] if shown.is_sensitive_to("compiler") else []),
        Column("configuration", wrap=True, get="label"),
        Column("time", kind="seconds", unit=f"per {shown.unit}", get="row.seconds"),
        Column("observed", unit="pages", get=lambda entry: pages_text(entry.row)),
        *([memory] if has_memory else []),
        ratio,
        replace(gain, optional=False),
        Column("verdict", wrap=True, get=_brief_verdict),
    )
    return Table.of("", columns, ranked)


def _brief_verdict(entry: DataRow) -> TableCell:
    is_baseline = entry.row.cell.is_baseline
    verdict = "baseline" if is_baseline else entry.row.verdict
    return TableCell(verdict, style_of(verdict))


def _reasons(kernels: Sequence[KernelResult]) -> list[tuple[int, str, str]]:
    """How many configurations are excluded for each kind of reason, with reason and remedy of the first."""
    by_code: dict[str, list[DataRow]] = {}
    for entry in data.excluded_rows(kernels):
        by_code.setdefault(entry.row.code or "", []).append(entry)
    firsts = ((len(those), those[0].row) for those in by_code.values())
    return [(count, row.invalid or "", row.remedy or "") for count, row in firsts]


def _floors(kernels: Sequence[KernelResult]) -> list[float]:
    return [group.floor for result in kernels for group in result.groups if group.floor is not None]


def _floors_text(kernels: Sequence[KernelResult]) -> str:
    """The smallest and the largest noise floor; empty without any."""
    floors = sorted(_floors(kernels))
    return " to ".join(dict.fromkeys(map(data.floor_text, (*floors[:1], *floors[-1:]))))


def _facts(kernels: Sequence[KernelResult]) -> Iterator[tuple[str, str]]:
    if floors := _floors_text(kernels):
        yield "Noise floor", floors
    if ranked := data.ranked_rows(kernels):
        observed = sum(entry.row.pages is not None for entry in ranked)
        yield "Pages", f"verified for {observed} of {count_text(len(ranked), 'configuration')}"
    if excluded := data.excluded_rows(kernels):
        yield "Excluded", count_text(len(excluded), "configuration")


def notes_of(kernels: Sequence[KernelResult]) -> Iterator[str]:
    """What a reader must know about noise and faults."""
    highest = max(_floors(kernels), default=0.0)
    if highest > _UNSTEADY:
        yield (
            f"The machine was unsteady: noise floors up to {percent_text(highest)}. Compare again with "
            "nothing else running, or with more --rounds."
        )
    migrated = [entry.row.migrated_runs for entry in data.ranked_rows(kernels) if entry.row.migrated_runs]
    if migrated:
        yield (
            f"Threads migrated to another CPU in {count_text(sum(migrated), 'run')} of "
            f"{count_text(len(migrated), 'configuration')}: bind them (--threads, --cpus)."
        )
    for result in kernels:
        if faults := data.faults([result]):
            count = count_text(len(faults), "configuration")
            first = faults[0].row
            yield (
                f"{result.benchmark.title}: {count} excluded because of a fault, the first with "
                f"{data.rounds_share(first)}: {first.invalid}."
            )


def _whole(kernels: Sequence[KernelResult]) -> Iterator[Section]:
    """What all kernels and compilers show together: single choices, the best configurations, all ratios."""
    text = (
        "Each row changes one thing and leaves all else as in the baseline. Counted are comparisons, one per "
        "kernel and compiler."
    )
    single = Table.of("Single choices", _CHOICES, choices(kernels))
    yield from single.section("Choices", text, only="files")
    best = kernel.best_table(kernels, "Best configurations by kernel and compiler")
    if len(best.rows) > 1:
        text = (
            "The fastest configuration of each kernel and compiler; those whose intervals overlap its "
            "interval are equally good."
        )
        yield Section("Best configurations", (Text(text), best), only="page")
    legend = (
        "▼ faster, ▲ slower, ? inconclusive, × excluded; bold or framed: the best of a kernel and compiler; "
        "–: the kernel is not sensitive to it, or it was not planned."
    )
    yield from matrix(kernels).section("Matrix", legend, only="files")


def matrix(kernels: Sequence[KernelResult]) -> Table:
    """All time ratios: a row per kernel and compiler, a column per configuration.

    A kernel has no cell for values of dimensions that it is not sensitive to.
    """
    groups = [(result.benchmark.title, group) for result in kernels for group in result.groups]
    rows = sorted(
        (row for _, group in groups for row in group.rows), key=lambda row: row.cell.measured.sort_key()[2:]
    )
    # A column is a page policy and, below it, all other dimensions.
    dimensions = dimensions_of(result.benchmark for result in kernels)
    below = [dimension for dimension in dimensions if dimension is not PAGES]

    def place(row: Row) -> tuple[str, str]:
        return PAGES.of(row.cell.measured), short_name(row.cell.measured, below)

    places = list(dict.fromkeys(map(place, rows)))
    policies = list(dict.fromkeys(policy for policy, _ in places))
    places.sort(key=lambda pair: policies.index(pair[0]))
    best = {best.row.cell: best.row for best in bests(kernels) if best.row is not None}
    lines: list[Values] = []
    for title, group in groups:
        by_place = {place(row): row for row in group.rows}
        lines.append((title, group.compiler, *(_matrix_cell(by_place.get(each), best) for each in places)))
    heat = (
        Column(f"{policy} {name}".strip(), name or "hardware", kind="heat", above=policy)
        for policy, name in places
    )
    title = "Time ratio by kernel and configuration; below 1 is faster"
    return Table(title, (Column("kernel", merged=True), Column("compiler"), *heat), tuple(lines))


def _matrix_cell(row: Row | None, best: Mapping[PlanCell, Row]) -> TableCell:
    if row is None or row.invalid is not None:
        return TableCell(None, "" if row is None else "excluded")
    if row.cell.is_baseline:
        return TableCell("1", "baseline")
    return TableCell(row.time_ratio, style_of(row.verdict), best=best.get(row.cell) is row)


def _exclusions(kernels: Sequence[KernelResult]) -> Iterator[Section]:
    """Excluded configurations; those of a kernel with one share of rounds, reason and remedy share a row."""
    together: dict[tuple[str, str, str, str], dict[str, list[str]]] = {}
    for entry in data.excluded_rows(kernels):
        key = (
            entry.benchmark.title,
            data.rounds_share(entry.row),
            entry.row.invalid or "",
            entry.row.remedy or "",
        )
        together.setdefault(key, {}).setdefault(entry.group.compiler, []).append(entry.label)
    rows = tuple(
        (title, "; ".join(f"{name}: {', '.join(labels)}" for name, labels in compilers.items()), *why)
        for (title, *why), compilers in together.items()
    )
    if rows:
        kinds = "; ".join(f"{count}: {reason}" for count, reason, _ in _reasons(kernels))
        total = count_text(len(data.excluded_rows(kernels)), "configuration")
        table = Table("Excluded configurations, by reason", _EXCLUDED, rows)
        details = Section("Which, why, and what to do", (table,), folded=True)
        yield Section("Excluded", (Text(f"{total}. {kinds}."), details))
