"""Counting as a workload of a session: which events, and each configuration once per group of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from rich.console import Console

from pagewise.core.errors import FormatError, SetupError
from pagewise.core.events import EventFile
from pagewise.core.manifest_parts import CountersPart
from pagewise.core.plan import Step, Subject, order_of_round
from pagewise.core.record import Record
from pagewise.core.units import count_text
from pagewise.machine.host import read_host
from pagewise.session.recorder import Recorder
from pagewise.session.session import Session
from pagewise.session.workload import Planner, Scope
from pagewise.stack.catalog import Entry
from pagewise.workloads.counters.machine import (
    EventChoice,
    choose,
    event_folder,
    hardware_counters,
    kernel_events,
    read_cpu,
)
from pagewise.workloads.kernels.choose import KernelOptions
from pagewise.workloads.kernels.workload import arrange

_EVENTS = "PAGEWISE_EVENTS"


@dataclass(frozen=True)
class Selection:
    """Which events to count, and how; see `pagewise counters --help`."""

    groups: tuple[str, ...] = ()
    events: str | None = None
    region: str | None = None


@dataclass(frozen=True)
class CountingPlanner(Planner):
    """Every configuration once per round and group of events.

    groups: settings of runs by group. unavailable: modules that no run can have.
    """

    subjects: list[Subject]
    seed: int
    groups: Mapping[str, tuple[tuple[str, str], ...]]
    unavailable: frozenset[str] = frozenset()

    def steps_of_round(self, number: int, records: Sequence[Record]) -> list[Step]:
        """Every configuration of every kernel once per group."""
        return order_of_round(self.subjects, number, self.seed, groups=self.groups)

    def can_run(self, step: Step) -> bool:
        """Whether the step starts a program."""
        return step.cell.measured.module not in self.unavailable

    def ruled_out(self, records: Sequence[Record]) -> Scope:
        """Unavailable pages affect every group; any other failure may be specific to one."""
        pages = any(record.status == "pages_unavailable" for record in records)
        return "configuration" if pages else "group"


def prepare(options: KernelOptions, selection: Selection, console: Console) -> Session:
    """Finds modules, kernels and the events for this machine; nothing is counted or written yet.

    Without chosen configurations, those that differ from the baseline in pages and compiler. Raises
    SetupError, SelectionError or FormatError.
    """
    if not options.configurations:
        options = replace(options, configurations=(f"*/{options.baseline.rpartition('/')[2]}",))
    kernels = arrange(options, console)
    entries, subjects = kernels.entries.values(), kernels.subjects
    files = installed_files(entries)
    papi = all(entry.configuration.papi == "on" for entry in entries)
    choice = choose(files, read_cpu(), papi, hardware_counters(read_host()), selection.events)
    groups = choice.file.select(selection.groups)
    settings = {group.name: ((_EVENTS, ",".join(choice.file.natives(group))),) for group in groups}
    console.print(_plan_text(subjects, options, choice, list(settings)), soft_wrap=True)
    counters = session_part(choice, list(settings), selection)
    kernels = replace(kernels, planner=CountingPlanner(subjects, options.runs.seed, settings))
    return Session(options, kernels, Recorder(kernels.manifest("counters", counters=counters)), console)


def session_part(choice: EventChoice, groups: Sequence[str], selection: Selection) -> CountersPart:
    """What the manifest keeps of counting: the events, why these, and what permits more."""
    return CountersPart(
        choice.file,
        tuple(groups),
        selection.region,
        choice.reason,
        choice.remedy,
    )


def installed_files(entries: Collection[Entry]) -> list[EventFile]:
    """The event files of this package, and those installed with the programs, by name.

    Raises SetupError where programs have none, FormatError where two builds have different ones of a name.
    """
    own = kernel_events()
    files: dict[str, EventFile] = {}
    read: dict[tuple[bytes, str], EventFile] = {}
    for entry in entries:
        paths = sorted(event_folder(entry.configuration.prefix).glob("*.yaml"))
        # A file may extend another one of its folder.
        content = b"".join(path.read_bytes() for path in paths)
        for path in paths:
            if path.stem in own:
                continue
            if (content, path.stem) not in read:
                read[content, path.stem] = EventFile.from_file(path)
            file = read[content, path.stem]
            if files.setdefault(file.name, file) != file:
                raise FormatError(
                    f"two builds have different events for {file.title}",
                    where=path,
                    remedy="build the environment again, so that all are of one version",
                )
    if not files:
        raise SetupError(
            "no event files are installed with the programs",
            where=", ".join({str(event_folder(entry.configuration.prefix)): None for entry in entries}),
            remedy="build the environment again",
        )
    return [*own.values(), *(files[name] for name in sorted(files))]


def _plan_text(
    subjects: Sequence[Subject], options: KernelOptions, choice: EventChoice, groups: Sequence[str]
) -> str:
    cells = sum(len(subject.cells) for subject in subjects)
    names = ", ".join(subject.benchmark.name for subject in subjects)
    baselines = sum(cell.is_baseline for subject in subjects for cell in subject.cells)
    runs = options.runs.rounds * (cells + baselines) * len(groups)
    return (
        f"{choice.text}\nOf: {names}. {count_text(options.runs.rounds, 'round')} of "
        f"{count_text(cells, 'configuration')} by {count_text(len(groups), 'group')} of events: "
        f"{count_text(runs, 'run')}."
    )
