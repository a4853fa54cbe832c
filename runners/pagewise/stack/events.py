"""Event files (`share/pagewise/events/<arch>.yaml`): events, groups and derived metrics of a CPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pagewise.core.errors import FormatError, SelectionError
from pagewise.core.formula import SECONDS, Formula, Unit
from pagewise.core.reading import parse_yaml, read_file
from pagewise.core.schemas import faults
from pagewise.core.structure import structured
from pagewise.core.suggestions import choose_of


@dataclass(frozen=True)
class Event:
    """An event to count: its name here, its name in PAPI and libpfm, and its unit."""

    name: str
    native: str
    unit: str
    description: str
    source: str
    fixed: bool = False
    counter: int | None = None


@dataclass(frozen=True)
class EventGroup:
    """Events that are counted together, in one run."""

    name: str
    title: str
    events: tuple[Event, ...]

    @property
    def variable(self) -> str:
        """The value of PAGEWISE_EVENTS for this group."""
        return ",".join(event.native for event in self.events)


@dataclass(frozen=True)
class DerivedMetric:
    """A quantity derived from counts."""

    name: str
    title: str
    formula: str
    unit: str
    source: str

    @property
    def names(self) -> tuple[str, ...]:
        """The names in its formula."""
        return Formula.of(self.formula).names

    def value(self, values: Mapping[str, float]) -> float | None:
        """The value in `unit`, from values in base units; None if one is missing."""
        value = Formula.of(self.formula).value(values)
        return None if value is None else value / float(Unit.of(self.unit).scale)


@dataclass(frozen=True)
class EventFile:
    """The content of a file, also as `data`."""

    name: str
    title: str
    pmus: tuple[str, ...]
    libpfm: str
    programmable: int
    fixed: int
    source: str
    cycles: str
    constants: Mapping[str, float]
    events: Mapping[str, Event]
    groups: tuple[EventGroup, ...]
    metrics: tuple[DerivedMetric, ...]
    data: dict[str, Any] = field(repr=False)

    @classmethod
    def from_dict(cls, data: dict[str, Any], where: object) -> EventFile:
        """Checks and parses a file's content. Raises FormatError that lists every fault."""
        all_faults = faults("events", data) or list(_inner_faults(data))
        if all_faults:
            raise FormatError(
                "this file does not follow pagewise.events/1:\n    " + "\n    ".join(all_faults),
                where=where,
                remedy="correct these fields; docs/how-to/counters.md describes them",
            )
        source, pmu = {"source": data["source"]}, data["pmu"]
        events = {
            name: structured(Event, {**source, **entry, "name": name})
            for name, entry in data["events"].items()
        }
        return cls(
            name=data["name"],
            title=data["title"],
            pmus=(pmu,) if isinstance(pmu, str) else tuple(pmu),
            libpfm=data["libpfm"],
            programmable=data["counters"]["programmable"],
            fixed=data["counters"]["fixed"],
            source=data["source"],
            cycles=data["reference"]["cycles"],
            constants={
                name: entry["value"] * float(Unit.of(entry["unit"]).scale)
                for name, entry in data.get("constants", {}).items()
            },
            events=events,
            groups=tuple(
                EventGroup(entry["name"], entry["title"], tuple(events[name] for name in entry["events"]))
                for entry in data["groups"]
            ),
            metrics=tuple(structured(DerivedMetric, {**source, **entry}) for entry in data["metrics"]),
            data=data,
        )

    @classmethod
    def from_file(cls, file: Path) -> EventFile:
        """Reads a file. Raises FormatError with its name, and the line if YAML reports one."""
        try:
            data = parse_yaml(read_file(file))
        except (OSError, ValueError) as fault:
            raise FormatError(
                f"this event file cannot be read: {fault}", where=file, remedy="correct it, and build again"
            ) from fault
        if not isinstance(data, dict):
            raise FormatError(
                "this event file is not a mapping", where=file, remedy="see docs/how-to/counters.md"
            )
        return cls.from_dict(data, file)

    @property
    def is_software(self) -> bool:
        """Whether it counts events of the operating system only, which need no counter of the CPU."""
        return self.name == SOFTWARE

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
        """Counts and constants in base units (ns as seconds), with `seconds` if it is known."""
        scaled = {name: n * float(Unit.of(self.events[name].unit).scale) for name, n in counts.items()}
        return {**self.constants, **scaled, **({} if seconds is None else {SECONDS: seconds})}


SOFTWARE, PERF, GENERIC = "software", "perf", "generic"


def merged(groups: Sequence[EventGroup]) -> EventGroup:
    """All groups as one, to count them in rotation in one run (multiplexing)."""
    events = {event.name: event for group in groups for event in group.events}
    return EventGroup("all", "All events in rotation", tuple(events.values()))


def _inner_faults(data: Mapping[str, Any]) -> Iterator[str]:
    """Faults that no schema finds: undefined names, groups that do not fit, units that disagree."""
    events = data["events"]
    yield from _twice("events", [entry["native"] for entry in events.values()])
    yield from _twice("groups", [group["name"] for group in data["groups"]])
    yield from _twice("metrics", [metric["name"] for metric in data["metrics"]])
    for part, name in data["reference"].items():
        if name not in events:
            yield f"reference.{part}: {name} is not an event of this file"
    for number, group in enumerate(data["groups"]):
        for fault in _group_faults(data, group["events"]):
            yield f"groups.{number} ({group['name']}): {fault}"
    used = {name for group in data["groups"] for name in group["events"]}
    for name in sorted(set(events) - used):
        yield f"events.{name}: no group counts it"
    units: dict[str, Unit] = {SECONDS: Unit.of("s")}
    for kind in ("constants", "events"):
        for name, entry in data.get(kind, {}).items():
            try:
                units[name] = Unit.of(entry["unit"])
            except ValueError as fault:
                yield f"{kind}.{name}: {fault}"
    for number, metric in enumerate(data["metrics"]):
        for what in _metric_faults(metric, units):
            yield f"metrics.{number} ({metric['name']}): {what}"


def _twice(place: str, names: Sequence[str]) -> Iterator[str]:
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"{place}: {name} is listed twice"


def _group_faults(data: Mapping[str, Any], names: Sequence[str]) -> Iterator[str]:
    events, room = data["events"], data["counters"]
    unknown = [name for name in names if name not in events]
    if unknown:
        yield f"{', '.join(unknown)}: not an event of this file"
        return
    fixed = [name for name in names if events[name].get("fixed")]
    if len(fixed) > room["fixed"]:
        yield f"{len(fixed)} events for {room['fixed']} fixed counters"
    if len(names) - len(fixed) > room["programmable"]:
        yield f"{len(names) - len(fixed)} events for {room['programmable']} counters"
    bound = [events[name]["counter"] for name in names if "counter" in events[name]]
    for counter in sorted({number for number in bound if bound.count(number) > 1}):
        yield f"{bound.count(counter)} events that only counter {counter} can count"
    cycles = data["reference"]["cycles"]
    if cycles not in names:
        yield f"without {cycles} its run cannot be compared with the others"


def _metric_faults(metric: Mapping[str, Any], units: Mapping[str, Unit]) -> Iterator[str]:
    try:
        declared, computed = Unit.of(metric["unit"]), Formula.of(metric["formula"]).unit(units)
    except ValueError as fault:
        yield str(fault)
        return
    if declared.powers != computed.powers:
        yield f"its formula gives {_powers_text(computed)}, its unit is {metric['unit']}"


def _powers_text(unit: Unit) -> str:
    return " * ".join(f"{name}^{power}" for name, power in unit.powers.items()) or "a number"
