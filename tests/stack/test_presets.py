"""The CMake presets that replace Spack: which configurations they are, and their flags."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from conftest import ROOT, load_preset_plan

# Spack's compiler wrapper adds the flag of the target.
TARGET_FLAG = "-march=native"


plan = load_preset_plan()


def visible_presets() -> list[str]:
    presets = json.loads((ROOT / "kernels" / "CMakePresets.json").read_text())["configurePresets"]
    return [preset["name"] for preset in presets if not preset.get("hidden", False)]


def configurations_of_presets() -> list[str]:
    return [
        name for name in visible_presets() if not name.endswith(("-test", "-library", "-model", "-eos-table"))
    ]


def configurations_of(*environments: str, site: str = "debian") -> list[SimpleNamespace]:
    files = [ROOT / name / "spack.yaml" for name in environments]
    site = ROOT / "envs" / "sites" / site
    return [configuration for file in files for configuration in plan.configurations(file, site)]


def resolved(preset: str) -> dict[str, str]:
    """The cache variables of a preset as CMake resolves them, without configuring."""
    out = subprocess.run(
        ["cmake", "-N", "--preset", preset], cwd=ROOT / "kernels", check=True, capture_output=True, text=True
    ).stdout
    return dict(re.findall(r'^  (\w+)(?::\w+)?="(.*)"$', out, re.MULTILINE))


# The presets


def test_presets_are_the_configurations_of_the_environments() -> None:
    wanted = [item.preset for item in configurations_of("", "envs/mini-apps")]
    assert len(wanted) == 24 + 12 + 18
    assert sorted(configurations_of_presets()) == sorted(wanted)


def test_environments_have_the_toolchains_of_the_site() -> None:
    ours, theirs = (configurations_of("", site=site) for site in ("debian", "rocky"))
    assert theirs == [item for item in ours if item.compiler == "gcc"]


def test_the_quick_environment_is_part_of_the_default_one() -> None:
    quick = [item.preset for item in configurations_of("envs/quick")]
    assert quick
    assert set(quick) <= set(configurations_of_presets())


@pytest.mark.parametrize(
    ("name", "variant"),
    [("targets", "target=x86_64_v2"), ("simd", "simd="), ("math", "mathlib=libmvec")],
)
def test_variants_without_a_preset_are_refused(name: str, variant: str) -> None:
    with pytest.raises(ValueError, match=variant):
        configurations_of(f"envs/{name}")


@pytest.mark.parametrize("wanted", configurations_of("", "envs/mini-apps"), ids=lambda item: item.preset)
def test_a_preset_sets_the_values_of_its_name(wanted: SimpleNamespace) -> None:
    values = resolved(wanted.preset)
    variants = plan.PACKAGES[wanted.package]
    assert [values[f"PAGEWISE_{name.upper()}"] for name in variants] == list(wanted.values)
    assert values["PAGEWISE_LIBRARY"] == "OFF"
    assert values["PAGEWISE_MODULE"] == "ON"
    micro, mini = (
        ("ON", "OFF")
        if wanted.package == "pagewise-micro"
        else ("OFF", wanted.package.removeprefix("pagewise-"))
    )
    assert (values["PAGEWISE_MICRO"], values["PAGEWISE_MINI"]) == (micro, mini)
    assert values["BUILD_TESTING"] == "OFF"
    assert Path(values["CMAKE_INSTALL_PREFIX"]) == ROOT / ".pagewise" / "presets" / wanted.preset


@pytest.mark.parametrize("compiler", ["gcc", "llvm"])
def test_test_presets_are_strict(compiler: str) -> None:
    values = resolved(f"{compiler}-test")
    assert values["BUILD_TESTING"] == "ON"
    assert values["PAGEWISE_WERROR"] == "ON"


@pytest.mark.parametrize("compiler", ["gcc", "llvm"])
def test_flags_are_those_of_the_toolchain(compiler: str) -> None:
    content = yaml.safe_load((ROOT / "envs" / "toolchains" / f"{compiler}.yaml").read_text())
    specs = " ".join(
        entry if isinstance(entry, str) else entry["spec"]
        for toolchain in content["toolchains"].values()
        for entry in ([toolchain] if isinstance(toolchain, str) else toolchain)
    )
    values = resolved(f"{compiler}-none-hardware-regular")
    for spack_name, cmake_name in (("cflags", "CMAKE_C_FLAGS"), ("fflags", "CMAKE_Fortran_FLAGS")):
        match = re.search(rf"{spack_name}==?(\"[^\"]*\"|'[^']*'|\S+)", specs)
        assert match is not None
        toolchain_flags = match.group(1).strip("\"'").split()
        preset_flags = values[cmake_name].split()
        assert TARGET_FLAG in preset_flags
        preset_flags.remove(TARGET_FLAG)
        assert preset_flags == toolchain_flags


# The plan


@pytest.mark.parametrize(
    ("spec", "preset"),
    [
        (
            "pagewise-micro@develop hugepages=thp prefetch=block stores=regular %pagewise-gcc",
            "gcc-thp-block-regular",
        ),
        (
            "pagewise-micro stores=nontemporal hugepages=none prefetch=hardware %c,fortran=llvm@22",
            "llvm-none-hardware-nontemporal",
        ),
        ("pagewise-ember +mpi hugepages=thp prefetch=software %pagewise-gcc", "gcc-ember-thp-software"),
    ],
)
def test_a_spec_names_its_preset(spec: str, preset: str) -> None:
    assert plan.configuration(spec).preset == preset


@pytest.mark.parametrize(
    ("spec", "missing"),
    [
        ("pagewise-micro hugepages=thp prefetch=block stores=regular", "gcc.*llvm"),
        ("pagewise-micro hugepages=thp %gcc", "prefetch.*stores"),
        ("pagewise-ember hugepages=thp %gcc", "prefetch"),
    ],
)
def test_an_incomplete_spec_is_refused(spec: str, missing: str) -> None:
    with pytest.raises(ValueError, match=missing):
        plan.configuration(spec)


# A build, its modules, and Lmod
