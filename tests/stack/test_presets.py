"""The CMake presets that replace Spack: which configurations they are, and their flags."""

from __future__ import annotations

import json
import platform
import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import preset_plan as plan
import pytest
import yaml

from conftest import ROOT, run, succeed


def configurations_of(*environments: str, site: str = "debian") -> list[SimpleNamespace]:
    files = [ROOT / name / "spack.yaml" for name in environments]
    site = ROOT / "envs" / "sites" / site
    return [configuration for file in files for configuration in plan.configurations(file, site)]


def flags_in_cmake(build: Path, *options: str) -> tuple[str, str]:
    """The flags for C and Fortran that CMake has with these options when it detects the compilers."""
    project = build / "CMakeLists.txt"
    project.parent.mkdir(exist_ok=True)
    project.write_text(
        "cmake_minimum_required(VERSION 3.20)\n"
        f"include({ROOT}/kernels/cmake/PagewiseToolchain.cmake)\n"
        "project(flags LANGUAGES NONE)\n"
        'message(STATUS "C=${CMAKE_C_FLAGS}")\n'
        'message(STATUS "Fortran=${CMAKE_Fortran_FLAGS}")\n'
    )
    done = succeed("cmake", "-S", build, "-B", build / "out", *options)
    values = dict(re.findall(r"^-- (C|Fortran)=(.*)$", done.stdout, re.MULTILINE))
    return values["C"], values["Fortran"]


# The presets


def test_the_default_environments_builds_have_unique_names() -> None:
    names = [item.name for item in configurations_of("", "envs/mini-apps")]
    assert len(set(names)) == len(names) == 26 + 12 + 18
    assert {"gcc-none-hardware-regular", "llvm-ember-thp-software"} <= set(names)


@pytest.mark.parametrize("environment", ["", "envs/release"])
def test_each_compilers_own_loop_is_compared_with_the_explicit_one(environment: str) -> None:
    micro = [item for item in configurations_of(environment) if item.part == "micro"]
    loops = [item for item in micro if ("loop", "compiler") in item.values]
    assert [item.compiler for item in loops] == ["gcc", "llvm"]
    explicit = {(item.compiler, *item.values) for item in micro}
    for item in loops:
        values = dict(item.values) | {"loop": "explicit"}
        assert (item.compiler, *values.items()) in explicit
    assert len(micro) == 26


def test_environments_have_the_toolchains_of_the_site() -> None:
    own, other = (configurations_of("", site=site) for site in ("debian", "rocky"))
    assert other == [item for item in own if item.compiler == "gcc"]


@pytest.mark.parametrize(
    ("name", "variant"),
    [("targets", "target=x86_64_v2"), ("stores", "simd="), ("libraries", "mathlib=libmvec")],
)
def test_variants_without_a_preset_are_refused(name: str, variant: str) -> None:
    with pytest.raises(ValueError, match=variant):
        configurations_of(f"envs/{name}")


@pytest.mark.parametrize(("detected", "value"), [(["papi", "hdf5"], "ON"), (["hdf5"], "OFF")])
def test_presets_build_with_papi_where_it_is_detected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], detected: list[str], value: str
) -> None:
    gcc = {"name": "gcc", "version": "12", "c": "gcc", "fortran": "gfortran", "entered": True, "reason": None}
    facts = {"compilers": [gcc], "externals": [{"name": name} for name in detected]}
    (tmp_path / "setup.json").write_text(json.dumps(facts))
    file, site = ROOT / "envs" / "quick" / "spack.yaml", ROOT / "envs" / "sites" / "debian"
    assert plan.main(file, site, tmp_path / "setup.json") == 0
    builds = [shlex.split(line) for line in capsys.readouterr().out.splitlines() if line]
    assert {words[1] for words in builds} == {"library", "micro"}
    assert all([word for word in words if "PAPI" in word] == [f"-DPAGEWISE_PAPI={value}"] for words in builds)


def test_the_options_of_a_build_are_its_variants(tmp_path: Path) -> None:
    build = plan.configuration(
        "pagewise-ember hugepages=thp prefetch=software stores=regular %pagewise-gcc-other"
    )
    assert (build.part, build.name) == ("ember", "gcc-other-ember-thp-software")
    assert build.options(tmp_path) == [
        "-DPAGEWISE_HUGEPAGES=thp",
        "-DPAGEWISE_PREFETCH=software",
        "-DPAGEWISE_TOOLCHAIN=pagewise-gcc-other",
        f"-Dpagewise_ROOT={tmp_path}/gcc-other-library",
        f"-DPAGEWISE_EOS_TABLE={tmp_path}/gcc-other-eos-table/share/pagewise/helmholtz.h5",
    ]


TOOLCHAINS = {
    name: [entry["spec"] for entry in entries]
    for file in sorted((ROOT / "envs" / "toolchains").glob("*.yaml"))
    for name, entries in yaml.safe_load(file.read_text())["toolchains"].items()
}


@pytest.mark.parametrize("name", TOOLCHAINS)
def test_cmake_reads_the_flags_of_a_toolchain(name: str, tmp_path: Path) -> None:
    """Compares with a YAML reader and Spack's syntax, which CMake does not have."""
    expected = tuple(
        next(spec for spec in TOOLCHAINS[name] if spec.startswith(f"{kind}==")).partition("==")[2].strip('"')
        for kind in ("cflags", "fflags")
    )
    options = (f"-DPAGEWISE_TOOLCHAIN={name}", "-DPAGEWISE_TARGET_FLAGS=-mtune=generic")
    actual = flags_in_cmake(tmp_path, *options)
    assert actual == tuple(f"-mtune=generic {flags}" for flags in expected)


def test_the_target_of_a_toolchain_is_the_compiling_processor(tmp_path: Path) -> None:
    native = {"x86_64": "-march=native", "aarch64": "-mcpu=native"}[platform.machine()]
    assert flags_in_cmake(tmp_path, "-DPAGEWISE_TOOLCHAIN=pagewise-gcc")[0].startswith(f"{native} -O3 ")
    assert flags_in_cmake(tmp_path / "none", "-DCMAKE_C_FLAGS=-O1") == ("-O1", "")


def test_an_unknown_toolchain_is_refused(tmp_path: Path) -> None:
    toolchain = "-DPAGEWISE_TOOLCHAIN=pagewise-other"
    done = run("env", "-C", ROOT / "kernels", "cmake", "--preset", "gcc-library", "-B", tmp_path, toolchain)
    assert done.returncode == 1 and "pagewise-other" in done.stdout and "pagewise-gcc" in done.stdout


# The plan


@pytest.mark.parametrize(
    ("spec", "name"),
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
        (
            "pagewise-micro hugepages=none prefetch=hardware stores=regular loop=compiler "
            "%pagewise-gcc-native",
            "gcc-native-none-hardware-regular-loop-compiler",
        ),
    ],
)
def test_a_spec_names_its_build(spec: str, name: str) -> None:
    assert plan.configuration(spec).name == name


@pytest.mark.parametrize(
    ("spec", "missing"),
    [
        ("pagewise-micro hugepages=thp prefetch=block stores=regular", "compiler"),
        ("pagewise-micro hugepages=thp %gcc", "prefetch.*stores"),
        ("pagewise-ember hugepages=thp %gcc", "prefetch"),
    ],
)
def test_an_incomplete_spec_is_refused(spec: str, missing: str) -> None:
    with pytest.raises(ValueError, match=missing):
        plan.configuration(spec)


# A build, its modules, and Lmod
