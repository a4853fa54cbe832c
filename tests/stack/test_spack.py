"""Real Spack: isolated from the user's Spack, clear errors, and what an edit rebuilds."""

from __future__ import annotations

import ctypes
import ctypes.util
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from pagewise.core.result import read_result
from pagewise.machine.host import read_host
from pagewise.stack.catalog import Entry
from pagewise.workloads.counters.counting import installed_files
from pagewise.workloads.counters.machine import file_for, hardware_counters, open_error, read_cpu

from conftest import ROOT, STATE, environment, lock_of, run, spack, succeed

Unavailable = Callable[[str], NoReturn]
# PERF_TYPE_SOFTWARE and PERF_COUNT_SW_PAGE_FAULTS of linux/perf_event.h.
_PERF_SOFTWARE, _PAGE_FAULTS = 1, 2

POISON = "packages: [this: is, not: Spack's\n"


def detected(package: str) -> bool:
    """Whether the set-up found a package on this machine."""
    facts = json.loads((STATE / "setup.json").read_text())
    return package in {external["name"] for external in facts["externals"]}


def papi_variants(checkout: Path, name: str) -> set[bool]:
    """The values of the variant papi among the packages of an environment's lock."""
    lock = json.loads((checkout / "envs" / name / "spack.lock").read_text())
    specs = [spec for spec in lock["concrete_specs"].values() if spec["namespace"] == "pagewise"]
    assert {"libpagewise", "pagewise-micro"} <= {spec["name"] for spec in specs}
    return {spec["parameters"]["papi"] for spec in specs if "papi" in spec["parameters"]}


def with_all_variants(checkout: Path, name: str) -> set[bool]:
    """The values of the variant all_variants of the library in an environment's lock."""
    specs = lock_of(checkout / "envs" / name)["concrete_specs"].values()
    return {spec["parameters"]["all_variants"] for spec in specs if spec["name"] == "libpagewise"}


@pytest.fixture
def poisoned_home(tmp_path: Path) -> Path:
    """A home whose ~/.spack makes every Spack that reads it fail."""
    home = tmp_path / "home"
    (home / ".spack").mkdir(parents=True)
    for section in ("packages", "config", "repos"):
        (home / ".spack" / f"{section}.yaml").write_text(POISON)
    return home


