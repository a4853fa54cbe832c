"""How much of the sensitivity to page size is the data structure: a table, its answer, and its data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from pagewise.analysis.analysis import KernelResult
from pagewise.analysis.structures import StructureEffect
from pagewise.core.dimensions import BY_NAME, DIMENSIONS, PAGES
from pagewise.core.plan import Cell
from pagewise.core.units import percent_text
from pagewise.report.model import Cell as Shown
from pagewise.report.model import Column, Getter, Section, Table, Text, ratio_text, style_of
from pagewise.report.views.data import dimension_fields, ratio_fields
from pagewise.report.views.wording import capital, named, reason_text

_QUESTION = "How much of the sensitivity to page size is the data structure?"
_FIELDS: dict[str, Getter] = {
    "dimension": "dimension",
    "reference": lambda effect: _value(effect, effect.reference),
    **dimension_fields("cell.measured"),
    **ratio_fields("pages", "pages_"),
    **ratio_fields("reference_pages", "reference_pages_"),
    **ratio_fields("time_ratio"),
    "noise_floor": "floor",
    "p_corrected": "p",
    "verdict": "verdict",
    "reason": "reason",
    "share": "share",
}


def table_of(result: KernelResult) -> Table:
    """For programs: each effect of a kernel."""
    return Table.of_fields(_FIELDS, result.structures)


def sections(kernels: Sequence[KernelResult]) -> Iterator[Section]:
    """The effect of pages in both data structures, and the ratio of these effects."""
    items = [{"result": result, "effect": effect} for result in kernels for effect in result.structures]
    if not items:
        return
    columns = (
        Column("kernel", merged=True, get="result.kernel.title"),
        Column("compiler", merged=True, get="effect.cell.compiler"),
        Column("pages", get="effect.cell.measured.hugepages"),
        Column("data structure", get=lambda item: _change(item["effect"])),
        Column("all else", get=lambda item: _rest(item["effect"]), wrap=True),
        Column("pages' ratio with the first", kind="ratio", get="effect.pages"),
        Column("with the second", kind="ratio", get="effect.reference_pages"),
        Column("ratio of both", unit="95 % interval", kind="ratio", get=_ratio),
        Column("share", kind="percent", get="effect.share"),
        Column("reason", get=lambda item: reason_text(item["effect"].reason)),
    )
    text = (
        "A page policy's time ratio to base pages in two data structures that differ in one option, and the "
        "ratio of these ratios, paired by round. Below 1, the policy gains more with the first. Share: how "
        "much of the larger of both effects, in log, is the data structure."
    )
    table = Table.of("Time ratios of pages by data structure", columns, items)
    yield Section("Data structures", (table, Text(text, style="dim")), "structures")


def answer(kernels: Sequence[KernelResult]) -> Iterator[Text]:
    """The answer for each kernel, by the largest significant effect of each option."""
    sentences = [sentence for result in kernels if result.structures for sentence in _sentences(result)]
    if sentences:
        yield Text(" ".join(sentences), _QUESTION)


def _sentences(result: KernelResult) -> Iterator[str]:
    by_option: dict[str, list[StructureEffect]] = {}
    for effect in result.structures:
        by_option.setdefault(effect.dimension, []).append(effect)
    for name, effects in by_option.items():
        title, noun = result.kernel.title, BY_NAME[name].noun
        significant = [effect for effect in effects if effect.share is not None]
        if not significant:
            yield f"{title}: no significant part is {noun}."
            continue
        largest = max(significant, key=lambda effect: abs(math.log(effect.time_ratio.median)))
        ours, theirs = (_value(largest, cell) for cell in (largest.cell, largest.reference))
        policy = capital(PAGES.text(largest.cell.measured.hugepages))
        times = [ratio_text(each) for each in (largest.pages, largest.reference_pages)]
        where = ", ".join(filter(None, (largest.cell.compiler, _rest(largest))))
        share = percent_text(largest.share or 0.0)
        yield (
            f"{title}: {share} is {noun}. {policy} take {times[0]} of the time of base pages with {ours}, "
            f"and {times[1]} with {theirs} ({where})."
        )


def _value(effect: StructureEffect, cell: Cell) -> str:
    """The option's value in a cell."""
    return BY_NAME[effect.dimension].of(cell.measured)


def _change(effect: StructureEffect) -> str:
    """Both values: `scheme flash : planes`."""
    return f"{effect.dimension} {_value(effect, effect.cell)} : {_value(effect, effect.reference)}"


def _rest(effect: StructureEffect) -> str:
    """What both have in common beside pages: `layout=soa`."""
    others = [item for item in DIMENSIONS if item is not PAGES and item.name != effect.dimension]
    return named(effect.cell.measured, others)


def _ratio(item: Mapping[str, StructureEffect]) -> Shown:
    return Shown(item["effect"].time_ratio, style_of(item["effect"].verdict))
