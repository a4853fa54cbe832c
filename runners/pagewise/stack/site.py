"""Reads and checks the folder of a site: site.yaml, and the packages.yaml and definitions.yaml of Spack."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pagewise.core.errors import FormatError, SelectionError
from pagewise.core.fields import SomeText, check_distinct
from pagewise.core.page_policy import HUGEPAGES
from pagewise.core.reading import parse_yaml, read_file
from pagewise.core.structure import Form, Limits, StructureError, document
from pagewise.stack.paths import project_root

#: The packages that every build takes from the site, in addition to compilers.
_TOOLS = ("cmake", "ninja")
_LIBMPG = "fujitsu-libmpg"


Hugepages = Annotated[str, Form("|".join(HUGEPAGES))]


@dataclass(frozen=True)
class SitePages:
    """Base pages in KiB, and the page policies of builds."""

    base_kib: Literal[4, 16, 64]
    policies: Annotated[tuple[Hugepages, ...], Limits(1), check_distinct]
    reserve: Annotated[SomeText, "how a job gets a pool of huge pages, in a sentence"] | None = None


@dataclass(frozen=True)
class SiteLauncher:
    """What starts MPI ranks in a comparison (--ranks)."""

    kind: Literal["mpiexec-openmpi", "mpiexec-hydra", "srun"]
    options: Annotated[tuple[SomeText, ...], "further ones"] = ()


@dataclass(frozen=True)
class SiteModules:
    """What makes the command `module` available, and the modules loaded before anything is built or run."""

    init: Annotated[Annotated[str, Form("/.*")] | None, "what a shell sources; null: set-up finds it"]
    load: tuple[SomeText, ...] = ()


@dataclass(frozen=True)
class SiteFile:
    """What a machine is, in addition to Spack's own files about it."""

    schema: Literal["pagewise.site/1"]
    name: Annotated[str, Form("[a-z][a-z0-9_-]*"), "that of its folder"]
    summary: Annotated[str, Limits(1, 110)]
    target: Annotated[
        Annotated[str, Form("[a-z][a-z0-9_]*")] | None,
        "the processor by archspec's name; null: that of the machine where it is built",
    ]
    pages: SitePages
    modules: SiteModules
    launcher: Annotated[SiteLauncher, "absent: that of the program's MPI"] | None = None


@dataclass(frozen=True)
class Site:
    """A site as its files describe it."""

    folder: Path
    data: SiteFile
    packages: dict[str, Any]
    #: The settings of packages.yaml for all packages.
    of_all: dict[str, Any]
    #: Spack's definitions.yaml.
    definitions: dict[str, Any]

    @property
    def name(self) -> str:
        """Its name, which is also its folder's."""
        return self.data.name

    @property
    def toolchains(self) -> list[str]:
        """The named flag sets that environments use as `$toolchains`, without the target in front of them."""
        entries = self.definitions.get("definitions") or []
        named = [spec for entry in entries for spec in entry.get("toolchains", ())]
        return [spec.removeprefix(f"target={self.data.target} ").removeprefix("%") for spec in named]


def sites_folder() -> Path:
    """The folder of this checkout's sites."""
    return project_root() / "envs" / "sites"


def site_names() -> list[str]:
    """The names of this checkout's sites."""
    return sorted(file.parent.name for file in sites_folder().glob("*/site.yaml"))


def find_folder(name: str) -> Path:
    """The folder of a site by its name or path. Raises SelectionError."""
    for folder in (sites_folder() / name, Path(name)):
        if (folder / "site.yaml").is_file():
            return folder.resolve()
    known = ", ".join(site_names()) or "none"
    raise SelectionError(
        f"there is no site {name!r}",
        where=sites_folder(),
        remedy=f"choose one of: {known}; or write it: docs/how-to/new-site.md",
    )


def read_site(name: str, *, here: bool = False) -> Site:
    """Reads a site and checks it; `here`: also check that this machine has the files that it names.

    Raises FormatError that lists every fault, SelectionError for an unknown site.
    """
    folder = find_folder(name)
    data, all_faults = None, []
    try:
        data = document(SiteFile, _read(folder / "site.yaml"))
    except StructureError as error:
        all_faults += [f"site.yaml: {fault}" for fault in error.texts]
    packages = _read(folder / "packages.yaml").get("packages")
    if not isinstance(packages, dict):
        all_faults.append("packages.yaml: the section `packages` is missing")
        packages = {}
    of_all = packages.pop("all", {})
    definitions = folder / "definitions.yaml"
    named = _read(definitions) if definitions.is_file() else {}
    for package, entry in packages.items():
        all_faults += [f"packages.yaml: {package}: {fault}" for fault in _external_faults(entry)]
    if data is not None and not all_faults:
        site = Site(folder, data, packages, of_all, named)
        all_faults += _inconsistencies(site)
        if here and not all_faults:
            all_faults += _missing_here(site)
        if not all_faults:
            return site
    raise FormatError(
        "this site has faults:\n    " + "\n    ".join(all_faults),
        where=folder,
        remedy="correct these lines; docs/how-to/new-site.md describes them",
    )


