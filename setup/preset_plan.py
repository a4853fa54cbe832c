"""Which CMake presets make up an environment, and with which proved compilers.

    preset_plan.py ENVIRONMENT_FILE SITE_FOLDER SETUP_FILE

The site's definitions.yaml says which toolchains there are. Prints a line `<preset> <C compiler> <Fortran
compiler> <version>` each, in stages with a blank line between them: the libraries, what else is built once a
compiler, the configurations that need these. Configurations without a proved compiler are named on standard
error, with the reason.
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

#: The packages that presets build, and the variants which tell their configurations apart.
PACKAGES = {
    "pagewise-micro": ("hugepages", "prefetch", "stores"),
    "pagewise-helmholtz": ("hugepages", "prefetch"),
    "pagewise-ember": ("hugepages", "prefetch"),
}
#: What every preset is besides; another value takes Spack.
PLAIN = {"simd": "compiler", "mathlib": "libm", "runtime": "compiler", "stores": "regular"}
#: What is built once a compiler before these packages, besides the library.
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
    """The specs of a `specs:` or definition list: names resolved, matrices multiplied out."""
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
    """What a spec of one of the packages asks for; every variant must be named."""
    compiler = re.search(r"%\S*?(gcc|llvm)", spec)
    if compiler is None:
        raise ValueError(f"'{spec}' names neither gcc nor llvm after a %")
    package = package_of(spec)
    variants = PACKAGES[package]
    # What comes with a % is of the compiler.
    values = dict(re.findall(r"\b(\w+)=(\w+)", re.sub(r"%\S+", "", spec)))
    missing = set(variants) - values.keys()
    if missing:
        raise ValueError(f"'{spec}' does not name {' and '.join(sorted(missing))}")
    lacking = [f"{k}={v}" for k, v in values.items() if k not in variants and PLAIN.get(k) != v]
    if lacking:
        raise ValueError(f"'{spec}': no preset has {' and '.join(lacking)}; that takes Spack (BUILDER=spack)")
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
    """C and Fortran compiler and version of each name that was proved, and for the other names why not."""
    proved: dict[str, str] = {}
    refused: dict[str, str] = {}
    for found in json.loads(setup_file.read_text())["compilers"]:
        if found["entered"]:
            proved.setdefault(found["name"], f"{found['c']} {found['fortran']} {found['version']}")
        else:
            refused[found["name"]] = found["reason"]
    return proved, refused


def main(environment_file: Path, site: Path, setup_file: Path) -> int:
    """Print the plan; exit code 4 if there is none, or nothing of it can be built."""
    proved, refused = compilers(setup_file)
    try:
        wanted = configurations(environment_file, site)
    except ValueError as error:
        print(f"presets: {environment_file}: {error}", file=sys.stderr)
        return 4
    for name in sorted({one.compiler for one in wanted} - proved.keys()):
        reason = refused.get(name, "it was not found")
        print(f"presets: the configurations of {name} are left out: {reason}", file=sys.stderr)
    built = [one for one in wanted if one.compiler in proved]
    stages = (
        {f"{one.compiler}-library": one.compiler for one in built},
        {f"{one.compiler}-{NEEDS[one.package]}": one.compiler for one in built if one.package in NEEDS},
        {one.preset: one.compiler for one in built},
    )
    for stage in filter(None, stages):
        print("\n".join(f"{preset} {proved[compiler]}" for preset, compiler in stage.items()), end="\n\n")
    return 0 if built else 4


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])))
