"""Whether records agree with the build, the description and the clock that they claim. Pure functions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from statistics import median

from pagewise.analysis.validity import Exclusion
from pagewise.core.configuration import Configuration
from pagewise.core.kernel import Kernel
from pagewise.core.page_policy import policy_kind
from pagewise.core.record import Record
from pagewise.core.record_parts import Option, ProblemSize
from pagewise.core.structure import unstructured

# Two AVX-512 loads and a store per cycle at 6 GHz are 1152 GB/s: no thread moves more than this.
_MOST_GB_PER_SECOND = 2000.0
# Figures are written with at least six digits.
_SAME = 1e-5
# Records give whole seconds, and a kernel may round its start up.
_CLOCK = timedelta(seconds=2)
# hyperfine starts the program, and its clock is not the kernel's.
_SAME_CLOCK, _CLOCK_SECONDS = 1.02, 0.005
# Involuntary context switches that tell a core with other work from a quiet one: at least so many per run and
# second, and so many times the baseline's. Runs of some 10 ms have too few on any machine.
_SWITCHES_PER_RUN, _SWITCHES_PER_SECOND, _TIMES_AS_MANY = 20, 50.0, 4.0
# So many runs, and this share of them disturbed, are no coincidence.
_FEWEST_RUNS, _MOST_RUNS = 5, 0.6


def contradiction(kernel: Kernel, measured: Configuration, valid: Sequence[Record]) -> Exclusion | None:
    """What the valid runs of a configuration contradict: build, description, clock, or each other."""
    found = (inconsistency(record, kernel, measured) for record in valid)
    return next(filter(None, found), None) or differing(valid)


def inconsistency(record: Record, kernel: Kernel, measured: Configuration) -> Exclusion | None:
    """Why a valid record contradicts its module, its kernel.yaml or its run's clock; None if it agrees."""
    if measured.builder == "own":
        return None
    return _build(record, measured) or _clock(record) or _work(record, kernel)


def differing(records: Sequence[Record]) -> Exclusion | None:
    """Why the runs of one configuration did not all do the same."""
    for part in ("options", "sizes"):
        told = {json.dumps(_fixed(getattr(record, part)), sort_keys=True) for record in records}
        if len(told) > 1:
            first, second, *_ = sorted(told)
            return Exclusion("settings_differ", f"its runs had different {part}: {first} and {second}")
    return None


def less_work(records: Sequence[Record], baseline: Sequence[Record], kernel: Kernel) -> Exclusion | None:
    """Why a configuration did not do the baseline's work.

    Only of kernels whose description fixes the work per element: others may divide it otherwise.
    """
    if not records or not baseline or "traffic" not in kernel.data:
        return None
    ours, theirs = (_elements(one[0]) for one in (records, baseline))
    if ours == theirs:
        return None
    return Exclusion("wrong_work", f"it worked on {ours} elements, the baseline on {theirs}")


def other_build(
    records: Sequence[Record], baseline: Sequence[Record], measured: Configuration, base: Configuration
) -> Exclusion | None:
    """Whether a configuration was built from other sources, or with other flags, than its baseline.

    Libraries, vector widths and targets have flags of their own: configurations that differ in these are not
    compared.
    """
    if not records or not baseline or _with_flags(measured) != _with_flags(base):
        return None
    for name, (ours, theirs) in {
        "version": [one[0].configuration.version or "" for one in (records, baseline)],
        "flags": [" ".join(sorted(_flags(one[0]))) for one in (records, baseline)],
    }.items():
        if ours != theirs:
            return Exclusion("wrong_build", f"it was built with {name} {ours}, the baseline with {theirs}")
    return None


def _with_flags(one: Configuration) -> tuple[str, ...]:
    return one.compiler, one.version, one.library, one.runtime, one.simd, one.target


def _flags(record: Record) -> set[str]:
    """The compiler's options that decide on code; paths are those of a build."""
    words = (record.configuration.compiler_options or "").split()
    return {word for word in words if re.match(r"-[Omf][^/]*$", word)}


