"""One kernel, or the user's program: its ratios, noise, curves and values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pagewise.analysis.analysis import Group, KernelResult
from pagewise.analysis.choices import Best, bests
from pagewise.analysis.rows import Row
from pagewise.core.dimensions import COMPILER, PAGES
from pagewise.report.model import (
    Bar,
    Bars,
    Block,
    Cell,
    Column,
    Figure,
    Section,
    Table,
    Text,
    interval_text,
    ratio_text,
    style_of,
)
from pagewise.report.views import advice
from pagewise.report.views.sweeps import sweeps
from pagewise.report.views.wording import (
    change_text,
    effect_sentences,
    floor_text,
    is_decided,
    label,
    noise_sentences,
    pages_text,
    reason_text,
    shown,
    shown_dimensions,
)

_RATIO = Column("time ratio", unit="95 % interval", kind="ratio")
_VERDICT = Column("verdict")


def section(one: KernelResult, manifest: Mapping[str, Any]) -> Section:
    """All of a kernel."""
    kernel = one.kernel
    equation = kernel.data.get("equation")
    blocks: list[Block] = [Text(" ".join(filter(None, (kernel.summary, equation))), style="dim")]
    for best in bests([one]):
        blocks += _best_texts(best)
    blocks += [Text(sentence, f"{factor}:") for factor, sentence in effect_sentences(one)]
    ranked = [group for group in one.groups if group.ranked]
    if ranked:
        blocks.append(_ratios(one, ranked))
    for group in ranked:
        prefix = f"{group.compiler}: " if len(ranked) > 1 else ""
        sentences = [floor_text(group), *noise_sentences(kernel, group)]
        sentences += [f"{label(kernel, row.cell.measured)}: {row.note}." for row in group.ranked if row.note]
        blocks.append(Text(prefix + " ".join(sentences), style="dim"))
    blocks += _forest(one, ranked)
    blocks += sweeps(one, manifest)
    if ranked and not kernel.is_program:
        blocks.append(Section("All measured values", (_values(one, ranked),), only="page", folded=True))
    return Section(kernel.title, tuple(blocks), f"kernel-{kernel.name}")


def _best_texts(best: Best) -> Iterator[Text]:
    kernel = best.kernel.kernel
    if best.row is None:
        yield Text("No configuration is faster than the baseline.", f"{best.group.compiler}:")
        return
    ratio = f"{ratio_text(best.row.time_ratio)}, {interval_text(best.row.time_ratio)}"
    equal = ", ".join(label(kernel, row.cell.measured) for row in best.as_good)
    text = (
        f"{advice.label_of(best)} is best, {change_text(best.row.time_ratio)} than the baseline ({ratio})."
        + (f" Equally good: {equal}." if equal else "")
    )
    yield Text(text, f"{best.group.compiler}:")
    if not kernel.is_program:
        cell = best.row.cell
        pages = f"   # with --pages {cell.pages}" if cell.pages else ""
        yield Text(f"module load {cell.measured.module}{pages}", style="code")


def _ratios(one: KernelResult, groups: Sequence[Group]) -> Table:
    """A row per ranked configuration, with a column for each dimension that needs one."""
    kernel, metric = one.kernel, one.kernel.headline
    dimensions = shown_dimensions(one)
    sensitive = [dimension for dimension in dimensions if kernel.is_sensitive_to(dimension.name)] or [PAGES]
    with_rounds = any(row.rounds < row.rounds_made for group in groups for row in group.ranked)
    unit = ", ".join(filter(None, (metric.unit, metric.convention)))
    columns = (
        Column(COMPILER.name, merged=True),
        *(Column(dimension.name) for dimension in sensitive),
        Column("time", unit="per run" if kernel.is_program else "per pass", kind="seconds"),
        Column(metric.label, unit=unit, kind="number"),
        *(() if kernel.is_program else (Column("first touch", kind="seconds", optional=True),)),
        Column("observed pages"),
        *((Column("rounds"),) if with_rounds else ()),
        _RATIO,
        _VERDICT,
    )
    rows = [
        (
            group.compiler,
            *(shown(kernel, row.cell, dimension) for dimension in sensitive),
            row.seconds,
            row.metrics.get(metric.field),
            *(() if kernel.is_program else (row.populate,)),
            pages_text(row),
            *((f"{row.rounds}/{row.rounds_made}",) if with_rounds else ()),
            *_verdict(group, row),
        )
        for group in groups
        for row in group.ranked
    ]
    same = " of the same compiler" if len(one.groups) > 1 else ""
    return Table(f"Time ratio to the baseline{same}, below 1 is faster", columns, tuple(rows), chart=True)


def _verdict(group: Group, row: Row) -> tuple[Cell, Cell]:
    if row.cell.is_baseline:
        return Cell("1", "baseline", floor=group.floor), Cell("baseline", "baseline")
    style = style_of(row.verdict)
    return Cell(row.time_ratio, style, floor=group.floor), Cell(row.verdict, style, reason_text(row.reason))


def _forest(one: KernelResult, groups: Sequence[Group]) -> Iterator[Figure]:
    panels = [
        (
            group.compiler,
            group.floor,
            tuple(
                Bar(
                    label(one.kernel, row.cell.measured),
                    row.cell.measured.hugepages,
                    row.time_ratio,
                    is_decided(row.verdict),
                )
                for row in group.ranked
                if row.time_ratio is not None
            ),
        )
        for group in groups
    ]
    panels = [panel for panel in panels if panel[2]]
    if panels:
        caption = (
            f"{one.kernel.title}: time ratios to the baseline with their 95 % intervals; the grey band is "
            "the noise floor. Pale bars are inconclusive."
        )
        name, title = f"{one.kernel.name}-ratios", f"{one.kernel.title}: time ratios"
        yield Figure(name, title, caption, Bars(tuple(panels), "time ratio (below 1: faster)"), in_page=False)


def _values(one: KernelResult, groups: Sequence[Group]) -> Table:
    kernel = one.kernel
    columns = (
        Column("configuration"),
        Column("compiler"),
        Column("runs", kind="integer"),
        Column("median", "time", unit="per pass, median", kind="seconds"),
        Column("trimmed", "time", unit="per pass, trimmed mean", kind="seconds"),
        *(
            Column(m.field, m.label, unit=", ".join(filter(None, (m.unit, m.convention))), kind="number")
            for m in kernel.metrics
        ),
        Column("first touch", kind="seconds"),
        Column("process", unit="wall time", kind="seconds"),
    )
    rows = [
        (
            *(label(kernel, row.cell.measured), group.compiler, row.runs, row.seconds, row.seconds_trimmed),
            *(row.metrics.get(metric.field) for metric in kernel.metrics),
            *(row.populate, row.wall),
        )
        for group in groups
        for row in group.ranked
    ]
    return Table(f"{kernel.title}: medians over the runs", columns, tuple(rows))
