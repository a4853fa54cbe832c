"""The tracer, and `pagewise simulate`."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console
from tracing import needs_tracer

from pagewise.cli import root
from pagewise.core.errors import Interrupted, RefusedError, SelectionError, SetupError
from pagewise.core.plan import Step
from pagewise.core.record import Record
from pagewise.core.result import Result, read_result
from pagewise.core.schemas import faults
from pagewise.core.structure import structured, unstructured
from pagewise.report.render import csv as csv_file
from pagewise.report.views import report_of
from pagewise.session.session import Session
from pagewise.session.workload import Outcome
from pagewise.store.sources import find_places, read_source
from pagewise.workloads.doctor import simulation_findings
from pagewise.workloads.simulation import figures, tracer
from pagewise.workloads.simulation.geometry import find_geometry
from pagewise.workloads.simulation.run import Simulation, SimulationOptions, TraceLauncher, prepare
from simulator import ROOT, compiled_build


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled_build(tmp_path_factory.mktemp("build"))


# The tracer


def traced(build: Path, geometry: str, folder: Path, *arguments: str, **options: Any) -> dict[str, Any]:
    program = tracer.find_program(str(build / "walk"))
    return tracer.trace(
        tracer.find_tracer("x86_64"),
        build / "model" / "libpagewise-model.so",
        find_geometry(geometry),
        program,
        arguments,
        scratch=folder,
        records=False,
        **options,
    ).modelled


@needs_tracer
@pytest.mark.parametrize(("geometry", "pages", "entries"), [("zen4", 360, 72), ("a64fx", 2048, 16)])
def test_random_pages_miss_as_arithmetic_has_it(
    build: Path, tmp_path: Path, geometry: str, pages: int, entries: int
) -> None:
    """Independent, uniform accesses to N pages hit each of the E entries' pages equally: 1 - E/N miss."""
    accesses = 200_000
    modelled = traced(build, geometry, tmp_path, "random", str(pages), str(accesses), without_thp=True)
    distinct = pages * 4096 // find_geometry(geometry).data["pages"]["base"]
    expected = 1 - entries / distinct
    spread = (expected * (1 - expected) / accesses) ** 0.5
    assert modelled["counts"]["L1D_TLB_REFILL"] / accesses == pytest.approx(expected, abs=6 * spread)
    # The second level holds them all: each walks once, but for a few of the stack and of the marks.
    assert distinct <= modelled["counts"]["L2D_TLB_REFILL"] <= distinct + 8
    assert accesses <= modelled["counts"]["LOADS"] <= accesses + 20
    assert [one["name"] for one in modelled["regions"]] == ["random"]


@needs_tracer
def test_pages_in_turn_all_miss_or_all_hit(build: Path, tmp_path: Path) -> None:
    """More pages than entries in turn always miss; fewer miss once."""
    for pages, misses in ((80, 8000), (60, 60)):
        modelled = traced(build, "zen4", tmp_path, "cyclic", str(pages), "8000", without_thp=True)
        assert misses <= modelled["counts"]["L1D_TLB_REFILL"] <= misses + 8


@needs_tracer
def test_huge_pages_are_observed(build: Path, tmp_path: Path) -> None:
    """512 pages of 4 KiB are one of 2 MiB, if the kernel gives it."""
    switch = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not switch.exists() or "[never]" in switch.read_text():
        pytest.skip("no transparent huge pages here")
    modelled = traced(build, "zen4", tmp_path, "random", "512", "5000", "huge")
    assert modelled["counts"]["HUGE_PAGE_LOOKUPS"] >= 5000
    assert modelled["counts"]["L1D_TLB_REFILL"] <= 8
    refused = traced(build, "zen4", tmp_path, "random", "512", "5000", "huge", without_thp=True)
    assert refused["counts"]["HUGE_PAGE_LOOKUPS"] == 0
    assert refused["counts"]["L1D_TLB_REFILL"] > 4000


@needs_tracer
@pytest.mark.parametrize(("rule", "huge"), [("base", False), ("huge", True), ("fjmpg", True)])
def test_pages_can_be_assumed(build: Path, tmp_path: Path, rule: str, huge: bool) -> None:
    """512 pages in an array of the program: base pages that miss, or one huge page."""
    modelled = traced(build, "zen4", tmp_path, "random", "512", "5000", pages=rule, without_thp=True)
    assert (modelled["counts"]["HUGE_PAGE_LOOKUPS"] >= 5000) == huge
    assert (modelled["counts"]["L1D_TLB_REFILL"] > 4000) == (not huge)


