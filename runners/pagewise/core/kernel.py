"""A kernel as its kernel.yaml describes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pagewise.core.configuration import OF_MACHINE, VALUES, Configuration
from pagewise.core.errors import FormatError
from pagewise.core.page_policy import PagePolicy
from pagewise.core.reading import parse_yaml, read_file
from pagewise.core.schemas import faults_of_file
from pagewise.core.structure import structured

SCHEMA = "pagewise.kernel/1"
# Dimensions that decide, with the compiler, which code it generates.
_CODE_DIMENSIONS = ("simd", "flags", "target")


@dataclass(frozen=True)
class Metric:
    """A quantity of a run: the record's field under `metrics`, its label and unit, and which is `better`.

    estimated: it is not measured, but follows from a formula for work and the time.
    """

    field: str
    label: str
    unit: str
    better: str
    convention: str | None = None
    estimated: bool = False

    @property
    def kind(self) -> str:
        """Unit and convention, and whether it is estimated: `GB/s, stream, estimated`."""
        return ", ".join(filter(None, (self.unit, self.convention, "estimated" if self.estimated else "")))

    @property
    def title(self) -> str:
        """Label with unit and convention: `Bandwidth [GB/s, stream]`."""
        return f"{self.label} [{self.kind}]"


@dataclass(frozen=True)
class Sweep:
    """A curve: the arguments that measure it, and the record's fields on its axes.

    name: unique in its kernel; by default the swept quantity, `prefetch-distance`. x: `working_set_bytes` or
    `options.<name>`. label: that of its axis. when: the values of variants, and of varied options, that have
    this curve; empty: all.
    """

    name: str
    arguments: tuple[str, ...]
    x: str
    y: Metric
    label: str
    when: Mapping[str, tuple[str, ...]]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], metrics: Iterable[Metric]) -> Sweep:
        """Reads one of a kernel.yaml's `sweeps`. Raises LookupError if y is not one of the metrics."""
        y = {metric.field: metric for metric in metrics}[data["y"]]
        label = data.get("label", swept_name(data["x"], " "))
        return cls(sweep_name(data), tuple(data["arguments"]), data["x"], y, label, _when(data))

    def suits(self, configuration: Configuration) -> bool:
        """Whether this configuration has this curve."""
        given = {variant: str(getattr(configuration, variant)) for variant in self.when}
        if "hugepages" in given:
            given["hugepages"] = PagePolicy(given["hugepages"]).kind
        return all(given[variant] in values for variant, values in self.when.items())

    @property
    def of_working_set(self) -> bool:
        """Whether the working set is swept."""
        return self.x == "working_set_bytes"

    @property
    def in_bytes(self) -> bool:
        """Whether x counts bytes."""
        return self.x.endswith("_bytes")