def disturbed(records: Sequence[Record], baseline: Sequence[Record]) -> Exclusion | None:
    """Whether other programs ran on the cores of this configuration, and not on those of the baseline.

    Only if most of several runs were disturbed: what disturbs single runs is noise, which intervals show.
    """
    ours, theirs = _switches(records), _switches(baseline)
    if len(ours) < _FEWEST_RUNS or not theirs:
        return None
    usual = median(count / seconds for count, seconds in theirs)
    limit = max(_SWITCHES_PER_SECOND, _TIMES_AS_MANY * usual)
    rates = [count / seconds for count, seconds in ours if count >= _SWITCHES_PER_RUN]
    if sum(rate >= limit for rate in rates) < _MOST_RUNS * len(ours):
        return None
    return Exclusion(
        "disturbed",
        f"other programs ran on its cores: {median(rates):.0f} involuntary context switches per second, "
        f"{usual:.0f} of the baseline",
    )


def _switches(records: Sequence[Record]) -> list[tuple[int, float]]:
    """Involuntary context switches and seconds of each run that has both."""
    return [
        (record.run.involuntary_switches, record.run.wall_seconds)
        for record in records
        if record.run and record.run.involuntary_switches is not None and record.run.wall_seconds
    ]


def _fixed(part: ProblemSize | Mapping[str, Option] | None) -> dict[str, Option]:
    """What must be the same in all runs; where the arrays lie may change from run to run."""
    data = {} if part is None else unstructured(part)
    return {name: value for name, value in data.items() if name != "array_spacing_bytes"}


def _build(record: Record, measured: Configuration) -> Exclusion | None:
    told = record.configuration
    module = {
        "compiler": measured.compiler,
        "hugepages": policy_kind(measured.hugepages),
        "prefetch": measured.prefetch,
        "stores": measured.stores,
        "openmp": measured.openmp == "on",
        "papi": measured.papi == "on",
        "simd": measured.simd,
        "library": measured.library,
    }
    for name, value in module.items():
        # What is not on record agrees: an empty width or library is not.
        built = getattr(told, name)
        if built is not None and built != value:
            text = f"the program was built with {name} {built}, the module is {value}"
            return Exclusion("wrong_build", text)
    return None


def _clock(record: Record) -> Exclusion | None:
    run, inside = record.run, sum(record.repetitions)
    if run is None or run.wall_seconds is None:
        return None
    wall = run.wall_seconds
    if inside > _SAME_CLOCK * wall + _CLOCK_SECONDS and run.series != "sweep":
        return Exclusion("wrong_times", f"it reports {inside:.3g} s of a run that took {wall:.3g} s")
    if run.started is not None:
        first, began = _moment(run.started), _moment(record.started)
        if not first - _CLOCK <= began <= first + timedelta(seconds=wall) + _CLOCK:
            return Exclusion(
                "wrong_times", f"it reports that it began at {record.started}, its run at {run.started}"
            )
    return None


def _moment(utc: str) -> datetime:
    """Without the fraction of the second."""
    return datetime.strptime(utc[:19], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)


def _work(record: Record, kernel: Kernel) -> Exclusion | None:
    """Traffic by the description, figures by the traffic, and no more than a core can move."""
    described = kernel.data.get("traffic")
    moved = record.traffic and record.traffic.bytes_stream
    if not moved:
        return None
    if described and record.series in ("compare", "aa"):
        units = (record.options or {}).get("updates") if "per" in described else _elements(record)
        per_unit = (described["loads"] + described["stores"]) * described["element_bytes"]
        expected = float(units or 0) * record.passes * per_unit
        if not _is_near(moved, expected):
            text = f"it reports {moved:.6g} bytes per repetition, its description is {expected:.6g}"
            return Exclusion("wrong_work", text)
    rate = moved / median(record.repetitions) / 1e9
    told = record.figures.get("bandwidth_stream_gb_per_s")
    if told is not None and not _is_near(told, rate):
        return Exclusion("wrong_work", f"it reports {told:.6g} GB/s, its bytes and times are {rate:.6g}")
    if record.placement and rate > _MOST_GB_PER_SECOND * record.placement.threads:
        return Exclusion("wrong_work", f"it reports {rate:.6g} GB/s, more than its cores can move")
    return None


def _elements(record: Record) -> int | None:
    return None if record.sizes is None else record.sizes.elements


def _is_near(value: float, expected: float) -> bool:
    return abs(value - expected) <= _SAME * max(abs(value), abs(expected))
