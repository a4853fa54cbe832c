"""Event files (`share/pagewise/events/<arch>.yaml`): events, groups and derived metrics of a CPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pagewise.core.errors import FormatError, SelectionError
from pagewise.core.fields import Natural, SomeText, check_distinct
from pagewise.core.formula import SECONDS, Formula, Unit
from pagewise.core.reading import checked_document, parse_yaml, read_file
from pagewise.core.structure import Form, Limits
from pagewise.core.text import choose_of

EventName = Annotated[str, Form("[A-Z][A-Z0-9_]*")]


@dataclass(frozen=True)
class Cpu:
    """/proc/cpuinfo's vendor, family and model (x86), implementer and part (Arm), or cpu (POWER)."""

    vendor: str | None = None
    family: int | None = None
    model: int | None = None
    implementer: int | None = None
    part: int | None = None
    cpu: str | None = None


@dataclass(frozen=True)
class CpuPart:
    """Processors: by vendor, family and models, by implementer and part, or by how the cpu line begins."""

    vendor: SomeText | None = None
    family: Natural | None = None
    models: Annotated[tuple[Natural | Annotated[str, Form("0x[0-9a-f]+-0x[0-9a-f]+")], ...], Limits(1)] = ()
    implementer: Natural | None = None
    part: Natural | None = None
    cpu: SomeText | None = None

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """A part of an identification."""
        named = {name for name, value in vars(self).items() if value not in (None, ())}
        if named not in ({"vendor", "family", "models"}, {"implementer", "part"}, {"cpu"}):
            yield "", "name vendor, family and models; or implementer and part; or cpu"

    def fits(self, cpu: Cpu) -> bool:
        """Whether the CPU is one of these."""
        if self.cpu is not None:
            return cpu.cpu is not None and cpu.cpu.upper().startswith(self.cpu.upper())
        if self.implementer is not None:
            return (cpu.implementer, cpu.part) == (self.implementer, self.part)
        if (cpu.vendor, cpu.family) != (self.vendor, self.family) or cpu.model is None:
            return False
        ranges = [(model, model) if isinstance(model, int) else _range(model) for model in self.models]
        return any(first <= cpu.model <= last for first, last in ranges)


@dataclass(frozen=True)
class CounterPart:
    """How many counters there are."""

    programmable: Annotated[int, Limits(1)]
    fixed: Natural


@dataclass(frozen=True)
class ReferencePart:
    """cycles: counted in every group, to see whether the runs agree."""

    cycles: EventName
    instructions: EventName | None = None


@dataclass(frozen=True)
class ConstantPart:
    """A constant of formulas."""

    value: float
    unit: SomeText
    source: SomeText


@dataclass(frozen=True)
class Event:
    """An event. source: absent: the file's. fixed: it has a dedicated counter."""

    native: Annotated[str, Form("[A-Za-z0-9_:-]{1,63}"), "as PAPI and libpfm name it"]
    unit: Literal["count", "cycles", "instructions", "bytes", "ns"]
    description: SomeText
    source: SomeText | None = None
    fixed: bool = False
    counter: Annotated[int, Limits(1), "the only counter that can count it"] | None = None


@dataclass(frozen=True)
class EventGroup:
    """Events that are counted together, in one run."""

    name: Annotated[str, Form("[a-z][a-z0-9-]*")]
    title: SomeText
    events: Annotated[tuple[EventName, ...], Limits(1), check_distinct]


