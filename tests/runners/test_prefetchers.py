"""Hardware prefetchers: set by registers, the kernel's files or hwpfctl, read back, and restored."""

from __future__ import annotations

import errno
import os
import sys
import time
from pathlib import Path

import pytest

from pagewise.core.errors import Interrupted, RefusedError, SelectionError
from pagewise.machine.settings import prefetchers
from pagewise.machine.settings.journal import Journal, make_folder, shared_folder
from pagewise.machine.settings.kinds import Hwpfctl, Msr
from pagewise.machine.settings.prefetchers import find_control, run_without_prefetchers, switched_off
from pagewise.machine.settings.session import restore, traces
from pagewise.workloads.doctor import prefetcher_finding
from prefetcher_machines import (
    EPYC,
    HYBRID,
    PHI,
    XEON,
    ZEN2,
    a64fx,
    contents,
    cpuinfo,
    hwpfctl,
    machine,
    prefetch_control,
    registers,
)
from stage import Stage

CPUS = sorted(os.sched_getaffinity(0))


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


def test_other_cpus_and_disabled_prefetchers_stay_unchanged(tmp_path: Path):
    root = machine(tmp_path, values=(2, 0))
    with switched_off(find_control(["off"], {1}, root)):
        assert registers(root) == [2, 15]
    with switched_off(find_control(["l2-adjacent"], {0, 1}, root)):
        assert registers(root) == [2, 2]
    assert registers(root) == [2, 0]


@pytest.mark.parametrize(
    ("method", "number", "reason"),
    [
        ("write", errno.EPERM, os.strerror(errno.EPERM)),
        # A hypervisor that takes the value and forgets it.
        ("write", None, "0x0"),
        ("read", errno.EIO, os.strerror(errno.EIO)),
    ],
)
def test_a_register_that_cannot_be_set_is_reported_and_the_others_are_restored(
    tmp_path: Path, monkeypatch, method, number, reason
):
    """The kernel or a hypervisor refuses the register of the second CPU."""

    def refuse(register: Msr, *value: int) -> int | None:
        if register.file.parent.name != "1":
            return getattr(Msr, method)(register, *value)
        if number is not None:
            raise OSError(number, reason)
        return None

    root = machine(tmp_path)
    monkeypatch.setattr(prefetchers, "Msr", type("Refusing", (Msr,), {method: refuse}))
    with pytest.raises(RefusedError) as caught, switched_off(find_control(["off"], {0, 1}, root)):
        pytest.fail("the block must not run")
    assert "dev/cpu/1/msr" in caught.value.where and reason in caught.value.message
    assert registers(root) == [0, 0] and traces(root) == []


def test_a_machine_without_the_device_is_reported(tmp_path: Path):
    actual = {}
    for flags in ("fpu", "fpu hypervisor"):
        with pytest.raises(RefusedError) as caught:
            find_control(["off"], {0}, cpuinfo(tmp_path, XEON, flags))
        actual[flags] = caught.value
    assert "modprobe msr" in actual["fpu"].remedy
    assert actual["fpu"].where == actual["fpu hypervisor"].where
    assert actual["fpu"].message != actual["fpu hypervisor"].message
    assert prefetcher_finding(tmp_path).state == "note"
    good = prefetcher_finding(machine(tmp_path / "a", values=(0,) * (max(CPUS) + 1)))
    assert good.state == "good" and "MSR 0x1a4" in good.detail


@pytest.mark.parametrize("processor", [HYBRID, ZEN2, ("RiscyVendor", 6, 0x55, "x")])
def test_an_unknown_processor_is_reported_and_not_touched(tmp_path: Path, processor):
    with pytest.raises(RefusedError) as caught:
        find_control(["off"], {0}, machine(tmp_path, processor))
    assert processor[3] in str(caught.value) and "docs/reference/prefetchers.md" in str(caught.value)


def test_an_unknown_name_is_reported_with_the_known_ones(tmp_path: Path):
    root = machine(tmp_path)
    for asked in (["l1-stream", "dcu-ip"], ["distL1=6"]):
        with pytest.raises(SelectionError) as caught:
            find_control(asked, {0}, root)
        assert asked[0] in caught.value.message and "dcu-ip" not in caught.value.message
        assert "dcu-ip" in caught.value.remedy


def with_msr_safe(root: Path, value: int) -> Path:
    for file in sorted(root.glob("dev/cpu/*")):
        (file / "msr_safe").touch()
        Msr(file / "msr_safe", 0x1A4).write(value)
    return root


