"""Whether records agree with the build, the description and the clock that they claim. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from math import isclose
from statistics import median

from pagewise.analysis.validity import Exclusion
from pagewise.core.benchmark import Benchmark
from pagewise.core.configuration import Configuration
from pagewise.core.page_policy import PagePolicy
from pagewise.core.record import Record
from pagewise.core.record_parts import Option, ProblemSize
from pagewise.core.structure import to_data

# Two AVX-512 loads and a store per cycle at 6 GHz are 1152 GB/s: no thread moves more than this.
_MOST_GB_PER_SECOND = 2000.0
# Metrics are written with at least six digits.
_SAME = 1e-5
# Records give whole seconds, and a kernel may round its start up.
_CLOCK = timedelta(seconds=2)
# hyperfine starts the program, and its clock is not the kernel's.
_SAME_CLOCK, _CLOCK_SECONDS = 1.02, 0.005
# Involuntary context switches of a core that also runs other programs: at least this many per run and per
# second, and this many times the baseline's. Runs of some 10 ms have too few on any machine.
_SWITCHES_PER_RUN, _SWITCHES_PER_SECOND, _TIMES_AS_MANY = 20, 50.0, 4.0
# At least this many runs, and this share of them disturbed, are not a coincidence.
_FEWEST_RUNS, _MOST_RUNS = 5, 0.6
# Configurations that differ in these have different compiler flags.
_WITH_FLAGS = ("compiler", "version", "library", "runtime", "simd", "sector", "flags", "target")
# What records report of their builds.
_OF_BUILDS = (
    *("compiler", "hugepages", "prefetch", "stores", "loop"),
    *("simd", "sector", "library", "openmp", "papi"),
)
# Options that switch OpenMP on, which is a dimension: GCC's and LLVM's, Fujitsu's, Cray's.
_OPENMP = ("-fopenmp", "-Kopenmp", "-homp")


def inconsistent(kernel: Benchmark, measured: Configuration, valid: Sequence[Record]) -> Exclusion | None:
    """What the valid runs of a configuration contradict: build, description, clock, or each other."""
    faults = (_build(each, measured) or _clock(each) or _work(each, kernel) for each in valid)
    return next(filter(None, faults), None) or _differing(valid)


def incomparable(
    kernel: Benchmark,
    valid: Sequence[Record],
    baseline: Sequence[Record],
    measured: Configuration,
    base: Configuration,
) -> Exclusion | None:
    """Why valid runs cannot be compared with those of the baseline: less work, another build, disturbed."""
    if not valid or not baseline:
        return None
    # Other kernels may divide the work differently.
    if kernel.traffic is not None and (own := _elements(valid[0])) != (reference := _elements(baseline[0])):
        return Exclusion("wrong_work", f"it worked on {own} elements, the baseline on {reference}")
    return _other_build(valid[0], baseline[0], measured, base) or _find_disturbance(valid, baseline)


def _differing(records: Sequence[Record]) -> Exclusion | None:
    """Why the runs of one configuration did not all do the same."""
    for part in ("options", "sizes"):
        values = {json.dumps(_constant_options(getattr(record, part)), sort_keys=True) for record in records}
        if len(values) > 1:
            first, second, *_ = sorted(values)
            return Exclusion("settings_differ", f"its runs had different {part}: {first} and {second}")
    return None


def _other_build(
    record: Record, baseline: Record, measured: Configuration, base: Configuration
) -> Exclusion | None:
    """Whether a configuration was built from other sources, or with other flags, than its baseline.

    Configurations that differ in library, SIMD width or target are not checked: these have their own flags.
    """
    differs = any(getattr(measured, name) != getattr(base, name) for name in _WITH_FLAGS)
    parts = {
        "version": (record.configuration.version or "", baseline.configuration.version or ""),
        "flags": tuple(_flags(item) for item in (record, baseline)),
    }
    for name, (own, reference) in parts.items() if not differs else ():
        if own != reference:
            return Exclusion("wrong_build", f"it was built with {name} {own}, the baseline with {reference}")
    return None


def _flags(record: Record) -> str:
    """The options that affect code, but for OpenMP."""
    options = {*record.configuration.code_options}
    return " ".join(option for option in sorted(options) if not option.startswith(_OPENMP))


def _find_disturbance(records: Sequence[Record], baseline: Sequence[Record]) -> Exclusion | None:
    """Whether other programs ran on the cores of this configuration, but not on those of the baseline.

    Only if most of several runs were disturbed: intervals show the noise of single disturbed runs.
    """
    own, reference = _switches(records), _switches(baseline)
    if len(own) < _FEWEST_RUNS or not reference:
        return None
    usual = median(count / seconds for count, seconds in reference)
    limit = max(_SWITCHES_PER_SECOND, _TIMES_AS_MANY * usual)
    rates = [count / seconds for count, seconds in own if count >= _SWITCHES_PER_RUN]
    if sum(rate >= limit for rate in rates) < _MOST_RUNS * len(own):
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


def _constant_options(part: ProblemSize | Mapping[str, Option] | None) -> dict[str, Option]:
    """What must be the same in all runs: not the arrays' addresses, nor how much memory was free.

    With too little memory for all runs at the same time, some of them take no turns.
    """
    data = {} if part is None else to_data(part)
    differing = ("array_spacing_bytes", "warning", "turns")
    return {name: value for name, value in data.items() if name not in differing}


def _build(record: Record, measured: Configuration) -> Exclusion | None:
    """Whether a program was built otherwise than its module says."""
    for name in _OF_BUILDS:
        # A property that the record omits agrees, but an empty width or library does not.
        value, built = getattr(measured, name), getattr(record.configuration, name)
        if isinstance(built, bool):
            built = "on" if built else "off"
        elif name == "hugepages":
            value, built = PagePolicy(value).kind, PagePolicy(built).kind
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
        start, reported = _moment(run.started), _moment(record.started)
        # While a run in turns starts, others start, too.
        latest = start + timedelta(seconds=wall) if run.ended is None else _moment(run.ended)
        if run.ended is None and run.method == "turns" and run.series == "sweep":
            latest = reported  # of an older result, which does not say when it ended
        if not start - _CLOCK <= reported <= latest + _CLOCK:
            text = f"it reports that it began at {record.started}, its run at {run.started}"
            return Exclusion("wrong_times", text)
    return None


def _moment(utc: str) -> datetime:
    """Without the fraction of the second."""
    return datetime.fromisoformat(f"{utc[:19]}+00:00")


def _work(record: Record, kernel: Benchmark) -> Exclusion | None:
    """Whether traffic contradicts the description, metrics the traffic, or both what a core can move."""
    moved, described = record.traffic and record.traffic.bytes_stream, kernel.traffic
    if not moved:
        return None
    rate = moved / median(record.repetitions) / 1e9
    metric, wrong = record.figures.get("bandwidth_stream_gb_per_s"), None
    if described and record.series in ("compare", "aa"):
        units = (record.options or {}).get("updates") if described.per is not None else _elements(record)
        per_unit = (described.loads + described.stores) * described.element_bytes
        expected = float(units or 0) * record.passes * per_unit
        if not isclose(moved, expected, rel_tol=_SAME):
            wrong = f"{moved:.6g} bytes per repetition, its description is {expected:.6g}"
    if wrong is None and metric is not None and not isclose(metric, rate, rel_tol=_SAME):
        wrong = f"{metric:.6g} GB/s, its bytes and times are {rate:.6g}"
    if wrong is None and record.placement and rate > _MOST_GB_PER_SECOND * record.placement.threads:
        wrong = f"{rate:.6g} GB/s, more than its cores can move"
    return None if wrong is None else Exclusion("wrong_work", f"it reports {wrong}")


def _elements(record: Record) -> int | None:
    return None if record.sizes is None else record.sizes.elements
