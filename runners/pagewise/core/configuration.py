"""A configuration: one package x compiler x variants, as its module tells it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pagewise.core.page_policy import HUGEPAGES, policy_kind, policy_size

PREFETCH = ("hardware", "compiler", "software", "block")
STORES = ("regular", "nontemporal", "zfill")
SIMD = ("", "scalar", "128", "256", "512", "vla")
VALUES = {"hugepages": HUGEPAGES, "prefetch": PREFETCH, "stores": STORES}
BASELINE = "none/hardware-regular"
# Libraries that others are compared against: the system's own, then those written for clarity.
REFERENCES = ("", "netlib-lapack", "fftw")
# Fields of which an empty value is not told.
_EMPTY = ("library", "runtime", "simd", "ancestors", "placement")


@dataclass(frozen=True)
class Configuration:
    """What one module stands for. `digest` is the sha256 of the module file, `hash` that of the build.

    `library` is what its programs call in place of the system's own: of mathematical functions libmvec or
    sleef; empty where they call none. `runtime` serves OpenMP in place of the compiler's own. `simd` is the
    width of vectors, empty where it is what the toolchain's flags ask for. `ancestors` are the targets whose
    code its processor runs too: of two targets the one with more of them is the more specific. `placement` is
    that of its runs where several are compared, else empty.
    """

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
    library: str = ""
    runtime: str = ""
    simd: str = ""
    ancestors: str = ""
    placement: str = ""

    @classmethod
    def from_environment(cls, module: str, environment: Mapping[str, str], digest: str) -> Configuration:
        """Reads PAGEWISE_* of a loaded module. Raises KeyError naming the variable that is not set."""
        values = {name: environment[f"PAGEWISE_{name.upper()}"] for name in cls._told()}
        told = {
            "library": environment.get("PAGEWISE_LIBRARY", ""),
            "runtime": environment.get("PAGEWISE_RUNTIME", ""),
            "simd": environment.get("PAGEWISE_SIMD", ""),
            "ancestors": environment.get("PAGEWISE_TARGET_ANCESTORS", ""),
        }
        return cls(module=module, digest=digest, **values, **told)

    @classmethod
    def of_program(
        cls,
        file: Path,
        digest: str,
        *,
        module: str,
        package: str,
        compiler: str,
        hugepages: str,
        target: str = "",
        openmp: str = "off",
        papi: str = "off",
    ) -> Configuration:
        """The configuration of a program that has no module. `digest` is the sha256 of its file."""
        return cls(
            module=module,
            package=package,
            version="",
            compiler=compiler,
            hugepages=hugepages,
            prefetch="hardware",
            stores="regular",
            openmp=openmp,
            papi=papi,
            target=target,
            hash=digest,
            builder="own",
            prefix=str(file.parent),
            digest=digest,
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Configuration:
        """Reads what `to_dict` wrote."""
        return cls(**data)

    def to_dict(self) -> dict[str, str]:
        """The fields, for the manifest, without those that are empty and optional."""
        return {name: value for name, value in asdict(self).items() if name not in _EMPTY or value}

    @property
    def plain(self) -> str:
        """The variants that every configuration has: `thp/hardware-regular`."""
        return f"{self.hugepages}/{self.prefetch}-{self.stores}"

    @property
    def label(self) -> str:
        """The variants, as in the module's name: `thp/hardware-regular`, `none/hardware-regular-sleef`.

        A width of vectors and a target are named last: `none/hardware-regular-simd-512-x86_64_v4`, and the
        placement if there are several: `thp/hardware-regular@scatter`.
        """
        simd = f"simd-{self.simd}" if self.simd else ""
        target = self.target if self.names_target else ""
        label = "-".join(filter(None, (self.plain, self.library, self.runtime, simd, target)))
        return f"{label}@{self.placement}" if self.placement else label

    @property
    def names_target(self) -> bool:
        """Whether the module's name tells the target: so it does where an environment has several."""
        return self.module.endswith(f"-{self.target}")

    def matches(self, pattern: str) -> bool:
        """Whether a glob fits the module's name, its name from the compiler on, or its variants."""
        return any(
            fnmatchcase(text, pattern) for text in (self.module, f"{self.compiler}/{self.label}", self.label)
        )

    def order(self) -> tuple[str | int, ...]:
        """Sorts by package and compiler, and then what is the rule comes first.

        That is the system's library, no width of vectors, the most specific target, base pages, prefetch by
        the hardware; named sizes of pages come last.
        """
        return (
            self.package,
            self.compiler,
            _place(REFERENCES, self.library),
            self.library,
            self.runtime,
            _place(SIMD, self.simd),
            -len(self.ancestors.split()),
            self.target,
            _place(HUGEPAGES, policy_kind(self.hugepages)),
            policy_size(self.hugepages) or 0,
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
