"""The energy of runs, by sensors of synthetic sysfs trees: found, measured, judged, reported."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from builders import BASE, THP, a_manifest, kernel, record, rounds, subject_of
from fake_root import tree
from json_schema import faults
from pagewise.analysis.analysis import analyse_result
from pagewise.core.manifest import EnergyPart
from pagewise.core.record import Record
from pagewise.core.record_parts import ENERGY, POWER
from pagewise.core.result import Result
from pagewise.machine.energy import Meter, Reading, Sensor, find_meter
from pagewise.report.views import comparisons, data
from pagewise.report.views.kernels import view
from pagewise.session.launch import Start, Stopwatch
from pagewise.stack.provenance import find_hyperfine
from pagewise.workloads.doctor import energy_finding
from scripts import called
from stage import Stage

POWERCAP, HWMON = "sys/class/powercap", "sys/class/hwmon/hwmon"
WRAP = 262143328850
#: Two packages, their cores and memory, the platform, and the second interface to the same counters.
INTEL = {
    f"{POWERCAP}/{folder}/{name}": text
    for folder, title, energy in (
        ("intel-rapl:0", "package-0", 1000),
        ("intel-rapl:0:0", "core", 10),
        ("intel-rapl:0:1", "dram", 300),
        ("intel-rapl:1", "package-1", 2000),
        ("intel-rapl:1:0", "dram", 400),
        ("intel-rapl:2", "psys", 9000),
        ("intel-rapl-mmio:0", "package-0", 1000),
    )
    for name, text in (("name", title), ("energy_uj", str(energy)), ("max_energy_range_uj", str(WRAP)))
}


def test_packages_and_their_memory_are_counted_once_and_never_in_part(tmp_path: Path) -> None:
    root = tree(tmp_path, INTEL)
    meter = find_meter(root)
    names = ("package-0", "package-0 dram", "package-1", "package-1 dram")
    assert meter.part == EnergyPart("powercap", names) and energy_finding(root).remedy is None
    assert {sensor.wrap for sensor in meter.sensors} == {WRAP}
    # Not a number for root, who may read every file, either.
    tree(root, {f"{POWERCAP}/intel-rapl:1/energy_uj": ""})
    part = find_meter(root).part
    assert part.source is None and "intel-rapl:1/energy_uj" in str(part.unavailable)
    assert "chmod a+r" in str(part.remedy)


@pytest.mark.parametrize(
    ("files", "sensor"),
    [
        (
            {"0/name": "amd_energy", "0/energy1_label": "Ecore000", "0/energy2_label": "Ecore001"}
            | {"0/energy3_label": "Esocket0"}
            | {f"0/energy{n}_input": "5" for n in (1, 2, 3)},
            "amd_energy Esocket0",
        ),
        (
            {"0/name": "ibmpowernv", "0/energy1_label": "Chip 0 Vdd", "0/energy2_label": "System"}
            | {f"0/energy{n}_input": "900000" for n in (1, 2)},
            "ibmpowernv System",
        ),
        (
            {"0/name": "amdgpu", "0/energy1_input": "1"}
            | {"1/device/name": "node", "1/device/energy1_input": "2"},
            "node energy1",
        ),
    ],
)
def test_sensors_of_the_node(tmp_path: Path, files: dict[str, str], sensor: str) -> None:
    meter = find_meter(tree(tmp_path, {f"{HWMON}{name}": text for name, text in files.items()}))
    assert meter.part == EnergyPart("hwmon energy", (sensor,))


def test_without_a_sensor_the_reason_is_named(tmp_path: Path) -> None:
    for root in (tmp_path, tree(tmp_path / "gpu", {f"{HWMON}0/name": "amdgpu"})):
        meter = find_meter(root)
        assert meter.sensors == () and meter.part.source is None
        assert meter.part.unavailable and meter.part.remedy
        finding = energy_finding(root)
        assert finding.remedy == meter.part.remedy
        with meter.measuring() as reading:
            pass
        assert reading.metrics == {}


@pytest.mark.parametrize(
    ("sensor", "values", "microjoules"),
    [
        (Sensor("a", Path(), WRAP), (1000, 5000), 4000),
        (Sensor("a", Path(), WRAP), (WRAP - 10, 90), 100),
        (Sensor("a", Path()), (1000, 900), None),
        # Not 65 kW: a driver that was loaded again counts from 0.
        (Sensor("a", Path(), WRAP), (WRAP // 2, 0), None),
        (Sensor("a", Path(), WRAP), (None, 5000), None),
    ],
)
def test_the_energy_between_readings(sensor, values, microjoules: float | None) -> None:
    assert sensor.microjoules(*values, 2.0) == microjoules


def test_a_failing_sensor_gives_no_number(tmp_path: Path) -> None:
    file = tmp_path / "energy"
    file.write_text("0")
    reading = Reading([Sensor("a", file)])
    file.write_text("gone")
    reading.advance()
    file.write_text("5000000")
    reading.advance()
    assert reading.metrics == {}


def test_a_run_is_measured(tmp_path: Path) -> None:
    counter = tmp_path / "energy_uj"
    counter.write_text("1000000")
    meter = Meter(EnergyPart("powercap", ("a",)), (Sensor("a", counter, WRAP),))
    stopwatch = Stopwatch(find_hyperfine(), 30.0, tmp_path, meter=meter)
    words = ["/bin/sh", "-c", f"echo 4500000 > {counter}; sleep 0.2"]
    measured = stopwatch.measure(Start(words))
    assert measured.energy[ENERGY] == 3.5
    assert measured.wall is not None and 3.5 / 2 < measured.energy[POWER] <= 3.5 / 0.2


@pytest.mark.long
def test_a_counter_that_wraps_twice_is_read_in_between(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("pagewise.machine.energy._PERIOD_SECONDS", 0.02)
    counter = tmp_path / "energy_uj"
    counter.write_text("0")
    meter = Meter(EnergyPart("powercap", ("a",)), (Sensor("a", counter, 1000),))
    with meter.measuring() as reading:
        for value in (900, 800, 700):
            # Not truncated in between: the sensor would seem to fail.
            (tmp_path / "next").write_text(str(value))
            (tmp_path / "next").rename(counter)
            time.sleep(0.3)
    assert reading.metrics[ENERGY] == pytest.approx(2700 / 1e6)


def with_power(watts: float, runs: Iterable[Record]) -> list[Record]:
    return [replace(run, metrics={**run.figures, POWER: watts, ENERGY: 20 * watts}) for run in runs]


@pytest.mark.parametrize(("watts", "verdict"), [(100.0, "lower"), (125.0, "inconclusive"), (180.0, "higher")])
def test_energy_has_a_verdict_of_its_ratio(tmp_path: Path, watts: float, verdict: str) -> None:
    """THP takes 20 % less time at this power against 100 W."""
    scatter = [[1.0 + 0.01 * ((number * 3 + shift) % 7) / 7 for number in range(7)] for shift in (0, 2)]
    records = with_power(100.0, rounds({BASE: scatter[0]}, scatter[1]))
    records += with_power(watts, rounds({THP: [0.8 * each for each in scatter[0]]}))
    part = EnergyPart("powercap", ("package-0",))
    result = Result(tmp_path, a_manifest(energy=part), [subject_of(kernel(), BASE, THP)], records, [])
    kernels = analyse_result(result)
    base, thp = kernels[0].of("energy")
    assert (base.ratio, base.verdict) == (None, None) and base.value == pytest.approx(100.0, rel=0.01)
    assert thp.ratio.median == pytest.approx(0.8 * watts / 100, rel=0.01) and thp.verdict == verdict
    powers = {row.hugepages: row.power_watts for row in data.configurations(kernels)}
    assert powers == {"none": 100.0, "thp": watts}
    (section,) = comparisons.energy(kernels, part)
    assert len(section.blocks[0].rows) == 2
    without = replace(result, records=[record(BASE, 1.0)])
    assert list(comparisons.energy(analyse_result(without), part)) == []


@pytest.mark.long
def test_a_comparison_of_a_program_reports_energy(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    counter = tree(tmp_path / "machine", INTEL) / POWERCAP / "intel-rapl:0" / "energy_uj"
    start = (
        "import runpy, sys; from pathlib import Path; from pagewise.machine import energy; "
        f"energy.ROOT = Path({str(tmp_path / 'machine')!r}); sys.argv[0] = 'pagewise'; "
        "runpy.run_module('pagewise', run_name='__main__')"
    )
    # A run adds 2 J, or 4 J in the second mode.
    script = f"read -r now < {counter}; echo $((now + MODE * 2000000)) > {counter}; sleep 0.05"
    words = ["compare", "--output", str(stage.results), "--rounds", "7", "--vary", "MODE=1,2"]
    words += ["--policies", "none", "--json", "--", "/bin/sh", "-c", script]
    done = called([sys.executable, "-c", start, *words], env=stage.variables(), cwd=tmp_path, check=True)
    actual = json.loads(done.stdout)
    first, second = (row for row in actual["comparisons"] if row["kind"] == "energy")
    assert first["ratio"] is None
    assert second["verdict"] == "higher" and 1.5 < second["ratio"] < 2.5
    result = stage.read_result()
    timed = (one for one in result.records if one.run and one.run.series == "compare")
    assert {one.figures[ENERGY] for one in timed} == {2, 4}
    assert result.manifest.energy is not None and result.manifest.energy.source == "powercap"
    assert not faults("verdicts", actual)
    (section,) = comparisons.energy(analyse_result(result), result.manifest.energy)
    assert section.title in [block.title for block in view(result).sections]
