"""The TLB and cache simulator against a naive second one, the tracer, and `pagewise simulate`."""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from rich.console import Console
from tracing import needs_tracer

from pagewise.cli import root
from pagewise.core.errors import FormatError, Interrupted, RefusedError, SelectionError, SetupError
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
from pagewise.workloads.simulation.geometry import FOLDER, Geometry, find_geometry, known, read_geometry
from pagewise.workloads.simulation.run import Simulation, SimulationOptions, TraceLauncher, prepare

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "kernels" / "model"
PARTS = [SOURCES / f"{name}.c" for name in ("sets", "geometry", "tlb", "cache", "mapping", "model")]
EXTENT = 2 << 20


def compiled(out: Path, *arguments: object) -> Path:
    subprocess.run(
        ["cc", "-std=c11", "-O2", "-march=x86-64-v2" if os.uname().machine == "x86_64" else "-O2"]
        + [str(one) for one in arguments]
        + ["-o", str(out)],
        check=True,
    )
    return out


@pytest.fixture(scope="session")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("replay") / "replay", SOURCES / "replay.c", *PARTS)


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build folder as `--build` names one: the plug-in, and a program."""
    folder = tmp_path_factory.mktemp("build")
    (folder / "model").mkdir()
    flags = ("-shared", "-fPIC", "-fvisibility=hidden")
    compiled(folder / "model" / "libpagewise-model.so", *flags, SOURCES / "plugin.c", *PARTS)
    region = ROOT / "kernels" / "region"
    compiled(folder / "walk", f"-I{region}", Path(__file__).with_name("model_walk.c"), region / "marks.c")
    return folder


# Geometry files


@pytest.mark.parametrize("name", known())
def test_a_geometry_is_valid_sourced_and_read_by_the_model(name: str, replay: Path, tmp_path: Path) -> None:
    geometry = find_geometry(name)
    assert geometry.name == name
    assert faults("geometry", geometry.data) == []
    assert counts(replay, geometry.lines(), "r 0 8\n", tmp_path)["L1D_TLB_REFILL"] == 1


def test_a64fx_is_that_of_its_manual() -> None:
    first, second = find_geometry("a64fx").data["tlbs"]
    assert (first["entries"], first["ways"], first["replacement"]) == (16, 16, "fifo")
    assert (second["entries"], second["ways"], second["replacement"]) == (1024, 4, "lru")
    small, large = find_geometry("a64fx").data["caches"]
    assert (small["bytes"], small["ways"], large["bytes"], large["ways"]) == (64 << 10, 4, 8 << 20, 16)
    assert {small["line_bytes"], large["line_bytes"]} == {256}
    assert find_geometry("a64fx").data["pages"]["base"] == 64 << 10


def test_an_unknown_geometry_is_reported_with_the_nearest() -> None:
    with pytest.raises(SelectionError, match="did you mean zen4"):
        find_geometry("zen5")
    with pytest.raises(SelectionError, match="no such geometry file"):
        find_geometry("mine.yaml")


WRONG = {
    "tlbs.0: 70 entries are not a multiple of 72 ways": lambda data: data["tlbs"][0].update(entries=70),
    "pages.base: 5000 is no power of two": lambda data: data["pages"].update(base=5000),
    "pages: huge pages are not larger": lambda data: data["pages"].update(huge=4096),
    "tlbs: level 1 has two for base pages": lambda data: data["tlbs"][1].update(level=1),
    "tlbs: the levels are": lambda data: data["tlbs"][1].update(level=3),
    "caches: the levels are": lambda data: data["caches"][1].update(level=1),
    "caches.0: the first level": lambda data: data["caches"][0].update(inclusion="victim"),
    "caches: all must have lines": lambda data: data["caches"][0].update(line_bytes=128),
    "caches.1: 1000000 bytes": lambda data: data["caches"][1].update(bytes=1000000),
    "tlbs.1.replacement: 'random'": lambda data: data["tlbs"][1].update(replacement="random"),
    "'source' is a required property": lambda data: data["tlbs"][1].pop("source"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_malformed_geometry_is_refused_with_its_fault(fault: str, tmp_path: Path) -> None:
    data = yaml.safe_load((FOLDER / "zen4.yaml").read_text())
    WRONG[fault](data)
    file = tmp_path / "wrong.yaml"
    file.write_text(yaml.safe_dump(data))
    with pytest.raises(FormatError) as raised:
        read_geometry(file)
    assert fault in str(raised.value)
    assert str(file) in str(raised.value)


def test_what_is_no_yaml_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text("a: [")
    with pytest.raises(FormatError, match="cannot be read"):
        read_geometry(file)


# The model against a naive second one


class Naive:
    """The same machine by the shortest code: lists in the order of last use or arrival."""

    def __init__(self, geometry: Geometry, huge: set[int]) -> None:
        self.data, self.huge = geometry.data, huge
        self.tlbs = [(tlb, {}) for tlb in self.data["tlbs"]]
        self.caches = [(cache, {}) for cache in self.data["caches"]]
        self.dirty: list[set[int]] = [set() for _ in self.caches]
        self.counts = dict.fromkeys(
            itertools.chain(
                (f"L{n + 1}D_TLB_REFILL" for n in range(max(t["level"] for t in self.data["tlbs"]))),
                (f"L{n + 1}D_CACHE_{what}" for n in range(len(self.caches)) for what in ("REFILL", "WB")),
                ("PAGE_WALKS", "L1D_CACHE", "HUGE_PAGE_LOOKUPS"),
            ),
            0,
        )

    def access(self, address: int, size: int, store: bool) -> None:
        length = self.data["caches"][0]["line_bytes"]
        for line in range(address // length, (address + size - 1) // length + 1):
            self.counts["L1D_CACHE"] += 1
            self.translate(line * length)
            self.cache(line, store)

    def translate(self, address: int) -> None:
        kind = "huge" if address // EXTENT in self.huge else "base"
        self.counts["HUGE_PAGE_LOOKUPS"] += kind == "huge"
        page = (kind, address // self.data["pages"][kind])
        missed = []
        for tlb, sets in sorted(self.tlbs, key=lambda one: one[0]["level"]):
            if tlb["pages"] not in (kind, "both"):
                continue
            entries = sets.setdefault(page[1] % (tlb["entries"] // tlb["ways"]), [])
            if page in entries:
                if tlb["replacement"] == "lru":
                    entries.remove(page)
                    entries.append(page)
                break
            self.counts[f"L{tlb['level']}D_TLB_REFILL"] += 1
            missed.append((tlb, entries))
        else:
            self.counts["PAGE_WALKS"] += 1
        for tlb, entries in missed:
            entries.append(page)
            del entries[: -tlb["ways"]]

    def set_of(self, level: int, line: int) -> list[int]:
        cache, sets = self.caches[level]
        index, address = line, line * cache["line_bytes"]
        for part in cache.get("index_hash", []):
            index ^= (address >> part["lowest"]) % (1 << part["width"]) << part["shift"]
        return sets.setdefault(index % (cache["bytes"] // cache["line_bytes"] // cache["ways"]), [])

    def cache(self, line: int, store: bool) -> None:
        found, modified = len(self.caches), False
        for level, (cache, _) in enumerate(self.caches):
            lines = self.set_of(level, line)
            if line in lines:
                found = level
                lines.remove(line)
                if cache["inclusion"] == "victim":
                    modified = line in self.dirty[level]
                    self.dirty[level].discard(line)
                else:
                    lines.append(line)
                break
            self.counts[f"L{level + 1}D_CACHE_REFILL"] += 1
        for level in reversed(range(found)):
            if self.caches[level][0]["inclusion"] != "victim":
                self.put(level, line, modified)
                modified = False
        if store:
            self.dirty[0].add(line)

    def put(self, level: int, line: int, modified: bool) -> None:
        lines = self.set_of(level, line)
        lines.append(line)
        if modified:
            self.dirty[level].add(line)
        if len(lines) <= self.caches[level][0]["ways"]:
            return
        out = lines.pop(0)
        dirty = out in self.dirty[level]
        self.dirty[level].discard(out)
        if self.caches[level][0]["inclusion"] == "inclusive":
            for inner in range(level):
                if out in self.set_of(inner, out):
                    self.set_of(inner, out).remove(out)
                    if out in self.dirty[inner]:
                        self.dirty[inner].discard(out)
                        self.counts[f"L{inner + 1}D_CACHE_WB"] += 1
                        dirty = True
        self.counts[f"L{level + 1}D_CACHE_WB"] += dirty
        if level + 1 == len(self.caches):
            return
        victim = self.caches[level + 1][0]["inclusion"] == "victim"
        below = self.set_of(level + 1, out)
        if out in below:
            if victim:
                below.remove(out)
                below.append(out)
            if dirty:
                self.dirty[level + 1].add(out)
        elif victim or dirty:
            self.put(level + 1, out, dirty)


def counts(replay: Path, lines: str, trace: str, folder: Path) -> dict[str, int]:
    (folder / "geometry").write_text(lines)
    done = subprocess.run(
        [replay, folder / "geometry"], input=trace, capture_output=True, text=True, check=True
    )
    return {name: int(value) for name, value in (line.split() for line in done.stdout.splitlines())}


def small(tlbs: list[str], caches: list[str], hashed: bool = False) -> Geometry:
    """A machine so small that a short trace fills it."""
    kinds = ("level", "entries", "ways", "replacement", "pages")
    parts = ("level", "bytes", "ways", "line_bytes", "inclusion")
    data: dict[str, Any] = {
        "pages": {"base": 4096, "huge": 65536},
        "tlbs": [dict(zip(kinds, map(number, line.split()), strict=True)) for line in tlbs],
        "caches": [dict(zip(parts, map(number, line.split()), strict=True)) for line in caches],
    }
    if hashed:
        data["caches"][-1]["index_hash"] = [{"lowest": 13, "width": 2, "shift": 1}]
    return Geometry("small", "small", data)


def number(word: str) -> int | str:
    return int(word) if word.isdigit() else word


MACHINES = {
    "one level, lru": small(["1 6 6 lru both"], ["1 1024 4 64 none"]),
    "fifo, then lru in sets": small(
        ["1 4 4 fifo both", "2 24 3 lru both"], ["1 1024 2 64 none", "2 8192 4 64 none"]
    ),
    "an array for each page size": small(
        ["1 4 2 lru base", "1 2 2 lru huge", "2 12 4 lru base"], ["1 512 2 64 none", "2 4096 4 64 inclusive"]
    ),
    "inclusive, victim": small(
        ["1 8 8 lru both"], ["1 512 2 64 none", "2 2048 4 64 inclusive", "3 8192 8 64 victim"]
    ),
    "victim behind one that includes nothing": small(
        ["1 3 1 fifo both"], ["1 512 2 64 none", "2 1024 4 64 none", "3 4096 2 64 victim"]
    ),
    "hashed": small(["1 8 8 lru both"], ["1 512 2 256 none", "2 4096 4 256 inclusive"], hashed=True),
}


def trace_of(seed: int) -> Iterator[tuple[str, int, int]]:
    """Runs of strides among jumps, near and far, over 40 pages."""
    dice = random.Random(seed)
    spots = [dice.randrange(20) * EXTENT // 4 for _ in range(12)]
    for _ in range(400):
        at, stride = dice.choice(spots) + dice.randrange(16384), dice.choice((8, 8, 64, 200, 4096))
        kind = dice.choice("rrw")
        for step in range(dice.randrange(1, 12)):
            yield kind, at + step * stride, dice.choice((1, 8, 32, 64))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", MACHINES)
def test_the_model_counts_as_a_naive_one(name: str, seed: int, replay: Path, tmp_path: Path) -> None:
    huge = {1, 3}
    naive = Naive(MACHINES[name], huge)
    lines = [f"h {extent * EXTENT:x}" for extent in sorted(huge)]
    for kind, address, size in trace_of(seed):
        naive.access(address, size, kind == "w")
        lines.append(f"{kind} {address:x} {size}")
    modelled = counts(replay, MACHINES[name].lines(), "\n".join(lines) + "\n", tmp_path)
    assert {key: modelled[key] for key in naive.counts} == naive.counts
    assert all(value > 0 for value in naive.counts.values())


def test_replay_refuses_what_is_no_trace(replay: Path, tmp_path: Path) -> None:
    (tmp_path / "geometry").write_text(find_geometry("zen4").lines())
    done = subprocess.run([replay, tmp_path / "geometry"], input="x 10 8\n", capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr


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
