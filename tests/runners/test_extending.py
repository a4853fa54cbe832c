"""What docs/explanation/architecture.md says of additions: each is made in a copy of the tree, and run."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from own_program import needs_thp
from scripts import called
from stage import ROOT

PROGRAMS = Path("runners/pagewise/workloads/program")
pytestmark = pytest.mark.long


class Tree:
    """A copy of what a checkout needs at run time."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("runners", "envs/suites/codes"):
            shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
        (root / ".pagewise").mkdir()

    def add(self, file: Path | str, text: str, *, before: str = "") -> None:
        """Add a text to a file: before another one, or at its end."""
        path = self.root / file
        content = path.read_text() if path.exists() else ""
        assert not before or content.count(before) == 1, f"{before!r} is not once in {file}"
        path.write_text(content.replace(before, text + before) if before else content + text)

    def python(self, *words: str, **variables: str) -> str:
        own = {"PYTHONPATH": str(self.root / "runners"), "PAGEWISE_ROOT": str(self.root)}
        environment = os.environ | own | variables
        done = called([sys.executable, *words], env=environment, cwd=self.root)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run(self, *words: str, program: tuple[str | Path, ...] = (), **variables: str) -> dict[str, Any]:
        """The JSON of a command."""
        named = ("--", *map(str, program)) if program else ()
        return json.loads(self.python("-m", "pagewise", *words, "--json", *named, **variables))

    def measure(self, *words: str, **more: Any) -> dict[str, Any]:
        """The JSON of a comparison, or of counts, with one round."""
        return self.run(*words, "--rounds", "1", "--output", str(self.root / "results"), **more)

    @property
    def launcher(self) -> str:
        """The launcher that this tree compiles."""
        find = "from pagewise.workloads.program.production import find_launcher; print(find_launcher())"
        return self.python("-c", find).strip()


@pytest.fixture
def copy(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "tree")


@needs_thp
def test_a_policy_by_settings_is_rows_of_one_file(copy: Tree, programs: Path) -> None:
    rows = (
        'PART("arena", "", "thp", "heap anonymous", "transparent huge pages by the tunable of glibc alone")\n'
        'OFFER("arena", "default", "module")\n'
        'SETTING("arena", "", "tunable", "glibc.malloc.hugetlb", "1")\n'
    )
    copy.add(PROGRAMS / "policies.h", rows)
    program = (programs / "memory", "large")
    checked = called([copy.launcher, "--check", "arena", "--", *program], check=True)
    answer = json.loads(checked.stdout)
    assert answer["available"] and "glibc.malloc.hugetlb=1" in answer["settings"]["environment"].values()
    listed = copy.run("list", "policies", program=program)["policies"]
    assert {row["policy"]: row["unavailable_reason"] for row in listed}["arena"] is None
    planned = copy.run("compare", "--plan", program=program)
    assert "arena" in json.dumps(planned)
    (of_program,) = copy.measure("compare", "--policies", "none,arena", program=program)["kernels"]
    measured = {row["hugepages"]: row for row in of_program["configurations"]}
    assert measured["arena"]["invalid"] is None and measured["arena"]["time_ratio"] is not None


def test_a_policy_with_a_new_mechanism_is_three_files(copy: Tree) -> None:
    """Its row, a field of what the preloaded library reads, and what the library does."""
    rows = (
        'PART("punctual", "", "", "", "timers end at once")\n'
        'SETTING("punctual", "", "action", "punctual", "")\n'
    )
    copy.add(PROGRAMS / "policies.h", rows)
    copy.add(PROGRAMS / "asking.h", "    int punctual;\n", before="} plan;\n")
    read, act = "    plan.punctual = listed(list, \"punctual\", ',');\n", "    if (plan.punctual) "
    copy.add(PROGRAMS / "remap.c", read, before='    plan.bss = listed(list, "bss"')
    copy.add(PROGRAMS / "remap.c", act + "prctl(PR_SET_TIMERSLACK, 1);\n", before="    pthread_atfork(")
    ask = "import ctypes; print(ctypes.CDLL(None).prctl(30, 0, 0, 0, 0))"  # PR_GET_TIMERSLACK
    for policy, is_set in (("punctual", True), ("none", False)):
        done = called([copy.launcher, policy, "--", sys.executable, "-c", ask], check=True)
        assert (done.stdout == "1\n") == is_set


SUITE = """\
schema: pagewise.suite/1
name: walk
title: Walk
summary: A walk through memory.
source: https://example.org/walk
programs: [memory]
arguments: [large]
metrics:
  - {label: Speed, unit: GB/s, better: higher, pattern: 'rate: (\\S+)'}
checks: ['^sum: ']
"""


def test_a_suite_with_its_metric_is_one_file(copy: Tree, programs: Path) -> None:
    copy.add("envs/suites/codes/walk.yaml", SUITE)
    on_path = {"PATH": f"{programs}:{os.environ['PATH']}"}
    planned = copy.run("compare", "--suite", "walk", "--plan", **on_path)
    assert planned["tree"] == str(programs) and planned["kernels"][0]["arguments"] == ["large"]
    words = ("compare", "--suite", "walk", "--policies", "none,reuse")
    measured = copy.measure(*words, **on_path)["comparisons"]
    assert {row["hugepages"] for row in measured if row["label"] == "Speed"} == {"none", "reuse"}


def test_a_metric_of_counters_is_one_line(copy: Tree) -> None:
    line = "  - {name: minor_share, title: Share, formula: MINOR_FAULTS / PAGE_FAULTS, unit: '1'}\n"
    copy.add("runners/pagewise/workloads/counters/events/software.yaml", line)
    words = ("counters", "--events", "software", "--policies", "none")
    reported = copy.measure(*words, program=(sys.executable, "-c", "pass"))
    (share,) = (row["value"] for row in reported["values"] if row["quantity"] == "minor_share")
    assert 0.5 < share <= 1.0


TABLE = """\
from pagewise.report.model import Column, Section, Table
from pagewise.report.views.data import entries

_COLUMNS = (Column("configuration", get="label"), Column("runs", kind="integer", get="row.runs"))


def sections(result, kernels):
    return [Section("Tally", (Table.of("Runs", _COLUMNS, entries(kernels)),))]
"""


def test_a_table_of_the_report_is_one_view(copy: Tree) -> None:
    copy.add("runners/pagewise/report/views/tables/runs.py", TABLE)
    folder = Path(copy.measure("compare", "--policies", "none,reuse", program=("true",))["folder"])
    for name in ("report.html", "summary.md"):
        assert "Tally" in (folder / name).read_text()
