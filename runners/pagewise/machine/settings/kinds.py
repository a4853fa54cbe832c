"""The settings of the machine that pagewise can change: each has a value, and its fields identify it."""

from __future__ import annotations

import errno
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from pagewise.core.errors import RefusedError
from pagewise.core.units import bytes_text
from pagewise.machine.host import bracketed_word, read

_ALL_BITS = (1 << 64) - 1
_WITHOUT = "or measure without this setting"
#: The device of the kernel module msr-safe, which grants registers to users without root.
MSR_SAFE = "msr_safe"


@dataclass(frozen=True)
class Pool:
    """The hugetlb pool of one page size: a NUMA node's, or the machine's if the kernel has none by node."""

    folder: Path
    kind: Literal["hugetlb pool"] = "hugetlb pool"

    @property
    def place(self) -> str:
        """The file with the number of its pages."""
        return str(self.folder / "nr_hugepages")

    @property
    def page_bytes(self) -> int:
        """The size of its pages: the kernel names the folder hugepages-2048kB."""
        return int(self.folder.name.removeprefix("hugepages-").removesuffix("kB")) * 1024

    def get(self) -> str:
        """The number of its pages without surplus.

        Pages in use when a pool is made smaller become surplus: the kernel frees them when they are returned.
        """
        surplus = read(self.folder / "surplus_hugepages")
        return str(self.total() - int(surplus or 0))

    def put(self, value: str) -> None:
        """Requests this many pages; the kernel may grant fewer. Raises RefusedError."""
        _write(self.folder / "nr_hugepages", value, "the hugetlb pool cannot be resized")

    def total(self) -> int:
        """The number of its pages, free or not."""
        return self._number("nr_hugepages")

    def free(self) -> int:
        """The number of its free pages."""
        return self._number("free_hugepages")

    def _number(self, name: str) -> int:
        text = read(self.folder / name)
        if text is None or not text.isdigit():
            raise RefusedError(
                f"there is no hugetlb pool of {bytes_text(self.page_bytes)} pages",
                where=self.folder / name,
                remedy="mount /sys if it is missing; else use a kernel with CONFIG_HUGETLBFS, or omit "
                "--prepare-pages",
            )
        return int(text)


@dataclass(frozen=True)
class Word:
    """A file of sysfs or procfs that is set by one word or number, which is then read back.

    Some files list all words, with the current one in brackets.
    """

    file: Path
    kind: Literal["word"] = "word"

    @property
    def place(self) -> str:
        """The file."""
        return str(self.file)

    def get(self) -> str:
        """The current word. Raises RefusedError."""
        try:
            text = self.file.read_text(encoding="ascii").strip()
        except (OSError, ValueError) as fault:
            raise _refusal(self.place, "cannot be read", fault, "run as root") from fault
        return bracketed_word(text) or text

    full_text = get

    def put(self, value: str) -> None:
        """Writes the word and reads it back."""
        _write(self.file, value, "the setting cannot be changed")
        if (observed := self.get()) != value:
            raise _forgotten(self.place, value, observed)


