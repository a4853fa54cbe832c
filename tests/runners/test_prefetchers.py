"""Hardware prefetchers: off while asked for, read back, and as before whatever happens."""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from rich.console import Console

from pagewise.core.errors import Interrupted, RefusedError, SelectionError
from pagewise.core.result import read_result
from pagewise.core.signals import interruptible
from pagewise.machine.settings import prefetchers
from pagewise.machine.settings.journal import Journal, JournalFolder, shared_folder
from pagewise.machine.settings.kinds import Hwpfctl, Msr, Word
from pagewise.machine.settings.prefetchers import find_control, switched_off
from pagewise.machine.settings.session import restore, traces
from pagewise.report.views.session import notes
from pagewise.session.launch import run_without_prefetchers
from pagewise.stack.binary import examine
from pagewise.workloads.doctor import prefetcher_finding
from pagewise.workloads.kernels.workload import prepare
from pagewise.workloads.program import prepare as program_prepare
from pagewise.workloads.program.program import Program
from pagewise.workloads.program.workload import ProgramOptions
from stage import CHASE, Stage
from test_choice import options
from test_commands import BASE

XEON = ("GenuineIntel", 6, 0x55, "Intel(R) Xeon(R) Gold 6230")
EPYC = ("AuthenticAMD", 0x19, 0x11, "AMD EPYC 9354")
PHI = ("GenuineIntel", 6, 0x57, "Intel(R) Xeon Phi(TM) CPU 7210")
HYBRID = ("GenuineIntel", 6, 0x97, "12th Gen Intel(R) Core(TM) i9-12900K")
ZEN2 = ("AuthenticAMD", 0x17, 0x31, "AMD EPYC 7742")


def cpuinfo(root: Path, processor: tuple[str, int, int, str], flags: str = "fpu") -> Path:
    vendor, family, model, name = processor
    text = f"vendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\nmodel name\t: {name}\n"
    (root / "proc").mkdir(parents=True, exist_ok=True)
    (root / "proc/cpuinfo").write_text(
        "\n\n".join(f"processor\t: {n}\n{text}flags\t: {flags}" for n in (0, 1))
    )
    return root


def machine(
    root: Path, processor: tuple[str, int, int, str] = XEON, values: tuple[int, ...] = (0, 0)
) -> Path:
    """A tree with the processor's cpuinfo, and msr devices: sparse files with the register at its address."""
    cpuinfo(root, processor)
    address = 0x1A4 if processor[0] == "GenuineIntel" else 0xC0000108
    for cpu, value in enumerate(values):
        file = root / f"dev/cpu/{cpu}/msr"
        file.parent.mkdir(parents=True)
        file.touch()
        Msr(file, address).write(value)
    return root


def registers(root: Path, address: int = 0x1A4) -> list[int]:
    return [Msr(file, address).read() for file in sorted(root.glob("dev/cpu/*/msr"))]


@pytest.mark.parametrize(
    ("processor", "asked", "names", "mask"),
    [
        (XEON, ["off"], ("l2-hardware", "l2-adjacent", "dcu-streamer", "dcu-ip"), 0b1111),
        (XEON, ["dcu-ip", "l2-hardware"], ("l2-hardware", "dcu-ip"), 0b1001),
        (PHI, ["off"], ("dcu-streamer", "l2-hardware"), 0b11),
        (PHI, ["l2-hardware"], ("l2-hardware",), 0b10),
        (EPYC, ["off"], ("l1-stream", "l1-stride", "l1-region", "l2-stream", "up-down"), 0b101111),
    ],
)
def test_bits_are_set_on_every_cpu_and_cleared_again(tmp_path: Path, processor, asked, names, mask):
    root = machine(tmp_path, processor, (0x40, 0x42))
    address = 0x1A4 if processor[0] == "GenuineIntel" else 0xC0000108
    control = find_control(asked, {0, 1}, root)
    assert control.names == names and registers(root, address) == [0x40, 0x42]
    with switched_off(control) as done:
        assert registers(root, address) == [0x40 | mask, 0x42 | mask]
    assert registers(root, address) == [0x40, 0x42]
    assert done.off == names and done.method == f"MSR {address:#x}" and done.read_back
    assert [(one.cpu, one.value) for one in done.before] == [(0, "0x40"), (1, "0x42")]


