"""What pagewise compare measures is what pagewise exec does."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from conftest import Once
from own_program import POOL, SOURCES, Own, build, needs_thp
from scripts import called
from test_allocators import library

POLICIES = ("none", "thp", "malloc", *(("hugetlbfs",) if int(POOL.read_text()) >= 40 else ()))
# Of the stopwatch, and of one process.
OWN_VARIABLES = ("HYPERFINE_RANDOMIZED_ENVIRONMENT_OFFSET", "PAGEWISE_EXEC_PROCESS")


@pytest.fixture(scope="session")
def shown(once: Once) -> dict[str, Path]:
    """Programs that show their environment and their memory, by how they are built."""

    def make(folder: Path) -> dict[str, Path]:
        fortran = folder / "fortran"
        subprocess.run(["gfortran", "-O2", SOURCES / "shown.f90", "-o", fortran], cwd=folder, check=True)
        return {
            "plain": build("shown.c", folder / "plain"),
            "static": build("shown.c", folder / "static", "-static"),
            "jemalloc": build("shown.c", folder / "jemalloc", "-Wl,--no-as-needed", library("jemalloc")),
            "fortran": fortran,
        }

    return once("shown", make)


def seen(output: str) -> tuple[dict[str, str], bool]:
    """The environment that a program had, and whether most of its memory was on huge pages."""
    environment, _, memory = output.partition("\n")
    entries = (entry.partition("=")[::2] for entry in environment.split("\0") if entry)
    huge = re.findall(r"^(?:AnonHugePages|Private_Hugetlb): +(\d+) kB$", memory, re.MULTILINE)
    kept = {name: value for name, value in entries if name not in OWN_VARIABLES}
    return kept, sum(map(int, huge)) > 32 << 10


@needs_thp
@pytest.mark.long
@pytest.mark.parametrize("name", ["plain", "static", "jemalloc", "fortran"])
def test_a_comparison_and_the_launcher_give_a_program_the_same(own: Own, shown: dict[str, Path], name: str):
    program = str(shown[name])
    # Pages count over time, and this program is short.
    words = ("--policies", ",".join(POLICIES), "--rounds", "1", "--enough-coverage", "1%")
    kept = f"| cat >>{own.folder}/output.$(date +%N)"
    own.stage.environment |= {"GLIBC_TUNABLES": "glibc.malloc.arena_max=1", "MALLOC_TOP_PAD_": "1"}
    environment, launched = own.stage.variables(), {}
    for policy in POLICIES:
        done = called(own.stage.command("exec", "--quiet", policy, "--", program), env=environment)
        if done.returncode == 0:
            launched[policy] = seen(done.stdout)
    own.stage.compare(*words, "--check", kept, "--", program, code=0)
    measured = {one.configuration.hugepages for one in own.records() if one.repetitions}
    assert measured == set(launched)
    compared = [seen(file.read_text()) for file in sorted(own.folder.glob("output.*"))]
    # Trial runs may have a library more.
    compared = [(variables, huge) for variables, huge in compared if "PAGEWISE_SNAPSHOT" not in variables]
    for policy, (variables, huge) in launched.items():
        assert huge == (policy != "none")
        differences = [variables.items() ^ others.items() for others, same in compared if same == huge]
        assert set() in differences, min(differences, key=len, default=None)