@dataclass(frozen=True)
class Msr:
    """Bits of a model-specific register of a CPU, by the kernel's msr device; others stay."""

    file: Path
    address: int
    bits: int = _ALL_BITS
    kind: Literal["MSR"] = "MSR"

    @property
    def place(self) -> str:
        """The device and the register."""
        return f"{self.file}, MSR {self.address:#x}"

    def get(self) -> str:
        """The current bits, the other ones as zero."""
        return hex(self.value() & self.bits)

    def put(self, value: str) -> None:
        """Sets the bits and reads them back."""
        number = self.value() & ~self.bits | int(value, 16)
        try:
            self.write(number)
        except OSError as fault:
            raise _refusal(self.place, "cannot be written", fault, self._permit()) from fault
        observed = self.value()
        if (observed ^ number) & self.bits:
            raise _forgotten(self.place, f"{number:#x}", f"{observed:#x}")

    def value(self) -> int:
        """The whole register. Raises RefusedError."""
        try:
            return self.read()
        except OSError as fault:
            raise _refusal(self.place, "cannot be read", fault, self._permit()) from fault

    def full_text(self) -> str:
        """The whole register as text. Raises RefusedError."""
        return hex(self.value())

    def _permit(self) -> str:
        """What permits the access: the allowlist of msr-safe, or root's rights to the kernel's device."""
        if self.file.name == MSR_SAFE:
            return (
                f"let the administrator allow MSR {self.address:#x} with the write mask {self.bits:#x} in "
                "/dev/cpu/msr_allowlist"
            )
        return (
            "run as root (CAP_SYS_RAWIO); the kernel also refuses root under lockdown (secure boot: "
            "/sys/kernel/security/lockdown) and with msr.allow_writes=off "
            "(echo on > /sys/module/msr/parameters/allow_writes)"
        )

    def read(self) -> int:
        """The register's 64 bits."""
        descriptor = os.open(self.file, os.O_RDONLY)
        try:
            content = os.pread(descriptor, 8, self.address)
        finally:
            os.close(descriptor)
        if len(content) != 8:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return int.from_bytes(content, "little")

    def write(self, value: int) -> None:
        """Sets the register's 64 bits."""
        descriptor = os.open(self.file, os.O_WRONLY)
        try:
            os.pwrite(descriptor, value.to_bytes(8, "little"), self.address)
        finally:
            os.close(descriptor)


@dataclass(frozen=True)
class Hwpfctl:
    """The prefetchers of the A64FX through Fujitsu's hwpfctl, whose output has no fixed form.

    It sets them for the commands that it starts; to restore them is its --reset on these CPUs.
    """

    program: Path
    cpus: tuple[int, ...]
    kind: Literal["hwpfctl"] = "hwpfctl"

    @property
    def place(self) -> str:
        """The program."""
        return str(self.program)

    def get(self) -> str:
        """Nothing: the value cannot be read."""
        return "unknown"

    def put(self, value: str) -> None:
        """Resets to `default`; any other value is set by the program for each command that it starts."""
        if value != "default":
            return
        command = [str(self.program), "--reset"]
        before = os.sched_getaffinity(0)
        try:
            os.sched_setaffinity(0, self.cpus)
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as fault:
            message = f"the prefetchers cannot be reset: {fault.strerror}"
            raise RefusedError(message, where=self.place) from fault
        finally:
            os.sched_setaffinity(0, before)
        if done.returncode:
            output = (done.stderr or done.stdout).strip()
            raise RefusedError(f"{' '.join(command)} failed: {output}", where=self.place)


#: Its fields identify it; `get` returns its value, `put` sets it, both raise RefusedError; `place` names it.
Setting: TypeAlias = Pool | Word | Msr | Hwpfctl


def _write(file: Path, value: str, message: str) -> None:
    try:
        file.write_text(f"{value}\n", encoding="ascii")
    except OSError as fault:
        raise RefusedError(
            f"{message}: {fault.strerror}",
            where=file,
            remedy=f"run as root, or ask root to run: echo {value} > {file}",
        ) from fault


def _forgotten(place: str, written: str, observed: str) -> RefusedError:
    return RefusedError(
        f"{written} was written and {observed} is read back: the setting has no effect",
        where=place,
        remedy=f"a hypervisor or the firmware protects it: measure on the bare machine, {_WITHOUT}",
    )


def _refusal(place: str, message: str, fault: Exception, permit: str) -> RefusedError:
    number = fault.errno if isinstance(fault, OSError) else None
    if number in (errno.EACCES, errno.EPERM):
        remedy = permit
    elif number == errno.EIO:
        remedy = "the processor or its hypervisor refuses it: measure on the bare machine"
    else:
        remedy = "see the kernel's log (dmesg)"
    reason = (fault.strerror if isinstance(fault, OSError) else None) or str(fault)
    return RefusedError(
        f"the setting {message}: {reason}",
        where=place,
        remedy=f"{remedy}; {_WITHOUT}",
    )
