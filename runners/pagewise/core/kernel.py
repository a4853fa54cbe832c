"""A kernel as its kernel.yaml describes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pagewise.core.configuration import VALUES, Configuration
from pagewise.core.errors import FormatError
from pagewise.core.page_policy import policy_kind
from pagewise.core.reading import parse_yaml, read_file
from pagewise.core.schemas import faults_of_file

SCHEMA = "pagewise.kernel/1"
# What decides on a compiler's code besides the compiler.
_OF_CODE = ("simd", "target")


@dataclass(frozen=True)
class Metric:
    """A measured quantity: the record's field under `metrics`, and how to name and read it."""

    field: str
    label: str
    unit: str
    convention: str | None
    better: str

    @property
    def title(self) -> str:
        """Label with unit and convention: `Bandwidth [GB/s, stream]`."""
        return (
            f"{self.label} [{self.unit}, {self.convention}]"
            if self.convention
            else f"{self.label} [{self.unit}]"
        )


@dataclass(frozen=True)
class Sweep:
    """A curve: the arguments which measure it, and the record's fields on its axes.

    `name` tells it from the other sweeps of its kernel: what is swept, `prefetch-distance`, unless it has one
    of its own. `x` is `working_set_bytes`, or `options.<name>`; `label` is what stands at its axis. `when`
    names the variants that have this curve, all of them where it is empty.
    """

    name: str
    arguments: tuple[str, ...]
    x: str
    y: Metric
    label: str
    when: Mapping[str, tuple[str, ...]]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], metrics: Iterable[Metric]) -> Sweep:
        """Reads one of a kernel.yaml's `sweeps`. Raises LookupError for a y that is none of the metrics."""
        y = {metric.field: metric for metric in metrics}[data["y"]]
        label = data.get("label", swept_name(data["x"], " "))
        return cls(sweep_name(data), tuple(data["arguments"]), data["x"], y, label, _when(data))

    def suits(self, configuration: Configuration) -> bool:
        """Whether this configuration has such a curve."""
        return all(
            policy_kind(getattr(configuration, variant)) in values for variant, values in self.when.items()
        )

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

    A kernel that is sensitive to the compiler is sensitive to all that decides its code: `simd` and `target`.

    `default`: it is compared when no kernel is named. `data` is the file's content.
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
    data: dict[str, Any]

    @classmethod
    def from_dict(cls, data: dict[str, Any], where: object) -> Kernel:
        """Checks and reads the content of a kernel.yaml. Raises FormatError that lists every fault."""
        found = faults_of_file("kernel", data)
        if not found:
            metrics = tuple(_metric(entry) for entry in data["metrics"])
            found = list(_faults_of_sweeps(data.get("sweeps", ()), metrics))
        if found:
            raise FormatError(
                f"this kernel.yaml does not follow {SCHEMA}:\n    " + "\n    ".join(found),
                where=where,
                remedy="correct these fields and install the kernel again",
            )
        return cls(
            name=data["name"],
            group=data["group"],
            title=data["title"],
            summary=data["summary"],
            executable=data["executable"],
            sensitive_to=(*data["sensitive_to"], *(_OF_CODE if "compiler" in data["sensitive_to"] else ())),
            metrics=metrics,
            arguments=tuple(data["compare"]["arguments"]),
            default=data["compare"].get("default", False),
            sweeps=tuple(Sweep.from_dict(told, metrics) for told in data.get("sweeps", ())),
            data=data,
        )

    @classmethod
    def from_file(cls, file: Path) -> Kernel:
        """Reads a kernel.yaml. Raises FormatError naming the file, and the line where YAML gives one."""
        try:
            data = parse_yaml(read_file(file))
        except (OSError, ValueError) as fault:
            raise FormatError(
                f"this kernel.yaml cannot be read: {fault}",
                where=file,
                remedy="correct it where it came from, and build the environment again",
            ) from fault
        if not isinstance(data, dict):
            raise FormatError(
                "this kernel.yaml holds no mapping", where=file, remedy="write `name: ...` and so on"
            )
        return cls.from_dict(data, file)

    @property
    def headline(self) -> Metric:
        """The metric that a table shows: the first one."""
        return self.metrics[0]

    @property
    def is_program(self) -> bool:
        """Whether it is the user's own program, unchanged: nothing but its pages is varied."""
        return bool(self.data.get("program", False))

    def is_sensitive_to(self, dimension: str) -> bool:
        """Whether its configurations may differ in this dimension; every run has a placement."""
        return dimension == "placement" or dimension in self.sensitive_to

    @property
    def path(self) -> str:
        """The name with its group: `memory/schoenauer_triad`."""
        return f"{self.group}/{self.name}"

    def matches(self, pattern: str) -> bool:
        """Whether a glob fits the name or, where it has a slash, `group/name`."""
        return fnmatchcase(self.path if "/" in pattern else self.name, pattern)


def swept_name(x: str, between: str = "-") -> str:
    """What is swept, from the record's field: `prefetch-distance` for `options.prefetch_distance`."""
    return x.removeprefix("options.").removesuffix("_bytes").replace("_", between)


def sweep_name(sweep: Mapping[str, Any]) -> str:
    """What tells a sweep in a kernel.yaml from the others of its kernel."""
    name: str = sweep.get("name", swept_name(sweep["x"]))
    return name


def _when(sweep: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """The values of variants that a sweep names."""
    told = sweep.get("when", {})
    return {name: (one,) if isinstance(one, str) else tuple(one) for name, one in told.items()}


def _faults_of_sweeps(sweeps: Sequence[Mapping[str, Any]], metrics: Sequence[Metric]) -> Iterator[str]:
    """What the schema cannot say of the sweeps."""
    fields, swept = [metric.field for metric in metrics], [sweep_name(told) for told in sweeps]
    for place, told in enumerate(sweeps):
        if told["y"] not in fields:
            yield f"sweeps.{place}.y: {told['y']!r} is none of the metrics: {', '.join(fields)}"
        if swept[place] in swept[:place]:
            yield f"sweeps.{place}: another sweep is {swept[place]!r} already; give it a name of its own"
        for variant, values in _when(told).items():
            for value in values:
                if value not in VALUES[variant]:
                    known = ", ".join(VALUES[variant])
                    yield f"sweeps.{place}.when.{variant}: {value!r} is none of {known}"


def _metric(entry: Mapping[str, Any]) -> Metric:
    return Metric(entry["field"], entry["label"], entry["unit"], entry.get("convention"), entry["better"])
