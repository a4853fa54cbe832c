"""Faults in real kernels: what is in their memory, their pages, and what the machine gives them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from own_program import POOL, THP
from red_team import CODES
from scripts import HANGS_AFTER, called
from stage import ROOT

pytestmark = pytest.mark.long
KERNEL = "schoenauer_triad"
BY_DEFAULT = 'compare: {arguments: [--repetitions, "8"]'
OF_KNOWN_SIZE = 'compare: {arguments: [--repetitions, "8", --working-set, 128MB]'
# Huge pages of 2 MiB, enough for the arrays.
RESERVED = 100
SABOTAGE = {"nan-in-memory": "nan", "wrong-element": "wrong", "real-pages-split": "split"}
OF_MEMORY = (*SABOTAGE, "last-element-skipped")
#: The setting that is changed during a session: for a page policy, a file and its value.
OF_MACHINE = {"thp-switched-off": ("thp", THP / "enabled", "never"), "pool-emptied": ("hugetlbfs", POOL, "0")}


def build(folder: Path, policy: str, *, install: bool = True) -> Path:
    """The kernel in one configuration, installed with its module; the build folder of all configurations."""
    made = folder / "build"
    settings = {
        "BUILD_TESTING": "OFF",
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_INSTALL_PREFIX": str(folder / policy),
        "PAGEWISE_HUGEPAGES": policy,
        "PAGEWISE_MODULE": "ON",
        "PAGEWISE_MODULE_DIR": str(folder / "modules"),
    }
    options = [f"-D{name}={value}" for name, value in settings.items()]
    commands = [["-S", folder / "kernels", "-B", made, "-G", "Ninja", *options], ["--build", made]]
    for words in [*commands, ["--install", made]] if install else commands:
        done = called(["cmake", *words])
        assert done.returncode == 0, done.stdout + done.stderr
    return made


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory, unavailable: Callable[[str], NoReturn]) -> Path:
    """A folder with the kernel in base and in transparent huge pages, and a module tree."""
    for program in ("cmake", "ninja", "cc", "gfortran"):
        if shutil.which(program) is None:
            unavailable(f"needs {program} to build kernels (make setup)")
    folder = tmp_path_factory.mktemp("kernels")
    shutil.copytree(ROOT / "kernels", folder / "kernels")
    for description in (folder / "kernels" / "micro").glob("*/kernel.yaml"):
        if description.parent.name != KERNEL:
            shutil.rmtree(description.parent)
    # By default the size depends on the machine's caches.
    written = folder / "kernels" / "micro" / KERNEL / "kernel.yaml"
    text = written.read_text()
    assert BY_DEFAULT in text
    written.write_text(text.replace(BY_DEFAULT, OF_KNOWN_SIZE))
    build(folder, "none")
    build(folder, "thp")
    return folder


def add(stage: Path, name: str, *lines: str) -> str:
    """The module of transparent huge pages again, for another target by name, with more settings."""
    [sound] = (stage / "modules").rglob("thp/hardware-regular.lua")
    file = sound.with_name(f"hardware-regular-{name}.lua")
    target = f'setenv("PAGEWISE_TARGET", "{name}")'
    file.write_text("\n".join([sound.read_text(), target, *lines]) + "\n")
    return str(file.relative_to(stage / "modules").with_suffix(""))


def command(stage: Path, *arguments: str) -> tuple[list[str], dict[str, Any]]:
    words = [ROOT / "pagewise", "kernels", "--modules", stage / "modules", "--output", stage / "results"]
    # Small enough to be quick, large enough to be changed while it runs.
    selected = ("--kernels", KERNEL, "--no-sweep", "--json", *arguments)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PAGEWISE_")}
    return [str(word) for word in (*words, *selected)], {"cwd": stage, "env": inherited, "text": True}


def sabotaged(stage: Path) -> dict[str, str]:
    """Adds a configuration for each fault in memory; modules by fault."""
    library = stage / "sabotage.so"
    source = Path(__file__).with_name("sabotage.c")
    flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([shutil.which("cc") or "gcc", *flags, source, "-o", library, "-lpthread"], check=True)
    modules = {
        fault: add(stage, fault, f'setenv("LD_PRELOAD", "{library}")', f'setenv("SABOTAGE", "{how}")')
        for fault, how in SABOTAGE.items()
    }
    # A kernel.c in the folder replaces the written one, which the broken code includes.
    wrong = (stage / "kernels" / "harness" / "broken" / "stream.c").read_text()
    sound = stage / "build" / "written" / KERNEL / "kernel.c"
    timed = stage / "kernels" / "micro" / KERNEL / "kernel.c"
    timed.write_text(wrong.replace('"kernel.c"', f'"{sound}"'))
    made = build(stage, "thp", install=False)
    timed.unlink()
    broken = stage / "broken"
    broken.mkdir()
    shutil.copy(made / "micro" / KERNEL / f"pw-{KERNEL}", broken)
    path = f'prepend_path("PATH", "{broken}")'
    return {**modules, "last-element-skipped": add(stage, "last-element-skipped", path)}


def test_faults_in_real_kernels_are_reported_and_excluded(kernels: Path):
    """The others take turns; the signal of the last turn may reach any of their threads."""
    modules = sabotaged(kernels)
    words, how = command(kernels, "--rounds", "3", "--threads", str(min(2, len(os.sched_getaffinity(0)))))
    done = subprocess.run(words, **how, capture_output=True, check=False)
    assert done.returncode == 1, done.stderr
    [kernel] = json.loads(done.stdout)["kernels"]
    rows = {row["module"]: row for row in kernel["configurations"]}
    reported = {fault: rows[module]["code"] for fault, module in modules.items()}
    assert reported == {fault: CODES[fault] for fault in OF_MEMORY}
    assert {rows[module]["time_ratio"] for module in modules.values()} == {None}
    sound = [row for module, row in rows.items() if module not in modules.values()]
    assert {row["hugepages"]: row["code"] for row in sound} == {"none": None, "thp": None}
    assert {row["method"] for row in sound} == {"turns"}


@pytest.fixture
def kept() -> Iterator[Callable[[Path, str], None]]:
    """Writes settings of the machine, and puts back what they were."""
    before: dict[Path, str] = {}

    def write(file: Path, value: str) -> None:
        text = file.read_text()
        before.setdefault(file, text.partition("[")[2].partition("]")[0] or text)
        file.write_text(value)

    yield write
    for file, value in before.items():
        file.write_text(value)


@pytest.mark.changes_machine
@pytest.mark.parametrize("fault", OF_MACHINE)
def test_a_setting_that_changes_during_the_session_is_a_finding(
    fault: str, kernels: Path, kept: Callable[[Path, str], None]
):
    policy, file, value = OF_MACHINE[fault]
    if policy == "hugetlbfs":
        build(kernels, policy)
        kept(POOL, str(RESERVED))
    words, how = command(kernels, "--rounds", "6", "--configurations", f"*/{policy}/hardware-regular")
    words[words.index("--output") + 1] = str(kernels / fault)
    process = subprocess.Popen(words, **how, stdout=subprocess.PIPE)
    while process.poll() is None:
        records = list((kernels / fault).glob("*/records.jsonl"))
        if records and records[0].read_bytes().count(b"\n") >= 7:
            kept(file, value)
            break
        time.sleep(0.02)
    out, _ = process.communicate(timeout=HANGS_AFTER)
    reported = json.loads(out)
    assert process.returncode == 1
    [actual] = reported["findings"]
    assert (actual["code"], actual["hugepages"]) == (CODES[fault], policy)
    assert 0 < actual["rounds"] < actual["rounds_made"] == 6
    assert [one for one in reported["answers"] if one["factor"] == "hugepages"] == []
