"""Metrics and checks of a program's output, by patterns and commands of the user."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated

from pagewise.core.benchmark import Metric
from pagewise.core.errors import SelectionError
from pagewise.core.fields import Better, SomeText
from pagewise.core.formula import Formula
from pagewise.core.manifest_parts import Range
from pagewise.core.signals import limit_time
from pagewise.core.structure import to_data
from pagewise.session.processes import Shell

_METRIC = re.compile(r"^\s*(?P<label>[^=\[\]]+?)\s*(?:\[(?P<about>[^\]]*)\])?\s*=(?P<pattern>.+)$", re.DOTALL)
_DIRECTIONS: Mapping[str, Better] = {"higher": "higher", "lower": "lower"}
_TIMES = ("s", "ms", "us", "µs", "ns", "min", "h", "sec", "seconds")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eEdD][-+]?\d+)?", re.ASCII)
# Larger values, and smaller ones other than 0, are not measurements; their ratios are not numbers.
_LARGEST = 1e100
_SHOWN = 40
_SECONDS_TO_CHECK = 60
#: The limit for a pattern of the user in the output of a run.
SECONDS_TO_MATCH = 10


@dataclass(frozen=True)
class CodeMetric:
    """What an output reports."""

    label: SomeText
    unit: SomeText
    better: Better
    pattern: Annotated[SomeText, "the group of the last match is the value"]
    optional: Annotated[bool, "some runs, such as those of one process, have no such value"] = False
    value: Annotated[SomeText, "formula over the named groups that gives the value instead"] | None = None
    target: Annotated[Range, "of the ratio to the metric in `relative_to`"] | None = None


@dataclass(frozen=True)
class Pattern:
    """A metric of the program's output: the first group of the last match is its value.

    optional: a right output may have none. formula: over the named groups, gives the value instead.
    """

    metric: Metric
    pattern: re.Pattern[str]
    optional: bool = False
    formula: Formula | None = None

    def value(self, text: str, has_comma: Callable[[], bool] = lambda: False) -> float | None:
        """The value in this output, None if it has none.

        has_comma: whether the program may write a decimal comma; asked only about a text with a comma. Raises
        ValueError with the text that is not a number.
        """
        last = deque(self.pattern.finditer(text), maxlen=1)
        if not last:
            return None
        if self.formula is None:
            return _number(last[0][1], has_comma)
        numbers = {name: _number(captured, has_comma) for name, captured in last[0].groupdict().items()}
        return self.formula.value({name: number for name, number in numbers.items() if number is not None})

    def to_dict(self) -> dict[str, object]:
        """The metric and where its value comes from, for the manifest."""
        formula = {} if self.formula is None else {"value": self.formula.text}
        return {**to_data(self.metric), "pattern": self.pattern.pattern, **formula}


def _number(captured: str | None, has_comma: Callable[[], bool]) -> float | None:
    """The number of a group, None if it is empty. Raises ValueError with the text that is not a number."""
    captured = (captured or "").strip()
    number = captured.replace(",", ".") if "," in captured and has_comma() else captured
    if not number:
        return None
    value = float(number.lower().replace("d", "e")) if _NUMBER.fullmatch(number) else math.inf
    if value and not 1 / _LARGEST <= abs(value) <= _LARGEST:
        raise ValueError(ascii(captured[:_SHOWN]))
    return value


@dataclass(frozen=True)
class OutputCheck:
    """A check of an output: a pattern that must match or must not, or a command that must exit with 0."""

    text: str
    pattern: re.Pattern[str] | None
    must_match: bool = True

    def fault(self, output: str, shell: Shell) -> str | None:
        """What is wrong with a run's output, None if it is right. A command reads it on standard input."""
        if self.pattern is not None:
            try:
                with limit_time(SECONDS_TO_MATCH):
                    matches = self.pattern.search(output) is not None
            except TimeoutError:
                return f"matching '{self.pattern.pattern}' did not end within {SECONDS_TO_MATCH} s"
            if matches == self.must_match:
                return None
            return f"its output {'matches' if matches else 'does not match'} '{self.pattern.pattern}'"
        code, reported = shell.run_alone(self.text, _SECONDS_TO_CHECK, output)
        if code is None:
            return f"the check '{self.text}' did not end within {_SECONDS_TO_CHECK} s"
        last = reported.strip().splitlines()[-1:]
        return None if code == 0 else ": ".join([f"the check '{self.text}' ended with {code}", *last])


