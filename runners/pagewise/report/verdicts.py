"""What `compare --json` prints, and `report --json` for its results (schema pagewise.verdicts/1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pagewise.core.fields import Loop, OnOff, Share, Threads
from pagewise.core.manifest import State
from pagewise.core.structure import OPEN, Limits

Number = float | None
Known = str | None
Counted = Annotated[int, Limits(0)]
Option = Annotated[str | None, "null: the program's default"]
Change = Literal["faster", "slower", "inconclusive"]


@dataclass(frozen=True, kw_only=True)
class States:
    """The states of the machine and of the runs that are compared; null: as they are."""

    placement: Annotated[Known, "null: all runs have the same one"]
    setting: Annotated[Known, "environment variables, as NAME=value,NAME=value"]
    node_state: Annotated[Known, "the state of the node that was requested"]
    prefetchers: Annotated[Known, "the setting of the hardware prefetchers"]
    clocks: Annotated[Known, "the setting of the clocks"]


@dataclass(frozen=True, kw_only=True)
class Dimensions(States):
    """In what configurations differ; null: any value."""

    compiler: Known
    hugepages: Known
    prefetch: Known
    stores: Known
    loop: Annotated[Loop | None, "how timed loops are written"]
    library: Known
    runtime: Known
    openmp: Annotated[OnOff, "off: a build without OpenMP"]
    simd: Known
    sector: Known
    flags: Known
    target: Known
    scheme: Option
    layout: Option
    table: Option
    parallel: Option
    allocation: Option
    copy: Option
    cache: Option
    order: Option
    function: Option
    indices: Option


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """A ratio with its interval; null: none."""

    ratio: Number
    low: Number
    high: Number
    pairs: Counted | None


@dataclass(frozen=True, kw_only=True)
class Judged(Ratio):
    """A ratio with a verdict."""

    noise_floor: Number
    verdict: Change
    reason: Known


@dataclass(frozen=True, kw_only=True)
class BuildAdvice:
    """A build that has the advised value, all else as in the baseline."""

    compiler: str
    module: str
    command: Annotated[tuple[str, ...], "the words of the command that loads the module"]
    arguments: Annotated[tuple[str, ...], "of the programs, in addition to the module"]
    spec: Annotated[Known, "for spack install; null if Spack did not build it, or with flags of a toolchain"]
    compiler_options: Annotated[Known, "those that affect the code; null without"]
    kernels: Annotated[tuple[str, ...], "the kernels for which it is advised"]


@dataclass(frozen=True, kw_only=True)
class PolicyAdvice:
    """How a program gets the advised pages."""

    policy: str
    command: Annotated[tuple[str, ...], "its words; PROGRAM stands for a program that was not measured"]
    module: Annotated[Known, "the module for a whole job script; null without one"]


@dataclass(frozen=True, kw_only=True)
class FaultRow:
    """A configuration that is excluded for a fault; docs/explanation/trust.md lists the codes."""

    code: str
    kernel: str
    title: str
    compiler: str
    module: str
    configuration: str
    hugepages: str
    rounds: Annotated[Counted, "with a valid run"]
    rounds_made: Counted
    reason: str


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the comparison reports of a dimension.

    outcome: use one of the values; keep the baseline's, because the values are slower; choose by kernel; all
    the same; unclear: the mean shows a difference that the verdicts do not confirm; null: too few rounds.
    """

    factor: str
    compiler: Annotated[Known, "null: for all compilers"]
    loop: Annotated[Loop | None, "of both sides; null: as in the baseline"]
    outcome: Literal["use", "keep", "choose", "same", "unclear"] | None
    values: tuple[str, ...]
    question: str
    lead: Literal["Yes. ", "No. ", "Unclear. ", ""]
    text: str
    more: Annotated[str, "the time ratios with their intervals, and the verdicts"]
    cost: Annotated[str, "what a program needs for the advised value; empty if nothing changes"]
    apply: Annotated[tuple[BuildAdvice, ...], "empty for a program"]
    policy: Annotated[PolicyAdvice | None, "null for other answers"]