def test_the_poison_works(checkout: Path, poisoned_home: Path) -> None:
    done = subprocess.run(
        [checkout / ".pagewise" / "spack" / "bin" / "spack", "config", "get", "packages"],
        env={"HOME": str(poisoned_home), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert str(poisoned_home) in done.stderr


def test_the_users_spack_folder_is_neither_read_nor_written(checkout: Path, poisoned_home: Path) -> None:
    folder = environment(checkout, "isolated", "pagewise-micro@develop %pagewise-gcc")
    before = sorted(poisoned_home.rglob("*"))
    spack(checkout, folder, "concretize", HOME=str(poisoned_home))
    assert sorted(poisoned_home.rglob("*")) == before


def test_a_stack_that_cannot_be_concretized_fails(checkout: Path) -> None:
    environment(checkout, "hopeless", "pagewise-micro@develop prefetch=compiler %pagewise-llvm")
    done = run(checkout / "setup" / "stack", "hopeless")
    assert done.returncode != 0
    assert "prefetch=software" in done.stdout, "the remedy"
    assert "Traceback" not in done.stdout


def test_an_unknown_environment_is_refused_with_a_list(checkout: Path) -> None:
    done = run(checkout / "setup" / "stack", "nonesuch")
    assert done.returncode == 4
    assert "'nonesuch'" in done.stdout
    assert "quick" in done.stdout


def test_the_machines_packages_have_recipes_that_cost_nothing(built: Path) -> None:
    lock = lock_of(built / "envs" / "quick")
    recipes: dict[str, set[str]] = {}
    for spec in lock["concrete_specs"].values():
        recipes.setdefault(spec["namespace"], set()).add(spec["name"])
    assert recipes == {
        "externals": {"gcc", "cmake", "ninja", "glibc", *({"papi"} if detected("papi") else ())},
        "pagewise": {"libpagewise", "pagewise-micro"},
        "builtin": {"compiler-wrapper", "gcc-runtime"},
    }


def test_mini_apps_use_the_machines_hdf5_and_mpi(checkout: Path) -> None:
    folder = checkout / "envs" / "mini-apps"
    spack(checkout, folder, "concretize")
    lock = lock_of(folder)
    specs = lock["concrete_specs"].values()
    assert len(lock["roots"]) == 30
    assert {spec["name"] for spec in specs if spec["namespace"] == "pagewise"} == {
        "libpagewise",
        "pagewise-eos-table",
        "pagewise-helmholtz",
        "pagewise-ember",
    }
    externals = {spec["name"] for spec in specs if spec.get("external")}
    assert "hdf5" in externals and externals & {"openmpi", "mpich"}


def built_packages(checkout: Path) -> set[str]:
    """The packages that the last installation built."""
    lines = (checkout / ".pagewise" / "logs" / "install-quick.log").read_text().splitlines()
    return {line.split()[1].rstrip(":") for line in lines if "Executing phase: 'build'" in line}


def test_the_kernels_folder_stays_clean(built: Path) -> None:
    assert not list((built / "kernels").glob("build-*"))


def test_an_edit_rebuilds_its_dependents(built: Path) -> None:
    def edit(name: str) -> set[str]:
        (built / ".pagewise" / "logs" / "install-quick.log").unlink(missing_ok=True)
        os.utime(built / "kernels" / name)
        succeed(built / "setup" / "stack", "quick")
        return built_packages(built)

    assert edit("CMakePresets.json") == set()
    assert edit("core/tests") == set()
    assert edit("mini/ember/kernel.yaml") == set()
    assert edit("micro/schoenauer_triad/kernel.yaml") == {"libpagewise", "pagewise-micro"}


@pytest.mark.release
def test_programs_run_after_an_edit_of_the_library(built: Path) -> None:
    """Every object that uses a changed type must be rebuilt: an old object would crash."""
    environment(built, "llvm", "pagewise-micro@develop %pagewise-llvm")
    source = built / "kernels" / "core" / "pw_record.f90"
    before = source.read_text()
    head = "    type, public :: configuration_t\n"

    def rebuild() -> None:
        for name in ("quick", "llvm"):
            succeed(built / "setup" / "stack", name)

    rebuild()
    source.write_text(before.replace(head, head + "        integer(i8) :: grown(33) = 7\n"))
    assert source.read_text() != before
    try:
        rebuild()
        compilers = set()
        for name in ("quick", "llvm"):
            for root in json.loads((built / "envs" / name / "spack.lock").read_text())["roots"]:
                prefix = next((built / ".pagewise" / "opt").glob(f"pagewise-micro/*{root['hash']}"))
                for program in sorted(prefix.glob("bin/pw-*")):
                    done = succeed(program, "--version")
                    compilers.add(done.stdout.split("compiler ")[1].split("-")[0].strip())
        assert compilers == {"gcc", "llvm"}
    finally:
        source.write_text(before)
    rebuild()


def test_nothing_is_done_twice(built: Path) -> None:
    assert run(built / "setup" / "stack", "quick").returncode == 0
    done = succeed(built / "setup" / "stack", "quick")
    assert done.stdout == ""


def test_the_recipes_own_tests_pass(built: Path) -> None:
    done = succeed(built / "setup" / "test-packages", "quick")
    assert " 3 passed" in done.stdout
    assert "failed" not in done.stdout


def test_nothing_is_fetched_after_the_set_up(built: Path) -> None:
    alone = ("unshare", "--map-root-user", "--net")
    if run(*alone, "true").returncode != 0:
        pytest.skip("this user may not make a network namespace")
    environment(built, "offline", "pagewise-micro@develop stores=nontemporal %pagewise-gcc")
    succeed(*alone, built / "setup" / "stack", "offline")
    assert list((built / ".pagewise" / "modules" / "offline").rglob("hardware-nontemporal.lua"))
    assert (with_all_variants(built, "quick"), with_all_variants(built, "offline")) == ({False}, {True})


def test_environments_use_papi_where_it_is_detected(built: Path) -> None:
    assert papi_variants(built, "quick") == {detected("papi")}


def test_a_site_without_papi_builds_without_it(built: Path, tmp_path: Path) -> None:
    """The specs stay the same: +papi is only preferred."""
    site = tmp_path / "site"
    shutil.copytree(built / ".pagewise" / "site", site)
    content = json.loads((site / "packages.yaml").read_text())
    content["packages"].pop("papi", None)
    (site / "packages.yaml").write_text(json.dumps(content))
    file = environment(built, "uncounted", "pagewise-micro@develop %pagewise-gcc") / "spack.yaml"
    file.write_text(file.read_text().replace("/sites/quick", "/sites/uncounted"))
    succeed(built / "setup" / "solve", "uncounted", PAGEWISE_SITE=str(site))
    assert papi_variants(built, "uncounted") == {False}


def papi_knows(event: str) -> bool:
    """Asked of PAPI itself, which has no events of perf on a processor that it does not know."""
    name, code = ctypes.util.find_library("papi"), ctypes.c_int()
    assert name is not None
    library = ctypes.CDLL(name)
    major, minor = map(int, re.findall(r"\d+", name))
    version = major << 24 | minor << 16
    assert library.PAPI_library_init(version) == version
    return library.PAPI_event_name_to_code(event.encode(), ctypes.byref(code)) == 0


def test_counts_come_through_papi(built: Path, tmp_path: Path, unavailable: Unavailable) -> None:
    """Software events that the kernel permits; an event that PAPI does not know here is unavailable."""
    if not detected("papi"):
        unavailable("needs PAPI (Debian: libpapi-dev)")
    if open_error(_PERF_SOFTWARE, _PAGE_FAULTS, True) != 0:
        pytest.skip("this user may count no event")
    prefix = lock_of(built / "envs" / "quick")["roots"][0]["hash"]
    program = next((built / ".pagewise" / "opt").glob(f"pagewise-micro/*{prefix}/bin/pw-pointer_chase"))
    record, events = tmp_path / "record.jsonl", "perf::PAGE-FAULTS:u=1"
    settings = {"PAGEWISE_COUNTERS": "papi", "PAGEWISE_EVENTS": events}
    succeed(program, "--working-set", "1MB", "--repetitions", "1", "--record", record, **settings)
    content = json.loads(record.read_text())
    if papi_knows(events):
        assert content["counters_source"] == "papi" and content["counters"][events] >= 0
    else:
        assert set(content["counters"]) == {"unavailable"} and "counters_source" not in content


def test_counting_chooses_the_events_of_this_cpu(
    built: Path, tmp_path: Path, unavailable: Unavailable
) -> None:
    """With hardware counters through PAPI, those of the CPU's file instead of the kernel's generic ones."""
    if not detected("papi"):
        unavailable("needs PAPI (Debian: libpapi-dev)")
    tree = built / ".pagewise" / "modules" / "quick"
    arguments = ("--modules", tree, "--kernels", "pointer_chase", "--rounds", "1", "--output", tmp_path)
    succeed(ROOT / "pagewise", "counters", *arguments, "--timeout", "120s")
    (folder,) = tmp_path.iterdir()
    result = read_result(folder)
    counted = result.manifest.counters
    assert counted is not None
    files = installed_files([Entry(c, {}, {}) for c in result.manifest.configurations])
    own = file_for(read_cpu(), files)
    if hardware_counters(read_host()).state == "good":
        assert counted.events.name == (own.name if own else "generic")
        assert {record.counters_source for record in result.records} == {"papi"}
    else:
        assert counted.events.name == "software"


@pytest.mark.release
def test_a_mini_app_is_installed_with_its_module_and_passes_its_test(built: Path) -> None:
    environment(built, "ember", "pagewise-ember@develop hugepages=none prefetch=software %pagewise-gcc")
    succeed(built / "setup" / "stack", "ember")
    tree = built / ".pagewise" / "modules" / "ember"
    (module,) = tree.rglob("*.lua")
    assert re.fullmatch(
        r"pagewise-ember/develop/gcc-[\d.]+/none/software-regular.lua", str(module.relative_to(tree))
    )
    for fact in ("mpi: on", "stores: regular"):
        assert f'whatis("{fact}")' in module.read_text()
    done = succeed(built / "setup" / "test-packages", "ember")
    assert " 3 passed of 3 specs" in done.stdout, "the library, the table, the mini-app"
