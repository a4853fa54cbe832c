"""Targets, SIMD widths, stores and loops: the environments' configurations on this machine."""

from __future__ import annotations

import json
import platform
import subprocess
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, environment, installed, lock_of, roots, spack, succeed

PREFETCH = ("hardware", "software", "block")
#: The x86-64 levels by archspec's names; a processor also runs the levels before its own.
LEVELS = ("x86_64_v2", "x86_64_v3", "x86_64_v4")
PACKAGES = ("pagewise-micro", "pagewise-ember", "pagewise-helmholtz")
#: Prints the module's name, target and the target's ancestors of each root, as JSON.
MODULES = """
import json
import sys
import spack.config
import spack.environment
import spack.projections
sys.path.append(SETUP)
import write_modules
projections = spack.config.get("modules:default:lmod:projections")
roots = spack.environment.active_environment().concrete_roots()
names = {**write_modules.settings(roots)["projections"], **projections}
facts = {}
for root in roots:
    name = root.format_path(spack.projections.get_projection(names, root))
    facts[name] = [root.package.built_for, root.package.facts["target_ancestors"].split()]
print(json.dumps(facts))
"""


def target_of(spec: dict[str, Any]) -> str:
    target = spec["arch"]["target"]
    return target["name"] if isinstance(target, dict) else target


def modules(checkout: Path, folder: Path) -> dict[str, tuple[str, list[str]]]:
    """The names of the environment's modules, with the target and its ancestors that they set."""
    script = folder / "modules.py"
    script.write_text(f"SETUP = {str(checkout / 'setup')!r}\n{MODULES}")
    done = spack(checkout, folder, "python", script)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def targets(checkout: Path) -> Path:
    folder = checkout / "envs" / "targets"
    succeed(checkout / "setup" / "solve", "targets")
    return folder


@pytest.fixture(scope="module")
def host() -> str:
    """Spack's name of this machine's processor."""
    arch = subprocess.run(
        [ROOT / ".pagewise" / "spack" / "bin" / "spack", "arch", "--target"],
        capture_output=True,
        text=True,
        check=True,
    )
    name = arch.stdout.strip()
    if not name.startswith("x86_64") and "x86" not in name:
        pytest.skip(f"the levels in these tests are those of x86, and this is {name}")
    return name


@pytest.mark.release
def test_each_level_that_runs_here_and_this_processor(targets: Path, host: str) -> None:
    by_target: dict[str, list[dict[str, Any]]] = {}
    for spec in roots(targets):
        native = "-march=native" in spec["parameters"]["cflags"]
        assert native == ("-march=native" in spec["parameters"]["fflags"])
        by_target.setdefault("native" if native else target_of(spec), []).append(spec)
    runs = LEVELS if host not in LEVELS else LEVELS[: LEVELS.index(host) + 1]
    for specs in by_target.values():
        by_name = {name: [spec for spec in specs if spec["name"] == name] for name in PACKAGES}
        pages = {name: {one["parameters"]["hugepages"] for one in some} for name, some in by_name.items()}
        assert pages == {"pagewise-micro": {"none", "thp"}, **{name: {"none"} for name in PACKAGES[1:]}}
    assert by_target.pop("native") and list(by_target) == list(runs)


@pytest.mark.release
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the levels are those of x86")
def test_the_oldest_level_is_built_with_this_processors_tuning_too(targets: Path) -> None:
    tuned = [spec for spec in roots(targets) if is_tuned(spec)]
    assert {target_of(spec) for spec in tuned} == {"x86_64_v2"}
    assert {spec["name"] for spec in tuned} == set(PACKAGES)
    compilers = {(spec["name"], spec["parameters"]["hugepages"]) for spec in tuned}
    assert len(tuned) == 2 * len(compilers)
    assert all("-mtune=native" in spec["parameters"]["fflags"] for spec in tuned)


def is_tuned(spec: dict[str, Any]) -> bool:
    """Whether a build has the tuning of this processor without its instructions."""
    flags = spec["parameters"]["cflags"]
    return "-mtune=native" in flags and "-march=native" not in flags


