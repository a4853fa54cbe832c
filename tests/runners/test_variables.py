"""Environment variables as a dimension of a comparison: --vary."""

from __future__ import annotations

import json

import pytest

from builders import configuration, kernel
from json_schema import faults
from pagewise.core.environment import influences
from pagewise.core.plan import Subject, subject
from pagewise.session.options import SessionOptions
from pagewise.session.settings import in_all_states
from stage import PAGES, TRIAD, Stage


def test_each_setting_but_the_first_changes_one_variable() -> None:
    built = {label: configuration(label=label) for label in PAGES}
    one = subject(kernel(), built.values(), "none/hardware-regular")
    (varied,) = in_all_states([one], SessionOptions(settings={"A": ("1", "2"), "B": ("-", "x", "y")}))
    settings = ["A=1,B=-", "A=2,B=-", "A=1,B=x", "A=1,B=y"]
    assert {(cell.measured.hugepages, cell.measured.value("setting")) for cell in varied.cells} == {
        (label[0], setting) for label in PAGES for setting in settings
    }
    (base,) = (cell for cell in varied.cells if cell.is_baseline)
    assert (base.measured.hugepages, base.options, base.arguments) == ("none", settings[0], ())
    assert base.environment({"B": "old", "C": "kept"}) == {"A": "1", "C": "kept"}
    modules = {configuration.module: configuration for configuration in built.values()}
    assert Subject.of(varied.planned_subject(), modules) == varied
    assert in_all_states([one], SessionOptions()) == [one]


@pytest.mark.long
def test_a_program_runs_with_each_setting(stage: Stage) -> None:
    program = ("sh", "-c", 'echo "A is ${A-0}"; sleep 0.05')
    options = ("--policies", "none", "--rounds", "2", "--metric", "A=A is (.+)", "--vary", "A=-,3,5")
    done = stage.run("compare", "--json", *options, "--", *program, code=0)
    actual = json.loads(done.stdout)
    assert faults("verdicts", actual) == []
    values = {row["setting"]: row["value"] for row in actual["comparisons"] if row["label"] == "A"}
    assert values == {"A=-": 0, "A=3": 3, "A=5": 5}
    again = stage.run("report", "--json", str(stage.result()))
    assert again.returncode == 0 and json.loads(again.stdout)["kernels"] == actual["kernels"]
    (rows,) = (one["configurations"] for one in actual["kernels"])
    assert [(row["setting"], row["is_baseline"]) for row in rows] == [
        ("A=-", True),
        ("A=3", False),
        ("A=5", False),
    ]


# Of Fujitsu's libmpg, with two values each (A64FX microarchitecture guide, large pages).
LIBMPG = {
    "HPAGE_TYPE": ("hugetlbfs", "none"),
    "LPG_MODE": ("base+stack", "base"),
    "PAGING_POLICY": ("demand:demand:demand", "prepage:demand:prepage"),
    "ARENA_FREE": ("1", "2"),
    "ARENA_LOCK_TYPE": ("1", "0"),
    "MAX_ARENA_NUM": ("1", "48"),
    "HEAP_SIZE_MB": ("256", "512"),
    "COLORING": ("0", "1"),
    "FORCE_MMAP_THRESHOLD": ("0", "1"),
}


@pytest.mark.long
def test_every_variable_of_libmpg_is_a_setting_and_recorded(stage: Stage) -> None:
    stage.add("gcc-12.2.0", PAGES[0], [TRIAD], seen="1")
    names = {f"XOS_MMM_L_{name}": values for name, values in LIBMPG.items()}
    given = [word for name, values in names.items() for word in ("--vary", f"{name}={','.join(values)}")]
    done = stage.compare("--rounds", "1", "--no-sweep", *given, "--json", code=0)
    (kernel_,) = json.loads(done.stdout)["kernels"]
    first = {name: values[0] for name, values in names.items()}
    expected = [first, *(first | {name: values[1]} for name, values in names.items())]
    assert len(kernel_["configurations"]) == len(expected)
    for run in (one.run for one in stage.read_result().records):
        assert dict(option.split("=", 1) for option in (run.options or "").split(",")) in expected
    assert influences(first) == dict(sorted(first.items()))
