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
from pagewise.core.suggestions import choose_of


@dataclass(frozen=True)
class Event:
    """Something to count: our name, that of PAPI and libpfm, and its unit."""

    name: str
    native: str
    unit: str
    description: str
    source: str
    fixed: bool = False
    counter: int | None = None


@dataclass(frozen=True)
class Group:
    """Events that are counted together, in one run."""

    name: str
    title: str
    events: tuple[Event, ...]

    @property
    def variable(self) -> str:
        """What PAGEWISE_EVENTS is for this group."""
        return ",".join(event.native for event in self.events)


@dataclass(frozen=True)
class Metric:
    """A quantity derived from counts."""

    name: str
    title: str
    formula: Formula
    unit: str
    source: str

    def value(self, values: Mapping[str, float]) -> float | None:
        """The value in `unit`, from values in base units; None where it cannot be had."""
        found = self.formula.value(values)
        return None if found is None else found / float(Unit.of(self.unit).scale)


@dataclass(frozen=True)
class EventFile:
    """All of a file. `data` is its content."""

    name: str
    title: str
    pmus: tuple[str, ...]
    libpfm: str
    programmable: int
    fixed: int
    source: str
    cycles: str
    instructions: str | None
    constants: Mapping[str, float]
    events: Mapping[str, Event]
    groups: tuple[Group, ...]
    metrics: tuple[Metric, ...]
    data: dict[str, Any] = field(repr=False)

    @classmethod
    def from_dict(cls, data: dict[str, Any], where: object) -> EventFile:
        """Checks and reads a file's content. Raises FormatError that lists every fault."""
        found = faults("events", data) or list(_inner_faults(data))
        if found:
            raise FormatError(
                "this file does not follow pagewise.events/1:\n    " + "\n    ".join(found),
                where=where,
                remedy="correct these fields; docs/counters.md tells what they mean",
            )
        source = data["source"]
        events = {
            name: Event(
                name,
                told["native"],
                told["unit"],
                told["description"],
                told.get("source", source),
                told.get("fixed", False),
                told.get("counter"),
            )
            for name, told in data["events"].items()
        }
        pmu = data["pmu"]
        return cls(
            name=data["name"],
            title=data["title"],
            pmus=(pmu,) if isinstance(pmu, str) else tuple(pmu),
            libpfm=data["libpfm"],
            programmable=data["counters"]["programmable"],
            fixed=data["counters"]["fixed"],
            source=source,
            cycles=data["reference"]["cycles"],
            instructions=data["reference"].get("instructions"),
            constants={
                name: told["value"] * float(Unit.of(told["unit"]).scale)
                for name, told in data.get("constants", {}).items()
            },
            events=events,
            groups=tuple(
                Group(told["name"], told["title"], tuple(events[name] for name in told["events"]))
                for told in data["groups"]
            ),
            metrics=tuple(
                Metric(
                    told["name"],
                    told["title"],
                    Formula.of(told["formula"]),
                    told["unit"],
                    told.get("source", source),
                )
                for told in data["metrics"]
            ),
            data=data,
        )

    @classmethod
    def from_file(cls, file: Path) -> EventFile:
        """Reads a file. Raises FormatError naming it, and the line where YAML gives one."""
        try:
            data = parse_yaml(read_file(file))
        except (OSError, ValueError) as fault:
            raise FormatError(
                f"this event file cannot be read: {fault}", where=file, remedy="correct it, and build again"
            ) from fault
        if not isinstance(data, dict):
            raise FormatError("this event file holds no mapping", where=file, remedy="see docs/counters.md")
        return cls.from_dict(data, file)

    @property
    def is_software(self) -> bool:
        """Whether it counts events of the kernel alone, for which no counter of the CPU is needed."""
        return self.name == SOFTWARE

    @property
    def needs_papi(self) -> bool:
        """Whether a name in it is none of the kernel's own, so that PAPI has to know it."""
        return any(not event.native.startswith("perf::") for event in self.events.values())

    def select(self, names: Sequence[str]) -> tuple[Group, ...]:
        """The groups of these names, in the file's order; all without any. Raises SelectionError."""
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
        """Counts and constants in base units (ns as seconds), with `seconds` where it is known."""
        scaled = {name: n * float(Unit.of(self.events[name].unit).scale) for name, n in counts.items()}
        return {**self.constants, **scaled, **({} if seconds is None else {SECONDS: seconds})}


SOFTWARE, PERF, GENERIC = "software", "perf", "generic"


def merged(groups: Sequence[Group]) -> Group:
    """All groups as one, for counting them at a time by turns (multiplexing)."""
    events = {event.name: event for group in groups for event in group.events}
    return Group("all", "All events by turns", tuple(events.values()))


def _inner_faults(data: Mapping[str, Any]) -> Iterator[str]:
    """What a schema cannot say: names that are not defined, groups that do not fit, units that disagree."""
    events = data["events"]
    yield from _twice("events", [told["native"] for told in events.values()])
    yield from _twice("groups", [group["name"] for group in data["groups"]])
    yield from _twice("metrics", [metric["name"] for metric in data["metrics"]])
    for part, name in data["reference"].items():
        if name not in events:
            yield f"reference.{part}: {name} is no event of this file"
    for number, group in enumerate(data["groups"]):
        for fault in _group_faults(data, group["events"]):
            yield f"groups.{number} ({group['name']}): {fault}"
    used = {name for group in data["groups"] for name in group["events"]}
    for name in sorted(set(events) - used):
        yield f"events.{name}: no group counts it"
    units: dict[str, Unit] = {SECONDS: Unit.of("s")}
    for kind in ("constants", "events"):
        for name, told in data.get(kind, {}).items():
            try:
                units[name] = Unit.of(told["unit"])
            except ValueError as fault:
                yield f"{kind}.{name}: {fault}"
    for number, metric in enumerate(data["metrics"]):
        what = _metric_fault(metric, units)
        if what is not None:
            yield f"metrics.{number} ({metric['name']}): {what}"


def _twice(place: str, names: Sequence[str]) -> Iterator[str]:
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"{place}: {name} is there twice"


def _group_faults(data: Mapping[str, Any], names: Sequence[str]) -> Iterator[str]:
    events, room = data["events"], data["counters"]
    unknown = [name for name in names if name not in events]
    if unknown:
        yield f"{', '.join(unknown)}: no events of this file"
        return
    fixed = [name for name in names if events[name].get("fixed")]
    if len(fixed) > room["fixed"]:
        yield f"{len(fixed)} events for {room['fixed']} fixed counters"
    if len(names) - len(fixed) > room["programmable"]:
        yield f"{len(names) - len(fixed)} events for {room['programmable']} counters"
    bound = [events[name]["counter"] for name in names if "counter" in events[name]]
    for counter in sorted({one for one in bound if bound.count(one) > 1}):
        yield f"{bound.count(counter)} events that only counter {counter} can count"
    cycles = data["reference"]["cycles"]
    if cycles not in names:
        yield f"without {cycles} it cannot be seen whether its run agrees with the others"


def _metric_fault(metric: Mapping[str, Any], units: Mapping[str, Unit]) -> str | None:
    try:
        told, found = Unit.of(metric["unit"]), Formula.of(metric["formula"]).unit(units)
    except ValueError as fault:
        return str(fault)
    if told.powers != found.powers:
        return f"its formula gives {_powers_text(found)}, its unit says {metric['unit']}"
    return None


def _powers_text(unit: Unit) -> str:
    return " * ".join(f"{name}^{power}" for name, power in unit.powers.items()) or "a number"
