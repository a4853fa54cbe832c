"""Hardware prefetchers: off while asked for, read back, and as before whatever happens."""

from __future__ import annotations

import errno
import os
import re
import signal
import time
from pathlib import Path

import pytest
from rich.console import Console

from pagewise.core.errors import Interrupted, RefusedError, SelectionError
from pagewise.core.result import read_result
from pagewise.core.signals import interruptible
from pagewise.machine.settings import prefetchers
from pagewise.machine.settings.kinds import Msr
from pagewise.machine.settings.prefetchers import find_control, switched_off
from pagewise.report.views.session import notes
from pagewise.session.launch import run_without_prefetchers
from pagewise.workloads.doctor import prefetcher_finding
from pagewise.workloads.kernels.workload import prepare
from prefetcher_machines import EPYC, HYBRID, PHI, XEON, ZEN2, cpuinfo, machine, registers
from stage import CHASE, Stage
from test_choice import options
from test_commands import BASE


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
        pytest.raises(RefusedError, match=os.strerror(errno.EPERM)) as caught,
        switched_off(control),
    ):
        pytest.fail("the block must not run")
    assert "dev/cpu/1/msr" in caught.value.where and "lockdown" in caught.value.remedy
    assert registers(root) == [1, 1]


def test_a_value_that_does_not_stick_is_reported_and_the_others_are_put_back(tmp_path: Path, monkeypatch):
    root = machine(tmp_path)
    monkeypatch.setattr(prefetchers, "Msr", StubbornMsr)
    control = find_control(["off"], {0, 1}, root)
    with (
        pytest.raises(RefusedError) as caught,
        switched_off(control),
    ):
        pytest.fail("the block must not run")
    assert {"0xf", "0x0"} <= set(re.findall(r"\w+", caught.value.what))
    assert "dev/cpu/1/msr" in caught.value.where
    assert registers(root) == [0, 0]


def test_a_register_that_is_not_there_is_reported(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(prefetchers, "Msr", SilentMsr)
    with pytest.raises(RefusedError, match=os.strerror(errno.EIO)) as caught:
        find_control(["off"], {0}, machine(tmp_path))
    assert "dev/cpu/0/msr" in caught.value.where


def test_a_machine_without_the_device_is_reported(tmp_path: Path):
    with pytest.raises(RefusedError) as caught:
        find_control(["off"], {0}, cpuinfo(tmp_path, XEON))
    assert "modprobe msr" in caught.value.remedy
    with pytest.raises(RefusedError) as in_a_guest:
        find_control(["off"], {0}, cpuinfo(tmp_path, XEON, "fpu hypervisor"))
    assert in_a_guest.value.where == caught.value.where and in_a_guest.value.what != caught.value.what


@pytest.mark.parametrize("processor", [HYBRID, ZEN2, ("RiscyVendor", 6, 0x55, "x")])
def test_an_unknown_processor_is_reported_and_not_touched(tmp_path: Path, processor):
    root = machine(tmp_path, processor)
    with pytest.raises(RefusedError) as caught:
        find_control(["off"], {0}, root)
    assert processor[3] in str(caught.value) and "docs/reference/prefetchers.md" in str(caught.value)


def test_an_unknown_name_is_reported_with_those_there(tmp_path: Path):
    with pytest.raises(SelectionError, match="l1-stream") as caught:
        find_control(["l1-stream", "dcu-ip"], {0}, machine(tmp_path))
    assert "dcu-ip" not in caught.value.what
    assert "l2-hardware, l2-adjacent, dcu-streamer, dcu-ip" in caught.value.remedy


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


@pytest.mark.long
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
    chosen = options(rounds=1, threads=1, results=stage.results, prefetchers=(("off",),))
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
    done = small.compare("--vary", "prefetchers=off")
    assert done.returncode == 4, done.stdout + done.stderr
    assert "prefetchers" in done.stderr and "Traceback" not in done.stderr
    assert not small.results.exists()
    done = small.run("run", "--prefetchers", "off", "gcc-12.2.0/thp/*", "--", "echo", "ran")
    assert done.returncode == 4 and "ran" not in done.stdout
