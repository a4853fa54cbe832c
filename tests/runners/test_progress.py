"""What a session shows while it runs, and when it draws."""

from __future__ import annotations

import io
import re
import shlex
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from builders import BASE, a_manifest, chase, configuration, kernel, record, subject_of, varied
from many_kernels import COMPILERS, all_kernels, result_of
from pagewise.core.errors import Interrupted
from pagewise.core.manifest import Timing
from pagewise.core.plan import Step, order_of_round
from pagewise.core.result import Result
from pagewise.report.render import terminal
from pagewise.report.views.kernels import verdicts
from pagewise.report.views.session import runs_text
from pagewise.session import progress
from pagewise.session.progress import ProgressReporter
from scripts import called
from stage import Stage

#: The line below the heads of a table.
RULE = "─" * 20


def terminal_of(*, is_terminal: bool = True, height: int = 40) -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, force_terminal=is_terminal, width=100, height=height), text


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """The clock of the progress; the function moves it on."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])

    def advance(seconds: float) -> None:
        now[0] += seconds

    return advance


@pytest.mark.parametrize("is_terminal", [True, False])
def test_verdicts_are_drawn_on_a_terminal_only_and_by_no_thread(is_terminal: bool):
    console, text = terminal_of(is_terminal=is_terminal)
    before = threading.active_count()
    with ProgressReporter(console, 3, []) as reporter:
        reporter.show(lambda: "the verdicts")
        assert threading.active_count() == before
    assert ("the verdicts" in text.getvalue()) == is_terminal


def test_verdicts_take_one_percent_of_the_time(clock: Callable[[float], None]):
    drawn = []

    def slow() -> RenderableType:
        drawn.append(1)
        clock(0.5)
        return ""

    console, _ = terminal_of()
    with ProgressReporter(console, 3, []) as reporter:
        for _ in range(1000):
            clock(1)
            reporter.show(slow)
    assert 10 <= len(drawn) <= 21


def test_a_fault_in_the_verdicts_is_reported_once_and_ends_nothing():
    computed = []

    def faulty() -> RenderableType:
        computed.append(1)
        raise ZeroDivisionError("injected")

    console, text = terminal_of()
    with ProgressReporter(console, 3, []) as reporter:
        for _ in range(3):
            reporter.show(faulty)
    assert len(computed) == 1 and text.getvalue().count("injected") == 1


def test_an_interrupt_while_verdicts_are_computed_ends_the_comparison():
    def interrupted() -> RenderableType:
        raise Interrupted(signal.SIGINT)

    console, _ = terminal_of()
    with ProgressReporter(console, 3, []) as reporter, pytest.raises(Interrupted):
        reporter.show(interrupted)


def test_further_rounds_show_their_limit_and_a_line_each_ten_seconds(clock: Callable[[float], None]):
    subject = subject_of(kernel(), configuration())
    console, text = terminal_of(is_terminal=False)
    with ProgressReporter(console, 3, []) as reporter:
        for number in range(30):
            step = Step(subject.benchmark, subject.cells[0], "compare", 4 + number, 1)
            reporter.add([step], "wide", 500.0 - number)
            reporter.begin(step)
            clock(1)
            reporter.end(step, 1)
    lines = text.getvalue().splitlines()
    assert [line.split()[-2] for line in lines] == ["8:20", "8:10", "8:00"]


def test_remaining_time_is_estimated_from_equal_steps():
    subjects = [subject_of(kernel(), configuration()), subject_of(chase(), configuration())]
    steps = order_of_round(subjects, 1, 1)
    reporter = ProgressReporter(terminal_of()[0], 3, steps)
    assert reporter.expect(steps) is None
    for step in steps:
        reporter.end(step, 2.0 if step.benchmark.name == "triad" else 0.5)
    assert reporter.expect(steps) == pytest.approx(2 * 2.0 + 2 * 0.5)


@pytest.mark.long
def test_the_window_holds_headline_and_best_configurations(tmp_path: Path):
    result = result_of(tmp_path, all_kernels()[:8])
    known = verdicts(result)
    assert known is not None
    for height in (24, 200):
        console, text = terminal_of(height=height)
        console.print(terminal.summary(console, *known))
        shown = text.getvalue().splitlines()
        assert len(shown) < height
        rows = sum(any(name in line for name in COMPILERS) for line in shown)
        assert rows < len(known[1].rows) if height == 24 else rows >= len(known[1].rows)


@pytest.mark.long
def test_a_comparison_draws_verdicts_while_it_runs(small: Stage):
    words = small.command("kernels", "--output", str(small.results), "--rounds", "3")
    done = called(
        ["script", "--quiet", "--return", "--command", shlex.join(words), "/dev/null"],
        env={**small.variables(), "TERM": "xterm"},
        cwd=small.folder,
    )
    before, shown, after = done.stdout.partition(RULE)
    assert done.returncode == 0 and shown and "1/3 " in before and "2/3 " in after


def test_the_time_of_sweeps_is_shown_apart(tmp_path: Path):
    """A sweep has several records of each run, whose time counts once."""
    points = [record(BASE, 1.0, series="sweep") for _ in range(2)]
    points = [
        varied(one, "run", position=position, wall_seconds=59.0) for position in (2, 3) for one in points
    ]
    manifest = a_manifest(timing=Timing(307.0, 300.0, 0.02, 3))
    result = Result(tmp_path, manifest, [], [record(BASE, 1.0), *points], [])
    assert re.findall(r"\d+:\d\d", runs_text(result)) == ["5:07", "1:58"]
