"""The command line over real Lmod and real hyperfine, with stand-in kernels."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shutil
import signal
import subprocess
import time
from typing import Any

import pytest
from rich.console import Console

from json_schema import faults
from pagewise.core.record_parts import ProcessPlacement
from pagewise.core.result import read_result
from pagewise.report.model import Section, Table
from pagewise.report.render import terminal
from pagewise.report.views import report_of
from scripts import HANGS_AFTER, called
from stage import ALL_LABELS, BASE, CHASE, DISTANCES, THP, TRIAD, Stage, csv_rows, result_content


def planned(errors: str) -> tuple[list[str], list[int]]:
    """The kernels and the sorted numbers in the line that reports what will run: rounds, runs, sweeps."""
    line = next(line for line in errors.splitlines() if re.search("chase|triad", line))
    return re.findall("chase|triad", line), sorted(map(int, re.findall(r"\d+", line)))


def test_a_comparison_from_modules_to_report(compared):
    stage, done = compared
    assert done.returncode == 0, done.stdout + done.stderr
    assert planned(done.stderr) == (["chase", "triad"], [3, 4, 7, 31])
    for text in (TRIAD["title"], "2 MiB 100 %", "faster"):
        assert text in done.stdout
    folder = stage.result()
    assert folder.name.endswith("Z-first")
    result = read_result(folder)
    assert result.skipped == []
    assert result.manifest.state == "complete" and result.manifest.rounds_done == 4
    assert 0 < result.manifest.timing.overhead_share < 1
    assert result.manifest.placement.environment["OMP_PROC_BIND"] == "close"
    assert all(len(entry.digest) == 64 for entry in result.manifest.configurations)
    # Triad: 3 configurations and the baseline again; chase: 2 and again; 4 rounds; and 3 sweeps.
    runs = {(r.kernel, r.run.module, r.series, r.round) for r in result.records}
    assert len(runs) == 4 * (4 + 3) + 3
    assert not (folder / "figures").exists()
    assert all(r.placement.cpus == result.manifest.placement.cpus for r in result.records)
    page = (folder / "report.html").read_text().replace("http://www.w3.org", "")
    assert not any(text in page for text in ("<script", "https://", "http://"))
    assert page.count("<figure>") == 1
    rows = csv_rows(folder / "summary.csv")
    assert len(rows) == 6
    thp = next(row for row in rows if row["kernel"] == "triad" and row["hugepages"] == "thp")
    assert thp["verdict"] == "faster" and float(thp["time_ratio"]) == pytest.approx(0.8, abs=0.03)
    software = next(row for row in rows if row["kernel"] == "chase" and row["prefetch"] == "software")
    assert software["measured_as"].endswith("none/hardware-regular")


@pytest.mark.long
def test_sweeps_of_some_configurations_are_measured_and_reported(stage: Stage):
    swept = {**TRIAD, "sweeps": [*TRIAD["sweeps"], DISTANCES]}
    for label in (BASE, ("none", "software", "regular"), ("thp", "software", "regular")):
        stage.add("gcc-12.2.0", label, [swept])
    done = stage.compare("--rounds", "1", code=0)
    assert planned(done.stderr) == (["triad"], [1, 4, 5, 9])
    page = (stage.result() / "report.html").read_text()
    sections = report_of(stage.read_result()).sections
    (of_kernel,) = (one.blocks for one in sections if one.title == TRIAD["title"])
    tables = [one for one in of_kernel if isinstance(one, Section) and isinstance(one.blocks[0], Table)]
    titles = {one.blocks[0].columns[0].kind: f"{one.title}</summary>" for one in tables}
    assert page.count(titles["bytes"]) == page.count(titles["swept"]) == 1
    distances = page.split(titles["swept"])[1].split("</table>")[0]
    assert re.findall(r'<th scope="row" class="n first">(\d+)<', distances) == ["4", "16", "64"]
    assert len(re.findall(r"<small>gcc-12.2.0</small>", distances)) == 2


@pytest.mark.long
def test_a_report_is_made_again_from_the_folder_alone(compared, stage: Stage):
    folder = shutil.copytree(compared[0].result(), stage.folder / "moved")
    names = ("report.html", "summary.csv", "summary.md", "comparisons.csv")
    made = {name: (folder / name).read_bytes() for name in names}
    for name in names:
        (folder / name).unlink()
    stage.run("report", str(folder), "--png", code=0)
    assert {name: (folder / name).read_bytes() for name in names} == made
    curves = folder / "figures" / "triad-sweep-working-set"
    assert curves.with_suffix(".svg").read_text().startswith("<svg")
    assert curves.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


def test_a_narrow_console_cuts_no_value_off(compared):
    """The times of the first touch go where there is no room; what stays is whole, however wide that is."""
    report = report_of(compared[0].read_result())
    (kernels,) = (one.blocks for one in report.sections if isinstance(one.blocks[0], Section))
    tables = (one for one in kernels[0].blocks if isinstance(one, Table))
    table = next(one for one in tables if any(column.optional for column in one.columns))

    def lines(width: int) -> list[str]:
        console = Console(width=width, file=io.StringIO())
        terminal.show_table(console, table)
        assert console.width == width
        return console.file.getvalue().splitlines()

    wide, narrow = lines(200), lines(40)
    assert len(wide) == len(narrow) and not any("\N{HORIZONTAL ELLIPSIS}" in line for line in narrow)
    assert max(map(len, narrow)) < max(map(len, wide))


#: By mode of the fake kernel: the code, and data in the reason and in the remedy.
INVALID = {
    "crash": ("failed", "SIGSEGV", ""),
    "illegal": ("failed", "SIGILL", "--configurations"),
    "check_failed": ("wrong_result", "sum is 3, not 4", "report this compiler"),
    "wrong_pages": ("wrong_pages", "50.0%", ""),
    "usage": ("failed", "unknown option --repetitions", "--help"),
    "silent": ("failed", "", ""),
    "hang": ("failed", "1 s", "--timeout"),
    "pages": ("pages_unavailable", "32 huge pages of 2048 KiB are missing", "sysctl vm.nr_hugepages=32"),
}
#: What the fake kernel prints before it crashes.
LAST_WORDS = "about to crash"


@pytest.mark.long
def test_invalid_configurations_are_shown_and_never_ranked(stage: Stage):
    stage.add("gcc-12.2.0", BASE, [TRIAD])
    labels = dict(zip(INVALID, [label for label in ALL_LABELS if label[0] != "none"], strict=False))
    modules = {
        mode: stage.add("gcc-12.2.0", labels[mode], [TRIAD], mode=mode, factor="0.1") for mode in INVALID
    }
    stage.compare("--rounds", "3", "--timeout", "1", "--no-sweep", code=1)
    rows = {row["module"]: row for row in csv_rows(stage.result() / "summary.csv")}
    _, records = result_content(stage.result())
    for mode, (code, reason, remedy) in INVALID.items():
        row = rows[modules[mode]]
        assert row["code"] == code and reason in row["invalid"] and remedy in row["remedy"], mode
        assert (row["verdict"], row["time_ratio"]) == ("", "")
        tried = [r for r in records if r["run"]["module"] == modules[mode]]
        assert len(tried) == (3 if mode == "wrong_pages" else 1), mode
        ended = {record.get("failure", {}).get("exit_code") for record in tried}
        assert (ended == {0}) == (mode == "silent"), mode
        if mode == "crash":
            assert LAST_WORDS in (stage.result() / tried[0]["run"]["log"]).read_text()


@pytest.mark.long
def test_an_interrupt_keeps_and_reports_finished_runs(stage: Stage):
    stage.add("gcc-12.2.0", BASE, [TRIAD], sleep="0.02")
    stage.add("gcc-12.2.0", THP, [TRIAD], sleep="0.02")
    process = stage.start("kernels", "--rounds", "1000", records=13)
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=HANGS_AFTER)
    assert process.returncode == 143, errors
    assert errors.splitlines()[-1].startswith("pagewise: ") and TRIAD["title"] in output
    result = stage.read_result()
    assert result.skipped == [] and len(result.records) >= 13
    assert result.manifest.state == "interrupted" and result.manifest.rounds_done >= 4
    assert (stage.result() / "report.html").exists()
    assert f"{stage.folder}/opt" not in called(["ps", "-wweo", "args="], check=True).stdout


def wait_for(condition, seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a small file system")
def test_a_full_disk_loses_nothing(small: Stage):
    small.results.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small.results], check=True)
    try:
        done = small.compare("--rounds", "50", "--no-sweep", code=4)
        assert os.strerror(errno.ENOSPC) in done.stderr and TRIAD["title"] in done.stdout
        assert f"pagewise report {small.result()}" in done.stderr
        assert "Traceback" not in done.stderr
        lines = (small.result() / "records.jsonl").read_bytes()
        assert lines.endswith(b"\n") and lines.count(b"\n") > 10
        assert small.read_result().skipped == []
    finally:
        subprocess.run(["umount", small.results], check=True)


def test_a_report_needs_a_result(stage: Stage):
    manifest = stage.folder / "manifest.json"
    assert f" {stage.folder}\n" in stage.run("report", str(stage.folder), code=3).stderr
    manifest.write_text('{"schema": "pagewise.manifest/2"}')
    errors = stage.run("report", str(stage.folder), code=3).stderr
    assert f" {manifest}\n" in errors and "'seed'" in errors
    manifest.write_text('{"schema": "pagewise.manifest/1"}')
    assert "pagewise.manifest/1" in stage.run("report", str(stage.folder), code=3).stderr


def test_two_builds_that_describe_a_kernel_differently(stage: Stage):
    one = stage.add("gcc-12.2.0", BASE, [CHASE])
    other = stage.add("gcc-12.2.0", THP, [{**CHASE, "sensitive_to": ["hugepages"]}])
    done = stage.run("list")
    assert done.returncode == 3 and all(name in done.stderr for name in (CHASE["name"], one, other))


@pytest.mark.long
def test_placements_are_compared_as_configurations_are(stage: Stage):
    """Two policies of memory, under one of which the kernel takes twice as long; one is elsewhere."""
    for label in (BASE, THP):
        stage.add("gcc-12.2.0", label, [TRIAD], interleaved="2", factor="0.5" if label == THP else "1")
    stage.add("gcc-12.2.0", ("none", "block", "regular"), [TRIAD], mode="wrong_cpu", factor="0.1")
    options = ("--rounds", "5", "--no-sweep", "--bind", "first-touch,interleave:0")
    done = stage.compare(*options, code=1)
    lines = csv_rows(stage.result() / "summary.csv")
    wrong = [row["invalid"] for row in lines if row["code"] == "wrong_placement"]
    assert len(wrong) == 2 and all("4095" in reason and reason in done.stdout for reason in wrong)
    result = stage.read_result()
    names, counts = planned(done.stderr)
    assert names == ["triad"] and {5, 7} <= {*counts}
    assert [place.memory for place in result.manifest.placements] == ["default", "interleave:0"]
    for record in result.records:
        bound = record.run.bound
        assert bound.observed == ProcessPlacement(bound.cpus, bound.memory)
        name = bound.memory.replace("default", "first-touch")
        assert record.run.placement == bound.name == name
    rows = {
        (row["hugepages"], row["placement"]): row
        for row in lines
        if row["prefetch"] == "hardware" or row["verdict"]
    }
    assert rows["none", "first-touch"]["is_baseline"] == "True"
    ratios = {key: float(row["time_ratio"]) for key, row in rows.items() if row["time_ratio"]}
    assert ratios == pytest.approx(
        {("thp", "first-touch"): 0.5, ("none", "interleave:0"): 2.0, ("thp", "interleave:0"): 1.0}, rel=0.04
    )
    page = (stage.result() / "report.html").read_text()
    assert ">first-touch</td>" in page and ">interleave:0</td>" in page


def reported(done: subprocess.CompletedProcess[str], schema: str) -> dict[str, Any]:
    """What was printed, after it was checked."""
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["schema"].rpartition("/")[0] == f"pagewise.{schema}" and faults(schema, data) == []
    return data


@pytest.mark.long
def test_the_commands_report_json(small: Stage):
    done = small.compare("--json", "--rounds", "4", "--no-sweep", "--seed", "5")
    data = reported(done, "verdicts")
    assert data["headline"] in done.stderr and data["state"] == "complete"
    rows = [row for one in data["kernels"] for row in one["configurations"] if one["name"] == "triad"]
    thp = next(row for row in rows if row["hugepages"] == "thp")
    assert thp["verdict"] == "faster" and thp["time_ratio"] == pytest.approx(0.8, abs=0.03)
    assert thp["page_size_observed_bytes"] == 2 << 20
    again = reported(small.run("report", data["folder"], "--json"), "verdicts")
    assert again == data | {"timing": again["timing"], "folder": data["folder"]}
    plan = reported(small.compare("--plan", "--json", "--rounds", "4"), "plan")
    assert plan["runs"] == 31
    assert [(one["runs_a_round"], one["sweeps"]) for one in plan["kernels"]] == [(3, 0), (4, 3)]
    catalog = reported(small.run("list", "--json"), "catalog")
    assert len(catalog["configurations"]) == 3
    assert [kernel["name"] for kernel in catalog["kernels"]] == ["chase", "triad"]
    assert reported(small.run("list", "--json", "kernels", "chase"), "catalog")["configurations"] == []
    findings = reported(small.run("doctor", "--json", "--no-noise"), "findings")
    assert findings["ready"] and {"Tools", "Pages", "Machine"} <= {f["topic"] for f in findings["findings"]}
    survey = reported(small.run("list", "policies", "--json", "--", "true"), "survey")
    reasons = {one["policy"]: one["unavailable_reason"] for one in survey["policies"]}
    assert survey["program"].endswith("/true") and reasons["none"] is None
    assert "libhugetlbfs" in reasons and len(reasons) == len(survey["policies"])
    assert reported(small.run("list", "policies", "--json"), "survey")["program"] is None
