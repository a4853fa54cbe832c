"""Programs of Debian under page policies: for which kind of their memory is there a policy that works?

Each program of programs.yaml runs once under each policy in `pagewise compare`, whose page verification
decides. A kind of memory counts if the program has at least two huge pages of it. `make test-all` prints
the table.
"""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from pagewise.core.result import read_result
from pagewise.stack.binary import examine
from pagewise.workloads.program.applied import elf_files

pytestmark = pytest.mark.release
HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TABLE = ROOT / ".pagewise" / "programs.csv"
HUGE = 2 << 20
# By wanted memory: its kinds, and the policies of which one suffices.
PRIVATE = ("thp", "reuse+thp", "malloc", "collapse")
WANTED: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "private memory": (("heap", "anonymous", "bss"), PRIVATE),
    "machine code": ((), ("text",)),
    "shared memory": (("shared",), ("shared",)),
}
# One policy for each memory, and those that are tried where `thp` does not suffice.
FIRST, FURTHER = ("thp", "text", "shared"), PRIVATE[1:]
#: The share of combinations of program and wanted memory for which no policy works.
MOST_UNAVAILABLE = 0.05


def programs() -> dict[str, dict[str, Any]]:
    groups = yaml.safe_load((HERE / "programs.yaml").read_text(encoding="utf-8"))
    return {name: {"group": group, **row} for group, rows in groups.items() for name, row in rows.items()}


PROGRAMS = programs()


@pytest.fixture(scope="session")
def installed() -> None:
    """Debian's packages: installed if this is root and NO_INSTALL is not set."""
    names = sorted({package for row in PROGRAMS.values() for package in row["packages"]})
    query = ["dpkg-query", "--show", "--showformat", "${Package}\n", *names]
    have = subprocess.run(query, capture_output=True, text=True, check=False).stdout.split()
    missing = sorted(set(names) - set(have))
    if missing and (os.geteuid() != 0 or os.environ.get("NO_INSTALL")):
        pytest.skip(f"these packages are missing: {' '.join(missing)}")
    if missing:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        command = ["apt-get", "install", "--yes", "--no-install-recommends", *missing]
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)


@pytest.fixture(scope="session")
def table() -> Iterator[list[dict[str, str]]]:
    """The rows of the table, written at the end."""
    rows: list[dict[str, str]] = []
    yield rows
    TABLE.parent.mkdir(exist_ok=True)
    with TABLE.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, ["group", "program", "memory", "MiB", "policy", "reason"])
        writer.writeheader()
        writer.writerows(rows)
    sys.stderr.write(f"\n{TABLE.read_text(encoding='utf-8')}")


def compare(program: Mapping[str, Any], folder: Path, policies: tuple[str, ...]) -> Path:
    """Runs the program once under `none` and each policy; returns the result's folder."""
    known = set((folder / "results").glob("*"))
    words = [ROOT / "pagewise", "compare", "--rounds", "1", "--json", "--end-leftovers"]
    words += ["--policies", ",".join(("none", *policies)), "--output", folder / "results", "--timeout", "120"]
    if os.geteuid() == 0:
        words.append("--prepare-pages=thp")
    shell = shutil.which("bash") or "/bin/bash"
    done = subprocess.run(
        [*map(str, words), "--", shell, "-c", program["run"]],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    results = set((folder / "results").glob("*")) - known
    assert len(results) == 1, done.stderr[-2000:]
    return results.pop()


def judged(result: Path) -> tuple[set[str], dict[str, str]]:
    """The policies that worked, and why the others did not."""
    records = read_result(result).records
    works = {one.configuration.hugepages for one in records if one.status == "ok"}
    return works, {
        one.configuration.hugepages: one.failure.message for one in records if one.failure is not None
    }


def wanted(result: Path) -> dict[str, int]:
    """The bytes of each wanted memory that the program has under `none`: at least two huge pages."""
    data = read_result(result)
    base = [one for one in data.records if one.configuration.hugepages == "none" and one.program is not None]
    assert base, [one.failure for one in data.records]
    kinds = base[-1].program.kinds
    actual = {
        name: sum(kinds[kind].peak.resident_bytes for kind in of if kind in kinds)
        for name, (of, _) in WANTED.items()
    }
    listed = next(iter(data.manifest.programs.values())).get("programs", [])
    files = [row["image"] for row in listed]
    actual["machine code"] = max(
        (each.text_bytes for file in files for each in elf_files(examine(file, os.environ))), default=0
    )
    return {name: size for name, size in actual.items() if size >= 2 * HUGE}


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder that every user may enter: database servers run as users of their own."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="pagewise-programs-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(name: str, installed: None, table: list[dict[str, str]], folder: Path) -> None:
    program = PROGRAMS[name]
    if "setup" in program:
        subprocess.run(["bash", "-c", program["setup"]], cwd=folder, check=True, timeout=300)
    result = compare(program, folder, FIRST)
    works, reasons = judged(result)
    assert "none" in works, reasons
    if "thp" not in works:
        more, failed = judged(compare(program, folder, FURTHER))
        works, reasons = works | more, reasons | failed
    for memory, size in wanted(result).items():
        policies = WANTED[memory][1]
        policy = next((policy for policy in policies if policy in works), "")
        reason = "" if policy else "; ".join(f"{each}: {reasons.get(each)}" for each in policies)
        table.append(
            {
                "group": PROGRAMS[name]["group"],
                "program": name,
                "memory": memory,
                "MiB": str(size >> 20),
                "policy": policy,
                "reason": reason,
            }
        )


def test_few_combinations_are_unavailable(table: list[dict[str, str]]) -> None:
    """Runs last, over the rows of all programs."""
    if not table:
        pytest.skip("no program was run")
    unavailable = [row for row in table if not row["policy"]]
    assert len(unavailable) <= MOST_UNAVAILABLE * len(table), unavailable
