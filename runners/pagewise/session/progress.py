"""Progress of a session: the verdicts so far and a bar on a terminal, one line per round elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn

from pagewise.core.plan import CellKey, Step
from pagewise.core.units import clock_text

# Runs that take about the same: kernel, key of the cell, what is swept.
_Alike = tuple[str, CellKey, str | None]
# The most of a session's time that showing verdicts takes.
_SHARE = 0.01
# Seconds between lines about further rounds, which are many if runs are short.
_BETWEEN_LINES = 10.0


class _Bar(Progress):
    """A bar, below what is known so far. Drawn between runs only, because a thread would disturb runs."""

    above: RenderableType | None = None

    def get_renderables(self) -> Iterable[RenderableType]:
        """What is drawn, from top to bottom."""
        if self.above is not None:
            yield self.above
        yield from super().get_renderables()


class ProgressReporter:
    """Shows the progress of steps on the console, and estimates what the steps ahead take.

    is_verbose: whether each run is printed, above the progress bar.
    """

    def __init__(
        self, console: Console, rounds: int, steps: Sequence[Step], *, is_verbose: bool = False
    ) -> None:
        self._console, self._rounds, self._steps = console, rounds, list(steps)
        self._is_verbose = is_verbose
        self._seconds_spent: dict[_Alike, list[float]] = {}
        self._stage, self._why = "", ""
        self._started = self._deadline = time.monotonic()
        self._showing, self._is_broken = 0.0, False
        self._printed = -_BETWEEN_LINES
        self._bar = _Bar(
            TextColumn("{task.fields[stage]:<12}"),
            BarColumn(bar_width=32),
            TextColumn("{task.completed}/{task.total}"),
            TextColumn("{task.fields[left]:<18}"),
            TextColumn("{task.fields[message]}", style="dim", markup=False),
            console=console,
            transient=True,
            auto_refresh=False,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=len(self._steps), stage="", left="", message="")

    def expect(self, steps: Sequence[Step]) -> float | None:
        """Seconds for these steps, from what such steps took; None when nothing is known.

        A step not seen before counts as the mean of its kernel, or of all.
        """
        if not self._seconds_spent:
            return None
        known = {key: sum(values) / len(values) for key, values in self._seconds_spent.items()}
        overall = sum(known.values()) / len(known)
        total = 0.0
        for key in map(_alike, steps):
            alike = [value for other, value in known.items() if other[0] == key[0] and other[2] == key[2]]
            total += known.get(key, sum(alike) / len(alike) if alike else overall)
        return total

    def add(self, steps: Sequence[Step], why: str, at_most: float) -> None:
        """A further round comes before what is ahead, for this reason. They end in `at_most` seconds."""
        self._why, self._deadline = why, time.monotonic() + at_most
        self._steps = [*steps, *self._steps]
        self._bar.update(self._task, total=(self._bar.tasks[0].total or 0) + len(steps))

    def begin(self, step: Step) -> None:
        """A step starts. The time left of further rounds is their limit, because their number is unknown."""
        now, is_further = time.monotonic(), bool(self._why) and step.series != "sweep"
        left = self.expect(self._steps)
        remaining = "" if left is None else f"about {clock_text(left)} left"
        stage = f"round {step.round}/{self._rounds}"
        if step.series == "sweep":
            stage = "sweeps"
        elif is_further:
            stage = f"round {step.round}, {self._why}"
            remaining = f"at most {clock_text(max(0.0, self._deadline - now))} left"
        if self._console.is_terminal:
            self._bar.update(self._task, stage=stage, left=remaining, message=_run_text(step), refresh=True)
        elif stage != self._stage and not (is_further and now - self._printed < _BETWEEN_LINES):
            self._printed = now
            passed = clock_text(now - self._started)
            self._console.print(f"{stage}: {passed} passed" + (f", {remaining}" if remaining else ""))
        self._stage = stage

    def end(self, step: Step, seconds: float) -> None:
        """A step is over, after so many seconds."""
        if self._is_verbose:
            text = f"{step.series} {step.round}, {_run_text(step)}: {seconds:.3f} s"
            self._console.print(text, soft_wrap=True)
        self._seconds_spent.setdefault(_alike(step), []).append(seconds)
        self.skip(step)

    def show(self, verdicts: Callable[[], RenderableType]) -> None:
        """Shows verdicts on a terminal, unless computing them so often takes more than 1 % of the time.

        A fault in them is reported, and they are not computed again: the measurement continues.
        """
        began = time.monotonic()
        is_late = self._showing > _SHARE * (began - self._started)
        if not self._console.is_terminal or self._is_broken or is_late:
            return
        try:
            self._bar.above = verdicts()
        except Exception as fault:
            self._is_broken, self._bar.above = True, None
            text = f"warning: no verdicts during this comparison: {type(fault).__name__}: {fault}"
            self._console.print(text, soft_wrap=True)
        self._bar.refresh()
        self._showing += time.monotonic() - began

    def skip(self, step: Step) -> None:
        """A step is no longer ahead: it is over, or not run after all."""
        self._steps.remove(step)
        self._bar.advance(self._task)

    def __enter__(self) -> ProgressReporter:
        """Starts showing."""
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Takes the bar away."""
        self._bar.stop()


def _run_text(step: Step) -> str:
    return f"{step.benchmark.name} {step.cell.compiler}/{step.cell.measured.label}"


def _alike(step: Step) -> _Alike:
    # A baseline's second run in a round takes what its first takes.
    return *step.of, step.swept
