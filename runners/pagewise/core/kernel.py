"""A kernel as its kernel.yaml describes it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pagewise.core.benchmark import Arguments, Benchmark, FieldName, Metric, Sweep, TrafficPart
from pagewise.core.configuration import VALUES, Configuration
from pagewise.core.fields import SomeText, check_distinct
from pagewise.core.reading import parse_yaml, read_file
from pagewise.core.structure import Form, Limits

# Dimensions that decide, with the compiler, which code it generates.
_CODE_DIMENSIONS = ("simd", "flags", "target")

SensitiveTo = Annotated[str, Form("compiler|hugepages|prefetch|stores|loop|library|runtime|sector")]
OptionValue = Annotated[str, Form("[a-z0-9][a-z0-9_.-]*")]


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
        str,
        Form(r"working_set_bytes|(options|metrics)\.[a-z][a-z0-9_]*"),
        "what is swept, or a metric that follows it, as the record has it",
    ]
    y: Annotated[SomeText, "a metric's field"]
    name: Annotated[str, Form("[a-z][a-z0-9-]*"), "unique in its kernel; from x if absent"] | None = None
    label: Annotated[SomeText, "of the x axis, with its unit; from x if absent"] | None = None
    when: (
        Annotated[
            Mapping[FieldName, str | Annotated[tuple[str, ...], Limits(1)]],
            Limits(1),
            "the configurations that have this curve, by variant or varied option; absent: all",
        ]
        | None
    ) = None

    @property
    def known_name(self) -> str:
        """Its name in the file, or else from x."""
        return self.name or swept_name(self.x)

    @property
    def values(self) -> dict[str, tuple[str, ...]]:
        """Its `when`, always with several values."""
        when = self.when or {}
        return {name: (value,) if isinstance(value, str) else value for name, value in when.items()}

    def sweep(self, metrics: Mapping[str, Metric]) -> Sweep:
        """The curve of a benchmark with these metrics, by field."""
        label = self.label or swept_name(self.x, " ")
        return Sweep(self.known_name, self.arguments, self.x, metrics[self.y], label, self.values)


@dataclass(frozen=True)
class Kernel:
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
    needs: Annotated[Literal["blas", "fftw"], "the library that it measures"] | None = None
    static_arrays: Annotated[Literal[True], "programs have 1 GiB of static memory"] | None = None
    ranks: (
        Annotated[Literal[True], "it runs as MPI ranks, if built with MPI; absent: in one process"] | None
    ) = None
    options: (
        Annotated[
            Mapping[FieldName, Annotated[tuple[OptionValue, ...], Limits(2), check_distinct]],
            Limits(1),
            "options of the program that a comparison can vary, with their values, the default first",
        ]
        | None
    ) = None
    structures: Annotated[tuple[FieldName, ...], "options that select a data structure of one result"] = ()
    options_of_threads: Annotated[
        tuple[FieldName, ...], "options of builds with OpenMP; others have the first value"
    ] = ()
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
        if re.fullmatch("pw-[a-z0-9_-]+", self.executable) is None:
            yield "executable", f"{self.executable!r} does not begin with pw-"
        options = self.options or {}
        for name in options:
            if name in (*Configuration.__match_args__, *dir(Configuration)):
                yield f"options.{name}", "this is a name of pagewise's own; rename the option"
        for name in (*self.structures, *self.options_of_threads):
            if name not in options:
                yield "options", f"{name!r} is not one of them"
        known, names = [metric.field for metric in self.metrics], [each.known_name for each in self.sweeps]
        for place, sweep in enumerate(self.sweeps):
            if sweep.y not in known:
                yield f"sweeps.{place}.y", f"{sweep.y!r} is not one of the metrics: {', '.join(known)}"
            if names[place] in names[:place]:
                yield f"sweeps.{place}", f"another sweep has the name {names[place]!r}; set `name`"
            if sweep.x.startswith("metrics.") and sweep.x.removeprefix("metrics.") not in known:
                yield f"sweeps.{place}.x", f"{sweep.x!r} is not one of the metrics: {', '.join(known)}"
            for variant, values in sweep.values.items():
                values_known = VALUES.get(variant, options.get(variant, ()))
                for value in filter(lambda value: value not in values_known, values):
                    yield (
                        f"sweeps.{place}.when.{variant}",
                        f"{value!r} is not one of {', '.join(values_known)}",
                    )

    @property
    def benchmark(self) -> Benchmark:
        """The kernel as a session compares it; its code depends on the compiler's flags and target, too."""
        metrics = {metric.field: metric for metric in self.metrics}
        code = _CODE_DIMENSIONS if "compiler" in self.sensitive_to else ()
        return Benchmark(
            name=self.name,
            group=self.group,
            title=self.title,
            summary=self.summary,
            executable=self.executable,
            unit="pass",
            sensitive_to=(*self.sensitive_to, *code),
            metrics=self.metrics,
            arguments=self.compare.arguments,
            equation=self.equation,
            options=self.options or {},
            structures=self.structures,
            options_of_threads=self.options_of_threads,
            sweeps=tuple(sweep.sweep(metrics) for sweep in self.sweeps),
            traffic=self.traffic,
        )

    def at_scale(self, name: str) -> Kernel:
        """The kernel with the arguments of another problem size. Raises KeyError for an unknown one."""
        return replace(self, compare=replace(self.compare, arguments=(self.scales or {})[name]))

    @property
    def path(self) -> str:
        """The name with its group: `memory/schoenauer_triad`."""
        return f"{self.group}/{self.name}"

    def matches(self, pattern: str) -> bool:
        """Whether a glob matches the name or, if it has a slash, `group/name`."""
        return fnmatchcase(self.path if "/" in pattern else self.name, pattern)


def swept_name(x: str, between: str = "-") -> str:
    """The swept quantity, from the record's field: `prefetch-distance` for `options.prefetch_distance`."""
    return x.rpartition(".")[2].removesuffix("_bytes").replace("_", between)


def read_source(file: Path) -> dict[str, Any]:
    """The content of a kernel.yaml of the sources, with what it takes from the file that it extends.

    Installed files are complete. Raises OSError, and ValueError for what is not YAML.
    """
    content: dict[str, Any] = parse_yaml(read_file(file))
    extended = content.pop("extends", None)
    return content if extended is None else {**read_source(file.parent / extended), **content}
