"""Comparisons in the tables of a publication: rows and columns are axes such as threads, build and SMT."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pagewise.analysis.analysis import analyse_result
from pagewise.analysis.pivot import HEADLINE, TIME, AxisValue, Fact, efficiency, facts_of, performance
from pagewise.analysis.ratio import Ratio
from pagewise.core.errors import SelectionError
from pagewise.core.result import Result
from pagewise.report.layouts.definition import Axis, Shown, Tabled, TableLayout
from pagewise.report.model import (
    Bar,
    Bars,
    Block,
    Cell,
    Column,
    Figure,
    Report,
    Section,
    Table,
    Text,
    Value,
    Values,
)
from pagewise.report.views import limits, session
from pagewise.report.views.data import faults

_KINDS = ("kernels", "program", "programs")
_FIELDS = (
    *("table", "part", "row", "column", "quantity", "unit", "value"),
    *("relative", "low", "high", "missing"),
)
_NOT_MEASURED = "not measured"
_Key = tuple[AxisValue, ...]


@dataclass(frozen=True)
class _Part:
    """A part of a table: the facts by row and column. Columns are values of an axis, or quantities."""

    table: Tabled
    title: str
    facts: dict[tuple[_Key, _Key], Fact]
    rows: list[_Key] = field(default_factory=list)
    columns: list[_Key] = field(default_factory=list)

    @property
    def shown(self) -> list[tuple[_Key, Shown]]:
        """What stands in each column."""
        if self.table.columns is not None:
            return [(column, self.table.values[0]) for column in self.columns]
        return [((), shown) for shown in self.table.values]

    def base(self, row: _Key, column: _Key) -> Fact | None:
        """What performance in a cell is relative to."""
        relative = self.table.relative
        if not self.columns:
            return None
        of_column = column if relative == "efficiency" else self.columns[0]
        return self.facts.get((row if relative == "row" else self.rows[0], of_column))

    @property
    def relative_columns(self) -> list[_Key]:
        """The columns with relative values: not the one that the others are relative to."""
        if self.table.relative is None:
            return []
        return self.columns[1:] if self.table.relative == "row" else self.columns

    def relative(self, row: _Key, column: _Key) -> Ratio | None:
        """The performance relative to the base; None for the base itself and without values."""
        fact, base = self.facts.get((row, column)), self.base(row, column)
        if self.table.relative is None or fact is None or base is None or fact is base:
            return None
        compare = efficiency if self.table.relative == "efficiency" else performance
        return compare(fact, base, self.table.values[0].quantity)

    def row_text(self, row: _Key) -> str:
        """The head of a row, with the unit where rows are programs with different metrics."""
        text = ", ".join(axis.text(value) for axis, value in zip(self.table.rows, row, strict=True))
        if self.table.values[0].quantity != HEADLINE:
            return text
        metrics = [fact.metric(HEADLINE) for (of_row, _), fact in self.facts.items() if of_row == row]
        return next((f"{text} [{metric.unit}]" for metric in metrics if metric is not None), text)

    def column_text(self, column: _Key, shown: Shown) -> str:
        """The head of a column."""
        return self.table.columns.text(column[0]) if self.table.columns else shown.title or shown.quantity


def view(layout: TableLayout, results: Sequence[Result]) -> Report:
    """The report. Raises SelectionError for results of another kind, or with nothing for these tables."""
    _check(results)
    facts = list(facts_of(results))
    notes = [f"Published: {layout.source}"]
    several: dict[str, list[_Part]] = {}
    for table in layout.tables:
        parts, reason = _parts(table, [fact for fact in facts if table.has(fact)], len(results) > 1)
        several[table.name] = parts
        notes += [f"{table.name}: {reason}"] if reason else []
    drawn = {shown: list(limits.figures(shown, layout.name, results)) for shown in layout.curves}
    curves = [found for several_found in drawn.values() for found in several_found]
    notes += [f"{shown.name}: {limits.missing(shown)}" for shown, found in drawn.items() if not found]
    if not any(several.values()) and not curves:
        raise SelectionError(
            f"nothing in these results belongs to the tables of {layout.title}: " + "; ".join(notes[1:]),
            where=", ".join(str(result.folder) for result in results),
            remedy="docs/reference/layouts.md has the command for each table",
        )
    rows = [row for parts in several.values() for part in parts for row in _rows(part)]
    sections = [_section(table, several[table.name]) for table in layout.tables if several[table.name]]
    notes += dict.fromkeys(note for result in results for note in session.notes(result))
    return Report(
        f"pagewise: {layout.title}",
        f"{layout.title}: {', '.join(section.title.partition('.')[0] for section in sections) or 'curves'}.",
        (*sections, *(limits.section(found) for found in curves)),
        (),
        tuple(("Result", str(result.folder)) for result in results),
        tuple(notes),
        "layout",
        {f"{layout.name}.csv": Table.of_records(rows, _FIELDS)},
        {
            "schema": "pagewise.tables/1",
            "layout": layout.name,
            "source": layout.source,
            "folders": [str(result.folder) for result in results],
            "notes": notes,
            "rows": rows,
            "limits": [row for found in curves for row in limits.rows(found)],
        },
        any(faults(analyse_result(result)) for result in results),
    )


def _check(results: Sequence[Result]) -> None:
    for result in results:
        if result.manifest.kind not in _KINDS:
            raise SelectionError(
                f"a result of the kind {result.manifest.kind} is no comparison",
                where=result.folder,
                remedy="name results of pagewise compare; pearc23 and eahpc22 take counters and simulate",
            )


def _parts(table: Tabled, facts: Sequence[Fact], several: bool) -> tuple[list[_Part], str]:
    """The table in parts by the axes that divide it, and why there are none."""
    if not facts:
        limits = "".join(f" with {name} in its limits" for name in table.where)
        swept = f" swept by {table.sweep} (omit --no-sweep)" if table.sweep else ""
        return [], f"nothing of {', '.join(table.programs)}{limits}{swept} was compared"
    axis = table.compared
    if axis is not None and table.relative and len({fact.axes[axis.axis] for fact in facts}) < 2:
        return [], f"it compares values of {axis.axis}, and these results have one"
    varying = [name for name in table.dividing if len({fact.axes[name] for fact in facts}) > 1]
    places = [(_part_key(fact, varying), *_cell_key(table, fact)) for fact in facts]
    by_placement = len(set(places)) < len(places)
    parts: dict[tuple[str, ...], list[Fact]] = {}
    for fact in facts:
        key = _part_key(fact, varying) if several or varying else ("",)
        key = key if several else key[1:] if varying else key
        parts.setdefault((*key, fact.placement) if by_placement else key, []).append(fact)
    made = [_part(table, ", ".join(filter(None, key)), of_part) for key, of_part in parts.items()]
    return made, ""


def _part_key(fact: Fact, varying: Sequence[str]) -> tuple[str, ...]:
    texts = (f"{name} {value}" if isinstance(value := fact.axes[name], int) else value for name in varying)
    return (f"result {fact.result + 1}", *texts)


def _cell_key(table: Tabled, fact: Fact) -> tuple[_Key, _Key]:
    row = tuple(fact.axes[axis.axis] for axis in table.rows)
    return row, () if table.columns is None else (fact.axes[table.columns.axis],)


def _part(table: Tabled, title: str, facts: Sequence[Fact]) -> _Part:
    cells = {_cell_key(table, fact): fact for fact in facts}
    columns = [] if table.columns is None else [table.columns]
    return _Part(
        table,
        title,
        cells,
        _ordered(table.rows, [row for row, _ in cells]),
        _ordered(columns, [column for _, column in cells]),
    )


def _ordered(axes: Sequence[Axis], keys: Sequence[_Key]) -> list[_Key]:
    unique = list(dict.fromkeys(keys))
    return sorted(unique, key=lambda key: [axis.place(value) for axis, value in zip(axes, key, strict=True)])


def _section(table: Tabled, parts: Sequence[_Part]) -> Section:
    blocks: list[Block] = [_table(part) for part in parts]
    if table.published is not None:
        heads = (
            Column(name, kind="swept" if at else "text") for at, name in enumerate(table.published.columns)
        )
        rows = (
            tuple(str(row[0]) if at == 0 else x for at, x in enumerate(row)) for row in table.published.rows
        )
        blocks.append(Table("Published", tuple(heads), tuple(rows)))
    if table.figure and (bars := tuple(_bars(part) for part in parts)):
        shown = tuple(panel for panel in bars if panel[2])
        name = table.name.lower().replace(" ", "-")
        if shown:
            caption = (
                f"{table.caption}. Performance relative to the first column; pale: the interval holds 1."
            )
            blocks.append(Figure(name, f"{table.name}. {table.caption}", caption, Bars(shown, "performance")))
    text = "relative performance is paired by round, above 1 is faster."
    if table.relative == "efficiency":
        text = "efficiency is the performance per task relative to the first row, paired by round."
    blocks.append(Text(f"Medians; {text}", style="dim"))
    return Section(f"{table.name}. {table.caption}", tuple(blocks))


def _table(part: _Part) -> Table:
    table = part.table
    columns = [Column(", ".join(axis.head for axis in table.rows))]
    for key, shown in part.shown:
        text = part.column_text(key, shown)
        columns.append(Column(text, kind="number", unit=_unit(part, shown)))
    above = "efficiency" if table.relative == "efficiency" else "relative"
    columns += [
        Column(f"{above} {text}", text, "ratio", "performance, 95 % interval", above=above)
        for key in part.relative_columns
        for text in [part.column_text(key, table.values[0])]
    ]
    if table.benefit:
        columns.append(Column("benefit", kind="percent"))
    rows: list[Values] = []
    for row in part.rows:
        cells: list[Value | Cell] = [part.row_text(row)]
        cells += [_value_cell(part.facts.get((row, key)), shown) for key, shown in part.shown]
        ratios = [part.relative(row, key) for key in part.relative_columns]
        cells += [
            Cell(each, "" if each is None or not each.excludes_equality else "strong") for each in ratios
        ]
        if table.benefit:
            first = ratios[0] if ratios else None
            cells.append(None if first is None else first.median - 1.0)
        rows.append(tuple(cells))
    return Table(part.title, tuple(columns), tuple(rows))


def _unit(part: _Part, shown: Shown) -> str:
    if shown.unit or shown.quantity == HEADLINE:
        return shown.unit
    metrics = (fact.metric(shown.quantity) for fact in part.facts.values())
    return next(
        (metric.unit for metric in metrics if metric is not None), "s" if shown.quantity == TIME else ""
    )


def _value_cell(fact: Fact | None, shown: Shown) -> Cell:
    if fact is not None and fact.missing is not None:
        return Cell("excluded", "excluded", fact.missing)
    value = None if fact is None else fact.value(shown.quantity)
    return Cell(_NOT_MEASURED, "reference") if value is None else Cell(value * shown.scale)


def _bars(part: _Part) -> tuple[str, float | None, tuple[Bar, ...]]:
    bars = []
    for row in part.rows:
        for (column,) in part.columns:
            ratio, fact = part.relative(row, (column,)), part.facts.get((row, (column,)))
            if ratio is not None and fact is not None:
                text = f"{part.row_text(row)}: {part.column_text((column,), part.table.values[0])}"
                bars.append(Bar(text, str(fact.axes["hugepages"]), ratio, ratio.excludes_equality))
    return part.title or part.table.name, None, tuple(bars)


def _rows(part: _Part) -> Iterator[dict[str, Value]]:
    """A row for each cell."""
    for row in part.rows:
        for key, shown in part.shown:
            fact = part.facts.get((row, key))
            value = None if fact is None else fact.value(shown.quantity)
            ratio = part.relative(row, key)
            metric = None if fact is None else fact.metric(shown.quantity)
            yield {
                "table": part.table.name,
                "part": part.title,
                "row": part.row_text(row),
                "column": part.column_text(key, shown),
                "quantity": shown.quantity if metric is None else metric.field,
                "unit": shown.unit or (metric.unit if metric else "s" if shown.quantity == TIME else ""),
                "value": None if value is None else value * shown.scale,
                "relative": ratio.median if ratio else None,
                "low": ratio.low if ratio else None,
                "high": ratio.high if ratio else None,
                "missing": None if value is not None else (fact and fact.missing) or _NOT_MEASURED,
            }
