"""Counts of publications (`published_values/*.yaml`), shown beside those of kernels that do the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pagewise.analysis.counter_runs import TIME, rates
from pagewise.core.errors import FormatError
from pagewise.core.reading import parse_yaml, read_file
from pagewise.core.schemas import faults
from pagewise.stack.events import EventFile

_FOLDER = Path(__file__).parent / "published_values"


@dataclass(frozen=True)
class Column:
    """The published values of one test by quantity: of a compiler and page policy, or a ratio of two."""

    who: str
    policy: str
    values: Mapping[str, float]


@dataclass(frozen=True)
class Published:
    """A publication: `events` is the name of the event file whose names it uses."""

    title: str
    source: str
    events: str
    frequency: float
    tests: Mapping[str, Sequence[Column]]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: object) -> Published:
        """Checks and reads a file's content. Raises FormatError that lists every fault."""
        all_faults = faults("published", data) or [
            f"{test['title']}.{name}: {len(row)} counts for {len(data['columns'])} columns"
            for test in data["tests"]
            for name, row in test["counts"].items()
            if len(row) != len(data["columns"])
        ]
        if all_faults:
            raise FormatError(
                "this file does not follow pagewise.published/1:\n    " + "\n    ".join(all_faults),
                where=where,
                remedy="correct these parts; docs/counters.md describes such a file",
            )
        tests = {
            test["title"]: [
                Column(
                    column["compiler"],
                    column["hugepages"],
                    {name: float(row[i]) for name, row in test["counts"].items() if row[i] is not None},
                )
                for i, column in enumerate(data["columns"])
            ]
            for test in data["tests"]
        }
        return cls(data["title"], data["source"], data["events"], data["frequency_hz"], tests)

    def columns(self, test: str | None, file: EventFile) -> list[Column]:
        """Counts and the rates derived from them, with time by cycles; none for a test that is not in it."""
        columns = []
        for column in self.tests.get(test or "", ()):
            seconds = column.values[file.cycles] / self.frequency
            values = {TIME: seconds, **column.values, **rates(file, column.values, seconds)}
            columns.append(replace(column, values=values))
        return columns

    def by_pages(self, test: str | None, file: EventFile) -> list[Column]:
        """With : without huge pages by compiler, as in table 1 of the PEARC'23 paper."""
        columns = self.columns(test, file)
        return [
            Column(column.who, column.policy, _quotients(column, base))
            for column in columns
            for base in columns
            if column.policy != "none" and base.policy == "none" and column.who == base.who
        ]

    def by_compiler(self, test: str | None, file: EventFile) -> list[Column]:
        """Each compiler : the first by policy, as in table 2 of the PEARC'23 paper."""
        columns = self.columns(test, file)
        return [
            Column(f"{column.who} : {base.who}", column.policy, _quotients(column, base))
            for column in columns
            for base in columns
            if base.who == columns[0].who and column.who != base.who and column.policy == base.policy
        ]


def read_published() -> list[Published]:
    """All publications that come with this package. Raises FormatError."""
    return [Published.from_dict(parse_yaml(read_file(file)), file) for file in sorted(_FOLDER.glob("*.yaml"))]


def _quotients(column: Column, base: Column) -> dict[str, float]:
    return {name: n / base.values[name] for name, n in column.values.items() if base.values.get(name)}