@dataclass(frozen=True)
class DerivedMetric:
    """What is derived. formula: of events, constants and `seconds`, by + - * / ( )."""

    name: Annotated[str, Form("[a-z][a-z0-9_]*")]
    title: SomeText
    formula: SomeText
    unit: SomeText
    source: SomeText | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names in its formula."""
        return Formula.of(self.formula).names

    def value(self, values: Mapping[str, float]) -> float | None:
        """The value in `unit`, from values in base units; None if one is missing."""
        value = Formula.of(self.formula).value(values)
        return None if value is None else value / float(Unit.of(self.unit).scale)


@dataclass(frozen=True, kw_only=True)
class EventFile:
    """What is counted on a micro-architecture in groups that its counters hold, and what is derived."""

    schema: Literal["pagewise.events/1"]
    name: Annotated[str, Form("[a-z][a-z0-9-]*")]
    title: SomeText
    matches: Annotated[CpuPart | None, "by /proc/cpuinfo; absent: a fallback"] = None
    pmu: Annotated[
        SomeText | Annotated[tuple[SomeText, ...], Limits(1)],
        "libpfm's name or names; papi: PAPI's presets",
    ]
    libpfm: Annotated[str, Form(r"[0-9]+\.[0-9]+"), "the first version that knows all names"]
    counters: CounterPart
    source: SomeText
    reference: ReferencePart
    constants: Mapping[EventName, ConstantPart] = field(default_factory=dict)
    events: Annotated[Mapping[EventName, Event], Limits(1)]
    groups: Annotated[tuple[EventGroup, ...], Limits(1)]
    metrics: tuple[DerivedMetric, ...]

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Undefined names, groups that do not fit, units that disagree."""
        yield from _twice("events", [entry.native for entry in self.events.values()])
        yield from _twice("groups", [group.name for group in self.groups])
        yield from _twice("metrics", [metric.name for metric in self.metrics])
        for part, name in (("cycles", self.reference.cycles), ("instructions", self.reference.instructions)):
            if name is not None and name not in self.events:
                yield f"reference.{part}", f"{name} is not an event of this file"
        for number, group in enumerate(self.groups):
            for fault in self._group_faults(group.events):
                yield f"groups.{number} ({group.name})", fault
        used = {name for group in self.groups for name in group.events}
        for name in sorted(set(self.events) - used):
            yield f"events.{name}", "no group counts it"
        units: dict[str, Unit] = {SECONDS: Unit.of("s")}
        constants = {f"constants.{name}": entry.unit for name, entry in self.constants.items()}
        events = {f"events.{name}": entry.unit for name, entry in self.events.items()}
        for place, unit in {**constants, **events}.items():
            try:
                units[place.partition(".")[2]] = Unit.of(unit)
            except ValueError as fault:
                yield place, str(fault)
        for number, metric in enumerate(self.metrics):
            for violation in _metric_faults(metric, units):
                yield f"metrics.{number} ({metric.name})", violation

    def _group_faults(self, names: Sequence[str]) -> Iterator[str]:
        events, room = self.events, self.counters
        unknown = [name for name in names if name not in events]
        if unknown:
            yield f"{', '.join(unknown)}: not an event of this file"
            return
        fixed = [name for name in names if events[name].fixed]
        if len(fixed) > room.fixed:
            yield f"{len(fixed)} events for {room.fixed} fixed counters"
        if len(names) - len(fixed) > room.programmable:
            yield f"{len(names) - len(fixed)} events for {room.programmable} counters"
        bound = [counter for name in names if (counter := events[name].counter) is not None]
        for counter in sorted({number for number in bound if bound.count(number) > 1}):
            yield f"{bound.count(counter)} events that only counter {counter} can count"
        if self.reference.cycles not in names:
            yield f"without {self.reference.cycles} its run cannot be compared with the others"

    @classmethod
    def from_dict(cls, data: object, where: object) -> EventFile:
        """Checks and parses a file's content. Raises FormatError that lists every fault."""
        return checked_document(
            cls, data, where, "correct these fields; docs/how-to/counters.md describes them"
        )

    @classmethod
    def from_file(cls, file: Path) -> EventFile:
        """Reads a file and those that it extends. Raises FormatError with its name, and YAML's line."""
        return cls.from_dict(_read_extended(file), file)

    @property
    def is_software(self) -> bool:
        """Whether it counts events of the operating system only, which need no counter of the CPU."""
        return self.name == SOFTWARE

    @property
    def cycles(self) -> str:
        """The event that every group counts."""
        return self.reference.cycles

    @property
    def by_native(self) -> dict[str, str]:
        """The events' names by what PAPI and libpfm call them."""
        return {event.native: name for name, event in self.events.items()}

    def natives(self, group: EventGroup) -> tuple[str, ...]:
        """What PAPI and libpfm call the events of a group."""
        return tuple(self.events[name].native for name in group.events)

    def select(self, names: Sequence[str]) -> tuple[EventGroup, ...]:
        """The groups with these names, in the file's order; without names, all. Raises SelectionError."""
        known = {group.name: group for group in self.groups}
        for name in names:
            if name not in known:
                raise SelectionError(
                    f"there is no group {name!r} for {self.title}",
                    where="--groups",
                    remedy=choose_of(name, known),
                )
        return tuple(group for name, group in known.items() if not names or name in names)

    def base_values(self, counts: Mapping[str, float], seconds: float | None) -> dict[str, float]:
        """Counts and constants in base units (ns as seconds), with `seconds` if it is known.

        Counts of what is not an event are ignored.
        """
        constants = {n: each.value * float(Unit.of(each.unit).scale) for n, each in self.constants.items()}
        events = {name: event for name, event in self.events.items() if name in counts}
        scaled = {name: counts[name] * float(Unit.of(each.unit).scale) for name, each in events.items()}
        return {**constants, **scaled, **({} if seconds is None else {SECONDS: seconds})}


