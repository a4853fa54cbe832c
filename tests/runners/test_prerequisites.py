"""`pagewise list`, `run` and `doctor`, and commands whose prerequisites are missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fake_root import tree
from pagewise import cli
from pagewise.workloads import doctor
from pagewise.workloads.doctor import FindingsDocument
from stage import GATHER, THP, Stage


@pytest.mark.long
def test_list_shows_configurations_and_kernels_by_group(small: Stage):
    small.add("gcc-13", THP, [GATHER])
    small.module("pagewise-micro/0.1.0/broken", ['setenv("PAGEWISE_PACKAGE", "pagewise-micro")'])
    small.module("pagewise-micro/0.1.0/worse", ["this is no lua"])
    small.module("foreign/1.0", ['setenv("OTHER", "1")'])
    reported = small.run("list", code=0).stdout
    assert "thp" in reported and "triad" in reported and "compiler, hugepages" in reported
    broken, worse = (
        next(line for line in reported.splitlines() if f"pagewise-micro/0.1.0/{name}" in line)
        for name in ("broken", "worse")
    )
    assert "PAGEWISE_VERSION" in broken and "PAGEWISE_VERSION" not in worse
    assert "foreign" not in reported
    reported = small.run("list", "kernels").stdout
    assert "gcc-12.2.0" not in reported
    lines = [line.split() for line in reported.splitlines()]
    order = [words[0] for words in lines if words and words[0].split("/")[0] in ("indirect", "memory")]
    assert order == ["indirect/*", "memory/*"]
    assert "triad" not in small.run("list", "kernels", "indirect/*").stdout
    reported = small.run("list", "configurations", "*/thp/*").stdout
    assert "thp/hardware-regular" in reported and "none/hardware-regular" not in reported


def test_run_executes_in_the_module(small: Stage):
    script = ("sh", "-c", "echo $PAGEWISE_HUGEPAGES $1; exit 7", "x", "--help")
    done = small.run("run", "gcc-12.2.0/thp/*", "--", *script)
    assert (done.returncode, done.stdout) == (7, "thp --help\n")
    for pattern, program, named in (
        ("gcc-12.2.0/none/*", "true", "none/software-regular"),
        ("icc/*", "true", "'icc/*'"),
        ("gcc-12.2.0/thp/*", "pw-nothing", "'pw-nothing'"),
    ):
        assert named in small.run("run", pattern, "--", program, code=2).stderr


@pytest.mark.long
def test_doctor_reports_missing_parts_with_remedies(small: Stage):
    openmp = {"program": "Fortran OpenMP", "ok": True, "detail": ""}
    failed = {"program": "C OpenMP", "ok": False, "detail": "omp.h not found"}
    facts = {
        "schema": "pagewise.setup/1",
        "spack": {"available": False, "reason": "no network", "remedy": "set PAGEWISE_SPACK_URL"},
        "compilers": [
            {"name": "gcc", "version": "12.2.0", "entered": True, "reason": None, "proof": [openmp]},
            {"name": "llvm", "version": "14", "entered": False, "reason": "no OpenMP", "proof": [failed]},
        ],
        "missing": [{"package": "papi", "needed_for": "counters", "remedy": "apt-get install libpapi-dev"}],
        "lmod": {},
    }
    tree(small.folder, {".pagewise/setup.json": json.dumps(facts)})

    def findings() -> tuple[int, dict[str, dict[str, str]]]:
        done = small.run("doctor", "--no-noise", "--json")
        return done.returncode, {one["name"]: one for one in json.loads(done.stdout)["findings"]}

    code, actual = findings()
    assert code == 0 and "THP" in actual
    assert (actual["gcc 12.2.0"]["state"], actual["llvm 14"]["state"]) == ("good", "note")
    assert "Fortran OpenMP" in actual["gcc 12.2.0"]["detail"]
    assert "omp.h not found" in actual["llvm 14"]["detail"]
    assert actual["Spack"]["remedy"] == "set PAGEWISE_SPACK_URL"
    assert actual["papi"]["remedy"] == "apt-get install libpapi-dev"
    small.environment["PATH"] = "/nowhere"
    code, actual = findings()
    missing = {name: one["remedy"] for name, one in actual.items() if one["state"] == "missing"}
    assert code == 1 and set(missing) == {"hyperfine", "hwloc"} and all(missing.values())
    assert "apt-get install hyperfine" in small.compare(code=3).stderr and not small.results.exists()


@pytest.mark.parametrize(("root", "state"), [(None, "note"), (Path("/checkout"), "missing")])
def test_missing_modules_matter_in_a_checkout_only(root, state, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "checkout", lambda: root)
    findings = {each.name: each for each in doctor._tools(None, "default", Path("/nonexistent"))}
    assert findings["modules"].state == state and findings["modules"].remedy


def test_absent_module_tree(stage: Stage):
    done = stage.compare("--json", code=3)
    assert done.stdout == "" and "PAGEWISE_MODULES" in done.stderr
    del stage.environment  # the default place, by environment
    stage.environment = {"PAGEWISE_MODULES": ""}
    done = stage.compare("--env", "quick", code=3)
    assert ".pagewise/modules/quick" in done.stderr and "make stack ENV=quick" in done.stderr
    stage.modules.mkdir()
    assert stage.run("list", "--modules", str(stage.modules)).returncode == 3


@pytest.mark.parametrize(
    ("built", "arguments", "named", "environment"),
    [
        ((), (), "", "default"),
        (("default", "libraries"), (), "", "default"),
        (("quick", "libraries"), (), "", "libraries"),
        (("quick.new",), (), "", "default"),
        (("quick",), ("--env", "default"), "", "default"),
        (("quick",), (), "stores", "stores"),
    ],
)
def test_doctor_examines_the_named_or_a_built_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, built, arguments, named, environment
):
    seen: list[str] = []

    def examine(selected: str, *_: Any) -> FindingsDocument:
        seen.append(selected)
        return FindingsDocument("pagewise.findings/1", True, (), None)

    for name in built:
        (tmp_path / ".pagewise" / "modules" / name).mkdir(parents=True)
    monkeypatch.setattr(doctor, "examine", examine)
    monkeypatch.setenv("PAGEWISE_ROOT", str(tmp_path))
    monkeypatch.setenv("PAGEWISE_ENV", named)
    done = CliRunner().invoke(cli.root, ["doctor", "--json", *arguments])
    assert done.exit_code == 0 and seen == [environment], done.output