@dataclass(frozen=True, kw_only=True)
class BestRow:
    """The best configuration of a compiler."""

    compiler: str
    hugepages: Known
    is_baseline: Annotated[bool, "nothing is faster than the baseline"]
    equally_good: Annotated[tuple[str, ...], "modules"]
    apply: Annotated[BuildAdvice | None, "null for a program"]


@dataclass(frozen=True, kw_only=True)
class ConfigurationRow(Dimensions):
    """A row of summary.csv; time_ratio below 1 is faster than the baseline; times in seconds."""

    kernel: str
    module: str
    measured_as: str
    builder: str
    hash: str
    is_baseline: bool
    runs: Counted
    rounds: Annotated[Counted, "with a valid run"]
    rounds_made: Annotated[Counted, "of its kernel"]
    pass_seconds_median: Number
    pass_seconds_trimmed_mean: Number
    populate_seconds: Number
    wall_seconds: Number
    metric: str
    metric_value: Number
    metric_unit: str
    metric_convention: Known
    metric_estimated: Annotated[bool, "from a formula, instead of measured"]
    page_size_requested_bytes: int | None
    page_size_observed_bytes: int | None
    huge_coverage: Number
    time_ratio: Number
    time_ratio_low: Number
    time_ratio_high: Number
    time_ratio_trimmed_mean: Number
    pairs: int | None
    noise_floor: Number
    p: Number
    p_corrected: Number
    verdict: Change | None
    reason: Known
    memory_ratio: Annotated[Number, "of a program's peak memory to the baseline's; null: a kernel"]
    memory_ratio_low: Number
    memory_ratio_high: Number
    over_memory_budget: Annotated[bool, "more than --memory-budget allows: never advised"]
    differs_in: Annotated[str, "what differs from the baseline, with blanks between"]
    change: Annotated[Known, "the dimension in which alone it differs from change_from"]
    change_from: Known
    change_from_options: Annotated[Known, "of the runs that it is compared with"]
    change_ratio: Annotated[Number, "of its time to that of change_from"]
    change_low: Number
    change_high: Number
    change_pairs: int | None
    change_verdict: Known
    change_reason: Known
    change_p_corrected: Number
    migrated_runs: Annotated[Counted, "in which a thread changed its CPU in the timed part"]
    left_node_runs: Annotated[Counted, "in which a thread ended on another NUMA node"]
    outlier_rounds: str
    slow_share: Number
    slow_to_fast: Number
    code: Annotated[Known, "why it is not ranked; docs/explanation/trust.md lists the codes"]
    invalid: Known
    remedy: Known
    note: Known


@dataclass(frozen=True, kw_only=True)
class CompilerRow(Judged):
    """Two compilers."""

    compiler: str
    reference: str
    loop: Annotated[Loop | None, "how the loops of both are written; null: as in the baseline"]


@dataclass(frozen=True, kw_only=True)
class PolicyRow(Ratio):
    """A row of policies.csv."""

    quantity: str
    compiler: str
    hugepages: str
    reference: Known


@dataclass(frozen=True, kw_only=True)
class StructureRow(Dimensions, Judged):
    """What a value of an option changes in the time ratio of pages to base pages."""

    dimension: Annotated[Literal["scheme", "layout", "table"], "the option in which both differ"]
    reference: Annotated[str, "its value in the second, the baseline's; the other fields are of the first"]
    pages_ratio: Annotated[float, "time ratio to base pages in the first"]
    pages_low: Number
    pages_high: Number
    pages_pairs: Counted
    reference_pages_ratio: Annotated[float, "the same in the second"]
    reference_pages_low: Number
    reference_pages_high: Number
    reference_pages_pairs: Counted
    p_corrected: Number
    share: Annotated[Share | None, "of the larger effect of pages, in log; null: not significant"]


@dataclass(frozen=True, kw_only=True)
class KernelRow:
    """A kernel, or the user's program."""

    name: str
    title: str
    metrics: tuple[Mapping[str, Any], ...]
    best: tuple[BestRow, ...]
    configurations: tuple[ConfigurationRow, ...]
    compilers: tuple[CompilerRow, ...]
    policies: tuple[PolicyRow, ...]
    structures: tuple[StructureRow, ...]


