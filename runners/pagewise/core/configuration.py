"""A configuration: one package x compiler x variants, as its module describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

from pagewise.core.fields import Builder, Loop, OnOff, PolicyName, SomeText
from pagewise.core.page_policy import HUGEPAGES, PagePolicy
from pagewise.core.structure import Limits

PREFETCH = ("hardware", "compiler", "software", "block")
STORES = ("regular", "nontemporal", "zfill")
LOOP = ("explicit", "compiler")
SIMD = ("", "scalar", "128", "256", "512", "vla")
VALUES = {"hugepages": HUGEPAGES, "prefetch": PREFETCH, "stores": STORES, "loop": LOOP}
BASELINE = "none/hardware-regular"
#: States of the machine that runs may get, by their names in --vary.
OF_MACHINE = ("node-state", "prefetchers", "clocks")
# Libraries that others are compared against: the system's, then those written for clarity.
REFERENCES = ("", "netlib-lapack", "fftw")


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """What runs get that are compared in it: options of the kernel, environment variables, machine settings.

    environment: `-` stands for a variable that is removed. machine: by a name of OF_MACHINE.
    """

    options: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    machine: Mapping[str, str] = field(default_factory=dict)

    @property
    def entries(self) -> list[str]:
        """Each for people: `layout=soa`, `OMP_WAIT_POLICY=active`, `node-state=aged`."""
        every = {**self.options, **self.environment, **self.machine}
        return [f"{name}={value}" for name, value in every.items()]

    @property
    def text(self) -> str:
        """All, which also identifies them: `layout=soa,OMP_WAIT_POLICY=active,node-state=aged`."""
        return ",".join(self.entries)

    def __hash__(self) -> int:
        """By its text."""
        return hash(self.text)

    def __len__(self) -> int:
        """How many there are."""
        return len(self.entries)

    def and_further(self, other: RunSettings) -> RunSettings:
        """Both."""
        return RunSettings(**{name: {**own, **vars(other)[name]} for name, own in vars(self).items()})


def _check_unset(settings: RunSettings) -> None:
    """Raises ValueError for settings: files have those of runs in cells."""
    if settings:
        raise ValueError("a configuration without runs has no settings")


@dataclass(frozen=True)
class Configuration:
    """What one module provides. `digest` is the SHA-256 of the module file, `hash` that of the build.

    loop: how timed loops are written; packages without this variant have `explicit`.
    library: what its programs call instead of the system's library: of mathematical functions libmvec or
    sleef; empty if they call none. runtime: what serves OpenMP instead of the compiler's library. simd: the
    SIMD width, empty for that of the toolchain's flags. sector: `isolate` where reused arrays have a sector
    of the caches; simulated: the sectors. flags: the set of flags by its name, such as a study's,
    empty for the project's own. ancestors: targets whose code its processor runs too;
    of two targets the one with more of them is more specific. placement, settings: those of its runs that are
    compared; no module sets them.
    """

    module: str
    package: str
    version: str
    compiler: SomeText
    hugepages: PolicyName
    prefetch: SomeText
    stores: SomeText
    openmp: OnOff
    papi: OnOff
    target: str
    hash: str
    builder: Builder
    prefix: str
    digest: str
    loop: Loop = "explicit"
    library: Annotated[str, "that its programs call instead of the system's"] = ""
    runtime: Annotated[str, "that serves OpenMP instead of the compiler's"] = ""
    simd: Annotated[str, "SIMD width of timed code; absent: according to the toolchain's flags"] = ""
    sector: Annotated[str, "sectors of the caches: isolate; simulated: arrays with their ways"] = ""
    flags: Annotated[str, "the set of compiler flags by its name; absent: pagewise's own"] = ""
    ancestors: Annotated[str, "targets, by archspec, whose code this one's processor runs too"] = ""
    placement: Annotated[str, Limits(most=0)] = ""
    settings: Annotated[RunSettings, _check_unset] = RunSettings()

    @classmethod
    def from_environment(cls, module: str, environment: Mapping[str, str], digest: str) -> Configuration:
        """Reads PAGEWISE_* of a loaded module. Raises KeyError with the name of a missing variable."""
        values = {"module": module, "digest": digest}
        for item in fields(cls):
            if item.name in ("placement", "settings"):
                continue
            variable = "PAGEWISE_" + ("TARGET_" if item.name == "ancestors" else "") + item.name.upper()
            if item.name not in values and (item.default is MISSING or variable in environment):
                values[item.name] = environment[variable]
        return cls(**values)  # type: ignore[arg-type]  # texts

    @classmethod
    def of_program(cls, file: Path, digest: str, **values: str) -> Configuration:
        """The configuration of a program without a module; `digest` is the SHA-256 of its file.

        values: module, package, compiler and hugepages; optional: target, flags. It has its own threads.
        """
        defaults = {"version": "", "prefetch": "hardware", "stores": "regular", "target": ""}
        build = {"hash": digest, "builder": "own", "prefix": str(file.parent), "digest": digest}
        every = {**defaults, "openmp": "on", "papi": "off", **build, **values}
        return cls(**every)  # type: ignore[arg-type]  # texts

    @property
    def is_module(self) -> bool:
        """Whether it can be loaded; `module` is otherwise just a name."""
        return self.builder != "own"

    @property
    def plain(self) -> str:
        """The variants that every configuration has: `thp/hardware-regular`."""
        return f"{self.hugepages}/{self.prefetch}-{self.stores}"

    @property
    def label(self) -> str:
        """The variants, as in the module's name: `thp/hardware-regular`, `none/hardware-regular-sleef`.

        Builds without OpenMP are `serial`. Loop, SIMD width, flags and target are last:
        `none/hardware-regular-loop-compiler`, `none/hardware-regular-simd-512-x86_64_v4`, and then what
        differs between runs of one module, options and the placement:
        `thp/hardware-regular+layout=soa@scatter`.
        """
        loop = "" if self.loop == LOOP[0] else f"loop-{self.loop}"
        threads = "" if self.has_threads else "serial"
        simd = f"simd-{self.simd}" if self.simd else ""
        target = self.target if self.names_target else ""
        sector = f"sector-{self.sector}" if self.sector else ""
        parts = (self.plain, loop, threads, self.library, self.runtime, simd, sector, self.flags, target)
        label = "-".join(filter(None, parts)) + "".join(f"+{option}" for option in self.settings.entries)
        return f"{label}@{self.placement}" if self.placement else label

    def value(self, dimension: str) -> str:
        """Its value of a dimension: what it is, or what its runs get; empty: the default."""
        given = self.settings
        of_machine = {name.replace("-", "_"): value for name, value in given.machine.items()}
        variables = RunSettings(environment=given.environment).text
        of_runs = {**given.options, **of_machine, "setting": variables}
        return of_runs.get(dimension) or str(getattr(self, dimension, ""))

    @property
    def has_threads(self) -> bool:
        """Whether it was built with OpenMP."""
        return self.openmp != "off"

    @property
    def names_target(self) -> bool:
        """Whether the module's name has the target, as in an environment with several targets."""
        return self.module.endswith(f"-{self.target}")

    def matches(self, pattern: str) -> bool:
        """Whether a glob matches the module's name, its part from the compiler on, or the variants."""
        return any(
            fnmatchcase(text, pattern) for text in (self.module, f"{self.compiler}/{self.label}", self.label)
        )

    def sort_key(self) -> tuple[str | int, ...]:
        """The sort key: package, compiler, then defaults first.

        Defaults are the system's library, OpenMP, no SIMD width, the project's flags, the most specific
        target, base pages, the explicit loop and hardware prefetch; policies with a page size are last.
        """
        return (
            self.package,
            self.compiler,
            _place(REFERENCES, self.library),
            self.library,
            self.runtime,
            not self.has_threads,
            _place(SIMD, self.simd),
            self.sector,
            self.flags,
            -len(self.ancestors.split()),
            self.target,
            _place(HUGEPAGES, PagePolicy(self.hugepages).kind),
            PagePolicy(self.hugepages).size or 0,
            _place(LOOP, self.loop),
            _place(STORES, self.stores),
            _place(PREFETCH, self.prefetch),
            self.module,
        )


def _place(known: tuple[str, ...], value: str) -> int:
    return known.index(value) if value in known else len(known)
