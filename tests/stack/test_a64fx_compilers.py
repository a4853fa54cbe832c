"""A64FX compilers that are not installed: how recipes call their stand-ins, and the modules for libmpg."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path
from typing import Any, NoReturn

import pytest
import yaml

from conftest import (
    AARCH64,
    EMULATED,
    ROOT,
    STAND_IN,
    STATE,
    configure,
    lock_of,
    roots,
    run,
    spack,
    stand_ins,
    succeed,
)

pytestmark = pytest.mark.release

# With the flags of a study, in addition to the site's toolchains.
STUDY = ("pagewise-fujitsu-a64fx-pearc23", "pagewise-arm-a64fx-pearc23")
COMPILERS = {"gcc", "acfl", "fj", "cce", "llvm"}
POLICIES = {"none", "thp", "hugetlbfs", "fjmpg", "fjmpg-thp"}


@pytest.mark.parametrize(
    ("flags", "bytes_of_a_line"), [("", 256), ("-KA64FX,SVE", 256), ("-KGENERIC_CPU", 64), ("-Nclang", 64)]
)
def test_cache_lines_follow_the_target_of_fcc(flags: str, bytes_of_a_line: int, tmp_path: Path) -> None:
    """In its classic mode the target is a default; in clang mode it is an option, as with other compilers."""
    stand_ins(tmp_path, "fcc", "frt")
    done = configure(tmp_path, "fcc", "frt", *AARCH64, f"-DCMAKE_C_FLAGS={flags}", "-DPAGEWISE_MICRO=OFF")
    assert done.returncode == 0, done.stdout
    build = tmp_path / "build"
    assert f"PAGEWISE_LINE_BYTES:STRING={bytes_of_a_line}\n" in (build / "CMakeCache.txt").read_text()


def stand_in_site(root: Path, name: str, site: Path) -> dict[str, Any]:
    """Copy a site, with stand-ins for its compilers, this machine's tools and the C library for aarch64.

    Returns its packages.
    """
    folder = root / "stand-ins"
    folder.mkdir(exist_ok=True)
    shutil.copytree(root / "envs" / "sites" / name, site)
    stand_ins(folder)
    detected = yaml.safe_load((EMULATED / "packages.yaml").read_text())["packages"]
    packages = yaml.safe_load((site / "packages.yaml").read_text())["packages"]
    for tool in ("cmake", "ninja", "gmake", "glibc"):
        packages[tool] = detected[tool]
    for compiler in COMPILERS & packages.keys():
        external = packages[compiler]["externals"][0]
        external["prefix"] = str(folder)
        compilers = external["extra_attributes"]["compilers"]
        compilers.pop("cxx", None)
        for language, driver in compilers.items():
            stand_in = folder / re.sub(r"-[0-9]+$", "", Path(driver).name)
            compilers[language] = str(stand_in)
            if not stand_in.exists():
                stand_in.symlink_to(STAND_IN)
    (site / "packages.yaml").write_text(yaml.safe_dump({"packages": packages}))
    return dict(packages)


@pytest.fixture(scope="module")
def ookami(small: Path) -> Path:
    """The site ookami with stand-ins for compilers and libmpg; envs/a64fx concretized and partly built."""
    root = small
    site = root / "site-ookami"
    packages = stand_in_site(root, "ookami", site)
    # Programs cannot be linked with it: it is not on this machine.
    del packages["papi"]
    library = root / "mmm"
    (library / "lib64").mkdir(parents=True)
    (library / "util").mkdir()
    driver = json.loads((root / "stand-ins" / "delegates.json").read_text())["c"]
    succeed(driver, "-shared", "-x", "c", "/dev/null", "-o", library / "lib64" / "libmpg.so")
    script = run("aarch64-linux-gnu-ld", "-pie", "--verbose").stdout.split("=" * 50)[1]
    (library / "util" / "bss-2mb.lds").write_text(script)
    packages["fujitsu-libmpg"]["externals"][0]["prefix"] = str(library)
    (site / "packages.yaml").write_text(yaml.safe_dump({"packages": packages}))
    (root / ".pagewise" / "site").unlink()
    (root / ".pagewise" / "site").symlink_to(site)

    environment = root / "envs" / "a64fx" / "spack.yaml"
    text = environment.read_text()
    data = yaml.safe_load(text)["spack"]
    assert data["definitions"][0] == {
        "hugepages": [f"hugepages={policy}" for policy in ("none", "thp", "hugetlbfs", "fjmpg")]
    }
    pages = "  - hugepages: [hugepages=none, hugepages=fjmpg]\n"
    head, rest = text.split("  - hugepages:")[0], text[text.index("  specs:") :]
    accesses = "  - accesses: [prefetch=hardware stores=regular]\n"
    study = "".join(f"  - pagewise-micro@develop hugepages=none target=a64fx %{name}\n" for name in STUDY)
    specs = rest[: rest.index("  - matrix:\n    - [pagewise-micro@develop target=a64fx hugepages=fjmpg-thp")]
    environment.write_text(f"{head}{pages}{accesses}{specs}{study}  view: false\n")
    install = ("install", "--only-concrete", "--no-cache", "--jobs", "2")
    for command in (
        ("concretize", "--force"),
        (*install, "pagewise-micro%c,fortran=fj"),
        (*install, "pagewise-micro%c,fortran=acfl"),
    ):
        spack(root, environment.parent, *command)
    return root


def calls(root: Path, program: str, *words: str) -> list[list[str]]:
    """The arguments of a stand-in's calls that contain these words."""
    lines = (root / "stand-ins" / "calls.jsonl").read_text().splitlines()
    return [
        call["arguments"]
        for call in map(json.loads, lines)
        if call["program"] == program
        and all(any(word in part for part in call["arguments"]) for word in words)
    ]


