"""The settings of the machine that pagewise can change: each has a value, and can be described as data."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Protocol

from pagewise.core.errors import FormatError, RefusedError
from pagewise.core.units import bytes_text
from pagewise.machine.host import chosen, read

_ALL_BITS = (1 << 64) - 1
WITHOUT = "or measure without --hardware-prefetchers"


class Setting(Protocol):
    """Something of the machine that has a value. Its fields, all plain data, identify it."""

    kind: ClassVar[str]

    @property
    def place(self) -> str:
        """Where it is, for people."""

    def get(self) -> str:
        """The value now. Raises RefusedError."""

    def put(self, value: str) -> None:
        """Sets the value. Raises RefusedError."""


@dataclass(frozen=True)
class Pool:
    """One pool of huge pages of one size: a NUMA node's, or the machine's where the kernel has no nodes."""

    folder: Path
    kind: ClassVar[str] = "hugetlb pool"

    @property
    def place(self) -> str:
        """The file with the number of its pages."""
        return str(self.folder / "nr_hugepages")

    @property
    def page_bytes(self) -> int:
        """The size of its pages: the kernel names the folder hugepages-2048kB."""
        return int(self.folder.name.removeprefix("hugepages-").removesuffix("kB")) * 1024

    def get(self) -> str:
        """The pages that stay in the pool.

        Pages in use when a pool is made smaller are surplus: the kernel frees them when they are given back.
        """
        surplus = read(self.folder / "surplus_hugepages")
        return str(self.total() - int(surplus or 0))

    def put(self, value: str) -> None:
        """Resizes the pool."""
        self.resize(int(value))

    def total(self) -> int:
        """Pages in the pool, free or not."""
        return self._number("nr_hugepages")

    def free(self) -> int:
        """Pages that nobody uses."""
        return self._number("free_hugepages")

    def resize(self, pages: int) -> None:
        """Asks for this many pages; the kernel may grant fewer. Raises RefusedError."""
        file = self.folder / "nr_hugepages"
        try:
            file.write_text(f"{pages}\n", encoding="ascii")
        except OSError as fault:
            raise RefusedError(
                f"the page pool cannot be changed: {fault.strerror}",
                where=file,
                remedy=f"run as root, or have root do it once: echo {pages} > {file}",
            ) from fault

    def _number(self, name: str) -> int:
        text = read(self.folder / name)
        if text is None or not text.isdigit():
            raise RefusedError(
                f"this kernel offers no pool of {bytes_text(self.page_bytes)} pages",
                where=self.folder / name,
                remedy="a kernel with CONFIG_HUGETLBFS, or leave --reserve-hugepages out",
            )
        return int(text)


@dataclass(frozen=True)
class Switch:
    """A file such as hugepages-64kB/enabled, which lists words and has one in brackets."""

    file: Path
    kind: ClassVar[str] = "THP switch"

    @property
    def place(self) -> str:
        """The file."""
        return str(self.file)

    def get(self) -> str:
        """The word in brackets."""
        word = chosen(read(self.file))
        if word is None:
            raise RefusedError(
                "this kernel has no transparent huge pages of this size",
                where=self.file,
                remedy="name a size that `pagewise doctor` lists, or leave --set-thp-sizes out",
            )
        return word

    def put(self, value: str) -> None:
        """Chooses a word."""
        try:
            self.file.write_text(value + "\n", encoding="ascii")
        except OSError as fault:
            raise RefusedError(
                f"transparent huge pages cannot be switched: {fault.strerror}",
                where=self.file,
                remedy=f"run as root, or have root do it once: echo {value} > {self.file}",
            ) from fault


class _Bits:
    """Bits of a number of the machine that switch prefetchers; its other bits stay as they are."""

    bits: int

    @property
    def place(self) -> str:
        """Where it is, for people."""
        raise NotImplementedError

    def read(self) -> int:
        """The whole number now. Raises OSError or ValueError."""
        raise NotImplementedError

    def write(self, value: int) -> None:
        """Sets the whole number. Raises OSError."""
        raise NotImplementedError

    def get(self) -> str:
        """The bits now, the others zero."""
        return hex(self.value() & self.bits)

    def put(self, value: str) -> None:
        """Sets the bits and reads them back."""
        wanted = self.value() & ~self.bits | int(value, 16)
        try:
            self.write(wanted)
        except OSError as fault:
            raise self._refused("cannot be written", fault) from fault
        now = self.value()
        if (now ^ wanted) & self.bits:
            raise RefusedError(
                f"{wanted:#x} was written and {now:#x} is read back: the setting does not stick",
                where=self.place,
                remedy=f"a hypervisor or the firmware keeps it: measure on the bare machine, {WITHOUT}",
            )

    def value(self) -> int:
        """The whole number now. Raises RefusedError."""
        try:
            return self.read()
        except (OSError, ValueError) as fault:
            raise self._refused("cannot be read", fault) from fault

    def _refused(self, what: str, fault: Exception) -> RefusedError:
        number = fault.errno if isinstance(fault, OSError) else None
        if number in (errno.EACCES, errno.EPERM):
            remedy = (
                "run as root (CAP_SYS_RAWIO); root too is refused under the kernel's lockdown (secure boot: "
                "/sys/kernel/security/lockdown) and with msr.allow_writes=off "
                "(echo on > /sys/module/msr/parameters/allow_writes)"
            )
        elif number == errno.EIO:
            remedy = "the processor or its hypervisor does not let it: measure on the bare machine"
        else:
            remedy = "see the kernel's log (dmesg)"
        reason = (fault.strerror if isinstance(fault, OSError) else None) or str(fault)
        return RefusedError(
            f"the setting of the hardware prefetchers {what}: {reason}",
            where=self.place,
            remedy=f"{remedy}; {WITHOUT}",
        )


@dataclass(frozen=True)
class Msr(_Bits):
    """A model-specific register of a CPU, through the kernel's msr device."""

    file: Path
    address: int
    bits: int = _ALL_BITS
    kind: ClassVar[str] = "MSR"

    @property
    def place(self) -> str:
        """The device and the register."""
        return f"{self.file}, MSR {self.address:#x}"

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
class Attribute(_Bits):
    """A number in a file of sysfs."""

    file: Path
    bits: int = _ALL_BITS
    kind: ClassVar[str] = "sysfs attribute"

    @property
    def place(self) -> str:
        """The file."""
        return str(self.file)

    def read(self) -> int:
        """The file's number."""
        return int(self.file.read_text(encoding="ascii"))

    def write(self, value: int) -> None:
        """Writes the number."""
        self.file.write_text(f"{value}\n", encoding="ascii")


