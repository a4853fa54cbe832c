"""What a manifest has of some kinds of sessions, and a record of a simulation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pagewise.core.events import EventFile
from pagewise.core.fields import Count, PolicyName, Positive, Seconds, Sha256, Share
from pagewise.core.structure import OPEN, As, Form, Limits


@dataclass(frozen=True)
class InputPart:
    """The standard input of each run."""

    kind: Annotated[Literal["file", "device", "pipe", "silent"], "silent: a pipe that gave nothing in time"]
    path: Annotated[str, "that of a file or device"] | None = None
    start: Annotated[Count, "the offset in a file"] | None = None
    bytes: Annotated[Count, "from there on"] | None = None
    sha256: (
        Annotated[Sha256, "of a pipe, or of a file from its middle on; `files` has that of a whole file"]
        | None
    ) = None


@dataclass(frozen=True)
class ServicePart:
    """How a program that serves was loaded."""

    load: Annotated[tuple[str, ...], Limits(1)]
    ready: str | None
    setup: tuple[str, ...]
    fill: tuple[str, ...]


@dataclass(frozen=True)
class ProgramPolicy:
    """A page policy of a program, and why it is unavailable (`unavailable_reason`)."""

    name: PolicyName
    meaning: str
    unavailable_reason: str | None


@dataclass(frozen=True)
class EnvironmentPart:
    """The caller's variables for memory, libraries and threads. removed: page policies; no run has them."""

    passed: Mapping[str, str]
    removed: Mapping[str, str]


#: The range of a ratio: least and most; null: no limit.
Range = Annotated[
    tuple[Annotated[float, Limits(most=1e9, above=0)] | None, ...],
    Limits(2, 2),
    "least and most; null: no limit",
]


@dataclass(frozen=True)
class RelativePart:
    """What a program of several is compared with: its name in `programs`, and targets by metric."""

    program: str
    targets: Annotated[Mapping[str, Range], Limits(1), "ranges of its value over that of the other"]


@dataclass(frozen=True)
class ProgramPart:
    """A program that was compared, with its page policies; further fields repeat the request."""

    command: Annotated[tuple[str, ...], Limits(1)]
    path: str
    sha256: str | None
    policies: tuple[Annotated[ProgramPolicy, OPEN], ...]
    metrics: tuple[Mapping[str, Any], ...]
    checks: tuple[str, ...]
    setup: Annotated[tuple[str, ...] | None, "shell commands in the folder of each run"] = None
    service: Annotated[ServicePart | None, "null: the program was timed itself"] = None
    environment: EnvironmentPart | None = None
    standard_input: Annotated[InputPart | None, "null: none"] = None
    relative_to: Annotated[RelativePart, "absent: nothing"] | None = None
    enough_coverage: Share | None = None
    memory_budget: Annotated[Seconds | None, "null: none"] = None
    sample_interval_seconds: Annotated[Seconds | None, "null: chosen"] = None


#: As data.
Described = Annotated[Mapping[str, Any], As(ProgramPart), OPEN]


@dataclass(frozen=True)
class CountersPart:
    """Which events were counted, how, and why so."""

    # Of earlier versions.
    IGNORED: ClassVar = ("published_events", "multiplexed")
    events: EventFile
    groups: Annotated[tuple[str, ...], Limits(1)]
    region: str | None
    reason: str
    remedy: str | None


@dataclass(frozen=True)
class GeometryName:
    """What of a geometry is read."""

    name: str
    title: str


@dataclass(frozen=True)
class SimulationPart:
    """What simulated a program: geometry (pagewise.geometry/1), emulator; how many functions to show.

    Both are absent where its time was sampled. standard_input: that of the program, None: none. origins: how
    many origins to show; None: not recorded.
    """

    # Of earlier versions.
    IGNORED: ClassVar = ("published_events",)
    geometry: Annotated[Mapping[str, Any] | None, As(GeometryName | None), OPEN, "pagewise.geometry/1"]
    tool: Annotated[str | None, "the emulator with its version"]
    functions: Annotated[Count, "how many functions the report shows"]
    standard_input: Annotated[Mapping[str, Any] | None, As(InputPart | None), "null: as absent"] = None
    origins: Annotated[Count | None, "how many origins the report shows; null: as absent"] = None


#: Least and most.
Interval = Annotated[tuple[float, ...], Limits(2, 2), "least and most"]


def _check_function(counts: Mapping[str, int | str]) -> None:
    """Raises ValueError unless it has the name of a function, and counts."""
    if [name for name, count in counts.items() if isinstance(count, str)] != ["function"]:
        raise ValueError("counts are numbers, and `function` is the name")