def toolchain_compilers() -> dict[str, set[str]]:
    """The named flag sets of envs/toolchains, and the compilers of each."""
    compilers: dict[str, set[str]] = {}
    for file in sorted((project_root() / "envs" / "toolchains").glob("*.yaml")):
        for name, entries in _read(file)["toolchains"].items():
            specs = " ".join(entry["spec"] for entry in entries)
            compilers[name] = set(re.findall(r"%(?:c|cxx|fortran)=([a-z0-9-]+)", specs))
    return compilers


def _external_faults(entry: Any) -> Iterator[str]:
    """The faults in the externals of one package."""
    externals = entry.get("externals") if isinstance(entry, dict) else None
    if not isinstance(externals, list) or not externals:
        yield "the list `externals` is missing"
        return
    for external in externals:
        if not isinstance(external, dict) or not isinstance(external.get("spec"), str):
            yield "an external without a `spec`"
        elif "@" not in external["spec"]:
            yield f"{external['spec']!r} does not name a version"
        elif not external.get("prefix") and not external.get("modules"):
            yield f"{external['spec']!r} has neither `prefix` nor `modules`"
        elif not str(external.get("prefix", "/")).startswith("/"):
            yield f"the prefix {external['prefix']!r} is not an absolute path"


def _inconsistencies(site: Site) -> Iterator[str]:
    """The faults between the site's files, each of which is well-formed."""
    if site.name != site.folder.name:
        yield f"site.yaml: name: {site.name!r} is not the folder's name"
    known = toolchain_compilers()
    if not site.toolchains:
        yield "definitions.yaml: the list `toolchains` is missing or empty"
    for toolchain in site.toolchains:
        # Only a checkout has toolchains.
        if known and toolchain not in known:
            yield f"definitions.yaml: toolchains: {toolchain!r} is not one of {', '.join(known)}"
        for compiler in sorted(known.get(toolchain, ())):
            yield from (f"packages.yaml: {fault}" for fault in _compiler_faults(site, compiler, toolchain))
    target = site.data.target
    if site.of_all.get("target", []) != ([target] if target else []):
        fault = f"`all: {{target: [{target}]}}` is missing" if target else "all: target: site.yaml has none"
        yield f"packages.yaml: {fault}"
    for tool in _TOOLS:
        if tool not in site.packages:
            yield f"packages.yaml: {tool} is missing; every build needs it"
    policies = site.data.pages.policies
    if _LIBMPG not in site.packages and any(policy.startswith("fjmpg") for policy in policies):
        yield f"packages.yaml: {_LIBMPG} is missing; the page policies fjmpg need it"


def _compilers_of(external: dict[str, Any]) -> dict[str, str]:
    return dict(external.get("extra_attributes", {}).get("compilers", {}))


def _compiler_faults(site: Site, compiler: str, toolchain: str) -> list[str]:
    if compiler not in site.packages:
        return [f"{compiler} is missing; the toolchain {toolchain} needs it"]
    return [
        f"{compiler}: {external['spec']}: no compiler of {language} (extra_attributes, compilers, {language})"
        for external in site.packages[compiler]["externals"]
        for language in ("c", "fortran")
        if language not in _compilers_of(external)
    ]


def _missing_here(site: Site) -> Iterator[str]:
    for name, entry in site.packages.items():
        for external in entry["externals"]:
            if "prefix" in external and not Path(external["prefix"]).is_dir():
                yield f"packages.yaml: {name}: this machine has no folder {external['prefix']}"
            for driver in _compilers_of(external).values():
                if not os.access(driver, os.X_OK):
                    yield f"packages.yaml: {name}: {driver} is not a program on this machine"
    init = site.data.modules.init
    if init and not Path(init).is_file():
        yield f"site.yaml: modules: this machine has no file {init}"
    base = os.sysconf("SC_PAGE_SIZE") // 1024
    if base != site.data.pages.base_kib:
        yield f"site.yaml: pages: base pages have {base} KiB on this machine"


def _read(file: Path) -> dict[str, Any]:
    try:
        data = parse_yaml(read_file(file))
    except (OSError, ValueError) as fault:
        raise FormatError(f"this file cannot be read: {fault}", where=file) from fault
    if not isinstance(data, dict):
        raise FormatError("this file is not a mapping", where=file)
    return data
