"""One kernel, or the user's program: its ratios, noise, curves and values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from pagewise.analysis.choices import Best, bests, own_loop, versus
from pagewise.analysis.rows import KernelResult
from pagewise.analysis.series import Curve
from pagewise.core.benchmark import Benchmark, Metric, Sweep
from pagewise.core.dimensions import COMPILER, PAGES, Dimension
from pagewise.core.manifest import Manifest
from pagewise.core.text import command_text
from pagewise.core.units import count_text
from pagewise.report.model import Block, Column, Figure, Line, Section, Table, TableCell, Text, style_of
from pagewise.report.views.comparisons import changes, judged_columns
from pagewise.report.views.data import (
    DataRow,
    cost_text,
    equally_good,
    floors_text,
    label,
    label_of,
    pages_text,
    ranked_rows,
    shown_dimensions,
    speed_up,
)


def section(result: KernelResult, manifest: Manifest) -> Section:
    """The section of a kernel."""
    kernel, entries = result.benchmark, ranked_rows([result])
    blocks: list[Block] = [Text(" ".join(filter(None, (kernel.summary, kernel.equation))), style="dim")]
    if kernel.arguments:
        blocks.append(Text(f"Arguments: {' '.join(kernel.arguments)}.", style="dim"))
    best = best_table([result], "Best configuration")
    if best.rows:
        blocks += [best, *(Text(line, style="code") for line in map(_load, bests([result])) if line)]
    if entries:
        blocks.append(_ratios(result, entries))
    blocks += _compilers(result)
    blocks += _noise(result)
    blocks += changes(result.of("change"))
    blocks += sweeps(result, manifest)
    if entries:
        blocks.append(Section("All measured values", (_values(kernel, entries),), only="page", folded=True))
    return Section(kernel.title, tuple(blocks), f"kernel-{kernel.name}")


def _noise(result: KernelResult) -> Iterator[Block]:
    """The noise floors in one line; what else is known about noise is folded."""
    groups = [group for group in result.groups if group.ranked]
    if groups:
        yield Text(floors_text(groups))
    table = noise_table(result)
    if table.rows:
        yield Section("Noise: outliers, drift, bimodal times", (table,), folded=True)


def noise_table(result: KernelResult) -> Table:
    """The configurations with outliers (included in all numbers), drift, bimodal times, or other CPUs.

    A ratio drifts from the first to the last round; a baseline's drift is that of its time, which pairing by
    round removes from all ratios.
    """
    columns = (
        Column("compiler", merged=True, get="group.compiler"),
        Column("configuration", get="label"),
        *(Column(name, wrap=True, get=get) for name, get in _NOISE.items()),
    )
    noisy = [entry for entry in ranked_rows([result]) if any(get(entry) for get in _NOISE.values())]
    return Table.of("Noise by configuration", columns, noisy)


def _outliers(entry: DataRow) -> str:
    return ", ".join(f"{ratio:.3f} in round {number}" for number, ratio in entry.row.outliers)


def _drift(entry: DataRow) -> str:
    time, of_baseline = entry.row.time, entry.row.drift
    if time is not None and time.drift is not None:
        return f"{time.drift.first:.3f} to {time.drift.last:.3f}"
    return "" if of_baseline is None else f"time {100 * of_baseline.change:+.1f} %"


def _bimodal(entry: DataRow) -> str:
    times = entry.row.bimodal
    if times is None:
        return ""
    return f"{100 * times.slow_share:.0f} % of the runs take {times.apart:.2f} times as long"


def _migration_text(entry: DataRow) -> str:
    row = entry.row
    if not row.migrated_runs:
        return ""
    node = f", {row.left_node_runs} to another NUMA node" if row.left_node_runs else ""
    return f"{row.migrated_runs} of {count_text(row.runs, 'run')}{node}"


_NOISE: Mapping[str, Callable[[DataRow], str | None]] = {
    "outliers": _outliers,
    "drift": _drift,
    "bimodal": _bimodal,
    "migrated to another CPU": _migration_text,
    "note": lambda entry: entry.row.note,
}


def best_table(kernels: Sequence[KernelResult], title: str) -> Table:
    """The fastest configuration of each kernel and compiler."""
    ratio, _ = judged_columns(lambda best: best.row and best.row.time)
    columns = (
        *([Column("kernel", merged=True, get="benchmark.title")] if len(kernels) > 1 else []),
        Column("compiler", get="group.compiler"),
        Column("best", wrap=True, get=lambda best: TableCell(label_of(best), "strong" if best.row else "")),
        Column("against the baseline", wrap=True, get=_best_change),
        Column("speed-up", kind="quotient", get=lambda best: best.row and speed_up(best.row.time_ratio)),
        ratio,
        Column("time", kind="seconds", get="shown.seconds"),
        Column("equally good", wrap=True, get=equally_good),
    )
    return Table.of(title, columns, bests(kernels), chart=len(kernels) > 1)


def _best_change(best: Best) -> TableCell:
    if best.row is None:
        return TableCell("nothing is faster", "inconclusive")
    return TableCell(cost_text(best.row), "faster")


def _load(best: Best) -> str:
    """The command that loads the best configuration; empty for a program."""
    if best.row is None or not best.row.cell.measured.is_module:
        return ""
    cell = best.row.cell
    pages = f"   # with {command_text(('--pages', cell.pages))}" if cell.pages else ""
    return command_text(("module", "load", cell.measured.module)) + pages


def _metric(metric: Metric, name: str) -> Column:
    """A column of a table of entries with the values of a metric."""
    return Column(
        name, metric.label, "number", metric.kind, get=lambda entry: entry.row.metrics.get(metric.field)
    )


def _ratios(result: KernelResult, entries: Sequence[DataRow]) -> Table:
    """A row per ranked configuration, with a column for each dimension that varies."""
    kernel = result.benchmark
    dimensions = [each for each in shown_dimensions(result) if kernel.is_sensitive_to(each.name)] or [PAGES]
    columns = [
        Column(COMPILER.name, merged=True, get="group.compiler"),
        *(Column(each.name, get=partial(_dimension_text, each)) for each in dimensions),
        *time_columns(),
        Column("time", "", "seconds", f"per {kernel.unit}", get="row.seconds"),
        _metric(kernel.headline, kernel.headline.label),
    ]
    columns += [
        Column("first touch", kind="seconds", optional=True, get="row.first_touch"),
        Column("observed pages", get=lambda entry: pages_text(entry.row)),
    ]
    if any(entry.row.rounds < entry.row.rounds_made for entry in entries):
        columns.append(Column("rounds", get=lambda entry: f"{entry.row.rounds}/{entry.row.rounds_made}"))
    same = " of the same compiler" if len(result.groups) > 1 else ""
    return Table.of(f"Time ratio to the baseline{same}, below 1 is faster", columns, entries, chart=True)


def _dimension_text(dimension: Dimension, entry: DataRow) -> str:
    """A dimension's value, or `any` where the kernel is not sensitive to it."""
    is_sensitive = entry.benchmark.is_sensitive_to(dimension.name)
    return dimension.cell(entry.configuration) if is_sensitive else "any"


