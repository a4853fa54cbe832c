"""A site's folder, read and checked: site.yaml, and packages.yaml as Spack reads it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pagewise.core.errors import FormatError, SelectionError
from pagewise.core.reading import parse_yaml, read_file
from pagewise.core.schemas import faults
from pagewise.stack.paths import project_root

#: What every build takes from the site, besides compilers.
_TOOLS = ("cmake", "ninja")
_LIBMPG = "fujitsu-libmpg"


@dataclass(frozen=True)
class Site:
    """A site as its files describe it."""

    folder: Path
    data: dict[str, Any]
    packages: dict[str, Any]
    #: What packages.yaml says of all packages.
    of_all: dict[str, Any]
    #: Spack's definitions.yaml.
    definitions: dict[str, Any]

    @property
    def name(self) -> str:
        """That of its folder."""
        return str(self.data["name"])


def sites_folder(root: Path | None = None) -> Path:
    """Where the sites of this checkout are."""
    return (root or project_root()) / "envs" / "sites"


def site_names(root: Path | None = None) -> list[str]:
    """The sites of this checkout."""
    return sorted(file.parent.name for file in sites_folder(root).glob("*/site.yaml"))


def find_folder(name: str, root: Path | None = None) -> Path:
    """The folder of a site, by name or path. Raises SelectionError."""
    for folder in (sites_folder(root) / name, Path(name)):
        if (folder / "site.yaml").is_file():
            return folder.resolve()
    known = ", ".join(site_names(root)) or "none"
    raise SelectionError(
        f"there is no site {name!r}",
        where=sites_folder(root),
        remedy=f"take one of: {known}; or write it: pagewise site new {name}",
    )


def read_site(name: str, root: Path | None = None, *, here: bool = False) -> Site:
    """Reads a site and checks it; `here`: whether what it names is on this machine too.

    Raises FormatError that lists every fault, SelectionError for a name of no site.
    """
    folder = find_folder(name, root)
    data = _read(folder / "site.yaml")
    found = [f"site.yaml: {fault}" for fault in faults("site", data)]
    packages = _read(folder / "packages.yaml").get("packages")
    if not isinstance(packages, dict):
        found.append("packages.yaml: it has no section `packages`")
        packages = {}
    of_all = packages.pop("all", {})
    definitions = folder / "definitions.yaml"
    site = Site(folder, data, packages, of_all, _read(definitions) if definitions.is_file() else {})
    found += [
        f"packages.yaml: {one}: {fault}" for one in packages for fault in _external_faults(packages[one])
    ]
    found = found or _faults_between(site, root or project_root())
    if here and not found:
        found = _missing_here(site)
    if found:
        told = "this site has faults:\n    " + "\n    ".join(found)
        raise FormatError(
            told, where=folder, remedy="correct these lines; docs/new-site.md tells what they are for"
        )
    return site


def toolchain_compilers(root: Path) -> dict[str, set[str]]:
    """The named flag sets of envs/toolchains, and the compilers of each."""
    compilers: dict[str, set[str]] = {}
    for file in sorted((root / "envs" / "toolchains").glob("*.yaml")):
        for name, entries in _read(file)["toolchains"].items():
            specs = " ".join(entry["spec"] for entry in entries)
            compilers[name] = set(re.findall(r"%(?:c|cxx|fortran)=([a-z0-9-]+)", specs))
    return compilers


def spack_toolchains(toolchains: Sequence[str]) -> dict[str, Any]:
    """What definitions.yaml says of a site's toolchains: environments take them by `$toolchains`."""
    return {"toolchains": [f"%{one}" for one in toolchains]}


def _external_faults(entry: Any) -> list[str]:
    """What is wrong with a package's externals by itself."""
    externals = entry.get("externals") if isinstance(entry, dict) else None
    if not isinstance(externals, list) or not externals:
        return ["it has no list `externals`"]
    found = []
    for external in externals:
        if not isinstance(external, dict) or not isinstance(external.get("spec"), str):
            found.append("an external without a `spec`")
        elif "@" not in external["spec"]:
            found.append(f"{external['spec']!r} names no version")
        elif not external.get("prefix") and not external.get("modules"):
            found.append(f"{external['spec']!r} has neither `prefix` nor `modules`")
        elif not str(external.get("prefix", "/")).startswith("/"):
            found.append(f"the prefix {external['prefix']!r} is no full path")
    return found


def _faults_between(site: Site, root: Path) -> list[str]:
    """What the site's parts lack of each other, each being well-formed."""
    found = []
    if site.name != site.folder.name:
        found.append(f"site.yaml: name: {site.name!r} is not the folder's name")
    known = toolchain_compilers(root)
    for toolchain in site.data["toolchains"]:
        if toolchain not in known:
            found.append(f"site.yaml: toolchains: {toolchain!r} is none of {', '.join(known)}")
        for compiler in sorted(known.get(toolchain, ())):
            found += [f"packages.yaml: {fault}" for fault in _compiler_faults(site, compiler, toolchain)]
    wanted = spack_toolchains(site.data["toolchains"])
    if [one for one in site.definitions.get("definitions", []) if "toolchains" in one] != [wanted]:
        found.append(f"definitions.yaml: as in site.yaml, it must be `definitions: [{json.dumps(wanted)}]`")
    target = site.data["target"]
    if site.of_all.get("target", []) != ([target] if target else []):
        told = f"`all: {{target: [{target}]}}` is missing" if target else "all: target: site.yaml has none"
        found.append(f"packages.yaml: {told}")
    for tool in _TOOLS:
        if tool not in site.packages:
            found.append(f"packages.yaml: {tool} is missing; every build needs it")
    if _LIBMPG not in site.packages and any(
        one.startswith("fjmpg") for one in site.data["pages"]["policies"]
    ):
        found.append(f"packages.yaml: {_LIBMPG} is missing; the policies fjmpg need it")
    return found


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


def _missing_here(site: Site) -> list[str]:
    found = []
    for name, entry in site.packages.items():
        for external in entry["externals"]:
            if "prefix" in external and not Path(external["prefix"]).is_dir():
                found.append(f"packages.yaml: {name}: there is no folder {external['prefix']} here")
            found += [
                f"packages.yaml: {name}: {driver} is no program here"
                for driver in _compilers_of(external).values()
                if not os.access(driver, os.X_OK)
            ]
    init = site.data["modules"]["init"]
    if init and not Path(init).is_file():
        found.append(f"site.yaml: modules: there is no file {init} here")
    base = os.sysconf("SC_PAGE_SIZE") // 1024
    if base != site.data["pages"]["base_kib"]:
        found.append(f"site.yaml: pages: base pages have {base} KiB here")
    return found


def _read(file: Path) -> dict[str, Any]:
    try:
        data = parse_yaml(read_file(file))
    except (OSError, ValueError) as fault:
        raise FormatError(f"this file cannot be read: {fault}", where=file) from fault
    if not isinstance(data, dict):
        raise FormatError("this file holds no mapping", where=file)
    return data
