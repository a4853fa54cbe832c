"""With : without huge pages and compiler : compiler, as the FLASH studies show them: tables and CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import rich.table
from rich import box
from rich.console import Console
from rich.text import Text

from pagewise.analysis.analysis import KernelResult
from pagewise.analysis.policies import Compared
from pagewise.analysis.statistics import Ratio
from pagewise.core.files import table_text
from pagewise.report import words

POLICIES = "policies.csv"


@dataclass(frozen=True)
class Line:
    """A line of a table: what is compared, and a text for each quantity, empty where there is no ratio."""

    kernel: str
    who: str
    policy: str
    ratios: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table of ratios: its title, the quantities, its lines."""

    title: str
    quantities: tuple[str, ...]
    lines: tuple[Line, ...]


def tables(kernels: Sequence[KernelResult]) -> list[Table]:
    """The tables that have lines: with : without huge pages, and compiler : compiler."""
    chosen = [
        ("With : without huge pages", [(k, c) for k in kernels for c in k.by_policy if c.reference is None]),
        ("Compiler : compiler, by pages", [(k, c) for k in kernels for c in k.by_policy if c.reference]),
    ]
    return [_table(title, found) for title, found in chosen if found]


def print_policies(console: Console, kernels: Sequence[KernelResult]) -> None:
    """Prints them on a terminal."""
    for table in tables(kernels):
        shown = rich.table.Table(
            title=Text(f"{table.title}, ratios with their 95 % intervals", style="bold"),
            title_justify="left",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            show_edge=False,
            collapse_padding=True,
            padding=(0, 1),
        )
        for name in ("kernel", "compiler", "pages", *table.quantities):
            shown.add_column(name, no_wrap=name in ("compiler", "pages"))
        before = ""
        for line in table.lines:
            shown.add_row(line.kernel if line.kernel != before else "", line.who, line.policy, *line.ratios)
            before = line.kernel
        console.print()
        console.print(shown)


def policies_csv(kernels: Sequence[KernelResult]) -> str:
    """Each ratio as a row; `reference` is the other compiler, or the pages of the baseline."""
    names = ("kernel", "compiler", "hugepages", "reference", "quantity", "ratio", "low", "high", "pairs")
    rows = []
    for result in kernels:
        for one in result.by_policy:
            who = (result.kernel.name, one.compiler, one.policy, one.reference or "without huge pages")
            measured = one.ratio
            rows.append((*who, one.quantity, measured.median, measured.low, measured.high, measured.pairs))
    return table_text(names, rows)


def ratio_with_interval(measured: Ratio) -> str:
    """`0.991 0.980–1.003`; small ratios with the digits that they need: `0.0021`."""
    if measured.median < 0.1:
        return f"{measured.median:.2g}"
    return f"{words.ratio_text(measured)} {words.interval_text(measured)}".rstrip()


def _table(title: str, found: Sequence[tuple[KernelResult, Compared]]) -> Table:
    quantities = tuple(dict.fromkeys(one.quantity for _, one in found))
    cells: dict[tuple[str, str, str], dict[str, str]] = {}
    for result, one in found:
        who = f"{one.compiler} : {one.reference}" if one.reference else one.compiler
        line = cells.setdefault((result.kernel.title, who, one.policy), {})
        line[one.quantity] = ratio_with_interval(one.ratio)
    return Table(
        title,
        quantities,
        tuple(Line(*who, tuple(texts.get(name, "") for name in quantities)) for who, texts in cells.items()),
    )