SOFTWARE, PERF, GENERIC = "software", "perf", "generic"


def _read_extended(file: Path, extending: tuple[Path, ...] = ()) -> object:
    """The content of a file, completed by that of the file in the same folder that it extends.

    Entries of sections replace those of the same name or are added; `without` names those that are left out.
    """
    try:
        if file in extending:
            raise ValueError("it extends itself")
        data = parse_yaml(read_file(file))
        if not isinstance(data, dict) or "extends" not in data:
            return data
        base = _read_extended(file.with_name(f"{data['extends']}.yaml"), (*extending, file))
        return _extend(base, data)
    except (OSError, ValueError, LookupError, TypeError) as fault:
        raise FormatError(
            f"this event file cannot be read: {fault}", where=file, remedy="correct it, and build again"
        ) from fault


def _extend(base: Any, own: dict[str, Any]) -> dict[str, Any]:
    """A file's content and what it takes from another. Raises KeyError for unknown names to leave out."""
    left = {*own.pop("without", ())}
    content: dict[str, Any] = {**base, **{name: value for name, value in own.items() if name != "extends"}}
    known: set[str] = set()
    for section in ("constants", "events", "groups", "metrics"):
        entries = {**_by_name(base.get(section)), **_by_name(own.get(section))}
        known |= {*entries}
        kept = {name: entry for name, entry in entries.items() if name not in left}
        content[section] = kept if section in ("constants", "events") else [*kept.values()]
    if left - known:
        raise KeyError(f"without: {', '.join(sorted(left - known))}")
    return content


def _by_name(entries: Any) -> dict[str, Any]:
    """The entries of a section: a mapping, or a list of entries with names."""
    if isinstance(entries, list):
        return {entry["name"]: entry for entry in entries}
    return entries or {}


def _range(models: str) -> tuple[int, int]:
    """The first and last number of `0x10-0x1f`."""
    first, _, last = models.partition("-")
    return int(first, 16), int(last, 16)


def _twice(place: str, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield place, f"{name} is listed twice"


def _metric_faults(metric: DerivedMetric, units: Mapping[str, Unit]) -> Iterator[str]:
    try:
        declared, computed = Unit.of(metric.unit), Formula.of(metric.formula).unit(units)
    except ValueError as fault:
        yield str(fault)
        return
    if declared.powers != computed.powers:
        powers = " * ".join(f"{name}^{power}" for name, power in computed.powers.items()) or "a number"
        yield f"its formula gives {powers}, its unit is {metric.unit}"
