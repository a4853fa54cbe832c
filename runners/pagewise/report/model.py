"""The building blocks of reports. Views build these types; renderers show them.

Tables hold values, not strings: how a value is shown follows from the kind of its column.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from types import NoneType
from typing import Any, Literal, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from pagewise.analysis.ratio import Ratio
from pagewise.core.units import bytes_text, clock_text, number_text, percent_text, seconds_text

Value: TypeAlias = str | int | float | bool | Ratio | None
Style = Literal["", "faster", "slower", "inconclusive", "baseline", "excluded", "reference", "strong", "code"]
_Words = Literal["text", "plain", "code"]
_Numbers = Literal["integer", "count", "number", "factor", "swept", "seconds", "clock", "bytes", "percent"]
_Ratios = Literal["ratio", "quotient", "heat"]
ColumnKind: TypeAlias = _Words | _Numbers | _Ratios
_Output = TypeVar("_Output")
_VERDICT_STYLES: Mapping[str, Style] = {
    **{"faster": "faster", "better": "faster", "lower": "faster", "met": "", "not met": "strong"},
    **{"slower": "slower", "worse": "slower", "higher": "slower", "baseline": "baseline"},
}
#: Signs of verdicts, for readers who cannot see colours.
SIGNS: Mapping[str, str] = {"faster": "▼", "slower": "▲", "inconclusive": "?"}


def style_of(verdict: str | None) -> Style:
    """The style of a verdict; `better` and `lower` are shown as faster, `worse` and `higher` as slower."""
    return _VERDICT_STYLES.get(verdict or "", "inconclusive")


def ratio_text(measured: Ratio | None, digits: int = 3) -> str:
    """A ratio: `0.912`; small ones with two significant figures: `0.0021`."""
    if measured is None:
        return ""
    value = measured.median
    if measured.is_difference:
        return f"{value:+.3g}"
    return f"{value:.2g}" if 0.0 < abs(value) < 0.1 else f"{value:.{digits}f}"


def interval_text(measured: Ratio | None) -> str:
    """The confidence interval of a ratio: `0.905–0.921`; empty without one."""
    if measured is None or measured.low is None or measured.high is None:
        return ""
    if measured.is_difference:
        return f"{measured.low:+.3g} to {measured.high:+.3g}"
    digits = 3 if measured.low >= 0.1 else 4
    return f"{measured.low:.{digits}f}–{measured.high:.{digits}f}"


def quotient_text(measured: Ratio | float) -> str:
    """A ratio with two decimals: `0.97`; small ones with one significant figure: `0.0002`."""
    value = measured.median if isinstance(measured, Ratio) else measured
    return f"{value:.2f}" if abs(value) >= 0.095 or value == 0 else f"{value:.1g}"


def _count_text(value: float) -> str:
    """Large values with all digits, others with three significant figures."""
    return f"{value:.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.3g}"


_TEXTS: Mapping[ColumnKind, Callable[[Any], str]] = {
    "integer": lambda value: f"{value:d}" if isinstance(value, int) else f"{value:.0f}",
    "count": _count_text,
    "number": number_text,
    "factor": "{:.3f}".format,
    "swept": "{:g}".format,
    "seconds": seconds_text,
    "clock": clock_text,
    "bytes": bytes_text,
    "percent": percent_text,
    "ratio": lambda value: f"{ratio_text(value)} {interval_text(value)}".rstrip(),
    "quotient": quotient_text,
    "heat": lambda value: ratio_text(value, 2),
}


@dataclass(frozen=True)
class TableCell:
    """A value that stands out, with a short note. `floor`: the noise floor drawn behind a ratio."""

    value: Value
    style: Style = ""
    note: str = ""
    floor: float | None = None
    best: bool = False

    def signed_text(self, column: Column) -> str:
        """The value as text, with the sign of its verdict in columns of words and in heat maps."""
        if self.style == "excluded" and self.value is None:
            return "×"
        text = column.text(self)
        signed = self.style in SIGNS and column.kind in ("text", "heat")
        return f"{SIGNS[self.style]} {text}".rstrip() if signed else text


Values: TypeAlias = tuple[Value | TableCell, ...]
#: The value of a column for an object: a function, or a path of attributes and keys such as `run.round`.
Getter: TypeAlias = str | Callable[[Any], Value | TableCell]


def value_of(item: Any, getter: Getter) -> Any:
    """What a getter gives for an object; None for a path that reaches None."""
    if callable(getter):
        return getter(item)
    for name in getter.split("."):
        if item is None:
            return None
        item = item.get(name) if isinstance(item, Mapping) else getattr(item, name)
    return item


@dataclass(frozen=True)
class From:
    """In `Annotated`: where a field of an output comes from, instead of the attribute of its name.

    A path may contain {}, which stands for the name.
    """

    getter: Getter


@cache
def getters(kind: Any) -> dict[str, Getter]:
    """Where the fields of an output type come from."""
    hints, getters = get_type_hints(kind, include_extras=True), dict[str, Getter]()
    for each in fields(kind):
        rules = getattr(hints[each.name], "__metadata__", ())
        getter = next((rule.getter for rule in rules if isinstance(rule, From)), each.name)
        getters[each.name] = getter.format(each.name) if isinstance(getter, str) else getter
    return getters


def output_of(kind: type[_Output], item: Any) -> _Output:
    """An output of this type with the values of an item; an empty text is None where that is allowed."""
    # For mypy a type is not hashable, and so not an argument of what is cached.
    key: Any = kind
    values = {name: value_of(item, getter) for name, getter in getters(key).items()}
    empty = {name: None for name in _optional(key) if values[name] == ""}
    return kind(**values | empty)


@cache
def _optional(kind: Any) -> frozenset[str]:
    """The fields that may be None."""
    return frozenset(name for name, hint in get_type_hints(kind).items() if NoneType in get_args(hint))


@dataclass(frozen=True)
class Column:
    """A column: `name` in CSV files; `title` and `unit` as its head, `above` over neighbours with the same.

    `merged`: a value that equals the one above it is not repeated. `optional`: a terminal omits it where
    there is no room. `wrap`: long text. `get` gives its values in `Table.of`; by default its name.
    """

    name: str
    title: str = ""
    kind: ColumnKind = "text"
    unit: str = ""
    above: str = ""
    merged: bool = False
    optional: bool = False
    wrap: bool = False
    get: Getter = ""

    @property
    def head(self) -> str:
        """The column head without its unit."""
        return self.title or self.name.replace("_", " ")

    @property
    def right(self) -> bool:
        """Whether its values are right-aligned."""
        return self.kind not in ("text", "code", "ratio")

    def text(self, value: Value | TableCell) -> str:
        """A value of this column as text, without the sign of a verdict; empty for None."""
        value = value.value if isinstance(value, TableCell) else value
        if value is None:
            return "–" if self.kind == "heat" else ""
        if isinstance(value, str) or (isinstance(value, float) and not math.isfinite(value)):
            return str(value)
        return _TEXTS.get(self.kind, str)(value)


def cell(value: Value | TableCell) -> TableCell:
    """Any value as a Cell."""
    return value if isinstance(value, TableCell) else TableCell(value)


@dataclass(frozen=True)
class Table:
    """Rows of values under columns. `chart`: HTML draws its column of ratios as bars with intervals."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Values, ...]
    chart: bool = False

    @classmethod
    def of(cls, title: str, columns: Iterable[Column], items: Iterable[Any], *, chart: bool = False) -> Table:
        """A row for each item, with the value that each column's `get` gives for it."""
        columns = tuple(columns)
        rows = (tuple(value_of(item, column.get or column.name) for column in columns) for item in items)
        return cls(title, columns, tuple(rows), chart)

    @classmethod
    def of_outputs(cls, kind: Any, outputs: Iterable[Any]) -> Table:
        """A table for programs of outputs of a type; of a mapping, each of its names has a column."""
        outputs, columns = tuple(outputs), list[Column]()
        for name in getters(kind):
            is_mapping = get_origin(get_type_hints(kind)[name]) is Mapping
            inner = dict.fromkeys(key for each in outputs if is_mapping for key in getattr(each, name))
            columns += [Column(key, get=f"{name}.{key}") for key in inner] if is_mapping else [Column(name)]
        return cls.of("", columns, outputs)

    def section(self, title: str, text: str = "", **further: Any) -> Iterator[Section]:
        """A section of the table and its explanation, none without rows; `further` are fields of Section."""
        if self.rows:
            yield Section(title, (self, *([Text(text, style="dim")] if text else [])), **further)

    def records(self) -> Iterator[dict[str, Value]]:
        """The rows as objects by column name."""
        for row in self.rows:
            yield {column.name: cell(value).value for column, value in zip(self.columns, row, strict=True)}

    def repeats_above(self, row: int, place: int) -> bool:
        """Whether a cell repeats the one above it, in all merged columns up to it."""
        if row == 0 or not self.columns[place].merged:
            return False
        upto = [at for at in range(place + 1) if self.columns[at].merged]
        return all(self.rows[row][at] == self.rows[row - 1][at] for at in upto)

    def shown_rows(self) -> Iterator[list[tuple[Column, TableCell]]]:
        """The rows as cells with their columns; those that repeat the cell above are empty."""
        for number, row in enumerate(self.rows):
            yield [
                (column, TableCell("") if self.repeats_above(number, place) else cell(row[place]))
                for place, column in enumerate(self.columns)
            ]

    @property
    def wrapped(self) -> Table:
        """The table with all columns of text wrapped."""
        columns = (replace(each, wrap=True) if each.kind == "text" else each for each in self.columns)
        return replace(self, columns=tuple(columns))

    @property
    def is_single(self) -> bool:
        """Whether it has one row, which is shown as a line."""
        return len(self.rows) == 1 and all(column.kind != "heat" for column in self.columns)

    @property
    def as_text(self) -> str:
        """A table of one row in a line: `time: 1.00 s; verdict: baseline`; empty values are omitted."""
        (row,) = self.shown_rows()
        texts = []
        for column, shown in row:
            text = ": ".join(filter(None, (shown.signed_text(column), shown.note)))
            texts += [f"{f'{column.above} {column.head}'.strip()}: {text}"] if text else []
        return "; ".join(texts)

    @property
    def heads(self) -> list[tuple[str, int]]:
        """The upper heads, text and number of columns; neighbours with the same text share one."""
        heads: list[tuple[str, int]] = []
        for column in self.columns:
            if heads and column.above and heads[-1][0] == column.above:
                heads[-1] = (column.above, heads[-1][1] + 1)
            else:
                heads.append((column.above, 1))
        return heads


