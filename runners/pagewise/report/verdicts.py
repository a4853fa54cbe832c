"""What `compare --json` prints, and `report --json` for its results (schema pagewise.verdicts/1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pagewise.core.fields import Loop, OnOff, Share, Threads
from pagewise.core.manifest import State
from pagewise.core.structure import OPEN, Limits

OptionalNumber = float | None
Known = str | None
Natural = Annotated[int, Limits(0)]
OptionText = Annotated[str | None, "null: the program's default"]
VerdictName = Literal["faster", "slower", "inconclusive"]


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
    scheme: OptionText
    layout: OptionText
    table: OptionText
    parallel: OptionText
    allocation: OptionText
    copy: OptionText
    cache: OptionText
    order: OptionText
    function: OptionText
    indices: OptionText


@dataclass(frozen=True, kw_only=True)
class RatioFields:
    """A ratio with its interval; null: none."""

    ratio: OptionalNumber
    low: OptionalNumber
    high: OptionalNumber
    pairs: Natural | None


@dataclass(frozen=True, kw_only=True)
class Judged(RatioFields):
    """A ratio with a verdict."""

    noise_floor: OptionalNumber
    verdict: VerdictName
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
    rounds: Annotated[Natural, "with a valid run"]
    rounds_made: Natural
    reason: str


@dataclass(frozen=True, kw_only=True)
class AnswerRow:
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
    runs: Natural
    rounds: Annotated[Natural, "with a valid run"]
    rounds_made: Annotated[Natural, "of its kernel"]
    pass_seconds_median: OptionalNumber
    pass_seconds_trimmed_mean: OptionalNumber
    populate_seconds: OptionalNumber
    wall_seconds: OptionalNumber
    metric: str
    metric_value: OptionalNumber
    metric_unit: str
    metric_convention: Known
    metric_estimated: Annotated[bool, "from a formula, instead of measured"]
    page_size_requested_bytes: int | None
    page_size_observed_bytes: int | None
    huge_coverage: OptionalNumber
    time_ratio: OptionalNumber
    time_ratio_low: OptionalNumber
    time_ratio_high: OptionalNumber
    time_ratio_trimmed_mean: OptionalNumber
    pairs: int | None
    noise_floor: OptionalNumber
    p: OptionalNumber
    p_corrected: OptionalNumber
    verdict: VerdictName | None
    reason: Known
    memory_ratio: Annotated[OptionalNumber, "of a program's peak memory to the baseline's; null: a kernel"]
    memory_ratio_low: OptionalNumber
    memory_ratio_high: OptionalNumber
    over_memory_budget: Annotated[bool, "more than --memory-budget allows: never advised"]
    differs_in: Annotated[str, "what differs from the baseline, with blanks between"]
    change: Annotated[Known, "the dimension in which alone it differs from change_from"]
    change_from: Known
    change_from_options: Annotated[Known, "of the runs that it is compared with"]
    change_ratio: Annotated[OptionalNumber, "of its time to that of change_from"]
    change_low: OptionalNumber
    change_high: OptionalNumber
    change_pairs: int | None
    change_verdict: Known
    change_reason: Known
    change_p_corrected: OptionalNumber
    migrated_runs: Annotated[Natural, "in which a thread changed its CPU in the timed part"]
    left_node_runs: Annotated[Natural, "in which a thread ended on another NUMA node"]
    outlier_rounds: str
    slow_share: OptionalNumber
    slow_to_fast: OptionalNumber
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
class PolicyRow(RatioFields):
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
    pages_low: OptionalNumber
    pages_high: OptionalNumber
    pages_pairs: Natural
    reference_pages_ratio: Annotated[float, "the same in the second"]
    reference_pages_low: OptionalNumber
    reference_pages_high: OptionalNumber
    reference_pages_pairs: Natural
    p_corrected: OptionalNumber
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
class NodeStateVerdict(RatioFields):
    """The verdict on a page policy in a state of the node, against base pages in that state."""

    kernel: str
    compiler: str
    hugepages: str
    node_state: Literal["fresh", "aged"]
    verdict: Annotated[VerdictName | None, "null: excluded in this state"]
    reason: Known
    holds: Annotated[bool, "whether the verdict is that in the first state"]


@dataclass(frozen=True, kw_only=True)
class EnergyFields(RatioFields):
    """The energy of a configuration (docs/explanation/energy.md); ratios are null for the baseline."""

    kernel: str
    module: str
    compiler: str
    hugepages: str
    joules: Annotated[float, Limits(above=0), "per pass of a kernel or run of a program: the median"]
    watts: Annotated[OptionalNumber, "the mean power of a run: the median"]
    noise_floor: OptionalNumber
    p_corrected: OptionalNumber
    verdict: Literal["lower", "higher", "inconclusive"] | None
    reason: Known
    time_ratio: OptionalNumber
    time_low: OptionalNumber
    time_high: OptionalNumber
    time_pairs: int | None


@dataclass(frozen=True, kw_only=True)
class NodeMemoryRow:
    """The memory of the node during the timed runs of a configuration (docs/explanation/node-state.md)."""

    kernel: str
    module: str
    compiler: str
    hugepages: str
    runs: Annotated[int, Limits(1)]
    thp_faults: Annotated[Natural, "that got a transparent huge page, on the whole node"]
    thp_fallbacks: Annotated[Natural, "that got base pages instead"]
    thp_fallback_share: Annotated[Share | None, "null: not a single fault"]
    unusable_index: Annotated[Share | None, "of free memory, in blocks below the THP size: the median"]
    compaction_stalls: Natural
    khugepaged_collapsed: Natural


@dataclass(frozen=True, kw_only=True)
class CostRow(States):
    """The time and the peak memory of a policy, as ratios to the baseline's."""

    program: str
    hugepages: str
    text: Annotated[str, "7 % less time for 12 % more memory; empty for the baseline"]
    time_ratio: OptionalNumber
    time_low: OptionalNumber
    time_high: OptionalNumber
    time_pairs: int | None
    memory_ratio: OptionalNumber
    memory_low: OptionalNumber
    memory_high: OptionalNumber
    memory_pairs: int | None
    more_bytes: Annotated[OptionalNumber, "of the peak, in memory only because of the policy"]
    over_memory_budget: bool