@dataclass(frozen=True, kw_only=True)
class NodeStateVerdict(Ratio):
    """The verdict on a page policy in a state of the node, against base pages in that state."""

    kernel: str
    compiler: str
    hugepages: str
    node_state: Literal["fresh", "aged"]
    verdict: Annotated[Change | None, "null: excluded in this state"]
    reason: Known
    holds: Annotated[bool, "whether the verdict is that in the first state"]


@dataclass(frozen=True, kw_only=True)
class EnergyRow(Ratio):
    """The energy of a configuration (docs/explanation/energy.md); ratios are null for the baseline."""

    kernel: str
    module: str
    compiler: str
    hugepages: str
    joules: Annotated[float, Limits(above=0), "per pass of a kernel or run of a program: the median"]
    watts: Annotated[Number, "the mean power of a run: the median"]
    noise_floor: Number
    p_corrected: Number
    verdict: Literal["lower", "higher", "inconclusive"] | None
    reason: Known
    time_ratio: Number
    time_low: Number
    time_high: Number
    time_pairs: int | None


@dataclass(frozen=True, kw_only=True)
class NodeMemoryRow:
    """The memory of the node during the timed runs of a configuration (docs/explanation/node-state.md)."""

    kernel: str
    module: str
    compiler: str
    hugepages: str
    runs: Annotated[int, Limits(1)]
    thp_faults: Annotated[Counted, "that got a transparent huge page, on the whole node"]
    thp_fallbacks: Annotated[Counted, "that got base pages instead"]
    thp_fallback_share: Annotated[Share | None, "null: not a single fault"]
    unusable_index: Annotated[Share | None, "of free memory, in blocks below the THP size: the median"]
    compaction_stalls: Counted
    khugepaged_collapsed: Counted


@dataclass(frozen=True, kw_only=True)
class CostRow(States):
    """The time and the peak memory of a policy, as ratios to the baseline's."""

    hugepages: str
    text: Annotated[str, "7 % less time for 12 % more memory; empty for the baseline"]
    time_ratio: Number
    time_low: Number
    time_high: Number
    time_pairs: int | None
    memory_ratio: Number
    memory_low: Number
    memory_high: Number
    memory_pairs: int | None
    more_bytes: Annotated[Number, "of the peak, in memory only because of the policy"]
    over_memory_budget: bool


@dataclass(frozen=True, kw_only=True)
class ProgramFigures:
    """Of compare -- PROGRAM: the program's metrics, and its memory by policy and kind."""

    metrics: tuple[Mapping[str, Any], ...]
    memory: tuple[Mapping[str, Any], ...]
    costs: tuple[CostRow, ...]
    advice: PolicyAdvice | None


@dataclass(frozen=True, kw_only=True)
class Session:
    """What the outputs of all sessions have."""

    folder: str
    name: str
    state: State
    rounds: Annotated[int, Limits(1)]
    rounds_done: Counted
    seed: int
    threads: Threads
    timing: Mapping[str, Any] | None
    until: Mapping[str, Any] | None
    left_out: Annotated[tuple[str, ...], "lines that were not valid records"]
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Verdicts(Session):
    """The verdicts of a comparison (compare, report with --json)."""

    schema: Literal["pagewise.verdicts/1"]
    altered: Annotated[Known, "how the records differ from those that were measured: then nothing is ranked"]
    headline: str
    condition: Annotated[str, "the state of the node that the headline holds for"]
    findings: tuple[FaultRow, ...]
    answers: Annotated[tuple[Answer, ...], "of each dimension in which something was compared"]
    kernels: tuple[KernelRow, ...]
    node_states: Annotated[tuple[NodeStateVerdict, ...], "of compare --node-state"] = ()
    energy: Annotated[tuple[Annotated[EnergyRow, OPEN], ...], "where it was measured"] = ()
    node_state: tuple[Annotated[NodeMemoryRow, OPEN], ...] = ()
    program: ProgramFigures | None = None
    metrics: Annotated[tuple[Mapping[str, Any], ...], "of several programs: the metrics of each"] = ()
