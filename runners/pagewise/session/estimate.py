"""How long runs will take, estimated from what such runs took in earlier results on this machine."""

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

_MOST_RESULTS = 10
_SAME_MACHINE = ("hostname", "cpu", "cpus")


@dataclass(frozen=True)
class Known:
    """What earlier results tell: of the steps that were asked about, how many such were made before.

    `own_seconds` is what the runner took for itself: finding modules, starting runs, the report.
    """

    left: TimeLeft
    steps: int
    own_seconds: float
    results: tuple[Path, ...]

    def seconds(self, steps: Sequence[Step]) -> float | None:
        """What these steps will take; None when nothing is known."""
        return self.left.estimate(steps) if steps else 0.0


def known_times(results: Path, manifest: Manifest, steps: Sequence[Step]) -> Known:
    """Looks through the newest results for runs of the same program, arguments, pages and threads.

    `manifest` is that of the comparison which is planned. What cannot be read is passed over.
    """
    wanted = {(step.kernel.name, *step.cell.key, step.swept): step for step in steps}
    asked = _arguments(manifest)
    left, seen, used, own = TimeLeft(), set(), [], []
    for folder, other in _on_this_machine(results, manifest):
        told = _arguments(other)
        alike = {one for one, arguments in told.items() if asked.get(one) == arguments}
        found = False
        for run in _runs(folder):
            kernel = run.kernel or ""
            swept = (run.sweep or _first_sweep(told, kernel)) if run.series == "sweep" else None
            key = (kernel, *key_of(run), swept)
            if (kernel, swept) in alike and key in wanted and run.wall_seconds is not None:
                left.add(wanted[key], run.wall_seconds)
                seen.add(key)
                found = True
        if found:
            used.append(folder)
            timing = other.timing
            own.append(timing.wall_seconds - timing.kernel_seconds if timing is not None else 0.0)
        if len(used) == _MOST_RESULTS:
            break
    known = sum((step.kernel.name, *step.cell.key, step.swept) in seen for step in steps)
    return Known(left, known, median(own) if own else 0.0, tuple(used))


def _arguments(manifest: Manifest) -> dict[tuple[str, str | None], Any]:
    """What decides how long runs take, by kernel and what is swept."""
    found: dict[tuple[str, str | None], Any] = {}
    for subject in manifest.subjects:
        kernel = subject.kernel
        found[kernel["name"], None] = (manifest.threads, kernel["compare"]["arguments"])
        for sweep in kernel.get("sweeps", ()):
            found[kernel["name"], sweep_name(sweep)] = (manifest.threads, sweep["arguments"])
    return found


def _first_sweep(told: Mapping[tuple[str, str | None], Any], kernel: str) -> str | None:
    """What results of one sweep a kernel do not say: what was swept."""
    return next((swept for name, swept in told if name == kernel and swept is not None), None)


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
    """The runs that a records file tells of and that ended well."""
    try:
        lines = read_file(folder / RECORDS).splitlines()
    except OSError:
        return
    for line in lines:
        # Only what is used is looked at: checking ten results against the schema takes many seconds.
        try:
            record = parse_json(line)
            run = structured(RunOf, {"kernel": record["kernel"], **record["run"]})
        except (ValueError, LookupError, TypeError):
            continue
        if record.get("status") == "ok":
            yield run
