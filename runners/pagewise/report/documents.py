"""What commands with --json print, except verdicts: one type per schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pagewise.analysis.sessions import ChangeStatus
from pagewise.core.configuration import Configuration
from pagewise.core.fields import Share
from pagewise.core.manifest import BrokenModule, State
from pagewise.core.node_state import HugePageSupply
from pagewise.core.structure import As, Limits
from pagewise.report.verdicts import Dimensions, Known, Natural, OptionalNumber, SessionFields

Rows = tuple[Mapping[str, Any], ...]
Quantity = Literal["time", "time_ratio"]


@dataclass(frozen=True, kw_only=True)
class CountsDocument(SessionFields):
    """Counted events (counters, report with --json)."""

    schema: Literal["pagewise.counts/1"]
    events: str
    groups: tuple[str, ...]
    values: Annotated[Rows, "the rows of counters.csv"]
    ratios: Annotated[Rows, "the rows of ratios.csv"]
    not_counted: Rows


@dataclass(frozen=True)
class SimulatedPolicy:
    """A page policy with its simulated counts, as records have them."""

    policy: str
    modelled: Mapping[str, Any]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class MissingPolicy:
    """A page policy that could not be simulated; docs/explanation/trust.md lists the codes."""

    policy: str
    code: str
    reason: str
    remedy: Known


@dataclass(frozen=True)
class ModelledDocument:
    """TLB and cache misses by the simulator (simulate --json)."""

    schema: Literal["pagewise.modelled/1"]
    folder: str
    state: State
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
    memory: str


@dataclass(frozen=True)
class CellRow:
    """A configuration that is to be measured, and how many others it stands for."""

    module: str
    pages: Known
    placement: Known
    options: Known
    is_baseline: bool
    alike: Natural


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
class FindingRow:
    """The result of one check."""

    topic: str
    name: str
    state: Literal["good", "note", "lack"]
    detail: str
    remedy: Known


@dataclass(frozen=True)
class FindingsDocument:
    """What a node has for comparisons (doctor --json)."""

    schema: Literal["pagewise.findings/1"]
    ready: bool
    findings: tuple[FindingRow, ...]
    huge_pages: Annotated[HugePageSupply | None, "that programs would get now; null: no THP"]


@dataclass(frozen=True)
class SurveyedPolicy:
    """A page policy, and why it is unavailable (`lack`)."""

    policy: str
    meaning: str
    lack: Known
    remedy: Known


@dataclass(frozen=True)
class SurveyDocument:
    """Which page policies a program can have here (list policies --json)."""

    schema: Literal["pagewise.survey/1"]
    program: Known
    starts_others: Annotated[bool, "a script or launcher: the programs that it starts decide"]
    policies: tuple[SurveyedPolicy, ...]
    suites: tuple[str, ...]
    default: tuple[str, ...]


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
class KindRow:
    """Memory of a kind. eligible_bytes: aligned and large enough for huge pages."""

    resident_bytes: Natural
    huge_bytes: Natural
    eligible_bytes: Natural


@dataclass(frozen=True)
class ExecRecord:
    """The pages of a process at its end (exec --record), one object per line."""

    schema: Literal["pagewise.exec/1"]
    policy: str
    program: Annotated[str, "the program file of the process"]
    host: str
    process: Annotated[int, Limits(1)]
    rank: Annotated[Natural | None, "the MPI rank, null without one"]
    seconds: Annotated[float, Limits(0)]
    page_size_bytes: Annotated[int, Limits(1), "of the policy's huge pages"]
    met: Annotated[bool | None, "80 % on huge pages, for none and reuse none; null: unobserved"]
    coverage: Annotated[Share, "of the policy's memory on huge pages, of several parts the least"]
    peak_bytes: Natural
    observed_bytes: Annotated[Natural, "in memory at the moment for which the kinds are"]
    kinds: Mapping[Literal["heap", "anonymous", "bss", "data", "stack", "text", "file", "shared"], KindRow]
    unobserved_processes: Annotated[Natural, "with memory, ended by a signal: without a record"] = 0


@dataclass(frozen=True)
class Summary:
    """A result."""

    folder: str
    result: str
    name: Known
    kind: str
    state: Known
    created: Known
    finished: Known
    hostname: Known
    rounds: int | None
    kernels: tuple[str, ...]
    configurations: Natural
    records: Natural
    altered: Annotated[Known, "how its records differ from those that were measured"]
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
    command_line: Annotated[Known, "for a shell, to measure the same again; text of the result"]
    runs: tuple[RunsRow, ...]
    not_ranked: tuple[ReasonRow, ...]
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


@dataclass(frozen=True)
class DifferenceRow:
    """A difference of machine, system, request, compilers or builds."""

    part: Literal["machine", "node", "system", "asked", "compiler", "build", "source"]
    name: str
    old: str
    new: str
    forbids: bool


@dataclass(frozen=True, kw_only=True)
class ChangeRow(Dimensions):
    """What became of a configuration."""

    kernel: str
    module: str
    status: ChangeStatus
    reason: Known
    time_ratio_new_to_old: OptionalNumber
    change: OptionalNumber
    change_low: OptionalNumber
    change_high: OptionalNumber
    p_corrected: OptionalNumber
    noise_floor: OptionalNumber


@dataclass(frozen=True)
class DiffDocument:
    """What changed between results (results diff --json)."""

    schema: Literal["pagewise.diff/1"]
    old: Annotated[tuple[str, ...], Limits(1)]
    new: str
    quantity: Literal["ratio", "time"]
    threshold: float
    comparable: bool
    exit_code: Literal[0, 1, 5, 6, 7]
    answer: str
    differences: tuple[DifferenceRow, ...]
    changes: tuple[ChangeRow, ...]


@dataclass(frozen=True)
class NodeRow:
    """A node. why: the attempts that did not come to their end. result: the folder that counts."""

    name: str
    state: Literal["complete", "partial", "missing"]
    why: Known
    attempts: Annotated[int, "number of comparisons on it"]
    result: str


@dataclass(frozen=True)
class AwayRow:
    """What measured unlike the other nodes. factor: value / usual. p: corrected for nodes and quantities."""

    kernel: str
    configuration: str
    kind: Quantity
    node: str
    value: float
    usual: float
    factor: float
    score: float
    p: float


@dataclass(frozen=True)
class InvalidRow:
    """A configuration that is excluded on a node."""

    node: str
    kernel: str
    configuration: str
    reason: str


@dataclass(frozen=True)
class SettingRow:
    """A setting that is not alike on all nodes. usual: what more than half of them have."""

    fact: str
    usual: Known
    others: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class QuantityRow:
    """What was compared between nodes; the spread as a share."""

    kernel: str
    configuration: str
    kind: Quantity
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
    away: Annotated[tuple[AwayRow, ...], "the farthest first"]
    invalid: tuple[InvalidRow, ...]
    differences: tuple[SettingRow, ...]
    quantities: tuple[QuantityRow, ...]
    unreadable: Annotated[Mapping[str, str], "the reason by node, or by folder if its node is unknown"]
