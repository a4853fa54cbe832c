"""Estimates how long runs take from earlier results on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from pagewise.core.errors import PagewiseError
from pagewise.core.kernel import sweep_name
from pagewise.core.manifest import Manifest
from pagewise.core.plan import Step, key_of
from pagewise.core.reading import parse_json, read_file
from pagewise.core.record_parts import RunOf
from pagewise.core.result import MANIFEST, RECORDS, read_manifest
from pagewise.core.structure import structured
from pagewise.session.progress import TimeLeft

_MOST_RESULTS, _MOST_SECONDS = 10, 1e9
_SAME_MACHINE = ("hostname", "cpu", "cpus")
# What decides how long runs take (threads and arguments), by kernel and what is swept.
_Arguments = Mapping[tuple[str, str | None], Any]


@dataclass(frozen=True)
class Known:
    """The times of earlier runs. `steps`: how many of the given steps have one.

    `own_seconds`: the time of the runner itself, to find modules, start runs and write the report.
    """

    left: TimeLeft
    steps: int
    own_seconds: float
    results: tuple[Path, ...]

    def seconds(self, steps: Sequence[Step]) -> float | None:
        """The expected duration of these steps; None if unknown."""
        return self.left.estimate(steps) if steps else 0.0


def known_times(results: Path, manifest: Manifest, steps: Sequence[Step]) -> Known:
    """Searches the newest results for runs of the same program, arguments, pages and threads.

    `manifest` is that of the planned session. Skips what cannot be read.
    """
    planned = {(step.kernel.name, *step.cell.key, step.swept): step for step in steps}
    planned_arguments = _arguments(manifest)
    left, seen, used, own = TimeLeft(), set(), [], []
    for folder, other in _on_this_machine(results, manifest):
        arguments = _arguments(other)
        same = {name for name, value in arguments.items() if planned_arguments.get(name) == value}
        runs = 0
        for run in _runs(folder):
            kernel = run.kernel or ""
            swept = (run.sweep or _first_sweep(arguments, kernel)) if run.series == "sweep" else None
            key = (kernel, *key_of(run), swept)
            if (kernel, swept) in same and key in planned and run.wall_seconds is not None:
                left.add(planned[key], run.wall_seconds)
                seen.add(key)
                runs += 1
        if runs:
            used.append(folder)
            timing = other.timing
            own.append(timing.wall_seconds - timing.kernel_seconds if timing is not None else 0.0)
        if len(used) == _MOST_RESULTS:
            break
    known = sum((step.kernel.name, *step.cell.key, step.swept) in seen for step in steps)
    return Known(left, known, median(own) if own else 0.0, tuple(used))


def _arguments(manifest: Manifest) -> _Arguments:
    arguments: dict[tuple[str, str | None], Any] = {}
    started = manifest.placement.ranks, manifest.threads
    for subject in manifest.subjects:
        kernel = subject.kernel
        arguments[kernel["name"], None] = (*started, kernel["compare"]["arguments"])
        for sweep in kernel.get("sweeps", ()):
            arguments[kernel["name"], sweep_name(sweep)] = (*started, sweep["arguments"])
    return arguments


def _first_sweep(arguments: _Arguments, kernel: str) -> str | None:
    """What was swept, for results with one sweep per kernel, whose records do not name it."""
    return next((swept for name, swept in arguments if name == kernel and swept is not None), None)


def _on_this_machine(results: Path, manifest: Manifest) -> Iterator[tuple[Path, Manifest]]:
    """The results of this machine, the newest first."""
    for file in sorted(results.glob(f"*/{MANIFEST}"), reverse=True):
        try:
            other = read_manifest(file.parent)
        except PagewiseError:
            continue
        if all(getattr(other.host, name) == getattr(manifest.host, name) for name in _SAME_MACHINE):
            yield file.parent, other


def _runs(folder: Path) -> Iterator[RunOf]:
    """The successful runs of a records file."""
    try:
        lines = read_file(folder / RECORDS).splitlines()
    except OSError:
        return
    for line in lines:
        # Reads the used fields only: checking ten results against the schema takes many seconds.
        try:
            record = parse_json(line)
            run = structured(RunOf, {"kernel": record["kernel"], **record["run"]})
        except (ValueError, LookupError, TypeError):
            continue
        if record.get("status") == "ok" and 0 <= (run.wall_seconds or 0.0) <= _MOST_SECONDS:
            yield run
