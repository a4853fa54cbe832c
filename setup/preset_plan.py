"""List the CMake builds of an environment, with the verified compilers that build them.

    preset_plan.py ENVIRONMENT_FILE SITE_FOLDER SETUP_FILE

The site's definitions.yaml names the toolchains. Prints one line `<name> <preset> <C compiler> <Fortran
compiler> <version> <CMake options>` per build, in stages with a blank line between them: the libraries, what
else is built once per toolchain, the configurations that need these. Configurations without a verified
compiler are reported on standard error, with the reason.
"""

from __future__ import annotations

import itertools
import json
import re
import shlex
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

#: The packages that presets build, and the variants that a spec must name.
PACKAGES = {
    "pagewise-micro": ("hugepages", "prefetch", "stores"),
    "pagewise-helmholtz": ("hugepages", "prefetch"),
    "pagewise-ember": ("hugepages", "prefetch"),
}
#: The variants that a spec may name, with their defaults, which are not part of names.
OPTIONAL = {"pagewise-micro": {"loop": "explicit"}}
#: The values of the other variants in every preset; other values need Spack.
PLAIN = {"simd": "compiler", "mathlib": "libm", "runtime": "compiler", "sector": "none", "stores": "regular"}
#: What is built once per toolchain before these packages, in addition to the library.
NEEDS = {"pagewise-helmholtz": "eos-table", "pagewise-ember": "eos-table"}


@dataclass(frozen=True)
class Build:
    """What one run of CMake builds: a part, which is a preset, with a toolchain and variants."""

    part: str
    toolchain: str
    values: tuple[tuple[str, str], ...] = ()

    @property
    def compiler(self) -> str:
        """The compiler of the toolchain."""
        return self.toolchain.removeprefix("pagewise-").partition("-")[0]

    @property
    def name(self) -> str:
        """The name of its folders."""
        defaults = OPTIONAL.get(f"pagewise-{self.part}", {})
        values = [f"{k}-{v}" if k in defaults else v for k, v in self.values if defaults.get(k) != v]
        part = "" if self.part == "micro" else self.part
        return "-".join(filter(None, (self.toolchain.removeprefix("pagewise-"), part, *values)))

    def options(self, presets: Path) -> list[str]:
        """The options of CMake in addition to the preset's. presets: where builds are installed."""
        values = [("PAGEWISE_" + variant.upper(), value) for variant, value in self.values]
        values.append(("PAGEWISE_TOOLCHAIN", self.toolchain))
        if self.part != "library":
            values.append(("pagewise_ROOT", str(presets / Build("library", self.toolchain).name)))
        need = NEEDS.get(f"pagewise-{self.part}")
        if need:
            table = presets / Build(need, self.toolchain).name / "share" / "pagewise" / "helmholtz.h5"
            values.append(("PAGEWISE_EOS_TABLE", str(table)))
        return [f"-D{name}={value}" for name, value in values]


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


def configuration(spec: str) -> Build:
    """Parse a spec of one of the packages. Raises ValueError if it omits a variant or needs Spack."""
    toolchain = re.search(r"%(?:pagewise-|\S*=)?([a-z][\w-]*)", spec)
    if toolchain is None:
        raise ValueError(f"'{spec}' does not name a compiler after a %")
    package = package_of(spec)
    optional = OPTIONAL.get(package, {})
    variants = (*PACKAGES[package], *optional)
    # What follows a % belongs to the compiler.
    values = dict(re.findall(r"\b(\w+)=(\w+)", re.sub(r"%\S+", "", spec)))
    missing = set(PACKAGES[package]) - values.keys()
    if missing:
        raise ValueError(f"'{spec}' does not name {' and '.join(sorted(missing))}")
    unsupported = [f"{k}={v}" for k, v in values.items() if k not in variants and PLAIN.get(k) != v]
    if unsupported:
        raise ValueError(f"'{spec}': no preset has {' and '.join(unsupported)}; use Spack (BUILDER=spack)")
    merged = optional | values
    named = tuple((name, merged[name]) for name in variants)
    return Build(package.removeprefix("pagewise-"), f"pagewise-{toolchain.group(1)}", named)


def configurations(environment_file: Path, site: Path) -> list[Build]:
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


def compilers(setup_file: Path) -> tuple[dict[str, tuple[str, str, str]], dict[str, str]]:
    """C and Fortran compiler and version by name if verified, and the reason by name otherwise."""
    verified: dict[str, tuple[str, str, str]] = {}
    rejected: dict[str, str] = {}
    for compiler in json.loads(setup_file.read_text())["compilers"]:
        name = compiler["name"]
        if compiler["entered"]:
            verified.setdefault(name, (compiler["c"], compiler["fortran"], compiler["version"]))
        else:
            rejected[name] = compiler["reason"]
    return verified, rejected


def has_papi(setup_file: Path) -> bool:
    """Whether the set-up found PAPI: then everything is built with it, as Spack does."""
    externals = json.loads(setup_file.read_text()).get("externals", ())
    return any(package["name"] == "papi" for package in externals)


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
    needed = [(item.toolchain, NEEDS.get(f"pagewise-{item.part}")) for item in built]
    stages = (
        [Build("library", toolchain) for toolchain, _ in needed],
        [Build(need, toolchain) for toolchain, need in needed if need],
        built,
    )
    presets = setup_file.parent / "presets"
    # Always named: CMake would keep the value of an earlier build.
    papi = f"-DPAGEWISE_PAPI={'ON' if has_papi(setup_file) else 'OFF'}"
    for stage in filter(None, stages):
        for item in dict.fromkeys(stage):
            words = (item.name, item.part, *verified[item.compiler], *item.options(presets), papi)
            print(shlex.join(words))
        print()
    return 0 if built else 4


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])))