def time_columns() -> tuple[Column, Column, Column]:
    """Time ratio, speed-up and verdict of a row."""
    ratio, verdict = judged_columns(lambda entry: entry.row.time)
    return ratio, Column("speed-up", kind="quotient", optional=True, get=_speed_up), verdict


def _speed_up(entry: DataRow) -> TableCell:
    if entry.row.cell.is_baseline:
        return TableCell("1", "baseline")
    return TableCell(speed_up(entry.row.time_ratio), style_of(entry.row.verdict))


def _compilers(result: KernelResult) -> Iterator[Table]:
    """The compilers' comparisons: at their baselines, and in their own loops."""
    columns = (
        Column("compilers", get=versus),
        Column("loop", get=lambda row: own_loop(row) or "as in the baseline"),
        *judged_columns(),
    )
    if rows := result.of("compilers"):
        yield Table.of("Time ratio of compilers, below 1: the first is faster", columns, rows)


def _values(kernel: Benchmark, entries: Sequence[DataRow]) -> Table:
    columns = (
        Column("configuration", get="label"),
        Column("compiler", get="group.compiler"),
        Column("runs", kind="integer", get="row.runs"),
        Column("median", "time", "seconds", f"per {kernel.unit}, median", get="row.seconds"),
        Column("trimmed", "time", "seconds", f"per {kernel.unit}, trimmed mean", get="row.seconds_trimmed"),
        *(_metric(metric, metric.field) for metric in kernel.metrics),
        Column("first touch", kind="seconds", optional=True, get="row.first_touch"),
        Column("process", unit="wall time", kind="seconds", get="row.wall"),
    )
    return Table.of(f"{kernel.title}: medians over the runs", columns, entries)


