"""Hardware prefetchers of the A64FX, through the kernel's files and through Fujitsu's program."""

import os
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from pagewise.cli.chosen import options_of
from pagewise.core.errors import RefusedError, SelectionError
from pagewise.core.result import read_result
from pagewise.machine.settings import prefetchers
from pagewise.machine.settings.journal import Journal, JournalFolder, shared_folder
from pagewise.machine.settings.kinds import Hwpfctl, Word
from pagewise.machine.settings.prefetchers import find_control, switched_off
from pagewise.machine.settings.session import restore, traces
from pagewise.session.launch import run_without_prefetchers
from pagewise.stack.binary import examine
from pagewise.workloads.program import prepare as program_prepare
from pagewise.workloads.program.program import Program
from pagewise.workloads.program.workload import ProgramOptions
from prefetcher_machines import a64fx, contents, hwpfctl, machine, prefetch_control
from stage import Stage


def test_the_a64fx_through_its_kernels_files(tmp_path: Path):
    root = a64fx(tmp_path)
    files = {}
    for cache in ("index0", "index2"):
        folder = root / f"sys/devices/system/cpu/cpu3/cache/{cache}/prefetch_control"
        folder.mkdir(parents=True)
        files[cache] = folder / "stream_detect_prefetcher_enable"
        files[cache].write_text("1\n")
    with switched_off(find_control(["l2"], {3}, root)) as done:
        assert [file.read_text() for file in files.values()] == ["1\n", "0\n"]
    assert [file.read_text() for file in files.values()] == ["1\n", "1\n"] and done.read_back


@pytest.mark.parametrize(
    ("asked", "changed", "adjusted"),
    [
        (["distL1=6"], {"index0 dist": "1536"}, ("distL1=6",)),
        # The processor rounds the distance in L2 up to a multiple of four lines.
        (["distL2=58"], {"index2 dist": "15360"}, ("distL2=60",)),
        (
            ["l1", "distL2=40", "weakL2"],
            {"index0 enable": "0", "index2 dist": "10240", "index2 strength": "weak"},
            ("distL2=40", "weakL2"),
        ),
    ],
)
def test_distance_and_strength_of_the_a64fx(tmp_path: Path, asked, changed, adjusted):
    root = a64fx(tmp_path)
    files = prefetch_control(root, [3])
    before = contents(files)
    control = find_control(asked, {3}, root)
    with pytest.raises(ZeroDivisionError), switched_off(control) as done:
        assert contents(files) == {**before, **changed}
        assert done.adjusted == adjusted and done.read_back and len(done.before) == len(changed)
        raise ZeroDivisionError
    assert contents(files) == before


def test_a_killed_session_leaves_words_that_the_next_one_restores(tmp_path: Path):
    root = a64fx(tmp_path)
    file = prefetch_control(root, [0])["index2 dist"]
    Journal(JournalFolder.made(shared_folder(root))).change(Word(file), "2048")
    assert file.read_text() == "2048\n"
    restore(root)
    assert file.read_text() == "auto\n" and traces(root) == []


def test_a_driver_that_takes_another_distance_is_reported(tmp_path: Path, monkeypatch):
    class OtherUnit(Word):
        def get(self) -> str:
            return super().get().replace("1536", "2048")

    root = a64fx(tmp_path)
    file = prefetch_control(root, [0])["index0 dist"]
    monkeypatch.setattr(prefetchers, "Word", OtherUnit)
    with (
        pytest.raises(RefusedError, match=r"1536.*2048"),
        switched_off(find_control(["distL1=6"], {0}, root)),
    ):
        pytest.fail("the block must not run")
    assert file.read_text() == "auto\n"


@pytest.mark.parametrize(
    "asked",
    [
        ["distL1"], ["distL1=0"], ["distL1=16"], ["distL2=61"], ["distL2=x"], ["weakL1=1"], ["weakL1="],
        ["distL1=3", "distL1=4"], ["l1", "distL1=3"], ["off", "weakL2"], ["distL3=4"], ["distL1=3", "l3"],
    ],
)  # fmt: skip
def test_adjustments_that_do_not_exist_or_contradict(tmp_path: Path, asked):
    root = a64fx(tmp_path)
    prefetch_control(root, [0])
    with pytest.raises(SelectionError):
        find_control(asked, {0}, root)


