"""Environments built with CMake presets: modules like those of Spack, and what is built again.

Uses real CMake, compilers and Lmod, and builds two configurations in a copy of the checkout.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import preset_plan as plan
import pytest

from conftest import KERNELS, ROOT, keep_kernels, run, succeed, write_script

pytestmark = pytest.mark.release

PAPI = Path("/usr/include/papi.h").exists()
BUILT = ("gcc-none-hardware-regular", "gcc-thp-hardware-nontemporal")


VERSION_OF_GCC = run("gfortran", "-dumpfullversion").stdout.strip()
GCC = {
    "name": "gcc",
    "version": VERSION_OF_GCC,
    "c": "gcc",
    "fortran": "gfortran",
    "entered": True,
    "reason": None,
}
LLVM = {"name": "llvm", "version": "22", "entered": False, "reason": "no flang"}
SPECS = (
    "pagewise-micro hugepages=none prefetch=hardware stores=regular %gcc",
    "pagewise-micro hugepages=thp prefetch=hardware stores=nontemporal %gcc",
    "pagewise-micro hugepages=thp prefetch=hardware stores=nontemporal %llvm",
)
LMOD = Path(os.environ.get("LMOD_PKG", "/usr/share/lmod/lmod"), "init", "bash")


@pytest.fixture(scope="module")
def preset_checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout with an environment of two configurations, built and installed."""
    for tool in ("cmake", "ninja", "gcc", "gfortran"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is missing")
    # Lmod and the build take a path with a space.
    root = tmp_path_factory.mktemp("preset checkout")
    for folder in ("kernels", "envs/toolchains", "modulefiles"):
        shutil.copytree(ROOT / folder, root / folder)
    keep_kernels(root, *KERNELS)
    (root / "setup").mkdir()
    for name in ("presets", "preset_plan.py", "module_defaults.py", "messages.sh", "environments.sh"):
        shutil.copy2(ROOT / "setup" / name, root / "setup" / name)
    (root / "envs" / "two").mkdir(parents=True)
    (root / "envs" / "two" / "spack.yaml").write_text(json.dumps({"spack": {"specs": SPECS}}))
    python = root / ".pagewise" / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    write_script(python, f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    facts = {"compilers": [GCC, LLVM], "externals": [{"name": "papi"}] if PAPI else []}
    (root / ".pagewise" / "setup.json").write_text(json.dumps(facts))
    done = succeed(root / "setup" / "presets", "two")
    assert "llvm" in done.stdout and "no flang" in done.stdout
    return root


def lua_files(tree: Path) -> list[str]:
    return sorted(str(file.relative_to(tree)) for file in tree.rglob("[!.]*.lua"))


Lmod = Callable[[str], str]


@pytest.fixture
def lmod(preset_checkout: Path, tmp_path: Path) -> Lmod:
    """Run shell commands after `module use` of the installed tree, in an otherwise clean shell."""
    if not LMOD.exists():
        pytest.skip("Lmod is missing")
    use = f"source {LMOD}; module use '{preset_checkout}/.pagewise/modules/two'; set -e"
    clean = ("env", "-i", "PATH=/usr/bin:/bin", f"HOME={tmp_path}", "LMOD_PAGER=none")
    return lambda script: succeed(*clean, "bash", "--noprofile", "--norc", "-c", f"{use}; {script}").stdout


def settings(text: str) -> dict[str, str]:
    return dict(re.findall(r"^(PAGEWISE_\w+)=(.*)$", text, re.MULTILINE))


def names(tree: Path) -> tuple[str, str]:
    """The modules of the two configurations: base pages, transparent huge pages."""
    files = [file.removesuffix(".lua") for file in lua_files(tree)]
    assert len(files) == 2
    return files[0], files[1]


def test_modules_are_named_after_their_configuration(preset_checkout: Path) -> None:
    tree = preset_checkout / ".pagewise" / "modules" / "two"
    assert names(tree) == (
        f"pagewise-micro/develop/gcc-{VERSION_OF_GCC}/none/hardware-regular",
        f"pagewise-micro/develop/gcc-{VERSION_OF_GCC}/thp/hardware-nontemporal",
    )


def test_a_module_sets_the_configuration(preset_checkout: Path, lmod: Lmod) -> None:
    tree = preset_checkout / ".pagewise" / "modules" / "two"
    _, thp = names(tree)
    assert f"\n{thp}" not in lmod("module load pagewise-micro; module --terse list")
    out = lmod(f"module load pagewise-micro; module load {thp}; env; command -v pw-schoenauer_triad")
    variables = settings(out)
    prefix = preset_checkout / ".pagewise" / "presets" / BUILT[1]
    assert re.fullmatch(r"[0-9a-f]{64}", variables.pop("PAGEWISE_HASH"))
    assert re.fullmatch(r"[a-z0-9_]+", variables.pop("PAGEWISE_TARGET"))
    assert variables == {
        "PAGEWISE_PACKAGE": "pagewise-micro",
        "PAGEWISE_VERSION": "develop",
        "PAGEWISE_COMPILER": thp.split("/")[2],
        "PAGEWISE_HUGEPAGES": "thp",
        "PAGEWISE_PREFETCH": "hardware",
        "PAGEWISE_STORES": "nontemporal",
        "PAGEWISE_LOOP": "explicit",
        "PAGEWISE_OPENMP": "on",
        "PAGEWISE_PAPI": "on" if PAPI else "off",
        "PAGEWISE_BUILDER": "cmake",
        "PAGEWISE_PREFIX": str(prefix),
    }
    assert out.splitlines()[-1] == str(prefix / "bin" / "pw-schoenauer_triad")


def test_a_loaded_program_runs_and_records_its_configuration(
    preset_checkout: Path, lmod: Lmod, tmp_path: Path
) -> None:
    none, _ = names(preset_checkout / ".pagewise" / "modules" / "two")
    record = tmp_path / "record.jsonl"
    lmod(f"module load {none}; pw-schoenauer_triad --working-set 1MiB --repetitions 1 --record {record}")
    content = json.loads(record.read_text())
    assert content["status"] == "ok"
    assert content["configuration"]["hugepages"] == "none"
    assert content["configuration"]["compiler"] == none.split("/")[2]


def test_hashes_depend_on_the_configuration_only(preset_checkout: Path, tmp_path: Path) -> None:
    tree = preset_checkout / ".pagewise" / "modules" / "two"
    hashes = [re.search(r"hash: (\w+)", (tree / f"{name}.lua").read_text())[1] for name in names(tree)]
    assert hashes[0] != hashes[1]
    build, papi = tmp_path / "build", f"-DPAGEWISE_PAPI={'ON' if PAPI else 'OFF'}"
    folders = ("-B", build, "--install-prefix", tmp_path / "elsewhere")
    succeed("env", "-C", preset_checkout / "kernels", "cmake", "--preset", "gcc-micro", *folders, papi)
    assert hashes[0] in (build / "pagewise-micro.lua.in").read_text()


def test_a_mini_apps_module_names_mpi_and_stores(preset_checkout: Path, tmp_path: Path) -> None:
    """Configures it without building."""
    build = plan.configuration("pagewise-ember hugepages=thp prefetch=software %gcc")
    words = ("-DCMAKE_C_COMPILER=gcc", "-DCMAKE_Fortran_COMPILER=gfortran")
    words += (*build.options(preset_checkout / ".pagewise" / "presets"), "--preset", build.part)
    succeed("env", "-C", preset_checkout / "kernels", "cmake", "-B", tmp_path, *words)
    module = (tmp_path / "pagewise-ember.lua.in").read_text()
    assert 'setenv("PAGEWISE_STORES", "regular")' in module
    assert 'whatis("mpi: ' in module
    install = (tmp_path / "mini" / "ember" / "cmake_install.cmake").read_text()
    assert f"/pagewise-ember/develop/gcc-{VERSION_OF_GCC}/thp/software-regular.lua" in install


# Building again; these tests change the preset_checkout, so they come last


def test_a_second_build_does_nothing(preset_checkout: Path) -> None:
    live = preset_checkout / ".pagewise" / "modules" / "two"
    before = live.readlink()
    succeed(preset_checkout / "setup" / "presets", "two")
    assert live.readlink() == before


def test_a_failed_build_does_not_change_the_modules(preset_checkout: Path) -> None:
    live = preset_checkout / ".pagewise" / "modules" / "two"
    before = live.readlink()
    source = preset_checkout / "kernels" / "core" / "pw_kinds.f90"
    text = source.read_text()
    source.write_text(text + "this is not Fortran\n")
    done = run(preset_checkout / "setup" / "presets", "two")
    source.write_text(text)
    assert done.returncode == 4
    assert ".log" in done.stdout
    assert live.readlink() == before
    assert len(lua_files(live)) == 2


def test_an_edit_is_built_and_replaces_all_modules(preset_checkout: Path) -> None:
    live = preset_checkout / ".pagewise" / "modules" / "two"
    before = live.readlink()
    source = preset_checkout / "kernels" / "cmake" / "module.lua.in"
    source.write_text(source.read_text() + "-- edited\n")
    succeed(preset_checkout / "setup" / "presets", "two")
    assert live.readlink() != before and not before.exists()
    assert all((live / file).read_text().endswith("-- edited\n") for file in lua_files(live))