@needs_tracer
def test_a_program_that_enters_no_region_is_refused(build: Path, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="entered no region"):
        traced(build, "zen4", tmp_path, "none", "10", "10")


@needs_tracer
def test_an_unknown_instruction_is_reported(build: Path, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="AVX-512"):
        traced(build, "zen4", tmp_path, "avx512", "10", "10")


@needs_tracer
def test_a_run_that_takes_too_long_is_ended(build: Path, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"ended after 0\.2 s"):
        traced(build, "zen4", tmp_path, "random", "10", "100000000", limit=0.2)


def fake_qemu(folder: Path, version: str, help_text: str) -> None:
    file = folder / "qemu-x86_64"
    file.write_text(
        f'#!/bin/sh\ncase $1 in --version) echo "qemu-x86_64 {version}";; *) echo "{help_text}";; esac\n'
    )
    file.chmod(0o755)


def test_a_missing_or_unsuitable_tracer_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError) as raised:
        tracer.find_tracer("x86_64")
    assert raised.value.where is None and "qemu-user" in raised.value.remedy
    fake_qemu(tmp_path, "version 10.0.2", "-plugin")
    with pytest.raises(SetupError) as raised:
        tracer.find_tracer("x86_64")
    assert str(raised.value.where) == str(tmp_path / "qemu-x86_64") and "10.0" in raised.value.what
    fake_qemu(tmp_path, "version 7.2.1", "-strace")
    with pytest.raises(SetupError) as raised:
        tracer.find_tracer("x86_64")
    assert "plug-ins" in raised.value.what
    fake_qemu(tmp_path, "version 7.2.1", "-plugin")
    assert tracer.find_tracer("x86_64").name == "qemu-x86_64 7.2.1"


def test_doctor_reports_whether_programs_can_be_traced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PAGEWISE_ROOT", str(tmp_path))
    fake_qemu(tmp_path, "version 7.2.1", "-plugin")
    reported = {one.name: one for one in simulation_findings()}
    assert reported["x86_64 programs"].detail == "can be traced by qemu-x86_64 7.2.1"
    assert reported["aarch64 programs"].state == reported["plug-in"].state == "note"
    assert "apt-get install qemu-user" in reported["aarch64 programs"].remedy
    assert "--build DIR" in reported["plug-in"].remedy
    monkeypatch.setenv("PAGEWISE_ROOT", str(ROOT))
    assert {one.name: one.state for one in simulation_findings()}["plug-in"] == "good"


def test_what_is_no_program_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n" + " " * 30)
    script.chmod(0o755)
    with pytest.raises(SelectionError) as raised:
        tracer.find_program(str(script))
    assert str(raised.value.where) == str(script)
    with pytest.raises(SelectionError) as raised:
        tracer.find_program(str(tmp_path / "nothing"))
    assert raised.value.where == "PROGRAM"


# Figures


def record(misses: int, passes: int, **more: Any) -> Record:
    one = {"INSTRUCTIONS": 1000 * passes, "L1D_TLB_REFILL": misses * passes, "L1D_CACHE": 500 * passes}
    modelled = {
        "geometry": "zen4",
        "pages": "observed",
        "observed_by": "pagemap",
        "unclear_extents": 0,
        "whole": False,
        "open_regions": 0,
        "accesses_of_other_threads": 0,
        "unseen_instructions": 0,
        "counts": one,
        "regions": [{"name": "hydro", "calls": 1, "counts": one}],
        "functions": [],
    }
    reported = {
        "schema": "pagewise.record/1",
        "kernel": "triad",
        "started": "2026-01-01T00:00:00Z",
        "status": "ok",
        "configuration": dict.fromkeys(("compiler", "hugepages", "prefetch", "stores"), "x"),
        "seconds": {"populate": 1.0, "repetitions": [1.0, 2.0]},
        "passes_per_repetition": passes // 2,
        "metrics": {"bandwidth": 3.0},
        "counters": {"unavailable": "emulated"},
        **more,
    }
    return figures.simulated_record(structured(Record, reported), modelled, "qemu-x86_64 7.2.22")


