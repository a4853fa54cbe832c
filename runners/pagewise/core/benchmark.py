"""What is compared, whether a kernel or a program: its names, its metrics, and what its runs depend on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from pagewise.core.configuration import Configuration
from pagewise.core.fields import Better, SomeText
from pagewise.core.page_policy import PagePolicy
from pagewise.core.structure import Form, Limits

Arguments = tuple[str, ...]
FieldName = Annotated[str, Form("[a-z][a-z0-9_]*")]
NotNegative = Annotated[float, Limits(0)]
# An option of all kernels, and its default.
_REPETITIONS, _DEFAULT_REPETITIONS = "--repetitions", 5
#: What times are of: a pass of a kernel, a run of a program.
BenchmarkUnit = Literal["pass", "run"]


@dataclass(frozen=True)
class Metric:
    """A quantity of a run: the record's field under `metrics`, its label and unit, and which is `better`.

    estimated: it is not measured, but follows from a formula for work and the time.
    """

    field: FieldName
    label: SomeText
    unit: SomeText
    better: Better
    convention: Annotated[Literal["stream", "hardware"] | None, "null: as absent"] = None
    estimated: Annotated[bool, "from a formula, such as traffic per step, instead of measured"] = False

    @property
    def kind(self) -> str:
        """Unit and convention, and whether it is estimated: `GB/s, stream, estimated`."""
        return ", ".join(filter(None, (self.unit, self.convention, "estimated" if self.estimated else "")))

    @property
    def title(self) -> str:
        """Label with unit and convention: `Bandwidth [GB/s, stream]`."""
        return f"{self.label} [{self.kind}]"


@dataclass(frozen=True)
class TrafficPart:
    """What a pass of a kernel moves and computes."""

    loads: NotNegative
    stores: NotNegative
    element_bytes: Annotated[float, Limits(above=0)]
    per: (
        Annotated[FieldName, "the option with the number per pass, such as updates; absent: per element"]
        | None
    ) = None
    write_allocate: NotNegative | None = None
    lines: (
        Annotated[NotNegative, "whole cache lines that the hardware moves, instead of write_allocate"] | None
    ) = None
    flops: NotNegative | None = None


@dataclass(frozen=True)
class Sweep:
    """A curve: the arguments that measure it, and the record's fields on its axes.

    name: unique in its benchmark. x: `working_set_bytes`, `options.<name>`, or `metrics.<field>`, which is
    measured. label: that of its axis. when: the values of variants, and of varied options, that have this
    curve; empty: all.
    """

    name: str
    arguments: Arguments
    x: str
    y: Metric
    label: str
    when: Mapping[str, tuple[str, ...]]

    def suits(self, configuration: Configuration) -> bool:
        """Whether this configuration has this curve."""
        given = {name: configuration.value(name) for name in self.when}
        if "hugepages" in given:
            given["hugepages"] = PagePolicy(given["hugepages"]).kind
        return all(given[name] in values for name, values in self.when.items())

    @property
    def repetitions(self) -> int:
        """The timed repetitions of each value."""
        words = self.arguments
        return int(words[words.index(_REPETITIONS) + 1]) if _REPETITIONS in words else _DEFAULT_REPETITIONS

    @property
    def of_working_set(self) -> bool:
        """Whether the working set is swept."""
        return self.x == "working_set_bytes"

    @property
    def of_metric(self) -> bool:
        """Whether x is measured at each swept value."""
        return self.x.startswith("metrics.")

    @property
    def in_bytes(self) -> bool:
        """Whether x counts bytes."""
        return self.x.endswith("_bytes")


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """A kernel or a program, as a session compares it.

    unit: what its times are of. group: its kind. sensitive_to: the dimensions in which its configurations
    differ. options: those of its program that a comparison can vary, with their values, the default first.
    structures: those of them that select a data structure. options_of_threads: those that only builds with
    OpenMP have; others keep their first value.
    traffic: what its records must agree with, if it is known.
    """

    name: FieldName
    group: str
    title: SomeText
    summary: str
    executable: SomeText
    unit: BenchmarkUnit
    sensitive_to: Annotated[tuple[str, ...], Limits(1)]
    metrics: Annotated[tuple[Metric, ...], Limits(1)]
    arguments: Arguments = ()
    equation: str = ""
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    structures: tuple[str, ...] = ()
    options_of_threads: tuple[str, ...] = ()
    sweeps: tuple[Sweep, ...] = ()
    traffic: TrafficPart | None = None

    @property
    def headline(self) -> Metric:
        """The metric in tables: the first one."""
        return self.metrics[0]

    @property
    def judged_metrics(self) -> tuple[Metric, ...]:
        """The metrics with their own verdicts: a kernel's follow from its time per pass."""
        return self.metrics if self.unit == "run" else ()

    def is_sensitive_to(self, dimension: str) -> bool:
        """Whether its configurations may differ in this dimension; every run has those of the machine."""
        return (
            dimension in ("openmp", "placement", "setting", "node_state", "prefetchers", "clocks")
            or dimension in self.sensitive_to
            or dimension in self.options
        )

    @property
    def argument_lists(self) -> list[Arguments]:
        """Its arguments, and those of each sweep."""
        return [self.arguments, *(sweep.arguments for sweep in self.sweeps)]

    def with_arguments(self, *lists: Arguments) -> Benchmark:
        """The same with other `argument_lists`."""
        first, *others = lists
        sweeps = (replace(sweep, arguments=each) for sweep, each in zip(self.sweeps, others, strict=True))
        return replace(self, arguments=first, sweeps=tuple(sweeps))