def test_only_the_cpus_in_use_are_touched(tmp_path: Path):
    root = machine(tmp_path)
    with switched_off(find_control(["off"], {1}, root)):
        assert registers(root) == [0, 15]


def test_what_was_off_before_stays_off(tmp_path: Path):
    root = machine(tmp_path, values=(2, 0))
    with switched_off(find_control(["l2-adjacent"], {0, 1}, root)):
        assert registers(root) == [2, 2]
    assert registers(root) == [2, 0]


@pytest.mark.parametrize("fault", [ValueError("x"), Interrupted(signal.SIGINT), KeyboardInterrupt()])
def test_a_failure_puts_them_back(tmp_path: Path, fault):
    root = machine(tmp_path, values=(1, 4))
    with pytest.raises(type(fault)), switched_off(find_control(["off"], {0, 1}, root)):
        assert registers(root) == [15, 15]
        raise fault
    assert registers(root) == [1, 4]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_puts_them_back_and_a_second_one_does_not_hinder(tmp_path: Path, number):
    root = machine(tmp_path)
    control = find_control(["off"], {0, 1}, root)
    with pytest.raises(Interrupted), interruptible(), switched_off(control):
        try:
            os.kill(os.getpid(), number)
        finally:
            os.kill(os.getpid(), number)
    assert registers(root) == [0, 0]


class RefusingMsr(Msr):
    """A kernel that refuses to write the second CPU's register."""

    def write(self, value: int) -> None:
        if self.file.parent.name == "1":
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))
        super().write(value)


class StubbornMsr(Msr):
    """A hypervisor that takes the second CPU's value and forgets it."""

    def write(self, value: int) -> None:
        if self.file.parent.name != "1":
            super().write(value)


class SilentMsr(Msr):
    """A hypervisor that does not have the register."""

    def read(self) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_refused_write_is_reported_and_the_others_are_put_back(tmp_path: Path, monkeypatch):
    root = machine(tmp_path, values=(1, 1))
    monkeypatch.setattr(prefetchers, "Msr", RefusingMsr)
    control = find_control(["off"], {0, 1}, root)
    with (
        pytest.raises(RefusedError, match="cannot be written: Operation not permitted") as caught,
        switched_off(control),
    ):
        pytest.fail("the block must not run")
    assert "dev/cpu/1/msr" in str(caught.value) and "lockdown" in str(caught.value)
    assert registers(root) == [1, 1]


def test_a_value_that_does_not_stick_is_reported_and_the_others_are_put_back(tmp_path: Path, monkeypatch):
    root = machine(tmp_path)
    monkeypatch.setattr(prefetchers, "Msr", StubbornMsr)
    control = find_control(["off"], {0, 1}, root)
    with (
        pytest.raises(RefusedError, match=r"0xf.*0x0") as caught,
        switched_off(control),
    ):
        pytest.fail("the block must not run")
    assert "hypervisor" in str(caught.value)
    assert registers(root) == [0, 0]


