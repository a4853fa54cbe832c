"""A comparison of configurations: kernels, or the user's program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pagewise.analysis.analysis import KernelResult, analyse_result
from pagewise.analysis.choices import bests, choices
from pagewise.core.result import Result
from pagewise.core.units import count_text, percent_text
from pagewise.report.model import Block, Cell, Column, Figure, Heat, Report, Section, Table, Text, Values
from pagewise.report.views import advice, data, evidence, kernel, policies, program, session
from pagewise.report.views.data import ratio_fields
from pagewise.report.views.findings import findings
from pagewise.report.views.matrix import matrix
from pagewise.report.views.wording import change_text, choice_text, label, method_text

# A noise floor above this hides most of what page sizes do.
_UNSTEADY = 0.1


def view(result: Result) -> Report:
    """The report of a comparison."""
    kernels = analyse_result(result)
    several = sum(len(one.groups) for one in kernels) > 1
    whole = [*_choices(kernels), *_bests(kernels), *_matrix(kernels)] if several else []
    pages = [kernel.section(one, result.manifest) for one in kernels]
    notes = [*notes_of(kernels), *session.notes(result)]
    return Report(
        session.title(result.manifest),
        advice.headline(kernels),
        (
            *whole,
            *(pages if len(kernels) == 1 else [Section("Kernels", tuple(pages))]),
            *policies.sections(kernels),
            *_excluded(kernels),
            *program.sections(result),
            *evidence.sections(result, kernels),
            *session.sections(result.manifest),
        ),
        tuple(_answers(kernels, several)),
        (*session.facts(result.manifest), *_facts(kernels)),
        tuple(notes),
        _reading(kernels),
        {
            "summary.csv": data.summary(kernels),
            "policies.csv": data.policies(kernels),
            **program.tables(result),
        },
        _data(result, kernels, notes),
        any(row.is_fault for one in kernels for group in one.groups for row in group.unranked),
    )


def _answers(kernels: Sequence[KernelResult], several: bool) -> Iterator[Text]:
    if several and (text := advice.largest(kernels)):
        yield Text(text)
    for answer in advice.answers(kernels)[1:]:
        yield Text(answer.whole, answer.question)


def _facts(kernels: Sequence[KernelResult]) -> Iterator[tuple[str, str]]:
    groups = [group for one in kernels for group in one.groups]
    floors = [group.floor for group in groups if group.floor is not None]
    if floors:
        ends = [percent_text(end) for end in (min(floors), max(floors))]
        yield "Noise floor", " to ".join(dict.fromkeys(ends))
    rows = [row for group in groups for row in group.ranked]
    if rows:
        observed = sum(row.pages is not None for row in rows)
        yield "Pages", f"verified for {observed} of {count_text(len(rows), 'configuration')}"
    if excluded := sum(len(group.unranked) for group in groups):
        yield "Excluded", count_text(excluded, "configuration")


def notes_of(kernels: Sequence[KernelResult]) -> Iterator[str]:
    """What a reader must know of noise and faults."""
    floors = [group.floor for one in kernels for group in one.groups if group.floor is not None]
    if floors and max(floors) > _UNSTEADY:
        yield (
            f"The machine was unsteady: noise floors up to {percent_text(max(floors))}. Compare again with "
            "nothing else running, or with more --rounds."
        )
    for one in kernels:
        rows = [row for group in one.groups for row in group.unranked if row.is_fault]
        if rows:
            count = count_text(len(rows), "configuration")
            yield f"{one.kernel.title}: {count} excluded because of a fault: {rows[0].invalid}."


def _choices(kernels: Sequence[KernelResult]) -> Iterator[Section]:
    columns = (
        Column("choice"),
        *(Column(name, kind="integer") for name in ("faster", "inconclusive", "slower", "excluded")),
        Column("time ratio", unit="median of all", kind="factor"),
        Column("geometric mean", unit="95 % interval", kind="ratio"),
        Column("smallest", kind="factor"),
        Column("largest", kind="factor"),
    )
    rows = []
    for one in choices(kernels):
        counts = [len(one.having(verdict)) for verdict in ("faster", "inconclusive", "slower")]
        name = choice_text(one.factor, one.value)
        rows.append((name, *counts, one.missing, one.middle, one.mean, *(one.ends or (None, None))))
    if rows:
        text = (
            "Each row changes one thing and leaves all else as in the baseline. Counted are comparisons, one "
            "per kernel and compiler."
        )
        yield Section(
            "Choices", (Text(text, style="dim"), Table("Single choices", columns, tuple(rows))), only="files"
        )


def _bests(kernels: Sequence[KernelResult]) -> Iterator[Section]:
    columns = (
        Column("kernel", merged=True),
        Column("compiler"),
        Column("best"),
        Column("against the baseline"),
        Column("time ratio", unit="95 % interval", kind="ratio"),
        Column("time", kind="seconds"),
        Column("equally good", wrap=True),
    )
    rows: list[Values] = []
    for best in bests(kernels):
        head = (best.kernel.kernel.title, best.group.compiler)
        row = best.row or best.group.baseline
        name = Cell(advice.label_of(best), "strong" if best.row else "")
        if best.row is None:
            nothing = Cell("nothing is faster", "inconclusive")
            rows.append((*head, name, nothing, None, row.seconds if row else None, ""))
            continue
        change = Cell(change_text(best.row.time_ratio), "faster")
        ratio = Cell(best.row.time_ratio, "faster", floor=best.group.floor)
        equal = ", ".join(label(best.kernel.kernel, one.cell.measured) for one in best.as_good)
        rows.append((*head, name, change, ratio, best.row.seconds, equal))
    if len(rows) > 1:
        text = (
            "The fastest configuration of each kernel and compiler; those whose intervals overlap its "
            "interval are equally good."
        )
        table = Table("Best configurations by kernel and compiler", columns, tuple(rows), chart=True)
        yield Section("Best configurations", (Text(text), table), only="page")


def _matrix(kernels: Sequence[KernelResult]) -> Iterator[Section]:
    table = matrix(kernels)
    legend = (
        "▼ faster, ▲ slower, ? inconclusive, × excluded; bold or framed: the best of a kernel and compiler; "
        "–: the kernel is not sensitive to it, or it was not planned."
    )
    blocks: tuple[Block, ...] = (table, Text(legend, style="dim"))
    if len(table.rows) > 1:
        caption = f"Time ratio of each configuration to the baseline of its compiler. {legend}"
        blocks = (*blocks, Figure("matrix", "All time ratios", caption, Heat(table), in_page=False))
    yield Section("Matrix", blocks, only="files")


def _excluded(kernels: Sequence[KernelResult]) -> Iterator[Section]:
    """Excluded configurations; those of a kernel with one reason and remedy share a row."""
    rows: list[tuple[str, ...]] = []
    for one in kernels:
        together: dict[tuple[str, str], dict[str, list[str]]] = {}
        for group in one.groups:
            for row in group.unranked:
                compilers = together.setdefault((row.invalid or "", row.remedy or ""), {})
                compilers.setdefault(group.compiler, []).append(label(one.kernel, row.cell.measured))
        for (reason, remedy), compilers in together.items():
            names = "; ".join(f"{name}: {', '.join(those)}" for name, those in compilers.items())
            rows.append((one.kernel.title, names, reason, remedy))
    if rows:
        columns = (
            Column("kernel", merged=True),
            *(Column(name, wrap=True) for name in ("configurations", "reason", "remedy")),
        )
        yield Section("Excluded", (Table("Excluded configurations, by reason", columns, tuple(rows)),))


def _reading(kernels: Sequence[KernelResult]) -> tuple[Text, ...]:
    return (
        Text(
            "this configuration's time divided by that of its compiler's baseline, paired within each round; "
            "below 1 is faster. The axis of the bars is logarithmic.",
            "Time ratio",
        ),
        Text(
            "faster or slower only if the 95 % interval excludes 1, the median lies outside the noise floor, "
            f"and both hold after correction; otherwise inconclusive, with the reason. "
            f"{method_text(kernels)} Outliers are never removed.",
            "Verdict",
        ),
        Text(
            "how much the baseline differs from itself when it runs twice in each round (A/A): the grey band "
            "behind the bars.",
            "Noise floor",
        ),
        Text(
            "none refuses huge pages, thp aligns and advises transparent ones, hugetlbfs maps them from the "
            "reserved pool. Observed is what the operating system's accounting reports after the first "
            "touch, with the share of bytes on pages of that size.",
            "Pages",
        ),
        Text(
            "are named only where they differ from the default: no prefetch instruction, regular stores, the "
            "system's library, SIMD width of the toolchain's flags, one target. A configuration that a "
            "kernel is not sensitive to is not measured twice.",
            "Prefetch, stores, library, SIMD width, target",
        ),
        Text(
            "stream counts the bytes that the source names; hardware adds those that the CPU reads before it "
            "writes (write-allocate).",
            "Bandwidth",
        ),
    )


def _data(result: Result, kernels: Sequence[KernelResult], notes: Sequence[str]) -> dict[str, object]:
    """Schema pagewise.verdicts/1."""
    return {
        "schema": "pagewise.verdicts/1",
        **session.data(result),
        "altered": result.altered,
        "headline": advice.headline(kernels),
        "findings": findings(kernels),
        "answers": advice.answers(kernels),
        "notes": notes,
        "kernels": [_kernel_data(one) for one in kernels],
        **program.data(result),
    }


def _kernel_data(one: KernelResult) -> dict[str, object]:
    return {
        "name": one.kernel.name,
        "title": one.kernel.title,
        "metrics": one.kernel.metrics,
        "configurations": data.summary([one]),
        "compilers": [
            {
                "compiler": versus.compiler,
                "reference": versus.reference,
                **ratio_fields(versus.time_ratio),
                "noise_floor": versus.floor,
                "verdict": versus.verdict,
                "reason": versus.reason,
            }
            for versus in one.versus
        ],
        "policies": [
            {
                "quantity": ratio.quantity,
                "compiler": ratio.compiler,
                "hugepages": ratio.policy,
                "reference": ratio.reference,
                **ratio_fields(ratio.ratio),
            }
            for ratio in one.by_policy
        ],
    }
