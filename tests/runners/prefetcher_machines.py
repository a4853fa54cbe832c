"""Stand-ins for machines whose hardware prefetchers can be set: registers, files and Fujitsu's program."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from fake_root import CPUS, tree
from pagewise.machine.settings.kinds import Msr
from scripts import write_script

Processor = tuple[str, int, int, str]
XEON = ("GenuineIntel", 6, 0x55, "Intel(R) Xeon(R) Gold 6230")
EPYC = ("AuthenticAMD", 0x19, 0x11, "AMD EPYC 9354")
PHI = ("GenuineIntel", 6, 0x57, "Intel(R) Xeon Phi(TM) CPU 7210")
HYBRID = ("GenuineIntel", 6, 0x97, "12th Gen Intel(R) Core(TM) i9-12900K")
ZEN2 = ("AuthenticAMD", 0x17, 0x31, "AMD EPYC 7742")


def cpuinfo(root: Path, processor: Processor, flags: str = "fpu") -> Path:
    names = ("vendor_id", "cpu family", "model", "model name")
    text = "".join(f"{name}\t: {value}\n" for name, value in zip(names, processor, strict=True))
    return tree(root, {"proc/cpuinfo": f"processor\t: 0\n{text}flags\t: {flags}\n"})


def machine(root: Path, processor: Processor = XEON, values: tuple[int, ...] = (0, 0)) -> Path:
    """A tree with the processor's cpuinfo, and msr devices: sparse files with the register at its address."""
    cpuinfo(root, processor)
    address = 0x1A4 if processor[0] == "GenuineIntel" else 0xC0000108
    for cpu, value in enumerate(values):
        tree(root, {f"dev/cpu/{cpu}/msr": ""})
        Msr(root / f"dev/cpu/{cpu}/msr", address).write(value)
    return root


def registers(root: Path, address: int = 0x1A4, device: str = "msr") -> list[int]:
    return [Msr(file, address).read() for file in sorted(root.glob(f"dev/cpu/*/{device}"))]


def a64fx(root: Path) -> Path:
    return tree(root, {"proc/cpuinfo": "processor\t: 0\nCPU implementer\t: 0x46\nCPU part\t: 0x001\n"})


def prefetch_control(root: Path, cpus: Iterable[int]) -> dict[str, Path]:
    """The files of Fujitsu's driver with a processor's defaults; those of the last CPU, by cache and part."""
    files = {}
    for cpu in cpus:
        for cache in ("index0", "index2"):
            for part, value in {"enable": "1", "dist": "auto", "strength": "strong"}.items():
                name = f"{CPUS}/cpu{cpu}/cache/{cache}/prefetch_control/stream_detect_prefetcher_{part}"
                files[f"{cache} {part}"] = tree(root, {name: value}) / name
    return files


def contents(files: dict[str, Path]) -> dict[str, str]:
    return {name: file.read_text().strip() for name, file in files.items()}


def hwpfctl(folder: Path, monkeypatch) -> Path:
    """A stand-in for Fujitsu's program: notes its arguments and CPUs, and starts the command."""
    log, program = folder / "log", folder / "bin/hwpfctl"
    write_script(
        program,
        f'#!/bin/sh\necho "$* $(grep Cpus_allowed_list /proc/self/status | cut -f 2)" >> {log}\n'
        'while [ "${1#--}" != "$1" ]; do shift; done\n[ $# = 0 ] || exec "$@"\n',
    )
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return log