def sweeps(result: KernelResult, manifest: Manifest) -> Iterator[Block]:
    """The curves of a kernel over the working set or another option: each as a figure, and as a table."""
    for sweep, curves in result.by_sweep:
        yield _figure(result, sweep, curves, manifest)
        title = f"{result.benchmark.title}: values over {sweep.label}"
        yield Section(title, (_sweep_table(result.benchmark, sweep, curves),), only="page", folded=True)


def _figure(result: KernelResult, sweep: Sweep, curves: Sequence[Curve], manifest: Manifest) -> Figure:
    kernel = result.benchmark
    panels: dict[str, list[Line]] = {}
    for curve in curves:
        measured = curve.cell.measured
        pattern = (measured.prefetch, measured.stores, measured.loop)
        line = Line(label(kernel, measured), measured.hugepages, pattern, curve.points)
        panels.setdefault(curve.cell.compiler, []).append(line)
    caption = (
        f"{kernel.title}: {sweep.y.title} over {sweep.label}, {sweep.y.better} is better. Colour is the page "
        "policy, line style prefetch, stores and loop"
    )
    caption += "; vertical lines are this CPU's cache sizes." if sweep.of_working_set else "."
    if excluded := sum(curve.excluded for curve in result.curves if curve.sweep == sweep):
        caption += f" Excluded: {count_text(excluded, 'point')}."
    return Figure(
        f"{kernel.name}-sweep-{sweep.name}",
        f"{kernel.title}: {sweep.y.title} over {sweep.label}",
        caption,
        tuple((compiler, tuple(lines)) for compiler, lines in panels.items()),
        sweep.label,
        sweep.y.title,
        sweep.in_bytes,
        _caches(manifest) if sweep.of_working_set else (),
    )


def _caches(manifest: Manifest) -> tuple[tuple[str, float], ...]:
    """The cache sizes of the cores in use."""
    return tuple(
        (f"L{cache.level}", float(cache.bytes * -(-manifest.threads // cache.shared_by)))
        for cache in manifest.host.caches
    )


def _sweep_table(kernel: Benchmark, sweep: Sweep, curves: Sequence[Curve]) -> Table:
    """A row for each swept value, a column for each configuration."""
    values = list(dict.fromkeys(x for curve in curves for x, _ in curve.points))
    if not any(isinstance(x, str) for x in values):
        values.sort()
    columns = [Column(sweep.label, kind="bytes" if sweep.in_bytes else "swept", get=lambda x: x)]
    for curve in curves:
        name, compiler = label(kernel, curve.cell.measured), curve.cell.compiler
        columns.append(Column(f"{compiler} {name}", name, "number", compiler, get=dict(curve.points).get))
    return Table.of(f"{sweep.y.title} over {sweep.label}", columns, values)