def test_every_compiler_of_the_site_concretizes_for_a64fx(ookami: Path) -> None:
    lock, specs = lock_of(ookami / "envs" / "a64fx"), roots(ookami / "envs" / "a64fx")
    assert len(specs) == 10 + 5 + len(STUDY), "explicit loops with two page policies, plain ones, the studies"
    assert {spec["arch"]["target"]["name"] for spec in specs} == {"a64fx"}
    assert {fortran_compiler(lock, spec) for spec in specs} == COMPILERS


def fortran_compiler(lock: dict[str, Any], spec: dict[str, Any]) -> str:
    """The package of a concrete spec's Fortran compiler."""
    (name,) = (
        lock["concrete_specs"][dependency["hash"]]["name"]
        for dependency in spec["dependencies"]
        if "fortran" in dependency["parameters"]["virtuals"]
    )
    return str(name)


@pytest.mark.parametrize(
    ("site", "compilers", "mpi"),
    [("ookami", COMPILERS, "mvapich2"), ("fugaku", {"fj", "gcc", "llvm"}, "fujitsu-mpi")],
)
def test_both_tests_of_the_studies_concretize(
    small: Path, tmp_path: Path, site: str, compilers: set[str], mpi: str
) -> None:
    """Each compiler and each policy once, because the solver needs a second per configuration."""
    packages = stand_in_site(small, site, tmp_path / site)
    (toolchains, *_) = yaml.safe_load((tmp_path / site / "definitions.yaml").read_text())["definitions"]
    content = yaml.safe_load((small / "envs" / "mini-apps" / "spack.yaml").read_text())
    (ember, *_), (helmholtz, *_) = (
        next(iter(entry.values())) for entry in content["spack"]["definitions"][:2]
    )
    tests, policies = (ember, helmholtz), [f"hugepages={policy}" for policy in sorted(POLICIES)]
    content["spack"]["include"][0] = str(tmp_path / site)
    content["spack"]["specs"] = [
        f"{test} prefetch=hardware {policy} {toolchain}"
        for test, policy, toolchain in zip(
            cycle(tests), policies, cycle(toolchains["toolchains"]), strict=False
        )
    ]
    folder = small / "envs" / f"mini-apps-{site}"
    folder.mkdir()
    (folder / "spack.yaml").write_text(yaml.safe_dump(content))
    spack(small, folder, "concretize")
    lock, specs = lock_of(folder), roots(folder)
    assert {spec["parameters"]["hugepages"] for spec in specs} == POLICIES
    assert {fortran_compiler(lock, spec) for spec in specs} == compilers
    assert {spec["parameters"]["papi"] for spec in specs} == {True}
    used = {
        spec["name"]: spec["external"]["path"]
        for spec in lock["concrete_specs"].values()
        if "external" in spec
    }
    for name in ("hdf5", "papi", mpi, "fujitsu-libmpg"):
        assert used[name] == packages[name]["externals"][0]["prefix"]
    script = "import spack.environment as e; " + (
        "print(*e.active_environment().concrete_roots()[0].package.cmake_args())"
    )
    options = spack(small, folder, "python", "-c", script)
    # CMake finds Fujitsu's compiler of MPI by itself only for Fujitsu's compilers.
    assert ("/bin/mpifcc" in options.stdout) == (site == "fugaku")
    assert used[mpi] in options.stdout


def test_fujitsus_compilers_get_the_flags_of_their_toolchain(ookami: Path) -> None:
    compiled = calls(ookami, "frt", "loop.f90", "-c")
    assert all({"-KSVE,A64FX,ARMV8_3_A", "-Az"} <= set(call) for call in compiled)
    study = ["-Kfast" in call for call in compiled]
    assert study == ["-Kfp_contract" not in call for call in compiled]
    assert any(study) and not all(study)
    assert any("-Knoprefetch" in call for call in compiled)
    assert any("-Kprefetch_sequential=soft" in call for call in compiled), "prefetch=compiler"
    assert all("-Nclang" in call for call in calls(ookami, "fcc", "kernel.c", "-c"))


