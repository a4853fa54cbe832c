"""A publication's tables and figures: counted and simulated values beside the published ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pagewise.analysis.ratio import Ratio
from pagewise.core.errors import SelectionError
from pagewise.core.result import MANIFEST, Result
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
from pagewise.report.views import counters, origins, session, simulation
from pagewise.report.views.origins import Kind, Origin, Side
from pagewise.stack.events import EventFile
from pagewise.workloads.counters.published import Layout, Published, Row, Shown

#: What stands in the cell of a missing value.
_ABSENT = {"measured": "not counted", "simulated": "not simulated", "published": "not published"}
_ORDER: tuple[Kind, ...] = ("measured", "simulated", "published")
_REASONS = {
    "measured": "not counted: no event that was counted is this, or there is nothing to divide by",
    "simulated": "not simulated: the simulator has no time or cycles, no prefetches and no instruction TLB",
    "published": "not published: the publication has no such number, or it is illegible in the copy used",
}
_FIELDS = ("table", "test", "row", "quantity", "kind", "program", "compiler", "hugepages", "form", "value")
_BASE = "none"


@dataclass(frozen=True)
class _Column:
    """A column of a table: `group` is the part of the table, `base` what a ratio's policy is divided by."""

    group: str
    origin: Origin
    side: Side
    form: str

    def value(self, row: Row) -> float | Ratio | None:
        """Its value in a row."""
        return self.side.values.get(row.quantity)


def view(publication: Published, results: Sequence[Result]) -> Report:
    """The report. Raises SelectionError for results of another kind or of no test of the publication."""
    layout = publication.layout
    counts = [result for result in _checked(results) if result.manifest.kind == "counters"]
    counted = [counters.analyse(result, layout.base_compiler) for result in counts]
    simulations = [result for result in results if result.manifest.kind == "simulation"]
    events = _events(publication, results)
    found = [origin for each in counted for origin in origins.measured(each, publication, events)]
    found += origins.simulated(simulations, publication, events)
    found += origins.published(publication, events)
    own = [origin for origin in found if origin.kind != "published"]
    tables = [(shown, _columns(shown, found, layout)) for shown in layout.tables]
    sections = [_section(shown, columns, layout) for shown, columns in tables]
    drawn = [figure for shown in layout.figures for figure in _figures(shown, found, layout)]
    notes = tuple(dict.fromkeys(_notes(publication, own, results)))
    rows = [row for shown, columns in tables for row in _rows(shown, columns)]
    return Report(
        f"pagewise: {publication.title}",
        _headline(publication, own),
        (*sections, Section("Figures", tuple(drawn), "figures", only="page")),
        (),
        tuple(("Result", str(result.folder)) for result in results),
        notes,
        "layout",
        {f"{layout.name}.csv": Table.of_records(rows, (*_FIELDS, "low", "high", "missing"))},
        {
            "schema": "pagewise.layout/1",
            "layout": layout.name,
            "source": publication.source,
            "folders": [str(result.folder) for result in results],
            "notes": notes,
            "rows": rows,
        },
        any(cell.is_fault for each in counted for counts in each.kernels for cell in counts.cells)
        or any(simulation.view(result).faulty for result in simulations),
    )


def _checked(results: Sequence[Result]) -> Sequence[Result]:
    """The same results. Raises SelectionError for one that counts nothing."""
    for result in results:
        if result.manifest.kind not in ("counters", "simulation"):
            raise SelectionError(
                f"a result of the kind {result.manifest.kind} has no counts for a publication's tables",
                where=result.folder,
                remedy="name results of pagewise counters or pagewise simulate",
            )
    return results


def _events(publication: Published, results: Sequence[Result]) -> EventFile:
    """The event file whose names the publication uses, which results of its tests have.

    Raises SelectionError.
    """
    for result in results:
        part = result.manifest.counters or result.manifest.simulation
        if part is not None and part.published_events is not None:
            file = EventFile.from_dict(dict(part.published_events), result.folder / MANIFEST)
            if file.name == publication.events:
                return file
    raise SelectionError(
        f"no program of these results repeats a test of {publication.title}",
        where=", ".join(str(result.folder) for result in results),
        remedy=f"count or simulate a kernel with published_test: {' or '.join(publication.tests)}",
    )


def _columns(shown: Shown, found: Iterable[Origin], layout: Layout) -> list[_Column]:
    """The columns of a table or figure, in its order."""
    columns = []
    for origin in found:
        parts = {"values": origin.columns, "pages": origin.by_pages, "compilers": origin.by_compiler}
        for form, sides in parts.items():
            if origin.test in shown.tests and shown.form in ("values", form):
                group = shown.form == "values"
                columns += [_Column(_family(s.who, layout) if group else "", origin, s, form) for s in sides]
    return sorted(columns, key=lambda column: _place(column, shown, layout))


def _place(column: _Column, shown: Shown, layout: Layout) -> tuple[object, ...]:
    """Where a column stands: by test, compiler, origin; in comparisons of compilers by policy first."""
    families, policies = list(layout.compilers.values()), list(layout.policies)
    who = _family(column.side.who, layout).split(" : ")
    compilers = (len(who), *(families.index(w) if w in families else len(families) for w in who), who)
    # Base pages stand last, as in the publications; other policies after those that these name.
    known = column.side.policy in policies
    policy = policies.index(column.side.policy) if known else len(policies) - 1.5
    kind = _ORDER.index(column.origin.kind)
    test, form = shown.tests.index(column.origin.test), ("values", "pages", "compilers").index(column.form)
    by_policy = (policy, *compilers, kind) if shown.form == "compilers" else (*compilers, kind, form, policy)
    return (test, *by_policy)


