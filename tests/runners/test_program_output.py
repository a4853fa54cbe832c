"""Metrics and checks with the user's patterns and commands."""

from __future__ import annotations

import os
import re
import signal
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pagewise.core.errors import FormatError, SelectionError
from pagewise.session.processes import Shell
from pagewise.stack.binary import examine
from pagewise.stack.files import sha256
from pagewise.workloads.program import output
from pagewise.workloads.program import program as program_module
from pagewise.workloads.program.output import distinct, parse_check, parse_metric
from pagewise.workloads.program.program import Program, checked_input
from pagewise.workloads.program.suite import SuiteFile, read_code
from scripts import write_script
from stage import write_case


def shell(folder: Path) -> Shell:
    return Shell(folder, {"PATH": "/usr/bin:/bin"}, folder)


def made(folder: Path, **more: Any) -> Program:
    given = {"name": "x", "command": ("true",), "environment": dict(os.environ), "folder": folder}
    return Program(**{**given, "binary": examine("true", os.environ), **more})


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
    metric = parse_metric(text).metric
    assert (metric.field, metric.unit, metric.better) == parsed


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Triad: 12.5 GB/s", 12.5),
        ("Triad: 1\nTriad: 2.5e3", 2500.0),
        ("Triad: 1.25D+02", 125.0),
        ("Triad: -3", -3.0),
        ("Triad: 0", 0.0),
        ("Triad: .5", 0.5),
        ("Triad: 1,75", 1.75),
        ("Triad: -2,5e3", -2500.0),
        ("Triad: ", None),
        ("nothing", None),
    ],
)
def test_the_last_match_is_the_value_also_with_a_decimal_comma(text: str, value: float | None):
    assert parse_metric(r"rate=^Triad: +(\S+)").value(text, lambda: True) == value


@pytest.mark.parametrize(
    ("text", "has_comma"),
    [
        *((text, False) for text in ("1,75", "1,234,567", "12,", "12.5GB/s", "none", "nan", "inf", "1e999")),
        *((text, False) for text in ("9" * 6000, "1e-300", "٣")),
        *((text, True) for text in ("1,234,567", "1.234,5", "1 234")),
    ],
)
def test_a_capture_that_is_not_a_number_is_an_error_with_its_text(text: str, has_comma: bool):
    with pytest.raises(ValueError) as refused:
        parse_metric("rate=x (.*)").value(f"x {text}", lambda: has_comma)
    assert ascii(text)[1:20] in str(refused.value)


@pytest.mark.parametrize(("point", "value"), [(",", 1.75), (".", None)])
def test_the_locale_matches_the_programs_environment(tmp_path: Path, point: str, value: float | None):
    write_script(tmp_path / "locale", f"#!/bin/sh\necho '{point}'\n")
    metrics, environment = (parse_metric("rate=x (.*)"),), {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    program = made(tmp_path, environment=environment, metrics=metrics)
    values, fault = program.judge("x 1,75", shell(tmp_path))
    assert (fault is None) == (value is not None) and values.get("rate") == value


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
    assert refused.value.where == "--metric" and named in refused.value.message and refused.value.remedy
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
    reported = parse_check(check).fault(output, shell(tmp_path))
    assert (reported is None) == (named is None)
    if named is not None:
        output = reported.replace(f"'{check.partition('| ')[2]}'", "")
        assert set(named.split()) <= set(re.split(r"[\s:]+", output))


def reading(*names: str) -> SuiteFile:
    return SuiteFile(schema="pagewise.suite/1", reads=names)


def test_a_pattern_without_end_is_a_wrong_result(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for module in (output, program_module):
        monkeypatch.setattr(module, "SECONDS_TO_MATCH", 0.05)
    for judged in ({"metrics": (parse_metric("x=(a+)+b"),)}, {"checks": (parse_check("(a+)+b"),)}):
        assert made(tmp_path, **judged).judge("a" * 40, shell(tmp_path))[1] is not None
        assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_after_a_carriage_return_a_line_begins(tmp_path: Path):
    """As of redis-benchmark, which overwrites its progress."""
    printed = "GET: rps=1\rGET: rps=2\r      \r====== GET ======\r\n  throughput: 3 rps\r\n"
    checks = (parse_check("^====== GET"), parse_check("! ^GET: rps=3"))
    program = made(tmp_path, checks=checks, metrics=(parse_metric(r"last=^GET: rps=(\d+)$"),))
    values, fault = program.judge(printed, shell(tmp_path))
    assert fault is None and list(values.values()) == [2.0]


def test_files_are_read_by_absolute_names_and_pipes_never(tmp_path: Path):
    (tmp_path / "log").write_text("rate 3")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    folder = tmp_path / "run"
    folder.mkdir()
    reads = tuple(str(tmp_path / name) for name in ("l?g", "pipe", "loop", "missing"))
    assert made(tmp_path, case=reading(*reads, "/dev/zero")).write(folder, 0.0) == "rate 3"


def test_an_output_over_the_limit_is_a_wrong_result_only_if_it_is_needed(tmp_path: Path):
    for name in ("first", "second"):
        (tmp_path / name).write_text("rate 3\n" * 10)
    judged = made(tmp_path, case=reading("first", "second"), metrics=(parse_metric("x=rate (.*)"),))
    assert judged.write(tmp_path, 0.0, 140) == "rate 3\n" * 20
    assert judged.write(tmp_path, 0.0, 139) is None
    assert judged.judge(None, tmp_path)[1] is not None
    assert made(tmp_path, checks=(parse_check("x"),)).judge(None, tmp_path)[1] is not None
    assert made(tmp_path).judge(None, tmp_path)[1] is None


def test_the_last_of_many_matches_is_taken_without_keeping_all():
    text = "1\n" * 100_000 + "2\n"
    tracemalloc.start()
    try:
        assert parse_metric("x=^(.)$").value(text) == 2.0
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_malformed_glob_is_refused(tmp_path: Path):
    # From Python 3.13 on, a**b is one.
    for name in ("", "/"):
        with pytest.raises(FormatError):
            read_code(Path(write_case(tmp_path, reads=[name])))


def test_input_that_cannot_be_copied_is_refused(tmp_path: Path):
    for name in ("good", "pipe", "loop", "endless"):
        (tmp_path / name).mkdir()
    good, pipe, loop = (tmp_path / name / "inside" for name in ("good", "pipe", "loop"))
    good.write_text("x")
    good.with_name("link").symlink_to(good)
    assert checked_input(good.parent) == good.parent and checked_input(good) == good
    os.mkfifo(pipe)
    loop.symlink_to(loop)
    (tmp_path / "endless/inside").symlink_to(tmp_path / "endless")
    for file in (pipe, pipe.parent, loop.parent, tmp_path / "endless", Path("/dev/zero")):
        with pytest.raises(SelectionError):
            checked_input(file)


def test_a_pipe_as_argument_or_program_never_blocks(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o755)
    assert not replace(made(tmp_path), command=("true", str(pipe))).starts_others
    assert sha256(pipe) is None
    with pytest.raises(SelectionError):
        examine(str(pipe), os.environ)
