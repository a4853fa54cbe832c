"""A kernel as its kernel.yaml describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from pagewise.errors import FormatError
from pagewise.schemas import faults


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

    `x` is `working_set_bytes`, or `options.<name>`; `label` is what stands at its axis.
    """

    arguments: tuple[str, ...]
    x: str
    y: str
    label: str

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Sweep:
        """Reads a kernel.yaml's `sweep`."""
        name = data["x"].removeprefix("options.").removesuffix("_bytes").replace("_", " ")
        return cls(tuple(data["arguments"]), data["x"], data["y"], data.get("label", name))

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
    """A kernel: what it is, what it feels, how it is measured.

    `default`: it is compared when no kernel is named. `data` is the file's content.
    """

    name: str
    group: str
    title: str
    summary: str
    executable: str
    feels: tuple[str, ...]
    metrics: tuple[Metric, ...]
    arguments: tuple[str, ...]
    default: bool
    sweep: Sweep | None
    data: dict[str, Any]

    @classmethod
    def from_dict(cls, data: dict[str, Any], where: object) -> Kernel:
        """Checks and reads the content of a kernel.yaml. Raises FormatError that lists every fault."""
        found = faults("kernel", data)
        if found:
            raise FormatError(
                "this kernel.yaml does not follow pagewise.kernel/1:\n    " + "\n    ".join(found),
                where=where,
                remedy="correct these fields and install the kernel again",
            )
        sweep = data.get("sweep")
        return cls(
            name=data["name"],
            group=data["group"],
            title=data["title"],
            summary=data["summary"],
            executable=data["executable"],
            feels=tuple(data["feels"]),
            metrics=tuple(_metric(entry) for entry in data["metrics"]),
            arguments=tuple(data["compare"]["arguments"]),
            default=data["compare"].get("default", False),
            sweep=Sweep.from_dict(sweep) if sweep else None,
            data=data,
        )

    @classmethod
    def from_file(cls, file: Path) -> Kernel:
        """Reads a kernel.yaml. Raises FormatError naming the file, and the line where YAML gives one."""
        try:
            data = yaml.safe_load(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as fault:
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

    @property
    def sweep_metric(self) -> Metric | None:
        """The metric on the sweep's y axis, or None without a sweep."""
        if self.sweep is None:
            return None
        return next((metric for metric in self.metrics if metric.field == self.sweep.y), None)

    @property
    def path(self) -> str:
        """The name with its group: `memory/schoenauer_triad`."""
        return f"{self.group}/{self.name}"

    def matches(self, pattern: str) -> bool:
        """Whether a glob fits the name or, where it has a slash, `group/name`."""
        return fnmatchcase(self.path if "/" in pattern else self.name, pattern)


def _metric(entry: Mapping[str, Any]) -> Metric:
    return Metric(entry["field"], entry["label"], entry["unit"], entry.get("convention"), entry["better"])
