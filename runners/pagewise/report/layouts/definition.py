"""The definition of a layout: the tables and figures of a publication by axes, read from its file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from pagewise.analysis.curves import Curve
from pagewise.analysis.pivot import AXES, AxisValue, Fact
from pagewise.core.configuration import OF_RUNS
from pagewise.core.errors import FormatError, SelectionError
from pagewise.core.kernel import Kernel
from pagewise.core.reading import parse_yaml, read_file
from pagewise.core.schemas import faults
from pagewise.core.structure import structured
from pagewise.core.suggestions import choose_of

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Axis:
    """An axis as rows or columns. words: the publication's words for values, in its order."""

    axis: str
    title: str = ""
    words: Mapping[str, str] = field(default_factory=dict)

    @property
    def head(self) -> str:
        """Its title, or its name."""
        return self.title or self.axis

    def text(self, value: AxisValue) -> str:
        """A value in the publication's words."""
        return self.words.get(str(value), str(value)) or "default"

    def place(self, value: AxisValue) -> tuple[int, AxisValue]:
        """Where a value stands: by the publication, then numbers by size, and names as they were measured."""
        known = list(self.words)
        return known.index(str(value)) if str(value) in known else len(known), value if _counts(value) else 0


@dataclass(frozen=True)
class Shown:
    """A quantity of a table. scale: to the publication's unit."""

    quantity: str
    title: str = ""
    unit: str = ""
    scale: float = 1.0


@dataclass(frozen=True)
class Limit:
    """The smallest and the largest value of an axis that a table shows."""

    min: int | None = None
    max: int | None = None

    def holds(self, value: AxisValue) -> bool:
        """Whether a value lies within."""
        number = int(value)
        return (self.min is None or number >= self.min) and (self.max is None or number <= self.max)


@dataclass(frozen=True)
class OwnTable:
    """A publication's own table: the first column names the rows."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Tabled:
    """A table: see core/schema/axes-1.json. sweep: a glob of the names of curves whose points it shows."""

    name: str
    caption: str
    programs: tuple[str, ...]
    rows: tuple[Axis, ...]
    values: tuple[Shown, ...]
    columns: Axis | None = None
    where: Mapping[str, Limit] = field(default_factory=dict)
    follows: tuple[str, ...] = ()
    relative: Literal["row", "part", "efficiency"] | None = None
    benefit: bool = False
    figure: bool = False
    published: OwnTable | None = None
    sweep: str = ""

    def has(self, fact: Fact) -> bool:
        """Whether a fact belongs to the table."""
        if not fnmatchcase(str(fact.axes["sweep"]), self.sweep):
            return False
        return names(self.programs, fact.kernel) and all(
            limit.holds(fact.axes[axis]) for axis, limit in self.where.items()
        )

    @property
    def compared(self) -> Axis | None:
        """The axis whose values `relative` compares."""
        return self.rows[0] if self.relative == "efficiency" else self.columns

    @property
    def dividing(self) -> list[str]:
        """The axes by which it is divided into parts."""
        used = {axis.axis for axis in (*self.rows, *([self.columns] if self.columns else ()))}
        return [axis for axis in AXES if axis not in used and axis not in self.follows]


@dataclass(frozen=True)
class CurveFigure:
    """Curves over the working set.

    limits: the kernels whose highest bandwidth in each level is a line; the figure is of one placement.
    compares: fields of configurations; the figure has all curves of a kernel, if they differ in one of these.
    """

    name: str
    caption: str
    programs: tuple[str, ...]
    limits: tuple[str, ...] = ()
    compares: tuple[str, ...] = ()

    def differ(self, curves: Iterable[Curve]) -> bool:
        """Whether curves differ in a field that the figure compares."""
        values = {tuple(getattr(curve.cell.measured, name) for name in self.compares) for curve in curves}
        return len(values) > 1


@dataclass(frozen=True)
class TableLayout:
    """A publication's tables and figures of comparisons."""

    name: str
    title: str
    source: str
    tables: tuple[Tabled, ...]
    curves: tuple[CurveFigure, ...] = ()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: object) -> TableLayout:
        """Checks and reads a file's content. Raises FormatError that lists every fault."""
        all_faults = faults("axes", data) or list(_inner_faults(data))
        if all_faults:
            raise FormatError(
                "this file does not follow pagewise.axes/1:\n    " + "\n    ".join(all_faults),
                where=where,
                remedy="correct these parts; docs/reference/layouts.md describes such a file",
            )
        return structured(cls, {name: value for name, value in data.items() if name != "schema"})


def names(patterns: tuple[str, ...], kernel: Kernel) -> bool:
    """Whether one of the globs matches the kernel's name."""
    return any(fnmatchcase(kernel.name, pattern) for pattern in patterns)


def read_layouts() -> dict[str, TableLayout]:
    """All layouts by name. Raises FormatError."""
    files = sorted(_FOLDER.glob("*.yaml"))
    layouts = [TableLayout.from_dict(parse_yaml(read_file(file)), file) for file in files]
    return {layout.name: layout for layout in layouts}


def find_table_layout(name: str, others: tuple[str, ...]) -> TableLayout:
    """The layout of this name; `others` are known as well. Raises SelectionError."""
    known = read_layouts()
    if name not in known:
        raise SelectionError(
            f"there is no layout {name!r}",
            where="--layout",
            remedy=choose_of(name, sorted((*known, *others))),
        )
    return known[name]


def _counts(value: AxisValue) -> bool:
    return isinstance(value, int)


def _inner_faults(data: Mapping[str, Any]) -> Iterator[str]:
    """Faults that no schema finds: unknown axes, rows of another length than the columns."""
    for table in data["tables"]:
        axes = [axis["axis"] for axis in table["rows"]]
        axes += [table["columns"]["axis"]] if "columns" in table else []
        axes += [*table.get("where", ()), *table.get("follows", ())]
        for axis in axes:
            if axis not in AXES:
                yield f"{table['name']}: {axis} is not one of the axes: {', '.join(AXES)}"
        if "columns" in table and len(table["values"]) > 1:
            yield f"{table['name']}: it has both columns and several values"
        if ("relative" in table or table.get("benefit")) and "columns" not in table:
            yield f"{table['name']}: relative and benefit compare columns, and it has none"
        if table.get("sweep") and not ("swept" in axes and {"relative", "benefit"}.isdisjoint(table)):
            yield f"{table['name']}: a sweep needs the axis swept, and has neither relative nor benefit"
        own = table.get("published")
        for row in own["rows"] if own else ():
            if len(row) != len(own["columns"]):
                yield f"{table['name']}: {len(row)} published values for {len(own['columns'])} columns"
    fields = set(OF_RUNS) | {"openmp"}
    for figure in data.get("curves", ()):
        for name in set(figure.get("compares", ())) - fields:
            yield f"{figure['name']}: {name} is not one of: {', '.join(sorted(fields))}"