@dataclass(frozen=True)
class SimulatedRegion:
    """The simulated counts of a region."""

    name: str
    calls: Count
    counts: Mapping[str, Count]


#: The count of origins, and in all, where time was sampled.
SAMPLES = "SAMPLES"


def without_arguments(name: str) -> str:
    """A C++ function's name without parameters and template arguments."""
    shorter = name.replace("(anonymous namespace)", "{anonymous}")
    while (without := re.sub(r"<[^<>]*>|\([^()]*\)", "", shorter)) != shorter:
        shorter = without
    return shorter.strip() or name


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Memory of one origin: allocation site, static array, stack, heap or mapping; `others`: further ones.

    place: file and line, or module. identity: equal in each run: build ID and offset of the site's and its
    caller's return address, or build ID and symbol. wrappers: such addresses in functions that allocate for
    the site. begin, end: in executed instructions, or samples. counts: misses on base pages (L1D_TLB_REFILL,
    PAGE_WALKS), and with data on huge pages (_ON_HUGE); or SAMPLES of the time alone. distant: accesses by
    pattern, and by the number of other pages since the last one to the page, as the geometry's costs list
    them. saved_seconds: what huge pages are forecast to save here, least and most.
    """

    kind: Literal["allocation", "static", "stack", "heap", "file", "anonymous", "others"]
    name: str
    place: str | None = None
    caller: str | None = None
    identity: tuple[str, ...] = ()
    wrappers: tuple[str, ...] = ()
    modules: Annotated[Mapping[str, str], "files of identity and wrappers by build ID"] = field(
        default_factory=dict
    )
    bytes: Annotated[
        Count, "most at one time; of stack, heap and anonymous memory: those that missed the TLB"
    ]
    allocations: Count
    begin: Count
    end: Count
    page_faults: Annotated[Count, "pages of the simulated machine that were touched first"]
    counts: Mapping[str, Count]
    distant: Annotated[
        Mapping[str, tuple[Count, ...]],
        "dependent: at an address that one of the last misses loaded; independent; "
        "adjacent: on the page next to the last miss of the same instruction",
    ] = field(default_factory=dict)
    saved_seconds: Annotated[Interval | None, "null: no forecast"] = None

    @property
    def site(self) -> str:
        """Its file and line, or its name without parameters."""
        return self.place if self.place and ":" in self.place else without_arguments(self.name)

    @property
    def weight(self) -> int:
        """What it is ranked by: its samples, or its page walks on base pages."""
        return self.counts[SAMPLES] if SAMPLES in self.counts else self.counts["PAGE_WALKS"]


@dataclass(frozen=True)
class Forecast:
    """What huge pages are forecast to save. time_ratio: of policy thp, to none."""

    native_seconds: Annotated[
        tuple[Seconds, ...], Limits(1), "of runs on base pages, or their CPU time if longer"
    ]
    saved_seconds: Interval
    time_ratio: Interval


@dataclass(frozen=True)
class Sampled:
    """Samples of the time of a program's processes that have no origin, and time without samples."""

    processes: Count
    unseen: Annotated[Share, "of the CPU time: of processes that cannot be sampled"]
    no_operand: Annotated[Count, "at no known address"]
    in_kernel: Annotated[Count, "in system calls"]
    of_library: Annotated[Count, "of the library that records origins; not among the others"]
    lost: Annotated[Count, "of which no origin was kept"]


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """Counts of the TLB and cache simulator, or samples of the time; a record with these holds no time."""

    geometry: str
    tool: str | None
    pages: Annotated[str, Form("observed|base|huge|fjmpg"), "all but `observed` are assumed"]
    observed_by: Annotated[str, Form("pagemap|smaps")] | None = None
    unclear_extents: Count | None = None
    whole: Annotated[bool, "from start to end, because the program marks no regions"]
    open_regions: Count | None = None
    accesses_of_other_threads: Count | None = None
    passes: Annotated[Positive, "over the working set, that the counts are of"] | None = None
    counts: Mapping[str, Count]
    regions: tuple[SimulatedRegion, ...]
    functions: tuple[Annotated[Mapping[str, Count | str], _check_function], ...] | None = None
    origins: tuple[Origin, ...] | None = None
    sites: Annotated[bool, "whether the program's allocations were reported"] | None = None
    instructions: Annotated[Count, "of the whole run, also outside of regions"] | None = None
    sampled: Annotated[Sampled | None, "null: simulated"] = None
    child_processes: Annotated[Count, "forked, and not simulated"] | None = None
    forecast: Annotated[Forecast | None, "null: the geometry has no costs of misses"] = None