def test_a_register_that_is_not_there_is_reported(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(prefetchers, "Msr", SilentMsr)
    with pytest.raises(RefusedError, match="cannot be read: Input/output error") as caught:
        find_control(["off"], {0}, machine(tmp_path))
    assert "bare machine" in str(caught.value)


def test_a_machine_without_the_device_is_reported(tmp_path: Path):
    with pytest.raises(RefusedError) as caught:
        find_control(["off"], {0}, cpuinfo(tmp_path, XEON))
    assert "modprobe msr" in str(caught.value) and "virtual machine" not in str(caught.value)
    with pytest.raises(RefusedError, match="This is a virtual machine"):
        find_control(["off"], {0}, cpuinfo(tmp_path, XEON, "fpu hypervisor"))


@pytest.mark.parametrize("processor", [HYBRID, ZEN2, ("RiscyVendor", 6, 0x55, "x")])
def test_an_unknown_processor_is_reported_and_not_touched(tmp_path: Path, processor):
    root = machine(tmp_path, processor)
    with pytest.raises(RefusedError) as caught:
        find_control(["off"], {0}, root)
    assert processor[3] in str(caught.value) and "docs/reference/prefetchers.md" in str(caught.value)


def test_an_unknown_name_is_reported_with_those_there(tmp_path: Path):
    with pytest.raises(SelectionError, match="no prefetcher l1-stream") as caught:
        find_control(["l1-stream", "dcu-ip"], {0}, machine(tmp_path))
    assert "some of: l2-hardware, l2-adjacent, dcu-streamer, dcu-ip" in str(caught.value)


def a64fx(root: Path) -> Path:
    (root / "proc").mkdir()
    (root / "proc/cpuinfo").write_text("processor\t: 0\nCPU implementer\t: 0x46\nCPU part\t: 0x001\n\n")
    return root


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


def prefetch_control(root: Path, cpus: Iterable[int]) -> dict[str, Path]:
    """The files of Fujitsu's driver with a processor's defaults; those of the last CPU, by cache and part."""
    files = {}
    for cpu in cpus:
        for cache in ("index0", "index2"):
            folder = root / f"sys/devices/system/cpu/cpu{cpu}/cache/{cache}/prefetch_control"
            folder.mkdir(parents=True)
            for part, value in {"enable": "1", "dist": "auto", "strength": "strong"}.items():
                files[f"{cache} {part}"] = folder / f"stream_detect_prefetcher_{part}"
                files[f"{cache} {part}"].write_text(f"{value}\n")
    return files


def contents(files: dict[str, Path]) -> dict[str, str]:
    return {name: file.read_text().strip() for name, file in files.items()}


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


def with_msr_safe(root: Path, value: int) -> Path:
    for file in sorted(root.glob("dev/cpu/*")):
        (file / "msr_safe").touch()
        Msr(file / "msr_safe", 0x1A4).write(value)
    return root


def test_msr_safe_is_taken_where_it_grants_the_register(tmp_path: Path):
    root = with_msr_safe(machine(tmp_path), 2)
    with switched_off(find_control(["dcu-ip"], {0, 1}, root)) as done:
        assert [Msr(file, 0x1A4).read() for file in sorted(root.glob("dev/cpu/*/msr_safe"))] == [10, 10]
        assert registers(root) == [0, 0] and "msr-safe" in done.method
    assert [Msr(file, 0x1A4).read() for file in root.glob("dev/cpu/*/msr_safe")] == [2, 2]


@pytest.mark.parametrize("has_msr", [True, False])
def test_msr_safe_that_does_not_grant_the_register(tmp_path: Path, monkeypatch, has_msr):
    class Refusing(Msr):
        def read(self) -> int:
            if self.file.name == "msr_safe":
                raise OSError(errno.EACCES, os.strerror(errno.EACCES))
            return super().read()

    root = with_msr_safe(machine(tmp_path), 0)
    monkeypatch.setattr(prefetchers, "Msr", Refusing)
    if has_msr:
        with switched_off(find_control(["off"], {0, 1}, root)):
            assert registers(root) == [15, 15]
        return
    for file in root.glob("dev/cpu/*/msr"):
        file.unlink()
    with pytest.raises(RefusedError) as caught:
        find_control(["off"], {0, 1}, root)
    assert "msr_allowlist" in (caught.value.remedy or "")


def hwpfctl(folder: Path, monkeypatch) -> Path:
    """A stand-in for Fujitsu's program: notes its arguments and CPUs, and starts the command."""
    log, program = folder / "log", folder / "bin/hwpfctl"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\necho "$* $(grep Cpus_allowed_list /proc/self/status | cut -f 2)" >> {log}\n'
        'while [ "${1#--}" != "$1" ]; do shift; done\n[ $# = 0 ] || exec "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return log


def test_the_a64fx_through_hwpfctl(tmp_path: Path, monkeypatch):
    root = a64fx(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(RefusedError, match="nor a program hwpfctl"):
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
    monkeypatch.setattr(program_prepare, "find_control", lambda asked, used: find_control(asked, used, root))
    chosen = ProgramOptions(
        environment=None, modules=None, rounds=1, threads=None, baseline="none", seed=1, name="true",
        results=tmp_path / "results", limit=60.0, policies=("none",), prefetchers=("distL2=20",),
    )  # fmt: skip
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


def test_a_single_run_that_is_ended_puts_them_back(tmp_path: Path):
    cpus = sorted(os.sched_getaffinity(0))
    root = machine(tmp_path, values=(0,) * (max(cpus) + 1))
    seen = tmp_path / "seen"
    command = ["sh", "-c", f"touch {seen}; kill -TERM {os.getpid()}; exec sleep 60"]
    began = time.monotonic()
    with pytest.raises(Interrupted):
        run_without_prefetchers(["off"], command, os.environ, root)
    assert seen.exists() and time.monotonic() - began < 30
    assert set(registers(root)) == {0}


def test_doctor_says_whether_it_can_be_done(tmp_path: Path):
    cpus = sorted(os.sched_getaffinity(0))
    good = prefetcher_finding(machine(tmp_path / "a", values=(0,) * (max(cpus) + 1)))
    assert good.state == "good" and "l2-hardware, l2-adjacent" in good.detail and "MSR 0x1a4" in good.detail
    bad = prefetcher_finding(cpuinfo(tmp_path / "b", XEON))
    assert bad.state == "note" and "modprobe msr" in bad.remedy


def test_a_comparison_has_them_off_and_reports_it(stage: Stage, monkeypatch):
    cpus = sorted(os.sched_getaffinity(0))
    root = machine(stage.folder / "root", values=(4,) * (max(cpus) + 1))
    watched = stage.folder / "watched"
    module = stage.add("gcc-12.2.0", BASE, [CHASE])
    program = stage.folder / "opt" / module.replace("/", "-") / "bin/pw-chase"
    program.write_text(
        program.read_text().replace(
            "def main() -> int:",
            "def main() -> int:\n"
            "    from glob import glob\n"
            f"    found = [open(one, 'rb').read()[0x1A4] for one in glob({str(root / 'dev/cpu/*/msr')!r})]\n"
            f"    with open({str(watched)!r}, 'a') as log:\n"
            "        log.write(f'{sorted(set(found))}\\n')",
        )
    )
    for name, value in stage.variables().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(prefetchers, "find_control", lambda asked, used: find_control(asked, used, root))
    chosen = options(rounds=1, threads=1, results=stage.results, prefetchers=("off",))
    comparison = prepare(chosen, Console(quiet=True), time.monotonic())
    comparison.begin()
    comparison.measure()
    comparison.close()
    assert comparison.ending is None
    used = set(comparison.workload.placements[0].cpus)
    assert set(watched.read_text().splitlines()) == {"[15]" if used == set(cpus) else "[4, 15]"}
    assert set(registers(root)) == {4}
    result = read_result(stage.result())
    reported = result.manifest.prefetchers
    assert reported.off[0] == "l2-hardware" and {one.cpu for one in reported.before} == used
    assert any("l2-hardware" in note for note in notes(result))


@pytest.mark.skipif(
    Path("/dev/cpu/0/msr").exists(), reason="this machine has an msr device: it would be used"
)
def test_where_it_cannot_be_done_nothing_is_measured(small: Stage):
    done = small.compare("--hardware-prefetchers", "off")
    assert done.returncode == 4, done.stdout + done.stderr
    assert "prefetchers" in done.stderr and "remedy:" in done.stderr and "Traceback" not in done.stderr
    assert not small.results.exists()
    done = small.run("run", "--hardware-prefetchers", "off", "gcc-12.2.0/thp/*", "--", "echo", "ran")
    assert done.returncode == 4 and "ran" not in done.stdout