def test_adjustments_are_of_the_a64fx(tmp_path: Path):
    with pytest.raises(SelectionError):
        find_control(["distL1=6"], {0}, machine(tmp_path))


def test_the_a64fx_through_hwpfctl(tmp_path: Path, monkeypatch):
    root = a64fx(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(RefusedError, match="hwpfctl"):
        find_control(["off"], {0}, root)
    monkeypatch.undo()
    log = hwpfctl(tmp_path, monkeypatch)
    cpu = min(os.sched_getaffinity(0))
    control = find_control(["off"], {cpu}, root)
    with switched_off(control) as done:
        assert control.program[1:] == ("--disableL1", "--disableL2") and not done.read_back
    assert log.read_text() == f"--reset {cpu}\n"


def test_hwpfctl_takes_distances_and_strength(tmp_path: Path, monkeypatch):
    log = hwpfctl(tmp_path, monkeypatch)
    root = a64fx(tmp_path)
    command = [sys.executable, "-c", "raise SystemExit(0)"]
    assert run_without_prefetchers(["distL1=3", "distL2=18", "weakL1"], command, os.environ, root) == 0
    calls = [line.split() for line in log.read_text().splitlines()]
    assert calls[0][:3] == ["--distL1=3", "--distL2=20", "--weakL1"] and calls[1][0] == "--reset"


def test_a_program_of_the_user_runs_with_them_set(tmp_path: Path, monkeypatch):
    log = hwpfctl(tmp_path, monkeypatch)
    root = a64fx(tmp_path)
    for name, value in Stage(tmp_path / "stage").variables().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(prefetchers, "find_control", lambda asked, used: find_control(asked, used, root))
    chosen = options_of(
        ProgramOptions,
        {
            "baseline": "none",
            "name": "true",
            "results": tmp_path / "results",
            "policies": ("none",),
            "prefetchers": (("distL2=20",),),
        },
    )
    variables = dict(os.environ)
    own = Program(
        name="true",
        command=("true",),
        binary=examine("true", variables),
        environment=variables,
        folder=tmp_path,
    )
    comparison = program_prepare.prepare(chosen, own, Console(quiet=True), time.monotonic())
    comparison.begin()
    comparison.measure()
    comparison.close()
    assert comparison.ending is None
    calls = [line.split()[0] for line in log.read_text().splitlines()]
    # A trial run and a round, each with the prefetchers set, and all restored once.
    assert calls[-1] == "--reset" and calls[:-1] == ["--distL2=20"] * (len(calls) - 1) and len(calls) >= 3
    (folder,) = (tmp_path / "results").iterdir()
    reported = read_result(folder).manifest.prefetchers
    assert reported.adjusted == ("distL2=20",) and reported.off == () and not reported.read_back


def test_hwpfctl_resets_after_a_session_that_was_killed(tmp_path: Path, monkeypatch):
    root = a64fx(tmp_path)
    log = hwpfctl(tmp_path, monkeypatch)
    control = find_control(["off"], {min(os.sched_getaffinity(0))}, root)
    setting = Hwpfctl(Path(control.program[0]), control.cpus)
    folder = JournalFolder.made(shared_folder(root))
    journal = Journal(folder)
    journal.change(setting, "off", before="default")
    assert not log.exists()
    restore(root)
    assert log.read_text() == f"--reset {control.cpus[0]}\n" and traces(root) == []


def test_a_single_run_without_prefetchers(tmp_path: Path, monkeypatch):
    root = a64fx(tmp_path)
    log = hwpfctl(tmp_path, monkeypatch)
    code = run_without_prefetchers(["l1"], [sys.executable, "-c", "raise SystemExit(7)"], os.environ, root)
    assert code == 7
    assert [line.split()[0] for line in log.read_text().splitlines()] == ["--disableL1", "--reset"]