def test_msr_safe_is_taken_where_it_grants_the_register(tmp_path: Path, monkeypatch):
    root = with_msr_safe(machine(tmp_path), 2)
    with switched_off(find_control(["dcu-ip"], {0, 1}, root)) as done:
        assert registers(root, device="msr_safe") == [10, 10]
        assert registers(root) == [0, 0] and "msr-safe" in done.method
    assert registers(root, device="msr_safe") == [2, 2]

    class Refusing(Msr):
        def read(self) -> int:
            if self.file.name == "msr_safe":
                raise OSError(errno.EACCES, os.strerror(errno.EACCES))
            return super().read()

    monkeypatch.setattr(prefetchers, "Msr", Refusing)
    with switched_off(find_control(["off"], {0, 1}, root)):
        assert registers(root) == [15, 15]
    for file in root.glob("dev/cpu/*/msr"):
        file.unlink()
    with pytest.raises(RefusedError) as caught:
        find_control(["off"], {0, 1}, root)
    assert "msr_allowlist" in (caught.value.remedy or "")


def test_a_single_run_that_is_ended_restores_them(tmp_path: Path):
    root = machine(tmp_path, values=(0,) * (max(CPUS) + 1))
    seen = tmp_path / "seen"
    command = ["sh", "-c", f"touch {seen}; kill -TERM {os.getpid()}; exec sleep 60"]
    began = time.monotonic()
    with pytest.raises(Interrupted):
        run_without_prefetchers(["off"], command, os.environ, root)
    assert seen.exists() and time.monotonic() - began < 30
    assert set(registers(root)) == {0}


def test_a_command_that_is_interrupted_as_it_starts_is_ended(interrupted_starts: list[int]):
    with pytest.raises(Interrupted):
        run_without_prefetchers([], ["sleep", "60"], os.environ)
    assert not Path(f"/proc/{interrupted_starts[0]}").exists()


@pytest.mark.skipif(
    Path("/dev/cpu/0/msr").exists(), reason="this machine has an msr device: it would be used"
)
def test_where_they_cannot_be_set_nothing_is_measured(small: Stage):
    done = small.compare("--vary", "prefetchers=off", code=4)
    assert "prefetchers" in done.stderr and not small.results.exists()
    done = small.run("run", "--prefetchers", "off", "gcc-12.2.0/thp/*", "--", "echo", "ran")
    assert done.returncode == 4 and "ran" not in done.stdout


# ---- A64FX


@pytest.mark.parametrize(
    ("asked", "changed", "off", "adjusted"),
    [
        (["l2"], {"index2 enable": "0"}, ("l2",), ()),
        (["distL1=6"], {"index0 dist": "1536"}, (), ("distL1=6",)),
        # The processor rounds the distance in L2 up to a multiple of four lines.
        (["distL2=58"], {"index2 dist": "15360"}, (), ("distL2=60",)),
        (
            ["l1", "distL2=40", "weakL2"],
            {"index0 enable": "0", "index2 dist": "10240", "index2 strength": "weak"},
            ("l1",),
            ("distL2=40", "weakL2"),
        ),
    ],
)
def test_the_a64fx_through_its_kernels_files(tmp_path: Path, asked, changed, off, adjusted):
    root = a64fx(tmp_path)
    files = prefetch_control(root, [3])
    before = contents(files)
    with pytest.raises(ZeroDivisionError), switched_off(find_control(asked, {3}, root)) as done:
        assert contents(files) == {**before, **changed}
        assert (done.off, done.adjusted) == (off, adjusted) and done.read_back
        assert len(done.before) == len(changed)
        raise ZeroDivisionError
    assert contents(files) == before


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


def test_without_the_kernels_files_and_hwpfctl_nothing_can_be_set(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(RefusedError, match="hwpfctl"):
        find_control(["off"], {0}, a64fx(tmp_path))


@pytest.mark.parametrize(
    ("asked", "options"),
    [
        (["off"], ["--disableL1", "--disableL2"]),
        (["distL1=3", "distL2=18", "weakL1"], ["--distL1=3", "--distL2=20", "--weakL1"]),
    ],
)
def test_a_single_run_through_hwpfctl(tmp_path: Path, monkeypatch, asked, options):
    root, log = a64fx(tmp_path), hwpfctl(tmp_path, monkeypatch)
    code = run_without_prefetchers(asked, [sys.executable, "-c", "raise SystemExit(7)"], os.environ, root)
    calls = [line.split() for line in log.read_text().splitlines()]
    assert code == 7 and calls[0][: len(options)] == options and calls[1][0] == "--reset" and len(calls) == 2


def test_hwpfctl_resets_after_a_session_that_was_killed(tmp_path: Path, monkeypatch):
    root, log = a64fx(tmp_path), hwpfctl(tmp_path, monkeypatch)
    control = find_control(["off"], {CPUS[0]}, root)
    setting = Hwpfctl(Path(control.program[0]), control.cpus)
    make_folder(shared_folder(root))
    Journal(shared_folder(root)).change(setting, "off", before="default")
    assert not log.exists()
    restore(root)
    assert log.read_text() == f"--reset {control.cpus[0]}\n" and traces(root) == []