def parse_metric(text: str) -> Pattern:
    r"""Reads `rate[GB/s, higher]=Triad:\s+(\S+)`. Raises SelectionError.

    By default, lower is better for times and higher for everything else.
    """
    parts = _METRIC.match(text)
    if parts is None:
        raise SelectionError(
            f"{text!r} is not a metric",
            where="--metric",
            remedy="write 'name[unit, higher]=pattern with a (group)', as 'rate[GB/s]=Triad: +([0-9.]+)'",
        )
    about = [word.strip() for word in (parts["about"] or "").split(",") if word.strip()]
    directions: list[Better] = [_DIRECTIONS[word] for word in about if word in _DIRECTIONS]
    units = [word for word in about if word not in _DIRECTIONS]
    if len(directions) > 1 or len(units) > 1:
        raise SelectionError(
            f"{parts['about']!r} is not a unit and a direction",
            where="--metric",
            remedy="write [GB/s, higher]",
        )
    unit = units[0] if units else "1"
    usual: Better = "lower" if unit in _TIMES else "higher"
    row = CodeMetric(parts["label"], unit, directions[0] if directions else usual, parts["pattern"])
    return pattern_of(row, "--metric")


def pattern_of(row: CodeMetric, where: str) -> Pattern:
    """A metric for outputs. Raises SelectionError for a pattern without a group, and a wrong formula."""
    compiled = _compile(row.pattern.strip(), where)
    if compiled.groups < 1:
        raise SelectionError(
            f"the pattern {row.pattern.strip()!r} has no group",
            where=where,
            remedy="put the number in (brackets)",
        )
    field = re.sub(r"\W+", "_", row.label.lower(), flags=re.ASCII).strip("_")
    field = field if re.match(r"[a-z]", field) else f"m_{field}"
    try:
        formula = None if row.value is None else Formula.of(row.value)
        if formula is not None and not set(formula.names) <= set(compiled.groupindex):
            raise ValueError(f"{row.value!r} has names that are not groups of the pattern")
    except ValueError as fault:
        raise SelectionError(
            str(fault), where=where, remedy="calculate with the names of the pattern's groups, (?P<name>...)"
        ) from fault
    return Pattern(Metric(field, row.label, row.unit, row.better), compiled, row.optional, formula)


def parse_check(text: str) -> OutputCheck:
    """Reads a check: a pattern, `! pattern` that must not match, `| command`. Raises SelectionError."""
    stripped = text.strip()
    if stripped.startswith("|"):
        return OutputCheck(stripped[1:].strip(), None)
    if stripped.startswith("!"):
        return OutputCheck(text, _compile(stripped[1:].strip(), "--check"), must_match=False)
    return OutputCheck(text, _compile(text, "--check"))


def distinct(patterns: Iterable[Pattern]) -> tuple[Pattern, ...]:
    """The patterns, if no two have one name. Raises SelectionError."""
    by_field: dict[str, Pattern] = {}
    for pattern in patterns:
        name = pattern.metric.field
        if name in by_field:
            raise SelectionError(
                f"two metrics are called {name}", where="--metric", remedy="rename one of them"
            )
        by_field[name] = pattern
    return tuple(by_field.values())


def _compile(pattern: str, where: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern, re.MULTILINE)
    except re.error as fault:
        raise SelectionError(
            f"{pattern!r} is not a pattern: {fault}",
            where=where,
            remedy="write a regular expression of Python, with a backslash before a literal ( ) [ ] . * + ?",
        ) from fault