def test_a_modelled_record_holds_nothing_measured() -> None:
    made = unstructured(record(30, 4))
    assert faults("record", made) == []
    assert made["modelled"]["passes"] == 4
    assert not {"seconds", "metrics", "counters"} & made.keys()
    assert faults("record", {**made, "seconds": {"populate": 0, "repetitions": [1.0]}})


def test_ratios_are_of_counts_a_pass() -> None:
    rows = {row.name: row for row in figures.rows_of([record(30, 4), record(3, 10)])}
    assert rows["L1D_TLB_REFILL"].values == (30, 3)
    assert rows["L1D_TLB_REFILL"].ratios == (0.1,)
    assert rows["L1-DTLB miss rate"].values == (0.03, 0.003)
    assert figures.Row("nothing", (0.0, 3.0)).ratios == (None,)


# The command


def invoked(folder: Path, *arguments: str) -> Any:
    return CliRunner().invoke(root, ["simulate", "--output", str(folder), *arguments], standalone_mode=False)


@needs_tracer
def test_the_command_models_a_program_and_keeps_its_record(build: Path, tmp_path: Path) -> None:
    options = ("--build", str(build), "--geometry", "zen4", "--policies", "fjmpg")
    done = invoked(tmp_path, *options, "--", str(build / "walk"), "cyclic", "80", "800")
    assert done.exception is None and done.return_value == 0, done.output
    (folder,) = tmp_path.iterdir()
    result = read_result(folder)
    assert result.manifest.kind == "simulation" and result.manifest.state == "complete"
    assert result.altered is None and not result.skipped
    assert [record.run.series for record in result.records] == ["simulate", "simulate"]
    assert [record.modelled.pages for record in result.records] == ["observed", "fjmpg"]
    assert result.records[0].modelled.tool.startswith("qemu-x86_64")
    assert (folder / "report.html").exists()
    lines = (folder / "simulation.csv").read_text().splitlines()
    assert lines[0] == "kernel,geometry,policy,region,count,modelled"
    assert any(line.startswith("walk,zen4,as it is,cyclic,L1D_TLB_REFILL,8") for line in lines)
    again = report_of(result)
    assert csv_file.render(again.tables["simulation.csv"]).splitlines() == lines
    assert "AMD Zen 4" in again.headline