@dataclass(frozen=True)
class Text:
    """A paragraph. `lead` precedes it in bold."""

    text: str
    lead: str = ""
    style: Literal["", "dim", "note", "code"] = ""


@dataclass(frozen=True)
class Facts:
    """Names and values."""

    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Line:
    """A curve: points whose x are sorted numbers or words; `policy` sets the colour, `pattern` the dashes."""

    label: str
    policy: str
    pattern: tuple[str, str, str]
    points: tuple[tuple[float | str, float], ...]


@dataclass(frozen=True)
class Figure:
    """Curves in one panel per compiler; `name` is that of their file.

    `marks` are vertical lines with labels, such as cache sizes.
    """

    name: str
    title: str
    caption: str
    panels: tuple[tuple[str, tuple[Line, ...]], ...]
    x: str
    y: str
    in_bytes: bool = False
    marks: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Section:
    """Blocks under a heading. `only`: shown in `files` (Markdown, HTML), or only in the `page` (HTML).

    `folded`: closed at first.
    """

    title: str
    blocks: tuple[Block, ...]
    anchor: str = ""
    only: Literal["", "files", "page"] = ""
    folded: bool = False


@dataclass(frozen=True)
class Recommendation:
    """An answer of the first screen: what to change, how sure that is, what it costs, how it is applied.

    `apply` are commands, each with what it is for. `in_headline`: the headline contains `text`.
    """

    question: str
    text: str
    sure: str = ""
    cost: str = ""
    apply: tuple[tuple[str, str], ...] = ()
    in_headline: bool = False