@dataclass(frozen=True, kw_only=True)
class TargetFields:
    """A metric with a target relative to another program."""

    program: str
    metric: str
    hugepages: str
    value: OptionalNumber
    relative_to: str
    ratio: OptionalNumber
    low: OptionalNumber
    high: OptionalNumber
    answer: Known


@dataclass(frozen=True, kw_only=True)
class ProgramFigures:
    """Of compare -- PROGRAM and --suite: the programs' metrics, and their memory by policy and kind."""

    metrics: tuple[Mapping[str, Any], ...]
    memory: tuple[Mapping[str, Any], ...]
    costs: tuple[CostRow, ...]
    advice: PolicyAdvice | None
    targets: tuple[Annotated[TargetFields, OPEN], ...]


@dataclass(frozen=True, kw_only=True)
class SessionFields:
    """What the outputs of all sessions have."""

    folder: str
    name: str
    state: State
    rounds: Annotated[int, Limits(1)]
    rounds_done: Natural
    seed: int
    threads: Threads
    timing: Mapping[str, Any] | None
    until: Mapping[str, Any] | None
    left_out: Annotated[tuple[str, ...], "lines that were not valid records"]
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Verdicts(SessionFields):
    """The verdicts of a comparison (compare, report with --json)."""

    schema: Literal["pagewise.verdicts/1"]
    altered: Annotated[Known, "how the records differ from those that were measured: then nothing is ranked"]
    headline: str
    condition: Annotated[str, "the state of the node that the headline holds for"]
    findings: tuple[FaultRow, ...]
    answers: Annotated[tuple[AnswerRow, ...], "of each dimension in which something was compared"]
    kernels: tuple[KernelRow, ...]
    node_states: Annotated[tuple[NodeStateVerdict, ...], "of compare --vary node-state"] = ()
    energy: Annotated[tuple[Annotated[EnergyFields, OPEN], ...], "where it was measured"] = ()
    node_state: tuple[Annotated[NodeMemoryRow, OPEN], ...] = ()
    program: ProgramFigures | None = None
