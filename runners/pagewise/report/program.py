"""What is told of a program that is no kernel of ours: its own metrics by policy, and its memory by kind."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import rich.table
from rich import box
from rich.console import Console
from rich.text import Text

from pagewise.analysis.result import trusted_records
from pagewise.analysis.statistics import Ratio, Verdict, noise_floor, paired_ratios, ratio, verdict
from pagewise.analysis.validity import invalid_reason
from pagewise.core.configuration import policy_size
from pagewise.core.files import table_text
from pagewise.core.plan import CellKey, key_of
from pagewise.core.result import Result
from pagewise.core.units import bytes_text, number_text, percent_text
from pagewise.report import words

METRICS, MEMORY = "metrics.csv", "memory.csv"
_STYLES = {"better": "bold green", "worse": "bold red", "cannot tell": "dim"}
_OWN = ("peak_memory_gib", "system_seconds", "user_seconds")


@dataclass(frozen=True)
class MetricRow:
    """A metric under a policy: its median, and `value : that of the baseline`, paired by round.

    `verdict` is `better` or `worse` by the metric's own direction; None for the baseline.
    """

    field: str
    label: str
    unit: str
    better: str
    policy: str
    value: float
    ratio: Ratio | None
    floor: float | None
    verdict: str | None


@dataclass(frozen=True)
class MemoryRow:
    """Memory of a kind under a policy: medians over runs of its peak and of its mean over time, in bytes."""

    policy: str
    kind: str
    peak: float
    peak_huge: float
    mean: float
    mean_huge: float

    @property
    def coverage(self) -> float:
        """The share on huge pages, weighted by time."""
        return self.mean_huge / self.mean if self.mean else 0.0

    @property
    def peak_coverage(self) -> float:
        """The share of the peaks."""
        return min(1.0, self.peak_huge / self.peak) if self.peak else 0.0


@dataclass(frozen=True)
class Cost:
    """What the looking cost: the median share of one CPU during runs, and of samples a run."""

    share: float
    samples: float
    methods: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """In words."""
        took = percent_text(self.share)
        text = f"Memory was looked at {self.samples:.0f} times a run, which took {took} of a CPU"
        if any("untimed" in one for one in self.methods):
            text += "; of what was in memory too shortly for that, an untimed run of the same policy tells"
        return text + "."


def is_program(result: Result) -> bool:
    """Whether the result is one of run-policies."""
    return "program" in result.manifest


def metric_rows(result: Result) -> list[MetricRow]:
    """Each metric under each policy that was run well, in the order of the program's metrics."""
    subject = result.subjects[0]
    base = next(cell.key for cell in subject.cells if cell.is_baseline)
    records = trusted_records(result)
    valid = [record for record in records if record.get("run") and invalid_reason(record) is None]
    rows = []
    for metric in subject.kernel.metrics:
        values = {
            (cell.key, series): _by_round(valid, cell.key, series, metric.field)
            for cell in subject.cells
            for series in ("compare", "aa")
        }
        seed = zlib.crc32(f"{result.manifest['seed']}/{metric.field}".encode())
        floor = noise_floor(_against(values[base, "aa"], values[base, "compare"], seed))
        for cell in subject.cells:
            own = values[cell.key, "compare"]
            if not own:
                continue
            measured = None if cell.is_baseline else _against(own, values[base, "compare"], seed)
            rows.append(
                MetricRow(
                    metric.field,
                    metric.label,
                    metric.unit,
                    metric.better,
                    words.label(subject.kernel, cell.measured),
                    median(own.values()),
                    measured,
                    floor,
                    None if cell.is_baseline else _judged(verdict(measured, floor), metric.better),
                )
            )
    return rows


def memory_rows(records: Iterable[Mapping[str, Any]]) -> list[MemoryRow]:
    """Memory by policy and kind, of all timed runs that told it (of trial runs where no other did)."""
    by_policy: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    trials: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for record in records:
        run = record.get("run")
        if run is None or "program" not in record:
            continue
        found = trials if run["series"] == "trial" else by_policy
        who = record["configuration"]["hugepages"], run.get("placement", "")
        found.setdefault(who, []).append(record["program"])
    rows = []
    for who in dict.fromkeys((*trials, *by_policy)):
        told, policy = by_policy.get(who) or trials[who], " ".join(filter(None, who))
        kinds = dict.fromkeys(kind for one in told for kind in one["kinds"])
        for kind in kinds:
            usages = [one["kinds"][kind] for one in told if kind in one["kinds"]]
            rows.append(_memory(policy, kind, usages))
        rows.append(_memory(policy, "all", [one["total"] for one in told]))
        size = policy_size(who[0])
        given = [one["given"] for one in told if "given" in one]
        if given and size is not None:
            # smaps does not show multi-size pages; the kernel's counters do.
            peak, mean = (size * median(one[name] for one in given) for name in ("peak", "mean"))
            rows.append(MemoryRow(policy, f"{bytes_text(size)} pages", peak, peak, mean, mean))
    return rows


def cost(records: Iterable[Mapping[str, Any]]) -> Cost | None:
    """What the looking cost in timed runs, None when there was none."""
    told = [
        record["program"]
        for record in records
        if "program" in record and record.get("run", {}).get("series") in ("compare", "aa")
    ]
    if not told:
        return None
    shares = [one["sampling_seconds"] / one["sampled_seconds"] for one in told if one["sampled_seconds"] > 0]
    methods = tuple(sorted({one["method"] for one in told}, reverse=True))
    return Cost(median(shares) if shares else 0.0, median(one["samples"] for one in told), methods)