@needs_tracer
def test_simulated_records_that_were_edited_are_not_collected(build: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    options = ("--build", str(build), "--geometry", "zen4")
    done = invoked(results, *options, "--", str(build / "walk"), "cyclic", "80", "800")
    assert done.exception is None, done.output
    (folder,) = results.iterdir()
    (place,) = find_places([results])
    source = read_source(place)
    assert source.altered is None and source.about["kind"] == "simulation"
    file = folder / "records.jsonl"
    file.write_text(file.read_text().replace('"zen4"', '"zen5"'))
    assert read_source(place).altered is not None
    report = report_of(read_result(folder))
    assert report.faulty and report.data["policies"] == []
    assert [row["code"] for row in report.data["missing"]] == ["records_altered"]


class Launched:
    """The launcher of a simulation, and what happens before some of its runs."""

    def __init__(self, launcher: TraceLauncher, happens: dict[str, Callable[[], None]]) -> None:
        self.launcher, self.happens = launcher, happens

    def run(self, step: Step) -> Outcome:
        self.happens.get(step.cell.measured.module, lambda: None)()
        return self.launcher.run(step)


class Stopped(Simulation):
    """A simulation during which something happens."""

    happens: dict[str, Callable[[], None]]

    def launcher(self, scratch: Path) -> Any:
        return Launched(super().launcher(scratch), self.happens)


def session_of(
    build: Path, program: Path, results: Path, happens: dict[str, Callable[[], None]], **more: Any
) -> Session:
    """A session of a walk through memory, as it is and with the policy fjmpg."""
    options = SimulationOptions(
        environment=None, modules=None, rounds=1, threads=1, baseline="", seed=0, name="", results=results,
        limit=60.0, geometry="zen4", policies=("fjmpg",), compiler="gcc", build=build, functions=5, **more
    )  # fmt: skip
    session = prepare(options, (str(program), "cyclic", "80", "800"), Console(stderr=True), time.monotonic())
    stopped = Stopped(**vars(session.workload))
    object.__setattr__(stopped, "happens", happens)
    session.workload = stopped
    return session


def measured(session: Session) -> Result:
    session.begin()
    session.measure()
    session.close()
    return session.result


@needs_tracer
def test_a_program_that_is_replaced_while_it_is_simulated_has_no_figures(build: Path, tmp_path: Path) -> None:
    """The second policy would be that of another program."""
    program = tmp_path / "walk"
    shutil.copy(build / "walk", program)

    def replaced() -> None:
        (tmp_path / "other").write_bytes(program.read_bytes() + b"1")
        (tmp_path / "other").chmod(0o755)
        (tmp_path / "other").replace(program)

    result = measured(session_of(build, program, tmp_path / "results", {"fjmpg": replaced}))
    report = report_of(result)
    assert report.faulty and report.data["policies"] == []
    assert {row["code"] for row in report.data["missing"]} == {"file_changed"}


@needs_tracer
def test_an_interrupted_simulation_is_resumed(build: Path, tmp_path: Path) -> None:
    def interrupted() -> None:
        raise Interrupted(2)

    results = tmp_path / "results"
    first = measured(session_of(build, build / "walk", results, {"fjmpg": interrupted}))
    assert first.manifest.state == "interrupted" and len(first.records) == 1
    report = report_of(read_result(first.folder))
    assert [row["policy"] for row in report.data["policies"]] == ["as it is"]
    assert [(row["policy"], row["code"]) for row in report.data["missing"]] == [("fjmpg", "not_measured")]
    measured(session_of(build, build / "walk", results, {}, resume=first.folder))
    result = read_result(first.folder)
    assert result.manifest.state == "complete" and len(result.manifest.breaks) == 1
    report = report_of(result)
    assert [row["policy"] for row in report.data["policies"]] == ["as it is", "fjmpg"]
    assert not report.faulty and not report.data["missing"]


@needs_tracer
def test_a_program_that_fails_is_excluded_with_its_output(build: Path, tmp_path: Path) -> None:
    done = invoked(tmp_path, "--build", str(build), "--json", "--", shutil.which("false") or "/bin/false")
    assert done.return_value == 1
    reported = json.loads(done.stdout)
    assert faults("modelled", reported) == [] and reported["policies"] == []
    assert [row["code"] for row in reported["missing"]] == ["failed"]
    (record,) = read_result(Path(reported["folder"])).records
    assert record.status == "failed" and (Path(reported["folder"]) / record.run.log).exists()


@needs_tracer
def test_a_plan_of_a_simulation_makes_no_result(build: Path, tmp_path: Path) -> None:
    options = ("--build", str(build), "--policies", "fjmpg", "--plan", "--json")
    done = invoked(tmp_path, *options, "--", str(build / "walk"), "cyclic", "80", "800")
    reported = json.loads(done.stdout)
    assert faults("plan", reported) == [] and reported["runs"] == 2
    assert not list(tmp_path.iterdir())


@needs_tracer
def test_a_program_without_marks_is_modelled_whole(build: Path, tmp_path: Path) -> None:
    program = ("--", shutil.which("true") or "/bin/true")
    done = invoked(tmp_path, "--build", str(build), "--json", *program)
    assert done.exception is None, done.output
    reported = json.loads(done.stdout)
    assert faults("modelled", reported) == [] and reported["program"] == "true"
    (one,) = reported["policies"]
    assert one["modelled"]["geometry"] == reported["geometry"] and one["notes"]


@needs_tracer
def test_a_users_program_runs_where_it_was_started(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started_in = tmp_path / "input"
    started_in.mkdir()
    (started_in / "flash.par").touch()
    monkeypatch.chdir(started_in)
    program = ("--", shutil.which("cat") or "/bin/cat", "flash.par")
    done = invoked(tmp_path / "results", "--build", str(build), "--json", *program)
    assert done.exception is None, done.output
    assert not json.loads(done.stdout)["missing"]


@needs_tracer
def test_a_users_program_takes_no_policy(build: Path, tmp_path: Path) -> None:
    for policies, reported in (("fjmpg,thp", "policy thp"), ("hug", "did you mean huge?")):
        done = invoked(tmp_path, "--build", str(build), "--policies", policies, "--", str(build / "walk"))
        assert isinstance(done.exception, SelectionError) and reported in str(done.exception)
    assert not list(tmp_path.iterdir())


def test_an_unknown_kernel_is_reported_with_the_nearest(
    build: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("PAGEWISE_ROOT", str(ROOT))
    done = invoked(tmp_path, "--build", str(build), "pointer_chas")
    assert isinstance(done.exception, SelectionError)
    assert "pointer_chase" in str(done.exception)