@dataclass(frozen=True)
class Hwpfctl:
    """The prefetchers of the A64FX through Fujitsu's hwpfctl, which prints no values in a fixed form.

    It switches them off for what it starts; restoring means its --reset on these CPUs.
    """

    program: Path
    cpus: tuple[int, ...]
    kind: ClassVar[str] = "hwpfctl"

    @property
    def place(self) -> str:
        """The program."""
        return str(self.program)

    def get(self) -> str:
        """What cannot be read."""
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
            raise RefusedError(
                f"the prefetchers cannot be reset: {fault.strerror}", where=self.place
            ) from fault
        finally:
            os.sched_setaffinity(0, before)
        if done.returncode:
            said = (done.stderr or done.stdout).strip()
            raise RefusedError(f"{' '.join(command)} failed: {said}", where=self.place)


_KINDS: dict[str, type] = {one.kind: one for one in (Pool, Switch, Msr, Attribute, Hwpfctl)}
_PATHS = ("folder", "file", "program")


def described(setting: Setting) -> dict[str, Any]:
    """A setting as data for JSON: its kind and what identifies it."""
    identity = {field.name: getattr(setting, field.name) for field in fields(setting)}  # type: ignore[arg-type]
    return {"kind": setting.kind} | {
        name: str(value) if isinstance(value, Path) else value for name, value in identity.items()
    }


def setting_of(data: Mapping[str, Any]) -> Setting:
    """The setting that was described. Raises FormatError."""
    try:
        identity = dict(data)
        kind = _KINDS[identity.pop("kind")]
        for name, value in identity.items():
            identity[name] = Path(value) if name in _PATHS else value
        if "cpus" in identity:
            identity["cpus"] = tuple(map(int, identity["cpus"]))
        setting: Setting = kind(**identity)
    except (KeyError, TypeError, ValueError) as fault:
        raise FormatError(f"this describes no setting of the machine: {data!r:.200}") from fault
    return setting
