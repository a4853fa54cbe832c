"""List the CMake presets of an environment, with the verified compilers that build them.

    preset_plan.py ENVIRONMENT_FILE SITE_FOLDER SETUP_FILE

The site's definitions.yaml names the toolchains. Prints one line `<preset> <C compiler> <Fortran compiler>
<version>` per preset, in stages with a blank line between them: the libraries, what else is built once per
compiler, the configurations that need these. Configurations without a verified compiler are reported on
standard error, with the reason.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

#: The packages that presets build, and the variants that distinguish their configurations.
PACKAGES = {
    "pagewise-micro": ("hugepages", "prefetch", "stores"),
    "pagewise-helmholtz": ("hugepages", "prefetch"),
    "pagewise-ember": ("hugepages", "prefetch"),
}
#: The values of the other variants in every preset; other values need Spack.
PLAIN = {"simd": "compiler", "mathlib": "libm", "runtime": "compiler", "stores": "regular"}
#: What is built once per compiler before these packages, in addition to the library.
NEEDS = {"pagewise-helmholtz": "eos-table", "pagewise-ember": "eos-table"}


@dataclass(frozen=True)
class Configuration:
    """One configuration of a package that an environment asks for."""

    package: str
    compiler: str
    values: tuple[str, ...]

    @property
    def preset(self) -> str:
        """The name of the preset that builds it."""
        mini_app = self.package.removeprefix("pagewise-").removeprefix("micro")
        return "-".join(filter(None, (self.compiler, mini_app, *self.values)))


def expand(entries: Iterable[Any], definitions: dict[str, list[Any]]) -> Iterator[str]:
    """The specs of a `specs:` or definition list, with names resolved and matrices expanded."""
    for entry in entries:
        if isinstance(entry, dict):
            rows = [list(expand(row, definitions)) for row in entry["matrix"]]
            excluded = set(expand(entry.get("exclude", []), definitions))
            for row in itertools.product(*rows):
                spec = " ".join(row)
                if spec not in excluded:
                    yield spec
        elif entry.startswith("$"):
            name = entry.lstrip("$%^")
            if name not in definitions:
                raise ValueError(f"'{entry}' is not defined")
            for spec in expand(definitions[name], definitions):
                yield f"%{spec}" if entry.startswith("$%") else spec
        else:
            yield entry


def package_of(spec: str) -> str:
    """The name that a spec begins with."""
    return re.split(r"[^\w-]", spec, maxsplit=1)[0]


def configuration(spec: str) -> Configuration:
    """Parse a spec of one of the packages. Raises ValueError if it omits a variant or needs Spack."""
    compiler = re.search(r"%\S*?(gcc|llvm)", spec)
    if compiler is None:
        raise ValueError(f"'{spec}' names neither gcc nor llvm after a %")
    package = package_of(spec)
    variants = PACKAGES[package]
    # What follows a % belongs to the compiler.
    values = dict(re.findall(r"\b(\w+)=(\w+)", re.sub(r"%\S+", "", spec)))
    missing = set(variants) - values.keys()
    if missing:
        raise ValueError(f"'{spec}' does not name {' and '.join(sorted(missing))}")
    unsupported = [f"{k}={v}" for k, v in values.items() if k not in variants and PLAIN.get(k) != v]
    if unsupported:
        raise ValueError(f"'{spec}': no preset has {' and '.join(unsupported)}; use Spack (BUILDER=spack)")
    return Configuration(package, compiler.group(1), tuple(values[name] for name in variants))


def configurations(environment_file: Path, site: Path) -> list[Configuration]:
    """The configurations of an environment on a site, in the environment's order."""
    content = yaml.safe_load(environment_file.read_text())["spack"]
    file = site / "definitions.yaml"
    of_site = yaml.safe_load(file.read_text())["definitions"] if file.exists() else []
    definitions: dict[str, list[Any]] = {}
    for definition in [*of_site, *content.get("definitions", [])]:
        for name, entries in definition.items():
            if name != "when":
                definitions.setdefault(name, []).extend(entries)
    specs = expand(content["specs"], definitions)
    wanted = [configuration(spec) for spec in specs if package_of(spec) in PACKAGES]
    return list(dict.fromkeys(wanted))


def compilers(setup_file: Path) -> tuple[dict[str, str], dict[str, str]]:
    """C and Fortran compiler and version by name if verified, and the reason by name otherwise."""
    verified: dict[str, str] = {}
    rejected: dict[str, str] = {}
    for compiler in json.loads(setup_file.read_text())["compilers"]:
        name = compiler["name"]
        if compiler["entered"]:
            verified.setdefault(name, f"{compiler['c']} {compiler['fortran']} {compiler['version']}")
        else:
            rejected[name] = compiler["reason"]
    return verified, rejected


def main(environment_file: Path, site: Path, setup_file: Path) -> int:
    """Print the plan. Exit code 4: the environment is not supported, or no compiler is available."""
    verified, rejected = compilers(setup_file)
    try:
        wanted = configurations(environment_file, site)
    except ValueError as error:
        print(f"presets: {environment_file}: {error}", file=sys.stderr)
        return 4
    for name in sorted({item.compiler for item in wanted} - verified.keys()):
        reason = rejected.get(name, "it was not found")
        print(f"presets: the configurations of {name} are excluded: {reason}", file=sys.stderr)
    built = [item for item in wanted if item.compiler in verified]
    stages = (
        {f"{item.compiler}-library": item.compiler for item in built},
        {f"{item.compiler}-{NEEDS[item.package]}": item.compiler for item in built if item.package in NEEDS},
        {item.preset: item.compiler for item in built},
    )
    for stage in filter(None, stages):
        print("\n".join(f"{preset} {verified[compiler]}" for preset, compiler in stage.items()), end="\n\n")
    return 0 if built else 4


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])))
