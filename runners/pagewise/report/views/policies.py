"""With : without huge pages and compiler : compiler, as the FLASH studies show them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pagewise.analysis.analysis import KernelResult
from pagewise.analysis.ratio import Ratio
from pagewise.report.model import Bar, Bars, Column, Figure, Section, Table, Text


def sections(kernels: Sequence[KernelResult]) -> Iterator[Section]:
    """The studies' ratios: with : without huge pages, and compiler : compiler."""
    tables = [
        table
        for title, of_compilers in (
            ("With : without huge pages", False),
            ("Compiler : compiler, by pages", True),
        )
        for table in _policy_table(kernels, title, of_compilers)
    ]
    if tables:
        text = (
            "Ratios paired by round with their 95 % intervals, as in the FLASH-on-A64FX study (PEARC 2023, "
            "figures 1 and 2). Below 1, huge pages (or the first compiler) need less. Prefetch and stores "
            "are those of the baseline."
        )
        figures = [figure for one in kernels for figure in _policy_figure(one)]
        yield Section("With and without huge pages", (*tables, Text(text, style="dim"), *figures), "policies")


def _policy_table(kernels: Sequence[KernelResult], title: str, of_compilers: bool) -> Iterator[Table]:
    quantities: dict[str, None] = {}
    rows: dict[tuple[str, str, str], dict[str, Ratio]] = {}
    for result in kernels:
        for one in result.by_policy:
            if (one.reference is not None) == of_compilers:
                quantities.setdefault(one.quantity)
                who = f"{one.compiler} : {one.reference}" if one.reference else one.compiler
                rows.setdefault((result.kernel.title, who, one.policy), {})[one.quantity] = one.ratio
    if rows:
        columns = (
            Column("kernel", merged=True),
            Column("compiler", merged=True),
            Column("pages"),
            *(Column(name, kind="ratio") for name in quantities),
        )
        yield Table(
            title,
            columns,
            tuple((*names, *(ratios.get(name) for name in quantities)) for names, ratios in rows.items()),
        )


def _policy_figure(result: KernelResult) -> Iterator[Figure]:
    compared = [one for one in result.by_policy if one.reference is None]
    panels = tuple(
        (
            compiler,
            None,
            tuple(
                Bar(f"{one.quantity}, {one.policy}", one.policy, one.ratio)
                for one in compared
                if one.compiler == compiler
            ),
        )
        for compiler in dict.fromkeys(one.compiler for one in compared)
    )
    if panels:
        title = f"{result.kernel.title}: with : without huge pages"
        caption = (
            f"{title}, of the same compiler, with 95 % intervals, as in the FLASH-on-A64FX study (PEARC "
            "2023, figure 1)."
        )
        bars = Bars(panels, "ratio with : without huge pages")
        yield Figure(f"{result.kernel.name}-policies", title, caption, bars, in_page=False)