def test_large_pages_are_linked_according_to_the_policy(ookami: Path) -> None:
    links = calls(ookami, "frt", "pw-stream_triad")
    links = [call for call in links if "-c" not in call]
    assert {("-Klargepage" in call, "-Knolargepage" in call) for call in links} == {
        (False, True),
        (True, False),
    }
    script = f"-Wl,-T{ookami}/mmm/util/bss-2mb.lds"
    links = [call for call in calls(ookami, "armflang", "pw-stream_triad") if "-c" not in call]
    assert {(script in call, "-lmpg" in call) for call in links} == {(False, False), (True, True)}


def test_arms_compilers_get_the_flags_of_their_toolchain(ookami: Path) -> None:
    compiled = calls(ookami, "armflang", "loop.f90", "-c")
    assert all({"-O3", "-mcpu=a64fx", "-mtune=a64fx"} <= set(call) for call in compiled)
    assert {"-armpl" in call for call in compiled} == {False, True}
    links = [call for call in calls(ookami, "armflang", "pw-stream_triad") if "-c" not in call]
    assert {"-lamath" in call for call in links} == {False, True}


@pytest.fixture(scope="module")
def tree(ookami: Path) -> Path:
    """The modules of what is installed."""
    tree = ookami / "module-tree"
    spack(ookami, *(ookami / "envs" / "a64fx", "python", ookami / "setup" / "write_modules.py", tree))
    return tree


def test_modules_name_a_studys_flags(tree: Path) -> None:
    for compiler in ("fj-4.5.0", "acfl-21.0"):
        text = next(tree.rglob(f"{compiler}/none/hardware-regular-pearc23.lua")).read_text()
        assert 'setenv("PAGEWISE_FLAGS", "pearc23")' in text
        assert "PAGEWISE_FLAGS" not in next(tree.rglob(f"{compiler}/none/hardware-regular.lua")).read_text()


def test_modules_for_libmpg_have_its_settings(ookami: Path, tree: Path) -> None:
    text = next(tree.rglob("fj-4.5.0/fjmpg/hardware-regular.lua")).read_text()
    for setting in (
        'setenv("XOS_MMM_L_HPAGE_TYPE", "hugetlbfs")',
        'setenv("XOS_MMM_L_PAGING_POLICY", "demand:demand:demand")',
        'setenv("XOS_MMM_L_ARENA_FREE", "1")',
        'setenv("XOS_MMM_L_ARENA_LOCK_TYPE", "1")',
        f'prepend_path("LD_LIBRARY_PATH", "{ookami}/mmm/lib64")',
    ):
        assert setting in text
    assert "XOS_MMM" not in next(tree.rglob("fj-4.5.0/none/hardware-regular.lua")).read_text()


def test_clang_compiles_every_kernels_vectors_for_a64fx(
    unavailable: Callable[[str], NoReturn], tmp_path: Path
) -> None:
    """With the toolchain's flags and the installed Clang, which treats SVE vectors differently from GCC."""
    facts = json.loads((STATE / "setup.json").read_text())
    drivers = [entry["c"] for entry in facts["compilers"] if entry["name"] == "llvm" and entry["entered"]]
    headers = Path("/usr/aarch64-linux-gnu/include")
    if not drivers or not headers.is_dir():
        unavailable("needs Clang and the C library's headers for aarch64 (make setup-tests)")
    toolchain = (ROOT / "envs" / "toolchains" / "llvm.yaml").read_text()
    flags = re.search(r'cflags=="(.+ -mcpu=a64fx .+)"', toolchain)[1].split()
    kernels = ROOT / "kernels"
    words = [drivers[0], "--target=aarch64-linux-gnu", *flags, "-std=gnu11", f"-I{headers}"]
    words += [f"-I{kernels}/harness", "-DPW_LINE_BYTES=256", "-DPW_PREFETCH_HARDWARE", "-DPW_STORES_REGULAR"]
    words += ["-DPW_LOOP_EXPLICIT"]

    def errors_of(source: Path) -> str:
        compiled = tmp_path / f"{source.parent.name}-{source.stem}.o"
        done = run(*words, f"-I{source.parent}", "-c", source, "-o", compiled)
        return "" if done.returncode == 0 else f"{source}: {done.stdout}"

    succeed("cmake", "-S", kernels, "-B", tmp_path / "build", "-DBUILD_TESTING=OFF")
    sources = [file for file in kernels.glob("micro/*/kernel*.c") if "nontemporal" not in file.name]
    sources += (tmp_path / "build" / "written").glob("*/kernel.c")
    assert len(sources) > 35
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        assert "".join(pool.map(errors_of, sources)) == ""