def _family(who: str, layout: Layout) -> str:
    """The publication's words for compilers: `Fujitsu : GCC` for `fj-4.10 : gcc-12.2.0`."""
    names = (name.partition("-")[0] for name in who.split(" : "))
    return " : ".join(layout.compilers.get(name, name) for name in names)


def _word(policy: str, layout: Layout) -> str:
    return layout.policies.get(policy, policy)


def _section(shown: Shown, columns: Sequence[_Column], layout: Layout) -> Section:
    """A table, in parts by compiler where it has values."""
    groups = dict.fromkeys(column.group for column in columns)
    tables: list[Block] = []
    for group in groups:
        several = [column for column in columns if column.group == group]
        if all(column.origin.kind == "published" for column in several):
            text = f"{group or shown.name}: not counted or simulated in these results; published values only."
            tables.append(Text(text, style="note"))
        heads = (Column(shown.name), *(_head(column, shown, layout) for column in several))
        rows: list[Values] = [(row.title, *(_cell(c, row) for c in several)) for row in shown.rows]
        tables.append(Table(group, heads, tuple(rows)))
    return Section(f"{shown.name}. {shown.caption}", tuple(tables))


def _head(column: _Column, shown: Shown, layout: Layout) -> Column:
    origin, word = column.origin, _word(column.side.policy, layout)
    lines = [origin.test] if len(shown.tests) > 1 else []
    above = "\n".join((*lines, f"{origin.program} {column.side.who}", origin.kind))
    is_ratio = column.form == "pages" and shown.form == "values"
    title = f"{word} : {_word(_BASE, layout)}" if is_ratio else word
    name = " ".join((*above.split("\n"), title))
    return Column(name, title, "count" if column.form == "values" else "quotient", above=above)


def _cell(column: _Column, row: Row) -> Cell:
    value = column.value(row)
    if value is None:
        return Cell(_ABSENT[column.origin.kind], "reference")
    is_decided = row.quantity in column.side.decided
    return Cell(value, "reference" if column.origin.kind == "published" else "strong" if is_decided else "")


def _figures(shown: Shown, found: Sequence[Origin], layout: Layout) -> Iterator[Figure]:
    """The figure; a panel for each program, compiler and origin, a bar for each quantity and policy."""
    panels: dict[str, list[Bar]] = {}
    for column in _columns(shown, found, layout):
        origin, side = column.origin, column.side
        test = f"{origin.test}, " if len(shown.tests) > 1 else ""
        for row in shown.rows:
            value = column.value(row)
            ratio = value if isinstance(value, Ratio) or value is None else Ratio(1, value, None, None)
            if ratio is not None and ratio.median > 0:
                text = f"{test}{_word(side.policy, layout)}: {row.title}"
                decided = origin.kind != "measured" or row.quantity in side.decided
                panel = panels.setdefault(f"{origin.program} {side.who}, {origin.kind}", [])
                panel.append(Bar(text, side.policy, ratio, decided))
    name = f"{layout.name}-{'-'.join(shown.name.lower().replace('(', '').replace(')', '').split())}"
    if panels:
        data = Bars(tuple((title, None, tuple(bars)) for title, bars in panels.items()), "ratio")
        yield Figure(
            name, f"{shown.name}. {shown.caption}", "Bars of published values follow from counts.", data
        )


def _rows(shown: Shown, columns: Iterable[_Column]) -> Iterator[dict[str, Value]]:
    """A row for each cell: values, and why others are missing."""
    for column in columns:
        origin, side = column.origin, column.side
        for row in shown.rows:
            value = column.value(row)
            ratio = value if isinstance(value, Ratio) else None
            yield {
                "table": shown.name,
                "test": origin.test,
                "row": row.title,
                "quantity": row.quantity,
                "kind": origin.kind,
                "program": origin.program,
                "compiler": side.who,
                "hugepages": side.policy,
                "form": column.form,
                "value": value.median if isinstance(value, Ratio) else value,
                "low": ratio.low if ratio else None,
                "high": ratio.high if ratio else None,
                "missing": _ABSENT[origin.kind] if value is None else None,
            }


def _headline(publication: Published, own: Sequence[Origin]) -> str:
    """Which tests were measured and simulated."""
    parts = []
    for test in publication.tests:
        kinds = [kind for kind in _ORDER if any((o.test, o.kind) == (test, kind) for o in own)]
        parts.append(f"{test} {' and '.join(kinds) if kinds else 'missing'}")
    return f"{publication.title}: {', '.join(parts)}."


def _notes(publication: Published, own: Sequence[Origin], results: Sequence[Result]) -> Iterator[str]:
    """What a reader must know: sources, what is missing, and why."""
    yield f"Published: {publication.source}"
    for test in publication.tests:
        if not any(origin.test == test for origin in own):
            yield (
                f"{test}: published values only; no kernel of published_test: {test} was counted or simulated"
            )
    if any(origin.kind == "simulated" for origin in own):
        yield "Simulated values come from the TLB and cache simulator, they were not measured."
    for origin in own:
        yield from origin.notes
        if not origin.by_compiler:
            yield f"{origin.test}, {origin.program}: {origin.kind} with one compiler, compared with none"
    for result in results:
        part = result.manifest.counters
        if part is not None:
            remedy = f" (remedy: {part.remedy})" if part.remedy else ""
            yield f"Counted: {part.events['title']}; {part.reason}{remedy}."
        yield from session.notes(result)
    yield (
        "Counts are per pass through the work here, of the whole run in the publication; compare rates "
        "and ratios."
    )
    yield from (reason + "." for reason in _REASONS.values())
