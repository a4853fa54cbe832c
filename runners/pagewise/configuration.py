"""A configuration: one package x compiler x variants, as its module tells it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Any

HUGEPAGES = ("none", "thp", "hugetlbfs")
PREFETCH = ("hardware", "compiler", "software", "block")
STORES = ("regular", "nontemporal")
VARIANTS = ("hugepages", "prefetch", "stores")
BASELINE = "none/hardware-regular"


@dataclass(frozen=True)
class Configuration:
    """What one module stands for. `digest` is the sha256 of the module file, `hash` that of the build."""

    module: str
    package: str
    version: str
    compiler: str
    hugepages: str
    prefetch: str
    stores: str
    openmp: str
    papi: str
    target: str
    hash: str
    builder: str
    prefix: str
    digest: str

    @classmethod
    def from_environment(cls, module: str, environment: Mapping[str, str], digest: str) -> Configuration:
        """Reads PAGEWISE_* of a loaded module. Raises KeyError naming the variable that is not set."""
        values = {name: environment[f"PAGEWISE_{name.upper()}"] for name in cls._told()}
        return cls(module=module, digest=digest, **values)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Configuration:
        """Reads what `to_dict` wrote."""
        return cls(**data)

    def to_dict(self) -> dict[str, str]:
        """The fields, for the manifest."""
        return asdict(self)

    @property
    def label(self) -> str:
        """The variants, as in the module's name: `thp/hardware-regular`."""
        return f"{self.hugepages}/{self.prefetch}-{self.stores}"

    def matches(self, pattern: str) -> bool:
        """Whether a glob fits the module's name, its name from the compiler on, or its variants."""
        return any(
            fnmatchcase(text, pattern) for text in (self.module, f"{self.compiler}/{self.label}", self.label)
        )

    def order(self) -> tuple[str, str, int, int, int, str]:
        """Sorts by package and compiler, then base pages and hardware prefetch first."""
        return (
            self.package,
            self.compiler,
            _place(HUGEPAGES, self.hugepages),
            _place(STORES, self.stores),
            _place(PREFETCH, self.prefetch),
            self.module,
        )

    @staticmethod
    def _told() -> tuple[str, ...]:
        return (
            "package",
            "version",
            "compiler",
            "hugepages",
            "prefetch",
            "stores",
            "openmp",
            "papi",
            "target",
            "hash",
            "builder",
            "prefix",
        )


def _place(known: tuple[str, ...], value: str) -> int:
    return known.index(value) if value in known else len(known)
