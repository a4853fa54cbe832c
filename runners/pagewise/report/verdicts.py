"""What `compare --json` prints, and `report --json` for its results; the rows of the CSV files next to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pagewise.analysis.choices import AdviceOutcome
from pagewise.analysis.comparison import Kind, Reason, Verdict
from pagewise.analysis.usage import MemoryRow
from pagewise.core.benchmark import Metric
from pagewise.core.fields import Loop, Natural, OnOff, OptionalText, Share, Threads
from pagewise.core.manifest import SessionState
from pagewise.core.record_parts import POWER
from pagewise.core.structure import Limits
from pagewise.report.model import From, value_of

OptionalNumber = float | None
Configured = Annotated[str | None, From("configuration.{}")]
Lead = Literal["Yes. ", "No. ", "Unclear. ", ""]
_OF_ROW = From("row.{}")


def _compared_field(dimension: str) -> From:
    """What runs get that is compared."""
    return From(lambda item: value_of(item, "configuration").value(dimension))


@dataclass(frozen=True, kw_only=True)
class Dimensions:
    """A configuration, and in what it differs from others; null: any value, or as it is on the machine."""

    kernel: Annotated[str, From("benchmark.name")]
    module: Annotated[str, From("configuration.module")]
    compiler: Configured
    hugepages: Configured
    prefetch: Configured
    stores: Configured
    loop: Annotated[Loop | None, From("configuration.{}"), "how timed loops are written"]
    library: Configured
    runtime: Configured
    openmp: Annotated[OnOff, From("configuration.{}"), "off: a build without OpenMP"]
    simd: Configured
    sector: Configured
    flags: Configured
    target: Configured
    options: Annotated[
        Mapping[str, str],
        From("configuration.settings.options"),
        "of its runs that were compared, by name; in CSV files a column each",
    ]
    placement: Annotated[OptionalText, From("configuration.{}"), "null: all runs have the same one"]
    setting: Annotated[
        OptionalText, _compared_field("setting"), "environment variables, as NAME=value,NAME=value"
    ]
    node_state: Annotated[
        OptionalText, _compared_field("node_state"), "the state of the node that was requested"
    ]
    prefetchers: Annotated[
        OptionalText, _compared_field("prefetchers"), "the setting of the hardware prefetchers"
    ]
    clocks: Annotated[OptionalText, _compared_field("clocks"), "the setting of the clocks"]


@dataclass(frozen=True, kw_only=True)
class ComparisonRow(Dimensions):
    """A quantity of a configuration over that of its reference; the other fields are of the first.

    kind: `baseline` to the compiler's baseline, `change` to the configuration that differs in `dimension`
    alone, `compilers`, `pages` (with : without huge pages, and compilers by pages, not judged), `structure`
    (the time ratio of pages in one data structure over that in another), `energy`, `metric` of a program,
    `target` relative to another program. A baseline's own energy or metric has no ratio.
    """

    kind: Kind
    dimension: Annotated[OptionalText, "in which alone both differ; null: in several, or not applicable"]
    reference: Annotated[OptionalText, From("reference.measured.module"), "the module of the reference"]
    reference_options: Annotated[OptionalText, From("reference.options"), "of its runs"]
    reference_kernel: Annotated[OptionalText, "the other program; null: the same"]
    quantity: Annotated[str, From("quantity.name")]
    label: Annotated[str, From("quantity.label")]
    unit: Annotated[str, From("quantity.unit")]
    better: Annotated[Literal["lower", "higher"] | None, From("quantity.better")]
    value: Annotated[OptionalNumber, "median; of a structure the time ratio of pages"]
    reference_value: OptionalNumber
    ratio: Annotated[OptionalNumber, From("ratio.median")]
    low: Annotated[OptionalNumber, From("ratio.low")]
    high: Annotated[OptionalNumber, From("ratio.high")]
    pairs: Annotated[Natural | None, From("ratio.pairs")]
    is_difference: Annotated[
        bool | None, From("ratio.is_difference"), "of values that are not all above zero"
    ]
    noise_floor: Annotated[OptionalNumber, From("floor")]
    p_corrected: Annotated[OptionalNumber, From("p")]
    verdict: Annotated[Verdict | None, "null: not judged"]
    reason: Annotated[Reason | None, "why it is inconclusive"]
    share: Annotated[
        Share | None, "of a structure: of the larger effect of pages, in log; null: not significant"
    ]
    target_least: Annotated[OptionalNumber, From("least")]
    target_most: Annotated[OptionalNumber, From("most")]


@dataclass(frozen=True, kw_only=True)
class BuildAdvice:
    """A build that has the advised value, all else as in the baseline."""

    compiler: str
    module: str
    command: Annotated[tuple[str, ...], "the words of the command that loads the module"]
    arguments: Annotated[tuple[str, ...], "of the programs, in addition to the module"]
    spec: Annotated[
        OptionalText, "for spack install; null if Spack did not build it, or with flags of a toolchain"
    ]
    compiler_options: Annotated[OptionalText, "those that affect the code; null without"]
    kernels: Annotated[tuple[str, ...], "the kernels for which it is advised"]


@dataclass(frozen=True, kw_only=True)
class PolicyAdvice:
    """How a program gets the advised pages."""

    policy: str
    command: Annotated[tuple[str, ...], "its words; PROGRAM stands for a program that was not measured"]
    module: Annotated[OptionalText, "the module for a whole job script; null without one"]


@dataclass(frozen=True, kw_only=True)
class FaultRow:
    """A configuration that is excluded for a fault; docs/explanation/trust.md lists the codes."""

    code: Annotated[str, _OF_ROW]
    kernel: Annotated[str, From("benchmark.name")]
    title: Annotated[str, From("benchmark.title")]
    compiler: Annotated[str, From("group.compiler")]
    module: Annotated[str, From("configuration.module")]
    configuration: Annotated[str, From("label")]
    hugepages: Annotated[str, From("configuration.hugepages")]
    rounds: Annotated[Natural, _OF_ROW, "with a valid run"]
    rounds_made: Annotated[Natural, _OF_ROW]
    reason: Annotated[str, From("row.invalid")]


@dataclass(frozen=True, kw_only=True)
class AnswerRow:
    """What the comparison reports of a dimension.

    outcome: use one of the values; keep the baseline's, because the values are slower; choose by kernel; all
    the same; unclear: the mean shows a difference that the verdicts do not confirm; null: too few rounds.
    """

    factor: str
    compiler: Annotated[OptionalText, "null: for all compilers"]
    loop: Annotated[Loop | None, "of both sides; null: as in the baseline"]
    outcome: AdviceOutcome | None
    values: tuple[str, ...]
    question: str
    lead: Lead
    text: str
    more: Annotated[str, "the time ratios with their intervals, and the verdicts"]
    cost: Annotated[str, "what a program needs for the advised value; empty if nothing changes"]
    apply: Annotated[tuple[BuildAdvice, ...], "empty for a program"]
    policy: Annotated[PolicyAdvice | None, "null for other answers"]


@dataclass(frozen=True, kw_only=True)
class BestRow:
    """The best configuration of a compiler."""

    compiler: str
    hugepages: OptionalText
    is_baseline: Annotated[bool, "nothing is faster than the baseline"]
    equally_good: Annotated[tuple[str, ...], "modules"]
    apply: Annotated[BuildAdvice | None, "null for a program"]


@dataclass(frozen=True, kw_only=True)
class ConfigurationRow(Dimensions):
    """A row of summary.csv; time_ratio below 1 is faster than the baseline; times in seconds."""

    measured_as: Annotated[str, From("row.cell.measured.module")]
    builder: Annotated[str, From("configuration.builder")]
    hash: Annotated[str, From("configuration.hash")]
    is_baseline: Annotated[bool, From("row.cell.is_baseline")]
    runs: Annotated[Natural, _OF_ROW]
    rounds: Annotated[Natural, _OF_ROW, "with a valid run"]
    rounds_made: Annotated[Natural, _OF_ROW, "of its kernel, while it needed them"]
    pass_seconds_median: Annotated[OptionalNumber, From("row.seconds")]
    pass_seconds_trimmed_mean: Annotated[OptionalNumber, From("row.seconds_trimmed")]
    first_touch_seconds: Annotated[OptionalNumber, From("row.first_touch")]
    wall_seconds: Annotated[OptionalNumber, From("row.wall")]
    method: Annotated[OptionalText, _OF_ROW, "of its runs: turns, runs (whole ones), or both"]
    whole_because: Annotated[OptionalText, _OF_ROW, "why it took no turns, unless that was the request"]
    metric: Annotated[str, From("benchmark.headline.field")]
    metric_value: Annotated[
        OptionalNumber, From(lambda entry: entry.row.metrics.get(entry.benchmark.headline.field))
    ]
    metric_unit: Annotated[str, From("benchmark.headline.unit")]
    metric_convention: Annotated[OptionalText, From("benchmark.headline.convention")]
    metric_estimated: Annotated[
        bool, From("benchmark.headline.estimated"), "from a formula, instead of measured"
    ]
    page_size_requested_bytes: Annotated[int | None, From("row.pages.page_size_requested_bytes")]
    page_size_observed_bytes: Annotated[int | None, From("row.pages.page_size_observed_bytes")]
    huge_coverage: Annotated[OptionalNumber, From("row.pages.huge_coverage")]
    time_ratio: Annotated[OptionalNumber, From("row.time.ratio.median")]
    time_ratio_low: Annotated[OptionalNumber, From("row.time.ratio.low")]
    time_ratio_high: Annotated[OptionalNumber, From("row.time.ratio.high")]
    time_ratio_trimmed_mean: Annotated[OptionalNumber, From("row.time.ratio.trimmed")]
    pairs: Annotated[int | None, From("row.time.ratio.pairs")]
    noise_floor: Annotated[OptionalNumber, From("group.floor")]
    p: Annotated[OptionalNumber, From("row.time.ratio.p")]
    p_corrected: Annotated[OptionalNumber, From("row.time.p")]
    verdict: Annotated[Literal["faster", "slower", "inconclusive"] | None, From("row.time.verdict")]
    reason: Annotated[Reason | None, _OF_ROW]
    power_watts: Annotated[
        OptionalNumber, From(f"row.metrics.{POWER}"), "the mean power of a run: the median"
    ]
    memory_ratio: Annotated[
        OptionalNumber,
        From("row.memory.median"),
        "of a program's peak memory to the baseline's; null: a kernel",
    ]
    memory_ratio_low: Annotated[OptionalNumber, From("row.memory.low")]
    memory_ratio_high: Annotated[OptionalNumber, From("row.memory.high")]
    more_memory_bytes: Annotated[OptionalNumber, "of the peak, in memory only because of the policy"]
    over_memory_budget: Annotated[
        bool, From("row.over_budget"), "more than memory_budget of its case allows: never advised"
    ]
    differs_in: Annotated[
        str,
        From(lambda entry: " ".join(entry.row.differs)),
        "what differs from the baseline, with blanks between",
    ]
    migrated_runs: Annotated[
        Natural, From("row.migrated_runs"), "in which a thread changed its CPU in the timed part"
    ]
    left_node_runs: Annotated[
        Natural, From("row.left_node_runs"), "in which a thread ended on another NUMA node"
    ]
    outlier_rounds: Annotated[str, From(lambda entry: " ".join(f"{n}" for n, _ in entry.row.outliers))]
    slow_share: Annotated[OptionalNumber, From("row.bimodal.slow_share")]
    slow_to_fast: Annotated[OptionalNumber, From("row.bimodal.apart")]
    code: Annotated[OptionalText, _OF_ROW, "why it is not ranked; docs/explanation/trust.md lists the codes"]
    invalid: Annotated[OptionalText, _OF_ROW]
    remedy: Annotated[OptionalText, _OF_ROW]
    note: Annotated[OptionalText, _OF_ROW]


@dataclass(frozen=True, kw_only=True)
class KernelRow:
    """A kernel, or the user's program."""

    name: str
    title: str
    metrics: tuple[Metric, ...]
    best: tuple[BestRow, ...]
    configurations: tuple[ConfigurationRow, ...]