@dataclass(frozen=True)
class Kernel:
    """A kernel: what it is, what it is sensitive to, how it is measured.

    sensitive_to: with the compiler also `simd`, `flags` and `target`, which decide its code. default:
    whether it is compared when no kernel is named. options: the options of its program that a comparison can
    vary, with their values, the default first. ranks: whether it runs as MPI ranks, if built with MPI. data:
    the file's content.
    """

    name: str
    group: str
    title: str
    summary: str
    executable: str
    sensitive_to: tuple[str, ...]
    metrics: tuple[Metric, ...]
    arguments: tuple[str, ...]
    default: bool
    sweeps: tuple[Sweep, ...]
    options: Mapping[str, tuple[str, ...]]
    ranks: bool
    data: dict[str, Any]

    @classmethod
    def from_dict(cls, data: dict[str, Any], where: object) -> Kernel:
        """Checks and reads the content of a kernel.yaml. Raises FormatError that lists every fault."""
        metrics: tuple[Metric, ...] = ()
        faults = faults_of_file("kernel", data)
        if not faults:
            metrics = tuple(structured(Metric, entry) for entry in data["metrics"])
            faults = list(_faults_of_sweeps(data.get("sweeps", ()), metrics, data.get("options", {})))
        if faults:
            raise FormatError(
                f"this kernel.yaml does not follow {SCHEMA}:\n    " + "\n    ".join(faults),
                where=where,
                remedy="correct these fields and install the kernel again",
            )
        return cls(
            name=data["name"],
            group=data["group"],
            title=data["title"],
            summary=data["summary"],
            executable=data["executable"],
            sensitive_to=(
                *data["sensitive_to"],
                *(_CODE_DIMENSIONS if "compiler" in data["sensitive_to"] else ()),
            ),
            metrics=metrics,
            arguments=tuple(data["compare"]["arguments"]),
            default=data["compare"].get("default", False),
            sweeps=tuple(Sweep.from_dict(sweep, metrics) for sweep in data.get("sweeps", ())),
            ranks=data.get("ranks", False),
            options={name: tuple(values) for name, values in data.get("options", {}).items()},
            data=data,
        )

    @classmethod
    def from_file(cls, file: Path) -> Kernel:
        """Reads a kernel.yaml. Raises FormatError with the file, and the line if YAML reports one."""
        try:
            data = parse_yaml(read_file(file))
        except (OSError, ValueError) as fault:
            raise FormatError(
                f"this kernel.yaml cannot be read: {fault}",
                where=file,
                remedy="correct its source, and build the environment again",
            ) from fault
        if not isinstance(data, dict):
            raise FormatError(
                "this kernel.yaml is not a mapping", where=file, remedy="write `name: ...` and so on"
            )
        return cls.from_dict(data, file)

    @property
    def scales(self) -> Mapping[str, Sequence[str]]:
        """The arguments of its other problem sizes, by their names."""
        scales: Mapping[str, Sequence[str]] = self.data.get("scales", {})
        return scales

    def at_scale(self, name: str) -> Kernel:
        """The kernel with the arguments of another problem size. Raises KeyError for an unknown one."""
        compared = {**self.data["compare"], "arguments": self.scales[name]}
        return Kernel.from_dict({**self.data, "compare": compared}, self.name)

    @property
    def headline(self) -> Metric:
        """The metric in tables: the first one."""
        return self.metrics[0]

    @property
    def is_program(self) -> bool:
        """Whether it is the user's own program, of which only the pages vary."""
        return bool(self.data.get("program", False))

    def is_sensitive_to(self, dimension: str) -> bool:
        """Whether its configurations may differ in this dimension; every run has those of the machine."""
        return (
            dimension in ("openmp", "placement", "setting", *OF_MACHINE.values())
            or dimension in self.sensitive_to
            or dimension in self.options
        )

    @property
    def path(self) -> str:
        """The name with its group: `memory/schoenauer_triad`."""
        return f"{self.group}/{self.name}"

    def matches(self, pattern: str) -> bool:
        """Whether a glob matches the name or, if it has a slash, `group/name`."""
        return fnmatchcase(self.path if "/" in pattern else self.name, pattern)


def swept_name(x: str, between: str = "-") -> str:
    """The swept quantity, from the record's field: `prefetch-distance` for `options.prefetch_distance`."""
    return x.removeprefix("options.").removesuffix("_bytes").replace("_", between)


def sweep_name(sweep: Mapping[str, Any]) -> str:
    """The name of a sweep in a kernel.yaml, unique in its kernel."""
    name: str = sweep.get("name", swept_name(sweep["x"]))
    return name


def _when(sweep: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """The values of variants that a sweep names."""
    when = sweep.get("when", {})
    return {name: (value,) if isinstance(value, str) else tuple(value) for name, value in when.items()}


def _faults_of_sweeps(
    sweeps: Sequence[Mapping[str, Any]], metrics: Sequence[Metric], options: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """The faults of sweeps that no schema finds."""
    known, names = [metric.field for metric in metrics], [sweep_name(sweep) for sweep in sweeps]
    for place, sweep in enumerate(sweeps):
        if sweep["y"] not in known:
            yield f"sweeps.{place}.y: {sweep['y']!r} is not one of the metrics: {', '.join(known)}"
        if names[place] in names[:place]:
            yield f"sweeps.{place}: another sweep has the name {names[place]!r}; set `name`"
        for variant, values in _when(sweep).items():
            for value in values:
                values_known = VALUES.get(variant, options.get(variant, ()))
                if value not in values_known:
                    known_values = ", ".join(values_known)
                    yield f"sweeps.{place}.when.{variant}: {value!r} is not one of {known_values}"
