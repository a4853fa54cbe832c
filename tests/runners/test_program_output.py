"""Metrics and checks with the user's patterns and commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pagewise.core.errors import SelectionError
from pagewise.workloads.program.output import distinct, parse_check, parse_metric


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        (r"rate=Triad: +(\S+)", ("rate", "1", "higher")),
        (r"rate[GB/s]=Triad: +(\S+)", ("rate", "GB/s", "higher")),
        (r"Solve time [s] = time (\S+)", ("solve_time", "s", "lower")),
        (r"Solve time [ms, higher]=t (\S+)", ("solve_time", "ms", "higher")),
        (r"errors[lower]=e (\d+)", ("errors", "1", "lower")),
        (r"2nd = x=(\d+)", ("m_2nd", "1", "higher")),
    ],
)
def test_metrics_are_parsed(text: str, parsed: tuple[str, str, str]):
    metric = parse_metric(text)
    assert (metric.field, metric.unit, metric.better) == parsed


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Triad: 12.5 GB/s", 12.5),
        ("Triad: 1\nTriad: 2.5e3", 2500.0),
        ("Triad: 1.25D+02", 125.0),
        ("Triad: -3", -3.0),
        ("Triad: 12,", 12.0),
        ("Triad: none", None),
        ("nothing", None),
    ],
)
def test_the_last_match_is_the_value(text: str, value: float | None):
    assert parse_metric(r"rate=^Triad: +(\S+)").value(text) == value


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("rate", "'rate'"),
        ("=x(1)", "'=x(1)'"),
        ("rate=Triad", "'Triad'"),
        ("rate=(", "'('"),
        ("rate[GB/s, MB/s]=(1)", "'GB/s, MB/s'"),
    ],
)
def test_invalid_metrics_are_refused(text: str, named: str):
    with pytest.raises(SelectionError) as refused:
        parse_metric(text)
    assert refused.value.where == "--metric" and named in refused.value.what and refused.value.remedy


def test_two_metrics_with_the_same_name_are_refused():
    with pytest.raises(SelectionError, match="rate"):
        distinct([parse_metric("rate=(1)"), parse_metric("Rate=(2)")])


@pytest.mark.parametrize(
    ("check", "output", "named"),
    [
        ("PASS", "it did PASS", None),
        ("^PASS$", "first\nPASS\nlast", None),
        ("PASS", "it did not", "'PASS'"),
        ("! FAIL", "fine", None),
        ("! FAIL", "1 FAILed", "'FAIL'"),
        ("| grep -q PASS", "PASS", None),
        ("| grep -q PASS", "no", "1"),
        ("| echo why >&2; exit 4", "", "4 why"),
        ("| test -f here", "", None),
        ("| kill -9 $$", "", "-9"),
    ],
)
def test_checks(tmp_path: Path, check: str, output: str, named: str | None):
    (tmp_path / "here").write_text("")
    reported = parse_check(check).fault(output, tmp_path, {"PATH": "/usr/bin:/bin"})
    assert (reported is None) == (named is None)
    if named is not None:
        said = reported.replace(f"'{check.partition('| ')[2]}'", "")
        assert set(named.split()) <= set(re.split(r"[\s:]+", said))


def test_an_invalid_pattern_is_refused():
    with pytest.raises(SelectionError) as refused:
        parse_check("(")
    assert refused.value.where == "--check"
