"""The tracer: what it counts of a program's accesses, and which programs it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tracing import needs_tracer

from pagewise.core.errors import RefusedError, SelectionError, SetupError
from pagewise.workloads.doctor import simulation_findings
from pagewise.workloads.simulation import tracer
from pagewise.workloads.simulation.geometry import find_geometry
from scripts import write_script
from simulator import ROOT


def traced(
    build: Path, geometry: str, folder: Path, *arguments: str, limit: float = 300.0, **options: Any
) -> dict[str, Any]:
    return tracer.trace(
        tracer.find_tracer("x86_64"),
        build / "model" / "libpagewise-model.so",
        find_geometry(geometry).lines(),
        tracer.ProgramRun(tracer.find_program(str(build / "walk")), arguments, folder, limit=limit),
        records=False,
        **options,
    ).simulated


@needs_tracer
@pytest.mark.parametrize(("geometry", "pages", "entries"), [("zen4", 360, 72), ("a64fx", 2048, 16)])
def test_misses_of_random_pages_match_the_calculated_rate(
    build: Path, tmp_path: Path, geometry: str, pages: int, entries: int
) -> None:
    """Independent, uniform accesses to N pages hit each of the E entries' pages equally: 1 - E/N miss."""
    accesses = 200_000
    simulated = traced(build, geometry, tmp_path, "random", str(pages), str(accesses), without_thp=True)
    distinct = pages * 4096 // find_geometry(geometry).pages.base
    expected = 1 - entries / distinct
    spread = (expected * (1 - expected) / accesses) ** 0.5
    assert simulated["counts"]["L1D_TLB_REFILL"] / accesses == pytest.approx(expected, abs=6 * spread)
    # The second level holds them all: each walks once, but for a few of the stack and of the marks.
    assert distinct <= simulated["counts"]["L2D_TLB_REFILL"] <= distinct + 8
    assert accesses <= simulated["counts"]["LOADS"] <= accesses + 20
    assert [one["name"] for one in simulated["regions"]] == ["random"]


@needs_tracer
def test_huge_pages_are_observed(build: Path, tmp_path: Path) -> None:
    """512 pages of 4 KiB are one of 2 MiB, if the kernel gives it."""
    switch = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not switch.exists() or "[never]" in switch.read_text():
        pytest.skip("no transparent huge pages here")
    simulated = traced(build, "zen4", tmp_path, "random", "512", "5000", "huge")
    assert simulated["counts"]["HUGE_PAGE_LOOKUPS"] >= 5000
    assert simulated["counts"]["L1D_TLB_REFILL"] <= 8
    refused = traced(build, "zen4", tmp_path, "random", "512", "5000", "huge", without_thp=True)
    assert refused["counts"]["HUGE_PAGE_LOOKUPS"] == 0
    assert refused["counts"]["L1D_TLB_REFILL"] > 4000


@needs_tracer
@pytest.mark.parametrize(("rule", "huge"), [("base", False), ("huge", True), ("fjmpg", True)])
def test_pages_can_be_assumed(build: Path, tmp_path: Path, rule: str, huge: bool) -> None:
    """512 pages in an array of the program: base pages that miss, or one huge page."""
    simulated = traced(build, "zen4", tmp_path, "random", "512", "5000", pages=rule, without_thp=True)
    assert (simulated["counts"]["HUGE_PAGE_LOOKUPS"] >= 5000) == huge
    assert (simulated["counts"]["L1D_TLB_REFILL"] > 4000) == (not huge)


@needs_tracer
def test_a_program_that_enters_no_region_is_refused(build: Path, tmp_path: Path) -> None:
    with pytest.raises(RefusedError) as refused:
        traced(build, "zen4", tmp_path, "none", "10", "10")
    assert Path(refused.value.where).name == "walk"
    assert "--timeout" not in refused.value.remedy and "-march" not in refused.value.remedy


@needs_tracer
def test_an_unknown_instruction_is_reported(build: Path, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="AVX-512"):
        traced(build, "zen4", tmp_path, "avx512", "10", "10")


@needs_tracer
def test_a_run_that_takes_too_long_is_ended(build: Path, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"\b0\.2 s") as refused:
        traced(build, "zen4", tmp_path, "random", "10", "100000000", limit=0.2)
    assert "--timeout" in refused.value.remedy


@pytest.mark.parametrize("script", ["exec sleep 60", "trap 'exit 0' TERM; sleep 60 & wait"])
def test_a_native_run_that_takes_too_long_names_the_option(tmp_path: Path, script: str) -> None:
    program = tracer.TracedProgram(write_script(tmp_path / "slow", f"#!/bin/sh\n{script}\n"), "x86_64", False)
    with pytest.raises(RefusedError) as refused:
        tracer.native_seconds(tracer.ProgramRun(program, (), tmp_path, limit=0.2))
    assert "--timeout" in refused.value.remedy


def fake_qemu(folder: Path, version: str, help_text: str) -> Path:
    script = f'case $1 in --version) echo "qemu-x86_64 version {version}";; *) echo "{help_text}";; esac'
    return write_script(folder / "qemu-x86_64", f"#!/bin/sh\n{script}\n")


@pytest.mark.parametrize(("version", "options"), [("10.0.2", "-plugin"), ("7.2.1", "-strace")])
def test_an_unsuitable_tracer_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, options: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    file = fake_qemu(tmp_path, version, options)
    with pytest.raises(SetupError) as raised:
        tracer.find_tracer("x86_64")
    assert str(raised.value.where) == str(file)
    assert ("10.0" in raised.value.message) == (version == "10.0.2")


def test_doctor_reports_whether_programs_can_be_traced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PAGEWISE_ROOT", str(tmp_path))
    fake_qemu(tmp_path, "7.2.1", "-plugin")
    reported = {one.name: one for one in simulation_findings()}
    traced_here = reported["x86_64 programs"]
    assert traced_here.state == "good" and "qemu-x86_64 7.2.1" in traced_here.detail
    assert reported["aarch64 programs"].state == reported["plug-in"].state == "note"
    assert "apt-get install qemu-user" in reported["aarch64 programs"].remedy
    assert "--build DIR" in reported["plug-in"].remedy
    monkeypatch.setenv("PAGEWISE_ROOT", str(ROOT))
    assert {one.name: one.state for one in simulation_findings()}["plug-in"] == "good"


def test_a_file_that_is_not_a_program_is_refused(tmp_path: Path) -> None:
    script = write_script(tmp_path / "script", "#!/bin/sh\n" + " " * 30)
    for file, where in (script, str(script)), (tmp_path / "nothing", "PROGRAM"):
        with pytest.raises(SelectionError) as raised:
            tracer.find_program(str(file))
        assert str(raised.value.where) == where
