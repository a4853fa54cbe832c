"""What commands with --json print, except verdicts: one type per schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pagewise.analysis.nodes import NodeDifference
from pagewise.analysis.sessions import ChangeStatus, ComparedQuantity
from pagewise.cluster.findings import Invalid
from pagewise.core.configuration import Configuration
from pagewise.core.fields import Natural, OptionalText
from pagewise.core.manifest import BrokenModule, SessionState
from pagewise.core.manifest_parts import Simulated
from pagewise.core.structure import As, Limits
from pagewise.report.model import From
from pagewise.report.verdicts import (
    ComparisonRow,
    Dimensions,
    OptionalNumber,
    SessionFields,
)
from pagewise.store.diff import Difference

Rows = tuple[Mapping[str, Any], ...]
DeviationKind = Literal["time", "time_ratio"]


@dataclass(frozen=True, kw_only=True)
class CountRow(Dimensions):
    """A row of counters.csv: a quantity of a configuration per pass, the median over the rounds."""

    quantity: Annotated[str, From("quantity.name")]
    kind: Annotated[Literal["run", "count", "rate", "imbalance"], From("quantity.kind")]
    unit: Annotated[str, From("quantity.unit")]
    value: OptionalNumber
    rounds: Natural
    source: Annotated[str, From("quantity.source")]


@dataclass(frozen=True, kw_only=True)
class RawCountRow(Dimensions):
    """A row of counts.csv: `count` is that of a whole run of so many passes."""

    round: Annotated[Natural, From("run.round")]
    position: Annotated[Natural, From("run.position")]
    group: Annotated[str, From("run.group")]
    event: Annotated[str, From("name")]
    native: Annotated[str, From("event.native")]
    unit: Annotated[str, From("event.unit")]
    count: float
    passes: Annotated[Natural, From("run.passes")]
    seconds_per_pass: Annotated[float, From("run.seconds")]


@dataclass(frozen=True, kw_only=True)
class NotCountedRow(Dimensions):
    """A configuration that was not counted; docs/explanation/trust.md lists the codes."""

    code: Annotated[OptionalText, From("counts.code")]
    reason: Annotated[str, From("counts.invalid")]
    remedy: Annotated[OptionalText, From("counts.remedy")]


@dataclass(frozen=True, kw_only=True)
class CountsDocument(SessionFields):
    """Counted events (counters, report with --json)."""

    schema: Literal["pagewise.counts/2"] = "pagewise.counts/2"
    events: str
    groups: tuple[str, ...]
    values: Annotated[tuple[CountRow, ...], "the rows of counters.csv"]
    comparisons: Annotated[tuple[ComparisonRow, ...], "the rows of comparisons.csv"]
    not_counted: tuple[NotCountedRow, ...]


@dataclass(frozen=True)
class SimulatedPolicy:
    """A page policy with its simulated counts, as records have them."""

    policy: str
    simulated: Annotated[Mapping[str, Any], As(Simulated)]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class MissingPolicy:
    """A page policy that could not be simulated; docs/explanation/trust.md lists the codes."""

    policy: str
    code: str
    reason: str
    remedy: OptionalText


@dataclass(frozen=True)
class SimulationDocument:
    """TLB and cache misses by the simulator (simulate --json)."""

    schema: Literal["pagewise.simulated/1"]
    folder: str
    state: SessionState
    program: str
    geometry: str
    policies: tuple[SimulatedPolicy, ...]
    missing: tuple[MissingPolicy, ...]


@dataclass(frozen=True)
class PlacementRow:
    """Where runs are to be. ranks: null without a launcher."""

    name: str
    ranks: Annotated[int, Limits(1)] | None
    threads: Annotated[int, Limits(1)]
    cpus: Annotated[tuple[int, ...], Limits(1)]
    memory: Annotated[str, From("memory.reported")]


@dataclass(frozen=True)
class CellRow:
    """A configuration that is to be measured, and how many others it stands for."""

    module: Annotated[str, From("measured.module")]
    pages: OptionalText
    placement: OptionalText
    options: OptionalText
    is_baseline: bool
    alike: Annotated[Natural, From(lambda cell: len(cell.stands_for) - 1)]


@dataclass(frozen=True)
class PlannedKernel:
    """A kernel with its runs."""

    name: str
    arguments: tuple[str, ...]
    configurations: tuple[CellRow, ...]
    runs_a_round: Natural
    sweeps: Natural


@dataclass(frozen=True)
class PlanDocument:
    """What would be run (--plan --json)."""

    schema: Literal["pagewise.plan/1"]
    name: str
    tree: str
    rounds: Annotated[int, Limits(1)]
    until: OptionalNumber
    budget_seconds: OptionalNumber
    seed: int
    baseline: str
    threads: Annotated[int, Limits(1)]
    cpus: tuple[int, ...]
    placements: Annotated[tuple[PlacementRow, ...], Limits(1)]
    kernels: tuple[PlannedKernel, ...]
    runs: Natural


@dataclass(frozen=True)
class CatalogDocument:
    """Configurations and kernels of an environment (list --json)."""

    schema: Literal["pagewise.catalog/1"]
    tree: str
    configurations: tuple[Configuration, ...]
    kernels: Annotated[Rows, "pagewise.kernel/1"]
    broken: tuple[BrokenModule, ...]


@dataclass(frozen=True)
class EnvironmentsDocument:
    """The environments that are built (list environments --json)."""

    schema: Literal["pagewise.environments/1"]
    environments: tuple[str, ...]


@dataclass(frozen=True)
class Summary:
    """A result."""

    folder: str
    result: str
    name: OptionalText
    kind: str
    state: OptionalText
    created: OptionalText
    finished: OptionalText
    hostname: OptionalText
    rounds: int | None
    kernels: tuple[str, ...]
    configurations: Natural
    records: Natural
    altered: Annotated[OptionalText, "how its records differ from those that were measured"]
    faults: tuple[str, ...]


@dataclass(frozen=True)
class Faulty:
    """A folder that is not a result."""

    folder: str
    fault: str


@dataclass(frozen=True)
class ResultsDocument:
    """Which results there are (results list --json)."""

    schema: Literal["pagewise.results/1"]
    results: Annotated[tuple[Mapping[str, Any], ...], As(tuple[Faulty | Summary, ...])]


@dataclass(frozen=True)
class RunsRow:
    """How many records a series has of a status."""

    series: str
    status: str
    records: Natural


@dataclass(frozen=True)
class ReasonRow:
    """How many records are excluded for a reason."""

    reason: str
    records: Natural


@dataclass(frozen=True, kw_only=True)
class Contents(Summary):
    """What a result holds (results show --json); further fields describe the session."""

    schema: Literal["pagewise.result/1"]
    command_line: Annotated[OptionalText, "for a shell, to measure the same again; text of the result"]
    runs: tuple[RunsRow, ...]
    excluded: tuple[ReasonRow, ...]
    cells: Rows
    files: tuple[str, ...]


@dataclass(frozen=True)
class QueryAnswer:
    """What results answered (results query --json): skipped, partial and conflicts are reasons by folder."""

    schema: Literal["pagewise.answer/1"]
    columns: tuple[str, ...]
    rows: Rows
    skipped: Mapping[str, str]
    partial: Mapping[str, str]
    conflicts: Annotated[Mapping[str, str], "an id with several contents, omitted; exit code 1"]


@dataclass(frozen=True, kw_only=True)
class ChangeRow(Dimensions):
    """What became of a configuration."""

    kernel: str
    status: ChangeStatus
    reason: Annotated[OptionalText, From("why")]
    time_ratio_new_to_old: Annotated[OptionalNumber, From("time_ratio")]
    change: Annotated[OptionalNumber, From("ratio.median")]
    change_low: Annotated[OptionalNumber, From("ratio.low")]
    change_high: Annotated[OptionalNumber, From("ratio.high")]
    p_corrected: Annotated[OptionalNumber, From("p")]
    noise_floor: Annotated[OptionalNumber, From("floor")]


@dataclass(frozen=True)
class DiffDocument:
    """What changed between results (results diff --json)."""

    schema: Literal["pagewise.diff/1"]
    old: Annotated[tuple[str, ...], Limits(1)]
    new: str
    quantity: ComparedQuantity
    threshold: float
    comparable: bool
    exit_code: Literal[0, 1, 5, 6, 7]
    answer: str
    differences: tuple[Difference, ...]
    changes: tuple[ChangeRow, ...]


@dataclass(frozen=True)
class NodeRow:
    """A node. why: the attempts that did not come to their end. result: the folder that counts."""

    name: str
    state: Literal["complete", "partial", "missing"]
    why: OptionalText
    attempts: Annotated[int, "number of comparisons on it"]
    result: Annotated[str, From(lambda node: str(node.attempt.folder))]


@dataclass(frozen=True, kw_only=True)
class QuantityFields:
    """What is compared between nodes."""

    kernel: Annotated[str, From("quantity.kernel")]
    configuration: Annotated[str, From("quantity.configuration")]
    kind: Annotated[DeviationKind, From("quantity.kind")]


@dataclass(frozen=True, kw_only=True)
class OutlierRow(QuantityFields):
    """What measured unlike the other nodes. factor: value / usual. p: corrected for nodes and quantities."""

    node: str
    value: float
    usual: float
    factor: float
    score: float
    p: float


@dataclass(frozen=True, kw_only=True)
class QuantityRow(QuantityFields):
    """A quantity over all nodes; the spread as a share."""

    nodes: int
    usual: float
    spread: float


@dataclass(frozen=True)
class ClusterReport:
    """What a comparison on nodes of a cluster found (cluster nodes --json)."""

    schema: Literal["pagewise.cluster-report/1"]
    folder: str
    verdict: Annotated[str, "the whole in a sentence"]
    nodes: tuple[NodeRow, ...]
    outliers: Annotated[tuple[OutlierRow, ...], "the farthest first"]
    invalid: tuple[Invalid, ...]
    differences: tuple[NodeDifference, ...]
    quantities: tuple[QuantityRow, ...]
    unreadable: Annotated[Mapping[str, str], "the reason by node, or by folder if its node is unknown"]