@pytest.mark.release
def test_the_library_is_for_the_same_target_with_the_same_flags(targets: Path) -> None:
    specs = lock_of(targets)["concrete_specs"]
    for spec in roots(targets):
        dependencies = {entry["name"]: entry["hash"] for entry in spec["dependencies"]}
        library = specs[dependencies["libpagewise"]]
        assert target_of(library) == target_of(spec)
        for flags in ("cflags", "fflags"):
            assert library["parameters"][flags] == spec["parameters"][flags]


@pytest.mark.release
def test_modules_name_their_target_if_there_are_several(checkout: Path, targets: Path, host: str) -> None:
    facts = modules(checkout, targets)
    assert len(facts) == len(roots(targets)), "module names are unique"
    ends = {name: name.rpartition("/hardware-regular-")[2] for name in facts}
    assert all(ends[name] in (target, f"tuned-{target}") for name, (target, _) in facts.items())
    tuned = sum(map(is_tuned, roots(targets)))
    assert [end.startswith("tuned-") for end in ends.values()].count(True) == tuned > 0
    ancestors = {target: known for target, known in facts.values()}
    assert ancestors["x86_64_v2"] == ["x86_64"]
    assert ancestors["native"][0] == host and "x86_64_v2" in ancestors["native"]
    assert all(
        len(known) < len(ancestors["native"]) for target, known in facts.values() if target != "native"
    )


def test_modules_name_a_width_and_no_target_if_there_is_only_one(checkout: Path) -> None:
    folder = environment(
        checkout, "width", "pagewise-micro@develop simd=128 stores=nontemporal %pagewise-gcc"
    )
    spack(checkout, folder, "concretize")
    ((name, (target, _)),) = modules(checkout, folder).items()
    assert name.endswith("/none/hardware-nontemporal-simd-128") and target == target_of(roots(folder)[0])
    specs = lock_of(folder)["concrete_specs"].values()
    assert {spec["parameters"]["simd"] for spec in specs if spec["name"] == "libpagewise"} == {"128"}


@pytest.mark.release
def test_builds_have_the_requested_width(checkout: Path, targets: Path, host: str, tmp_path: Path) -> None:
    levels = {target_of(spec) for spec in roots(targets)}
    widest = "512" if "x86_64_v4" in levels else "256" if "x86_64_v3" in levels else "128"
    scalar = "pagewise-micro@develop simd=scalar %pagewise-llvm"
    environment(checkout, "widths", scalar, f"pagewise-micro@develop simd={widest} %pagewise-gcc")
    succeed(checkout / "setup" / "stack", "widths")
    widths = set()
    for prefix, spec in installed(checkout, "widths").items():
        record = tmp_path / f"{spec['hash']}.jsonl"
        succeed(prefix / "bin" / "pw-stream_dot", "--working-set", "60kB", "--record", record)
        built = json.loads(record.read_text())["configuration"]["simd"]
        assert built == spec["parameters"]["simd"]
        widths.add(built)
    assert widths == {"scalar", widest}


def test_every_combination_of_prefetching_and_stores_concretizes(checkout: Path) -> None:
    folder = checkout / "envs" / "stores"
    spack(checkout, folder, "concretize")
    combined: dict[str, set[tuple[str, str]]] = {}
    for root in roots(folder):
        values = root["parameters"]
        combined.setdefault(str(values["fflags"]), set()).add((values["prefetch"], values["stores"]))
        assert (values["hugepages"], values["loop"]) == ("none", "explicit")
    stores = ("regular", "nontemporal", *(("zfill",) if platform.machine() == "aarch64" else ()))
    assert set(map(frozenset, combined.values())) == {frozenset(product(PREFETCH, stores))}
    assert len(modules(checkout, folder)) == len(roots(folder)), "module names are unique"


def test_prefetches_of_the_compiler_select_its_loop_which_alone_the_module_names(checkout: Path) -> None:
    specs = [f"pagewise-micro@develop prefetch={name} %pagewise-gcc" for name in ("compiler", "hardware")]
    folder = environment(checkout, "loops", *specs)
    spack(checkout, folder, "concretize")
    loops = {root["parameters"]["prefetch"]: root["parameters"]["loop"] for root in roots(folder)}
    assert loops == {"compiler": "compiler", "hardware": "explicit"}
    names = {name.partition("/none/")[2] for name in modules(checkout, folder)}
    assert names == {"compiler-regular-loop-compiler", "hardware-regular"}