Block: TypeAlias = Text | Facts | Table | Figure | Section
_Block = TypeVar("_Block", Table, Figure)


@dataclass(frozen=True)
class Report:
    """A report: its result in a sentence, recommendations, facts and notes, then its sections.

    `condition` is what the headline holds for. `brief` are the blocks that a terminal shows instead of the
    sections; empty for all. `reading`: template `reading-*`, the explanation; `method`: its sentence.
    `tables` are the CSV files by name; `texts` further files, kept where they exist; `data` is the JSON
    object; `analysis` is that of the file for `results query`. `faulty`: wrong results, or a crash.
    """

    title: str
    headline: str
    sections: tuple[Section, ...]
    facts: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    reading: str = ""
    tables: Mapping[str, Table] = field(default_factory=dict)
    data: object = None
    faulty: bool = False
    method: str = ""
    condition: str = ""
    recommendations: tuple[Recommendation, ...] = ()
    brief: tuple[Block, ...] = ()
    analysis: Mapping[str, object] | None = None
    texts: Mapping[str, str] = field(default_factory=dict)


def blocks_of(kind: type[_Block], blocks: Iterable[Block]) -> Iterator[_Block]:
    """All blocks of a kind in these blocks and in their sections."""
    for block in blocks:
        if isinstance(block, kind):
            yield block
        elif isinstance(block, Section):
            yield from blocks_of(kind, block.blocks)