def print_program(console: Console, result: Result) -> None:
    """Prints both tables on a terminal."""
    rows = metric_rows(result)
    own = [row for row in rows if row.field not in _OWN]
    if own:
        console.print()
        console.print(_metric_table(own))
    kinds = [row for row in memory_rows(trusted_records(result)) if _worth_telling(row)]
    if kinds:
        console.print()
        console.print(_memory_table(kinds))
    told = cost(trusted_records(result))
    if told is not None:
        console.print(Text(told.sentence, style="dim"))


def metrics_csv(result: Result) -> str:
    """metrics.csv: a row for each metric and policy."""
    names = ("metric", "unit", "better", "hugepages", "value", "ratio", "low", "high", "pairs")
    rows = []
    for row in metric_rows(result):
        one = row.ratio
        told = (None,) * 4 if one is None else (one.median, one.low, one.high, one.pairs)
        who = (row.label, row.unit, row.better, row.policy, row.value)
        rows.append((*who, *told, row.floor, row.verdict))
    return table_text((*names, "noise_floor", "verdict"), rows)


def memory_csv(result: Result) -> str:
    """memory.csv: a row for each policy and kind of memory."""
    names = ("peak_bytes", "peak_huge_bytes", "mean_bytes", "mean_huge_bytes", "mean_coverage")
    rows = []
    for row in memory_rows(trusted_records(result)):
        sizes = (row.peak, row.peak_huge, row.mean, row.mean_huge)
        rows.append((row.policy, row.kind, *map(round, sizes), round(row.coverage, 6)))
    return table_text(("hugepages", "kind", *names), rows)


def for_page(result: Result) -> dict[str, Any] | None:
    """What report.html shows of it; None for a comparison of kernels."""
    if not is_program(result):
        return None
    told = cost(trusted_records(result))
    return {
        "metrics": [(row, _ratio_text(row)) for row in metric_rows(result)],
        "memory": [row for row in memory_rows(trusted_records(result)) if _worth_telling(row)],
        "cost": None if told is None else told.sentence,
        "policies": result.manifest["program"]["policies"],
        "checks": result.manifest["program"]["checks"],
        "bytes": bytes_text,
        "number": number_text,
    }


def _by_round(
    records: Sequence[Mapping[str, Any]], cell: CellKey, series: str, field: str
) -> dict[int, float]:
    """A metric by round. Ratios need numbers above zero; a time that was too short to count is none."""
    found = {}
    for record in records:
        run = record["run"]
        value = record["metrics"].get(field)
        if key_of(run) == cell and run["series"] == series and value is not None and value > 0:
            found[run["round"]] = float(value)
    return found


def _against(values: Mapping[int, float], base: Mapping[int, float], seed: int) -> Ratio | None:
    return ratio(paired_ratios(values, base), seed)


def _judged(one: Verdict, better: str) -> str:
    """Verdicts are of times: `faster` is a ratio below 1."""
    if one == "cannot tell":
        return one
    return "better" if (one == "faster") == (better == "lower") else "worse"


def _memory(policy: str, kind: str, usages: Sequence[Mapping[str, Any]]) -> MemoryRow:
    def of(when: str, what: str) -> float:
        return float(median(one[when][what] for one in usages))

    return MemoryRow(
        policy,
        kind,
        of("peak", "resident_bytes"),
        of("peak", "huge_bytes"),
        of("mean", "resident_bytes"),
        of("mean", "huge_bytes"),
    )


def _worth_telling(row: MemoryRow) -> bool:
    """All that a program really uses; 1 MiB of data or stack hides what matters."""
    return row.kind == "all" or row.peak >= 1 << 20 or row.peak_huge > 0


def _ratio_text(row: MetricRow) -> str:
    if row.ratio is None:
        return "1"
    return f"{words.ratio_text(row.ratio)} {words.interval_text(row.ratio)}".strip()


def _metric_table(rows: Sequence[MetricRow]) -> rich.table.Table:
    table = _table("Metrics of the program's output, by policy")
    for name in ("metric", "hugepages"):
        table.add_column(name, no_wrap=name == "hugepages")
    table.add_column("median", justify="right", no_wrap=True)
    for name in ("ratio, 95 % interval", "verdict"):
        table.add_column(name, no_wrap=True)
    before = ""
    for row in rows:
        name = f"{row.label} [{row.unit}], {row.better} is better"
        table.add_row(
            name if name != before else "",
            row.policy,
            number_text(row.value),
            _ratio_text(row),
            Text(row.verdict or "baseline", style=_STYLES.get(row.verdict or "", "cyan")),
        )
        before = name
    return table


def _memory_table(rows: Sequence[MemoryRow]) -> rich.table.Table:
    table = _table("Memory by kind")
    table.add_column("hugepages", no_wrap=True)
    table.add_column("kind", no_wrap=True)
    for name in ("peak", "mean", "huge,\nat peak", "huge,\nover time"):
        table.add_column(name, justify="right", no_wrap=True)
    before = ""
    for row in rows:
        table.add_row(
            row.policy if row.policy != before else "",
            row.kind,
            bytes_text(row.peak),
            bytes_text(row.mean),
            f"{row.peak_coverage:.0%}",
            f"{row.coverage:.0%}",
        )
        before = row.policy
    return table


def _table(title: str) -> rich.table.Table:
    return rich.table.Table(
        title=Text(title, style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        collapse_padding=True,
        padding=(0, 1),
    )
