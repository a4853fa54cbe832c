"""Settings of hardware prefetchers and clocks that a comparison compares: set for each run, and restored."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from builders import configuration, kernel
from fake_root import tree
from json_schema import faults
from pagewise.cli.measuring import options_of
from pagewise.core.errors import SelectionError
from pagewise.core.plan import Subject, subject
from pagewise.core.result import Result, read_result
from pagewise.machine.placement import Where, placements
from pagewise.machine.settings import clocks, prefetchers
from pagewise.machine.settings.session import traces
from pagewise.report.views.session import notes
from pagewise.session.session import Session
from pagewise.session.settings import MachineSettings, in_all_states
from pagewise.stack.binary import examine
from pagewise.workloads.counters.counting import Selection
from pagewise.workloads.counters.counting import prepare as count
from pagewise.workloads.kernels.workload import prepare
from pagewise.workloads.program import prepare as program_prepare
from pagewise.workloads.program.program import Program
from pagewise.workloads.program.workload import ProgramOptions
from prefetcher_machines import a64fx, contents, hwpfctl, machine, prefetch_control, registers
from stage import CHASE, Stage
from test_choice import options
from test_commands import BASE
from test_options import COMMANDS

CPUS = sorted(os.sched_getaffinity(0))
DISTANCES = (("unchanged",), ("distL1=3", "weakL2"), ("distL1=9",))
BOOST, STATES = (("boost=on",), ("boost=off",)), ("fresh", "aged")
BOOST_FILE = "sys/devices/system/cpu/cpufreq/boost"


def given(*texts: str) -> dict[str, Any]:
    """What the command line makes of `--vary` with each of these texts."""
    words = [word for text in texts for word in ("--vary", text)]
    return COMMANDS["kernels"].make_context("kernels", words).params


def test_each_option_is_a_setting_and_slashes_give_several() -> None:
    assert given()["prefetchers"] == given()["clocks"] == ()
    assert given("prefetchers=l1,l2")["prefetchers"] == (("l1", "l2"),)
    varied = given(
        "prefetchers=off", "clocks=boost=on/off,governor=performance", "prefetchers=distL1=3/5,weakL2"
    )
    assert varied["prefetchers"] == (("off",), ("distL1=3", "weakL2"), ("distL1=5", "weakL2"))
    assert varied["clocks"] == (("boost=on", "governor=performance"), ("boost=off", "governor=performance"))


def test_each_configuration_runs_in_each_setting() -> None:
    built = [configuration(label=(name, "hardware", "regular")) for name in ("none", "thp")]
    plain = subject(kernel(), built, "none/hardware-regular")
    (one,) = in_all_states([plain], options(prefetchers=DISTANCES, clocks=BOOST, node_states=STATES))
    assert len(one.cells) == 2 * 3 * 2 * 2 and len({cell.key for cell in one.cells}) == len(one.cells)
    (baseline,) = (cell.measured for cell in one.cells if cell.is_baseline)
    machine = {"node-state": "fresh", "prefetchers": "unchanged", "clocks": "boost=on"}
    assert baseline.settings.machine == machine
    varied = {cell.measured.value("prefetchers") for cell in one.cells}
    assert varied == {"unchanged", "distL1=3+weakL2", "distL1=9"}
    assert all(cell.arguments == () and cell.environment({"A": "1"}) == {"A": "1"} for cell in one.cells)
    assert Subject.of(one.planned_subject(), {each.module: each for each in built}) == one
    # One setting is not a dimension.
    assert in_all_states([plain], options(prefetchers=DISTANCES[1:2], clocks=BOOST[1:])) == [plain]


def of_tree(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """Settings are made in a tree of files instead of on this machine."""
    find_control, find_clocks, clocks_set = prefetchers.find_control, clocks.find_clocks, clocks.clocks_set
    monkeypatch.setattr(prefetchers, "find_control", lambda asked, used: find_control(asked, used, root))
    monkeypatch.setattr(clocks, "find_clocks", lambda asked, of=root: find_clocks(asked, of))
    monkeypatch.setattr(clocks, "clocks_set", lambda asked: clocks_set(asked, root))


@pytest.mark.parametrize(
    "setting",
    [
        {"prefetchers": (("distL2=17",), ("distL2=20",))},
        {"prefetchers": (("unchanged",), ("unchanged",))},
        {"prefetchers": (("off",), ("l1", "l2"))},
        {"prefetchers": (("weakL1", "distL1=3"), ("distL1=3", "weakL1"))},
        {"clocks": (("boost=on",), ("boost=on",))},
    ],
)
def test_equal_settings_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: dict) -> None:
    root = tree(a64fx(tmp_path), {BOOST_FILE: "1"})
    prefetch_control(root, CPUS)
    of_tree(monkeypatch, root)
    with pytest.raises(SelectionError):
        MachineSettings.find(options(**setting), placements(Where(threads=(1,))))


def measured(session: Session) -> Result:
    session.begin()
    session.measure()
    session.close()
    assert session.ending is None, session.ending
    return read_result(session.recorder.folder)


def watching(stage: Stage, module: str, files: Sequence[Path], factors: dict[str, float]) -> Path:
    """Lets the kernel log these files for each run; what they contain gives factors of its time."""
    log = stage.folder / "watched"
    program = stage.prefix(module) / "bin/pw-chase"
    program.write_text(
        program.read_text().replace(
            "def main() -> int:",
            "def main() -> int:\n"
            f"    words = [open(one).read().strip() for one in {list(map(str, files))!r}]\n"
            f"    with open({str(log)!r}, 'a') as log:\n"
            "        log.write(' '.join(words) + '\\n')\n"
            f"    factors = [{factors!r}.get(word, 1.0) for word in words]\n"
            "    os.environ['PW_FAKE_FACTOR'] = str(factors[0] * factors[-1])",
        )
    )
    return log


def staged(stage: Stage, monkeypatch: pytest.MonkeyPatch, **behaviour: str) -> str:
    """A stage with one configuration, as the environment of this process; its name."""
    for name, value in stage.variables().items():
        monkeypatch.setenv(name, value)
    return stage.add("gcc-12.2.0", BASE, [CHASE], **behaviour)


#: By setting of the prefetchers, what its files contain.
WORDS = {"unchanged": "auto strong", "distL1=3+weakL2": "768 weak", "distL1=9": "2304 strong"}
RATIOS = {
    ("unchanged", "boost=off"): 1.5,
    ("distL1=3+weakL2", "boost=on"): 1.5,
    ("distL1=3+weakL2", "boost=off"): 2.25,
    ("distL1=9", "boost=on"): 0.5,
    ("distL1=9", "boost=off"): 0.75,
}


@pytest.mark.long
def test_kernels_by_distance_with_a_verdict_for_each(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tree(a64fx(stage.folder / "root"), {BOOST_FILE: "1"})
    # `files` are those of the last CPU, which all placements of all CPUs have.
    files = prefetch_control(root, CPUS)
    before = contents(files)
    of_tree(monkeypatch, root)
    watched = [files["index0 dist"], files["index2 strength"], root / BOOST_FILE]
    log = watching(stage, staged(stage, monkeypatch), watched, {"768": 1.5, "2304": 0.5, "0": 1.5})
    machine = {"prefetchers": DISTANCES, "clocks": BOOST}
    requested = options(rounds=3, threads=(len(CPUS),), results=stage.results, **machine)
    result = measured(prepare(requested, Console(quiet=True)))
    assert contents(files) == before and (root / BOOST_FILE).read_text() == "1\n" and traces(root) == []
    seen = {
        f"prefetchers={prefetchers},clocks=boost={boost}": f"{words} {word}"
        for prefetchers, words in WORDS.items()
        for boost, word in (("on", "1"), ("off", "0"))
    }
    assert log.read_text().splitlines() == [seen[str(one.run.options)] for one in result.records if one.run]
    # Interleaved: each round has every setting, the baseline once more.
    by_round = [[one.run.options for one in result.records if one.round == at] for at in (1, 2, 3)]
    every = sorted([*seen, next(iter(seen))])
    assert [sorted(map(str, each)) for each in by_round] == [every] * 3
    compared = result.manifest.compared_prefetchers or {}
    assert {name: (each.adjusted, each.read_back) for name, each in compared.items()} == {
        "distL1=3+weakL2": (("distL1=3", "weakL2"), True),
        "distL1=9": (("distL1=9",), True),
    }
    assert all("prefetch_control" in each.method for each in compared.values())
    assert result.manifest.prefetchers is None and any("distL1=9" in note for note in notes(result))
    shown = json.loads(stage.run("report", "--json", str(stage.result())).stdout)
    assert faults("verdicts", shown) == []
    (of_kernel,) = shown["kernels"]
    rows = {(row["prefetchers"], row["clocks"]): row for row in of_kernel["configurations"]}
    ratios = {name: row["time_ratio"] for name, row in rows.items() if not row["is_baseline"]}
    assert ratios == pytest.approx(RATIOS, abs=0.1)
    verdicts = {name: "slower" if ratio > 1 else "faster" for name, ratio in RATIOS.items()}
    assert {name: row["verdict"] for name, row in rows.items() if not row["is_baseline"]} == verdicts


def test_registers_are_set_for_runs_and_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = machine(tmp_path, values=(4,) * (max(CPUS) + 1))
    of_tree(monkeypatch, root)
    requested = options(prefetchers=(("unchanged",), ("off",), ("l2-hardware",)))
    actual = MachineSettings.find(requested, placements(Where(threads=(len(CPUS),))))
    (one,) = in_all_states([subject(kernel(), [configuration()], "none/hardware-regular")], requested)
    values_of = {"unchanged": 4, "off": 15, "l2-hardware": 5}
    for cell in one.cells:
        with pytest.raises(ZeroDivisionError), actual.set_for(cell):
            assert {registers(root)[cpu] for cpu in CPUS} == {values_of[cell.measured.value("prefetchers")]}
            raise ZeroDivisionError
        assert set(registers(root)) == {4} and actual.prefix(cell) == ()


@pytest.mark.long
@pytest.mark.parametrize("settings", [DISTANCES, (("distL2=20",),)])
def test_a_program_by_hwpfctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    root, log = a64fx(tmp_path), hwpfctl(tmp_path, monkeypatch)
    of_tree(monkeypatch, root)
    staged(Stage(tmp_path / "stage"), monkeypatch)
    monkeypatch.chdir(tmp_path)
    variables = dict(os.environ)
    binary = examine("true", variables)
    own = Program(name="true", command=("true",), binary=binary, environment=variables, folder=tmp_path)
    given = {"baseline": "none", "name": "true", "policies": ("none",), "prefetchers": settings}
    requested = options_of(ProgramOptions, {**given, "results": tmp_path / "results"})
    result = measured(program_prepare.prepare(requested, [own], Console(quiet=True)))
    calls = [line.split()[0] for line in log.read_text().splitlines()]
    if len(settings) == 1:
        # All runs have it, the trial run too, and it is reset once.
        *runs, last = calls
        assert last == "--reset" and runs == ["--distL2=20"] * len(runs) and len(runs) >= 2
        (adjusted,) = settings
        of_all = result.manifest.prefetchers
        assert (of_all.adjusted, of_all.off, of_all.read_back) == (adjusted, (), False)
        return
    # Each setting has a trial run and a round, the baseline one more; hwpfctl resets after each run.
    first = [call for call in calls if call != "--reset"]
    assert calls[1::2] == ["--reset"] * len(first) and calls[::2] == first
    names = {"distL1=3+weakL2": "--distL1=3", "distL1=9": "--distL1=9"}
    compare = (one.run.options for one in result.records if one.run.series == "compare")
    in_round = (str(each).partition("=")[2] for each in compare)
    assert first == [*names.values(), *(names[each] for each in in_round if each in names)]
    compared = result.manifest.compared_prefetchers or {}
    assert set(compared) == set(names) and not any(each.read_back for each in compared.values())


@pytest.mark.parametrize(
    ("texts", "code"),
    [
        (["clocks=boost=fast/on"], 2),
        (["prefetchers=unchanged"], 0),
        (["prefetchers=unchanged", "prefetchers=,"], 2),
        (["clocks="], 2),
    ],
)
def test_incomparable_settings_are_wrong_usage(small: Stage, texts: list[str], code: int) -> None:
    small.compare("--plan", *(word for text in texts for word in ("--vary", text)), code=code)


@pytest.mark.long
def test_events_are_counted_in_each_setting(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    root = a64fx(stage.folder / "root")
    prefetch_control(root, CPUS)
    of_tree(monkeypatch, root)
    staged(stage, monkeypatch, papi="on")
    requested = options(rounds=1, results=stage.results, prefetchers=DISTANCES)
    selection = Selection(groups=("tlb",), events="a64fx")
    result = measured(count(requested, selection, Console(quiet=True)))
    settings = {str(one.run.options) for one in result.records if one.run and one.status == "ok"}
    assert len(settings) == 3
    shown = stage.run("report", "--json", str(stage.result()))
    assert shown.returncode == 0 and faults("counts", json.loads(shown.stdout)) == []
    assert shown.stdout.count("distL1=9") >= 1
