"""Page sizes chosen at run time, and the switches of transparent huge pages."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from builders import chase, configuration, kernel, record, rounds, varied
from fake_root import THP as FOLDER
from fake_root import tree
from pagewise.analysis.analysis import analyse
from pagewise.core.errors import RefusedError
from pagewise.core.plan import Subject, order_of_round, order_of_sweeps, subject
from pagewise.core.record import Record
from pagewise.machine.settings import thp
from pagewise.machine.settings.kinds import Word
from pagewise.machine.settings.thp import switched_on, switches_needed
from stage import ALL_LABELS, BASE, COMPILERS, THP, TRIAD, Stage, csv_rows, result_content

ALL = [configuration(compiler, label) for compiler in COMPILERS for label in ALL_LABELS]
POLICIES = ("hugetlbfs:1g", "thp:64k")
MACHINE = Path("/") / FOLDER / "hugepages-64kB/enabled"


def planned(one=None) -> Subject:
    return subject(one or kernel(), ALL, "none/hardware-regular", POLICIES)


def test_each_configuration_of_the_kind_gets_a_further_cell_and_its_runs_the_policy():
    cells = planned().cells
    assert len(cells) == 24 + 2 * 8
    further = [cell for cell in cells if cell.pages]
    assert {(c.pages, c.measured.hugepages, c.measured.module.split("/")[3]) for c in further} == {
        ("thp:64k", "thp:64k", "thp"),
        ("hugetlbfs:1g", "hugetlbfs:1g", "hugetlbfs"),
    }
    assert not any(cell.is_baseline for cell in further)
    assert len({cell.key for cell in cells}) == 40
    # A cell of merged configurations gets one; a kernel that is not sensitive to pages gets none.
    assert len(planned(chase()).cells) == 6 + 4
    assert len(next(cell for cell in planned(chase()).cells if cell.pages).stands_for) == 4
    assert not any(cell.pages for cell in planned(kernel(sensitive_to=["compiler", "prefetch"])).cells)
    order = list(dict.fromkeys(cell.measured.hugepages for cell in cells))
    assert order == ["none", "thp", "thp:64k", "hugetlbfs", "hugetlbfs:1g"]
    steps = order_of_round([planned()], 1, 1)
    assert len(steps) == 42
    for step in [*steps, *order_of_sweeps([planned()], 1)]:
        reported = ("--pages", step.cell.pages) if step.cell.pages else ()
        assert step.arguments[-2:] == reported or (not reported and "--pages" not in step.arguments)


def test_rows_are_distinguished_and_pages_must_be_those_requested():
    base, built = configuration(), configuration(label=THP)
    one = subject(kernel(), [base, built], "none/hardware-regular", ("thp:64k",))

    def reported(number: int, policy: str, size: int) -> Record:
        made = varied(record(built, 0.9, number=number), "run", pages="thp:64k")
        sizes = {"page_size_requested_bytes": size, "page_size_observed_bytes": size}
        return varied(made, "pages", policy=policy, method="kpageflags", **sizes)

    def rows(policy: str, size: int) -> dict:
        made = rounds({base: [1.0] * 5, built: [0.8] * 5}, [1.0] * 5)
        made += [reported(number, policy, size) for number in range(1, 6)]
        group = analyse([one], made, 1)[0].groups[0]
        return {row.cell.measured.hugepages: row for row in group.rows}

    actual = rows("thp:64k", 65536)
    assert actual["thp"].time_ratio.median == pytest.approx(0.8)
    assert actual["thp:64k"].time_ratio.median == pytest.approx(0.9)
    assert actual["thp:64k"].pages.page_size_observed_bytes == 65536 and actual["thp:64k"].invalid is None
    wrong = rows("thp", 2 << 20)["thp:64k"]
    assert wrong.code == "wrong_pages" and {"thp", "thp:64k"} <= set(re.split(r"[\s,]+", wrong.invalid))


@pytest.mark.long
def test_a_comparison_with_a_further_size_and_builds_without_it(small: Stage):
    small.add("llvm-22.1.8", BASE, [TRIAD])
    small.add("llvm-22.1.8", THP, [TRIAD], without="thp:64k")
    done = small.compare("--rounds", "3", "--kernels", "triad", "--policies", "thp:64k", code=0)
    assert "64 KiB 100 %" in done.stdout
    folder = small.result()
    every = csv_rows(folder / "summary.csv")
    rows = [row for row in every if row["compiler"] == "gcc-12.2.0"]
    assert [row["hugepages"] for row in rows] == ["none", "none", "thp", "thp:64k"]
    assert rows[3]["module"] == rows[2]["module"] and rows[3]["page_size_observed_bytes"] == "65536"
    assert rows[3]["verdict"] == "faster" or rows[3]["time_ratio"]
    (excluded,) = (row for row in every if row["code"])
    assert (excluded["compiler"], excluded["hugepages"]) == ("llvm-22.1.8", "thp:64k")
    assert excluded["code"] == "pages_unavailable" and {"32", "2048"} <= set(excluded["invalid"].split())
    runs = [r["run"] for r in result_content(folder)[1] if r["run"].get("pages") == "thp:64k"]
    assert {run["series"] for run in runs} == {"compare", "sweep"}
    assert all(run["command"][run["command"].index("--pages") + 1] == "thp:64k" for run in runs)
    page = (folder / "report.html").read_text()
    assert ">thp:64k</th>" in page and "var(--thp:" not in page


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    files = {
        f"{FOLDER}/enabled": "always [madvise] inherit",
        f"{FOLDER}/hugepages-64kB/enabled": "always [never] inherit",
        f"{FOLDER}/hugepages-2048kB/enabled": "always [inherit]",
        f"{FOLDER}/shmem_enabled": "always advise [never] deny",
        f"{FOLDER}/hpage_pmd_size": 2097152,
    }
    return tree(tmp_path, files)


def words(root: Path) -> list[str]:
    names = ("", "hugepages-64kB", "hugepages-2048kB")
    return [Word(root / FOLDER / name / "enabled").get() for name in names]


def test_only_refusing_settings_are_switched_and_restored(machine: Path):
    with switched_on(["none", "thp", "thp:64k", "hugetlbfs"], machine) as switched:
        assert [(one.before, one.now) for one in switched] == [("never", "madvise")]
        assert words(machine) == ["madvise", "madvise", "inherit"]
    assert words(machine) == ["madvise", "never", "inherit"]


def test_shared_memory_has_a_switch_of_its_own(machine: Path):
    shared = Word(machine / FOLDER / "shmem_enabled")
    with switched_on(["shared"], machine) as switched:
        assert [(one.before, one.now) for one in switched] == [("never", "advise")]
    assert shared.get() == "never" and words(machine) == ["madvise", "never", "inherit"]
    shared.put("within_size")
    assert switches_needed(["shared", "none"], machine) == []


def test_where_all_is_off_the_sizes_own_switches_are_taken(machine: Path):
    Word(machine / FOLDER / "enabled").put("never")
    with switched_on(["thp", "thp:64k"], machine):
        assert words(machine) == ["never", "madvise", "madvise"]
    assert words(machine) == ["never", "never", "inherit"]
    # A kernel without sizes has one switch.
    (machine / FOLDER / "hugepages-2048kB/enabled").unlink()
    assert [switch.file for switch in switches_needed(["thp"], machine)] == [machine / FOLDER / "enabled"]
    with pytest.raises(RefusedError) as refused:
        switches_needed(["thp:32k"], machine)
    assert refused.value.where == str(machine / FOLDER / "hugepages-32kB/enabled")


def test_a_user_without_root_is_reported(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(thp, "switches_needed", lambda policies, root: [Word(MACHINE)])
    with pytest.raises(RefusedError) as caught, switched_on(["thp:64k"]):
        pytest.fail("the block must not run")
    assert caught.value.where == "--prepare-pages" and f"echo madvise > {MACHINE}" in caught.value.remedy
