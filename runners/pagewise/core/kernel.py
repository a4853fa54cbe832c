"""A kernel as its kernel.yaml describes it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

from pagewise.core.configuration import OF_MACHINE, OPTIONS, VALUES, Configuration
from pagewise.core.errors import FormatError
from pagewise.core.fields import Better, SomeText, check_distinct
from pagewise.core.page_policy import PagePolicy
from pagewise.core.reading import parse_yaml, read_file
from pagewise.core.structure import Form, Limits, StructureError, document

SCHEMA: Final = "pagewise.kernel/1"
# Dimensions that decide, with the compiler, which code it generates.
_CODE_DIMENSIONS = ("simd", "flags", "target")

Arguments = tuple[str, ...]
SensitiveTo = Annotated[str, Form("compiler|hugepages|prefetch|stores|loop|library|runtime|sector")]
OptionName = Annotated[str, Form("|".join(OPTIONS))]
VariedName = Annotated[str, Form("|".join((*VALUES, *OPTIONS)))]
OptionValue = Annotated[str, Form("[a-z0-9][a-z0-9_.-]*")]
FieldName = Annotated[str, Form("[a-z][a-z0-9_]*")]
NotNegative = Annotated[float, Limits(0)]


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
class ComparePart:
    """How it is compared."""

    arguments: Arguments
    default: Annotated[bool, "whether it is compared when no kernel is named"] = False


@dataclass(frozen=True)
class SmokePart:
    """How it is tried."""

    arguments: Arguments


@dataclass(frozen=True)
class SweepPart:
    """A curve of a comparison."""

    arguments: Arguments
    x: Annotated[
        str, Form(r"working_set_bytes|options\.[a-z][a-z0-9_]*"), "what is swept, as the record has it"
    ]
    y: Annotated[SomeText, "a metric's field"]
    name: Annotated[str, Form("[a-z][a-z0-9-]*"), "unique in its kernel; from x if absent"] | None = None
    label: Annotated[SomeText, "of the x axis, with its unit; from x if absent"] | None = None
    when: (
        Annotated[
            Mapping[VariedName, str | Annotated[tuple[str, ...], Limits(1)]],
            Limits(1),
            "the configurations that have this curve, by variant or varied option; absent: all",
        ]
        | None
    ) = None


@dataclass(frozen=True)
class KernelFile:
    """What a kernel is and how it is measured, as its kernel.yaml has it."""

    # Of earlier versions.
    IGNORED: ClassVar = ("published_test", "published_region")
    schema: Literal["pagewise.kernel/1"]
    name: FieldName
    group: Annotated[str, Form("[a-z][a-z0-9_-]*")]
    title: SomeText
    summary: SomeText
    executable: SomeText
    sensitive_to: Annotated[tuple[SensitiveTo, ...], Limits(1), check_distinct]
    metrics: Annotated[tuple[Metric, ...], Limits(1)]
    compare: ComparePart
    equation: str = ""
    source: str = ""
    program: Annotated[Literal[True], "the user's own program, unchanged: not in a file"] | None = None
    needs: Annotated[Literal["blas", "fftw"], "the library that it measures"] | None = None
    static_arrays: Annotated[Literal[True], "programs have 1 GiB of static memory"] | None = None
    ranks: (
        Annotated[Literal[True], "it runs as MPI ranks, if built with MPI; absent: in one process"] | None
    ) = None
    options: (
        Annotated[
            Mapping[OptionName, Annotated[tuple[OptionValue, ...], Limits(2), check_distinct]],
            Limits(1),
            "options of the program that a comparison can vary, with their values, the default first",
        ]
        | None
    ) = None
    traffic: TrafficPart | None = None
    scales: (
        Annotated[
            Mapping[Annotated[str, Form("[a-z0-9][a-z0-9_-]*")], Arguments],
            Limits(1),
            "arguments of other problem sizes (compare --scale), by their names",
        ]
        | None
    ) = None
    sweeps: Annotated[tuple[SweepPart, ...], "the curves of a comparison"] = ()
    smoke: SmokePart | None = None

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """The name of the program, and sweeps over what is unknown or that have one name."""
        if self.program is None and re.fullmatch("pw-[a-z0-9_-]+", self.executable) is None:
            yield "executable", f"{self.executable!r} does not begin with pw-"
        known, names = (
            [metric.field for metric in self.metrics],
            [Sweep.name_of(sweep) for sweep in self.sweeps],
        )
        for place, sweep in enumerate(self.sweeps):
            if sweep.y not in known:
                yield f"sweeps.{place}.y", f"{sweep.y!r} is not one of the metrics: {', '.join(known)}"
            if names[place] in names[:place]:
                yield f"sweeps.{place}", f"another sweep has the name {names[place]!r}; set `name`"
            for variant, values in Sweep.values_of(sweep).items():
                values_known = VALUES.get(variant, (self.options or {}).get(variant, ()))
                for value in filter(lambda value: value not in values_known, values):
                    yield (
                        f"sweeps.{place}.when.{variant}",
                        f"{value!r} is not one of {', '.join(values_known)}",
                    )


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
    def of(cls, part: SweepPart, metrics: Mapping[str, Metric]) -> Sweep:
        """One of a kernel.yaml's `sweeps`; metrics by field."""
        label = part.label or swept_name(part.x, " ")
        return cls(cls.name_of(part), part.arguments, part.x, metrics[part.y], label, cls.values_of(part))

    @staticmethod
    def name_of(part: SweepPart) -> str:
        """Its name in the file, or else from x."""
        return part.name or swept_name(part.x)

    @staticmethod
    def values_of(part: SweepPart) -> dict[str, tuple[str, ...]]:
        """Its `when`, always with several values."""
        when = part.when or {}
        return {name: (value,) if isinstance(value, str) else value for name, value in when.items()}

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
        try:
            file = document(KernelFile, data)
        except StructureError as error:
            raise FormatError(
                "this kernel.yaml does not follow pagewise.kernel/1:\n    " + "\n    ".join(error.texts),
                where=where,
                remedy="correct these fields and install the kernel again",
            ) from error
        metrics = {metric.field: metric for metric in file.metrics}
        return cls(
            name=file.name,
            group=file.group,
            title=file.title,
            summary=file.summary,
            executable=file.executable,
            sensitive_to=(
                *file.sensitive_to,
                *(_CODE_DIMENSIONS if "compiler" in file.sensitive_to else ()),
            ),
            metrics=file.metrics,
            arguments=file.compare.arguments,
            default=file.compare.default,
            sweeps=tuple(Sweep.of(sweep, metrics) for sweep in file.sweeps),
            ranks=file.ranks is not None,
            options=file.options or {},
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
