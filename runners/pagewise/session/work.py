"""Whether a program does the same work under each page policy, by its outputs and exit codes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pagewise.core.manifest import WorkDifference
from pagewise.core.plan import Cell, CellKey

#: How much of an output is compared.
MOST_LINES = 1000
# Fewer runs do not show what repeats.
_FEWEST_RUNS = 2
_MOST_SHOWN, _LONGEST_LINE = 5, 200
# What is measured differs between runs that do the same: times, rates.
_MEASURED = re.compile(r"\d+\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+", re.ASCII)


@dataclass(frozen=True)
class _Runs:
    """Runs of a configuration: the lines that all have, those that any has, and the exit codes."""

    number: int
    common: frozenset[str]
    any: frozenset[str]
    exit_codes: frozenset[int]

    def with_run(self, lines: frozenset[str], exit_code: int) -> _Runs:
        return _Runs(self.number + 1, self.common & lines, self.any | lines, self.exit_codes | {exit_code})


@dataclass
class Work:
    """What runs printed, by configuration."""

    runs: dict[CellKey, _Runs] = field(default_factory=dict)

    def note(self, key: CellKey, output: str, exit_code: int) -> None:
        """Notes a run that ended as expected."""
        lines = frozenset(_lines(output))
        known = self.runs.get(key, _Runs(0, lines, frozenset(), frozenset()))
        self.runs[key] = known.with_run(lines, exit_code)

    def differences(self, cells: Iterable[Cell], references: Mapping[str, str]) -> tuple[WorkDifference, ...]:
        """What differs from runs with the same placement and options of the module that `references` names.

        A line is missing if all runs of the baseline have it and no run of the configuration; it is added if
        all runs of the configuration have it and no run of the baseline.
        """
        differences = []
        for cell in cells:
            module = cell.measured.module
            reference = references.get(module, module)
            expected, runs = self.runs.get((reference, *cell.key[1:])), self.runs.get(cell.key)
            if module == reference or expected is None or runs is None:
                continue
            difference = WorkDifference(module, cell.placement, cell.options)
            repeats = expected.common == expected.any
            if expected.number >= _FEWEST_RUNS and (repeats or runs.number >= _FEWEST_RUNS):
                missing, added = expected.common - runs.any, runs.common - expected.any
                difference = replace(difference, missing=_log_lines(missing), added=_log_lines(added))
            if expected.exit_codes.isdisjoint(runs.exit_codes):
                codes = tuple(sorted(expected.exit_codes)), tuple(sorted(runs.exit_codes))
                difference = replace(difference, baseline_exit_codes=codes[0], exit_codes=codes[1])
            if difference.exit_codes or difference.missing or difference.added:
                differences.append(difference)
        return tuple(differences)


def _lines(output: str) -> Iterable[str]:
    """The first lines, without what is measured."""
    lines = (line.strip() for line in output.split("\n", MOST_LINES)[:MOST_LINES])
    return (_MEASURED.sub("~", line[:_LONGEST_LINE]) for line in lines if line)


def _log_lines(lines: frozenset[str]) -> tuple[str, ...]:
    return tuple(sorted(lines)[:_MOST_SHOWN])
