"""`pagewise simulate`: its figures and its results."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tracing import needs_tracer

import builders
from builders import configuration
from fake_root import tree
from json_schema import faults
from pagewise.core import structure
from pagewise.core.errors import Interrupted, SelectionError
from pagewise.core.plan import Step
from pagewise.core.record import Record
from pagewise.core.result import Result, read_result
from pagewise.core.structure import to_data
from pagewise.core.text import choose_of
from pagewise.report.render import csv as csv_file
from pagewise.report.views import report_of
from pagewise.session.workload import Outcome
from pagewise.workloads.simulation import figures
from pagewise.workloads.simulation.run import ASSUMED, UNCHANGED, TraceLauncher
from querying import invoked
from simulator import ROOT


def record(misses: int, passes: int) -> Record:
    """A record of two repetitions, simulated with these misses per pass."""
    counts = {"INSTRUCTIONS": 1000 * passes, "L1D_TLB_REFILL": misses * passes, "L1D_CACHE": 500 * passes}
    simulated = {
        "geometry": "zen4",
        "pages": "observed",
        "whole": False,
        "counts": counts,
        "regions": [{"name": "hydro", "calls": 1, "counts": counts}],
    }
    measured = builders.record(configuration(), [1.0, 2.0], passes_per_repetition=passes // 2)
    return figures.simulated_record(measured, simulated, "qemu-x86_64 7.2.22")


def test_a_simulated_record_has_no_measured_values() -> None:
    made = to_data(record(30, 4))
    assert structure.faults(Record, made) == []
    assert made["simulated"]["passes"] == 4
    assert not {"seconds", "metrics", "counters"} & made.keys()
    assert structure.faults(Record, {**made, "seconds": {"first_touch": 0, "repetitions": [1.0]}})


def test_ratios_are_of_counts_a_pass() -> None:
    rows = {row.name: row for row in figures.rows_of([record(30, 4), record(3, 10)])}
    assert rows["L1D_TLB_REFILL"].values == (30, 3)
    assert rows["L1D_TLB_REFILL"].ratios == (0.1,)
    assert rows[figures.RATES[0][0]].values == (0.03, 0.003)
    assert figures.FigureRow("nothing", (0.0, 3.0)).ratios == (None,)


def simulate(folder: Path, *words: object) -> Any:
    return invoked("simulate", "--output", folder, *words)


@needs_tracer
def test_the_command_models_a_program_and_keeps_its_record(build: Path, tmp_path: Path) -> None:
    result = simulated(build, build / "walk", tmp_path)
    folder = result.folder
    assert result.manifest.kind == "simulation" and result.manifest.state == "complete"
    assert result.altered is None and not result.skipped
    assert [record.run.series for record in result.records] == ["simulate", "simulate"]
    assert [record.simulated.pages for record in result.records] == ["observed", "fjmpg"]
    assert result.records[0].simulated.tool.startswith("qemu-x86_64")
    assert (folder / "report.html").exists()
    lines = (folder / "simulation.csv").read_text().splitlines()
    assert lines[0] == "kernel,geometry,policy,region,count,simulated"
    assert any(line.startswith(f"walk,zen4,{UNCHANGED},cyclic,L1D_TLB_REFILL,8") for line in lines)
    again = report_of(result)
    assert csv_file.render(again.tables["simulation.csv"]).splitlines() == lines
    assert "AMD Zen 4" in again.headline


def happen(monkeypatch: pytest.MonkeyPatch, event: Callable[[], None]) -> None:
    """Let something happen before the run with the policy fjmpg."""
    run = TraceLauncher.run

    def run_after(launcher: TraceLauncher, step: Step) -> Outcome:
        if step.cell.measured.module == "fjmpg":
            event()
        return run(launcher, step)

    monkeypatch.setattr(TraceLauncher, "run", run_after)


def simulated(build: Path, program: Path, results: Path, *options: str) -> Result:
    """The result of a walk through memory, as it is and with the policy fjmpg."""
    options = ("--build", build, "--geometry", "zen4", "--policies", "fjmpg", *options)
    done = simulate(results, *options, "--", program, "cyclic", "80", "800")
    assert done.exception is None, done.output
    (folder,) = results.iterdir()
    return read_result(folder)


@needs_tracer
def test_a_program_that_is_replaced_while_it_is_simulated_has_no_figures(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second policy would be that of another program."""
    program = tmp_path / "walk"
    shutil.copy(build / "walk", program)

    def replaced() -> None:
        (tmp_path / "other").write_bytes(program.read_bytes() + b"1")
        (tmp_path / "other").chmod(0o755)
        (tmp_path / "other").replace(program)

    happen(monkeypatch, replaced)
    report = report_of(simulated(build, program, tmp_path / "results"))
    assert report.faulty and report.data.policies == ()
    assert {row.code for row in report.data.missing} == {"file_changed"}


@pytest.mark.long
@needs_tracer
def test_an_interrupted_simulation_is_resumed(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> None:
        raise Interrupted(2)

    happen(monkeypatch, interrupted)
    first = simulated(build, build / "walk", tmp_path)
    monkeypatch.undo()
    assert first.manifest.state == "interrupted" and len(first.records) == 1
    report = report_of(first)
    assert [row.policy for row in report.data.policies] == [UNCHANGED]
    assert [(row.policy, row.code) for row in report.data.missing] == [("fjmpg", "not_measured")]
    result = simulated(build, build / "walk", tmp_path, "--resume", str(first.folder))
    assert result.manifest.state == "complete" and len(result.manifest.breaks) == 1
    report = report_of(result)
    assert [row.policy for row in report.data.policies] == [UNCHANGED, "fjmpg"]
    assert not report.faulty and not report.data.missing


@needs_tracer
def test_a_program_that_fails_is_excluded_with_its_output(build: Path, tmp_path: Path) -> None:
    done = simulate(tmp_path, "--build", str(build), "--json", "--", shutil.which("false") or "/bin/false")
    assert done.return_value == 1
    reported = json.loads(done.stdout)
    assert faults("simulated", reported) == [] and reported["policies"] == []
    assert [row["code"] for row in reported["missing"]] == ["failed"]
    (record,) = read_result(Path(reported["folder"])).records
    assert record.status == "failed" and (Path(reported["folder"]) / record.run.log).exists()


@needs_tracer
def test_a_users_program_is_simulated_whole_where_it_was_started(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree(tmp_path / "input", {"flash.par": ""}))
    program = ("--", shutil.which("cat") or "/bin/cat", "flash.par")
    done = simulate(tmp_path / "results", "--build", str(build), "--json", *program)
    assert done.exception is None, done.output
    reported = json.loads(done.stdout)
    assert faults("simulated", reported) == [] and reported["program"] == "cat" and not reported["missing"]
    (one,) = reported["policies"]
    assert one["simulated"]["geometry"] == reported["geometry"] and one["notes"]


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (("--policies", "fjmpg,thp", "--", "true"), choose_of("thp", ASSUMED)),
        (("--policies", "hug", "--", "true"), choose_of("hug", ASSUMED)),
        (("pointer_chas",), "pointer_chase"),
    ],
)
@needs_tracer
def test_unknown_policies_and_kernels_are_refused_with_the_nearest(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], reported: str
) -> None:
    monkeypatch.setenv("PAGEWISE_ROOT", str(ROOT))
    done = simulate(tmp_path, "--build", str(build), *arguments)
    assert isinstance(done.exception, SelectionError) and reported in str(done.exception)
    assert not list(tmp_path.iterdir())
