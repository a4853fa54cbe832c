"""Values of publications (`published_values/*.yaml`), shown beside those of kernels that repeat a test."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pagewise.analysis.counter_runs import TIME, rates
from pagewise.core.errors import FormatError, SelectionError
from pagewise.core.reading import parse_yaml, read_file
from pagewise.core.schemas import faults
from pagewise.core.structure import structured
from pagewise.core.suggestions import choose_of
from pagewise.stack.events import EventFile

_FOLDER = Path(__file__).parent / "published_values"
_KINDS = ("counts", "values")


@dataclass(frozen=True)
class Column:
    """The values of one test by quantity: of a compiler and page policy, or a ratio of two."""

    who: str
    policy: str
    values: Mapping[str, float]


@dataclass(frozen=True)
class Row:
    """A row of a publication's table: its words for a quantity of the event file, or of every run."""

    title: str
    quantity: str


@dataclass(frozen=True)
class Shown:
    """A table or figure of a publication.

    form: with over without huge pages (`pages`), compiler over compiler, or values with both ratios.
    """

    name: str
    caption: str
    form: Literal["pages", "compilers", "values"]
    tests: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Layout:
    """The tables and figures of a publication, and its words for compilers and page policies.

    simulated: the simulator's counts by events of other names.
    """

    name: str
    compilers: Mapping[str, str]
    policies: Mapping[str, str]
    simulated: Mapping[str, str]
    tables: tuple[Shown, ...]
    figures: tuple[Shown, ...]

    @property
    def base_compiler(self) -> str:
        """Our name of the compiler with which others are compared."""
        return next(iter(self.compilers))


@dataclass(frozen=True)
class Published:
    """A publication: `events` is the name of the event file whose names it uses.

    has_counts: it has raw counts, so that they can stand beside those of any result of counting.
    """

    title: str
    source: str
    events: str
    frequency: float
    tests: Mapping[str, Sequence[Column]]
    has_counts: bool
    layout: Layout

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: object) -> Published:
        """Checks and reads a file's content. Raises FormatError that lists every fault."""
        all_faults = faults("published", data) or list(_inner_faults(data))
        if all_faults:
            raise FormatError(
                "this file does not follow pagewise.published/1:\n    " + "\n    ".join(all_faults),
                where=where,
                remedy="correct these parts; docs/how-to/counters.md describes such a file",
            )
        tests = {
            test["title"]: [
                Column(
                    column["compiler"],
                    column["hugepages"],
                    {name: float(row[i]) for _, name, row in _rows(test) if row[i] is not None},
                )
                for i, column in enumerate(data["columns"])
            ]
            for test in data["tests"]
        }
        has_counts = any("counts" in test for test in data["tests"])
        layout = structured(Layout, data["layout"])
        facts = (data["title"], data["source"], data["events"], data["frequency_hz"])
        return cls(*facts, tests, has_counts, layout)

    def columns(self, test: str | None, file: EventFile) -> list[Column]:
        """Values and the rates derived from them, with time by cycles; none for a test that is not in it."""
        columns = []
        for column in self.tests.get(test or "", ()):
            values = dict(column.values)
            if TIME not in values and file.cycles in values:
                values[TIME] = values[file.cycles] / self.frequency
            counts = {name: n for name, n in values.items() if name in file.events}
            columns.append(replace(column, values={**rates(file, counts, values.get(TIME)), **values}))
        return columns

    def by_pages(self, test: str | None, file: EventFile) -> list[Column]:
        """With : without huge pages by compiler, as in table 1 of the PEARC'23 paper."""
        return over_base(self.columns(test, file))

    def by_compiler(self, test: str | None, file: EventFile) -> list[Column]:
        """Each compiler : the first by policy, as in table 2 of the PEARC'23 paper."""
        return over_first(self.columns(test, file))


def read_published() -> list[Published]:
    """All publications that come with this package. Raises FormatError."""
    return [Published.from_dict(parse_yaml(read_file(file)), file) for file in sorted(_FOLDER.glob("*.yaml"))]


def check_test(test: str) -> None:
    """Raises SelectionError for a test that no publication has."""
    known = {name for publication in read_published() for name in publication.tests}
    if test not in known:
        raise SelectionError(
            f"no publication has a test {test!r}", where="--test", remedy=choose_of(test, sorted(known))
        )


def events_of(tests: Collection[str | None], files: Mapping[str, EventFile]) -> Mapping[str, Any] | None:
    """The event file whose names the publications of one of the tests use, if it is among the files."""
    for publication in read_published():
        if publication.tests.keys() & tests and publication.events in files:
            return files[publication.events].data
    return None


def over_base(columns: Sequence[Column], bases: Collection[str] = ("none",)) -> list[Column]:
    """The ratios of each column to that of the same compiler under a policy without huge pages."""
    return [
        Column(column.who, column.policy, _quotients(column, base))
        for column in columns
        for base in columns
        if column.policy not in bases and base.policy in bases and column.who == base.who
    ]


def over_first(columns: Sequence[Column]) -> list[Column]:
    """The ratios of each compiler's columns to those of the first compiler under the same policy."""
    return [
        Column(f"{column.who} : {base.who}", column.policy, _quotients(column, base))
        for column in columns
        for base in columns
        if base.who == columns[0].who and column.who != base.who and column.policy == base.policy
    ]


def _quotients(column: Column, base: Column) -> dict[str, float]:
    return {name: n / base.values[name] for name, n in column.values.items() if base.values.get(name)}


def _rows(test: Mapping[str, Any]) -> Iterator[tuple[str, str, Sequence[Any]]]:
    """The rows of a test: kind, quantity, and a value for each column."""
    return ((kind, name, row) for kind in _KINDS for name, row in test.get(kind, {}).items())


def _inner_faults(data: Mapping[str, Any]) -> Iterator[str]:
    """Faults that no schema finds: rows of another length than the columns, unknown tests."""
    known = [test["title"] for test in data["tests"]]
    for test in data["tests"]:
        for kind, name, row in _rows(test):
            if len(row) != len(data["columns"]):
                yield f"{test['title']}.{name}: {len(row)} {kind} for {len(data['columns'])} columns"
    for shown in (*data["layout"]["tables"], *data["layout"]["figures"]):
        for test in shown["tests"]:
            if test not in known:
                yield f"layout: {shown['name']}: {test} is not one of the tests"