@dataclass(frozen=True, kw_only=True)
class NodeMemoryRow(Dimensions):
    """The memory of the node during the timed runs of a configuration (docs/explanation/node-state.md)."""

    runs: Annotated[int, From("use.runs"), Limits(1)]
    thp_faults: Annotated[
        Natural, From("use.allocated"), "that got a transparent huge page, on the whole node"
    ]
    thp_fallbacks: Annotated[Natural, From("use.fell_back"), "that got base pages instead"]
    thp_fallback_share: Annotated[Share | None, From("use.fallback_share"), "null: not a single fault"]
    unusable_index: Annotated[
        Share | None, From("use.unusable"), "of free memory, in blocks below the THP size: the median"
    ]
    compaction_stalls: Annotated[Natural, From("use.stalls")]
    khugepaged_collapsed: Annotated[Natural, From("use.collapsed")]


@dataclass(frozen=True, kw_only=True)
class ProgramFigures:
    """Of programs: their memory by policy and kind, and the command that applies the advice."""

    memory: tuple[MemoryRow, ...]
    advice: PolicyAdvice | None


@dataclass(frozen=True, kw_only=True)
class SessionFields:
    """What the outputs of all sessions have."""

    folder: str
    name: str
    state: SessionState
    rounds: Annotated[int, Limits(1)]
    rounds_done: Natural
    seed: int
    threads: Threads
    timing: Mapping[str, Any] | None
    until: Mapping[str, Any] | None
    excluded: Annotated[tuple[str, ...], "lines that were not valid records"]
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Verdicts(SessionFields):
    """The verdicts of a comparison (compare, report with --json)."""

    schema: Literal["pagewise.verdicts/2"] = "pagewise.verdicts/2"
    altered: Annotated[
        OptionalText, "how the records differ from those that were measured: then nothing is ranked"
    ]
    headline: str
    condition: Annotated[str, "the state of the node that the headline holds for"]
    findings: tuple[FaultRow, ...]
    answers: Annotated[tuple[AnswerRow, ...], "of each dimension in which something was compared"]
    kernels: tuple[KernelRow, ...]
    comparisons: Annotated[tuple[ComparisonRow, ...], "the rows of comparisons.csv"]
    node_state: tuple[NodeMemoryRow, ...]
    program: Annotated[ProgramFigures | None, "null: kernels"]


@dataclass(frozen=True, kw_only=True)
class MedianRow(Dimensions):
    """A row of data.csv: a quantity of a configuration, or a point of a curve, with its placement."""

    title: Annotated[str, From("benchmark.title")]
    ranks: Annotated[int | None, From("place.ranks")]
    threads: Annotated[int, From("place.threads")]
    cores: Annotated[int | None, From("place.cores")]
    memory: Annotated[str, From(lambda row: row["place"].policy or row["place"].memory)]
    sweep: OptionalText
    swept: OptionalText
    quantity: Annotated[str, From("metric.field")]
    unit: Annotated[str, From("metric.unit")]
    better: Annotated[str, From("metric.better")]
    value: OptionalNumber
    invalid: OptionalText
