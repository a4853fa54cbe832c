"""Metrics and checks: what a program's own output tells, by patterns and commands of the user."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pagewise.core.errors import SelectionError

_METRIC = re.compile(r"^\s*(?P<label>[^=\[\]]+?)\s*(?:\[(?P<about>[^\]]*)\])?\s*=(?P<pattern>.+)$", re.DOTALL)
_TIMES = ("s", "ms", "us", "µs", "ns", "min", "h", "sec", "seconds")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eEdD][-+]?\d+)?")
_SECONDS_TO_CHECK = 60


@dataclass(frozen=True)
class Pattern:
    """A metric of the program's output: the first group of the last match is its value."""

    field: str
    label: str
    unit: str
    better: str
    pattern: re.Pattern[str]

    def value(self, text: str) -> float | None:
        """The value in this output, None where there is none."""
        found = None
        for found in self.pattern.finditer(text):  # noqa: B007 the last one counts
            pass
        if found is None:
            return None
        number = _NUMBER.search(found[1] if found[1] is not None else "")
        return None if number is None else float(number[0].lower().replace("d", "e"))

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return {
            "field": self.field,
            "label": self.label,
            "unit": self.unit,
            "better": self.better,
            "pattern": self.pattern.pattern,
        }


@dataclass(frozen=True)
class Check:
    """What tells that an output is right: a pattern that must be there or not, a command that ends well."""

    text: str
    pattern: re.Pattern[str] | None
    wanted: bool = True

    def fault(self, output: str, folder: Path, environment: Mapping[str, str]) -> str | None:
        """What is wrong with a run's output, None when it is right. The command has it on standard input."""
        if self.pattern is not None:
            found = self.pattern.search(output) is not None
            if found == self.wanted:
                return None
            return f"its output {'has' if found else 'lacks'} '{self.pattern.pattern}'"
        try:
            done = subprocess.run(
                ["/bin/sh", "-c", self.text],
                input=output,
                env=dict(environment),
                cwd=folder,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_SECONDS_TO_CHECK,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"the check '{self.text}' did not end within {_SECONDS_TO_CHECK} s"
        if done.returncode == 0:
            return None
        said = (done.stdout + done.stderr).strip().splitlines()
        return f"the check '{self.text}' ended with {done.returncode}" + (f": {said[-1]}" if said else "")


def parse_metric(text: str) -> Pattern:
    r"""Reads `rate[GB/s, higher]=Triad:\s+(\S+)`. Raises SelectionError.

    Without a word for it, less is better for times and more for all else.
    """
    found = _METRIC.match(text)
    if found is None:
        raise SelectionError(
            f"{text!r} is no metric",
            where="--metric",
            remedy="write 'name[unit, higher]=pattern with a (group)', as 'rate[GB/s]=Triad: +([0-9.]+)'",
        )
    about = [word.strip() for word in (found["about"] or "").split(",") if word.strip()]
    directions = [word for word in about if word in ("higher", "lower")]
    units = [word for word in about if word not in ("higher", "lower")]
    if len(directions) > 1 or len(units) > 1:
        raise SelectionError(
            f"{found['about']!r} is no unit and direction", where="--metric", remedy="write [GB/s, higher]"
        )
    unit = units[0] if units else "1"
    better = directions[0] if directions else "lower" if unit in _TIMES else "higher"
    return metric(found["label"], unit, better, found["pattern"], "--metric")


def metric(label: str, unit: str, better: str, pattern: str, where: str) -> Pattern:
    """A metric from its parts. Raises SelectionError for a pattern that has no group."""
    compiled = _compiled(pattern.strip(), where)
    if compiled.groups < 1:
        raise SelectionError(
            f"the pattern {pattern.strip()!r} has no group",
            where=where,
            remedy="put the number in (brackets)",
        )
    field = re.sub(r"\W+", "_", label.lower(), flags=re.ASCII).strip("_")
    if not re.match(r"[a-z]", field):
        field = f"m_{field}"
    return Pattern(field, label, unit, better, compiled)


def parse_check(text: str) -> Check:
    """Reads a check: a pattern, `! pattern` that must not be there, `| command`. Raises SelectionError."""
    stripped = text.strip()
    if stripped.startswith("|"):
        return Check(stripped[1:].strip(), None)
    if stripped.startswith("!"):
        return Check(text, _compiled(stripped[1:].strip(), "--check"), wanted=False)
    return Check(text, _compiled(text, "--check"))


def distinct(patterns: Sequence[Pattern]) -> list[Pattern]:
    """The patterns, when no two are of one name. Raises SelectionError."""
    fields = [one.field for one in patterns]
    twice = next((field for field in fields if fields.count(field) > 1), None)
    if twice is not None:
        raise SelectionError(
            f"two metrics are called {twice}", where="--metric", remedy="give one of them another name"
        )
    return list(patterns)


def _compiled(pattern: str, where: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern, re.MULTILINE)
    except re.error as fault:
        raise SelectionError(
            f"{pattern!r} is no pattern: {fault}",
            where=where,
            remedy="write a regular expression of Python; put a backslash before ( ) [ ] . * + ? as such",
        ) from fault
