"""Compile the TLB and cache simulator of kernels/model."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "kernels" / "model"
PARTS = [SOURCES / f"{name}.c" for name in ("sets", "geometry", "tlb", "cache", "mapping", "model")]


def compiled(out: Path, *arguments: object) -> Path:
    """The program or library `out` of these sources and flags."""
    subprocess.run(
        ["cc", "-std=c11", "-O2", "-march=x86-64-v2" if os.uname().machine == "x86_64" else "-O2"]
        + [str(one) for one in arguments]
        + ["-o", str(out)],
        check=True,
    )
    return out


def compiled_replay(folder: Path) -> Path:
    """The program that simulates a trace of accesses."""
    return compiled(folder / "replay", SOURCES / "replay.c", *PARTS)


def compiled_build(folder: Path) -> Path:
    """A build folder as `--build` names one: the plug-in, the preloaded library, and a program."""
    (folder / "model").mkdir()
    shared = ROOT / "runners/pagewise/workloads/program"
    flags = ("-shared", "-fPIC", "-fvisibility=hidden", f"-I{shared}")
    parts = ("plugin", "target", "report", "origins", "origin_events", "origin_map")
    plugin = [SOURCES / f"{name}.c" for name in parts]
    compiled(folder / "model" / "libpagewise-model.so", *flags, *plugin, *PARTS)
    compiled(
        folder / "model" / "libpagewise-preload.so",
        *flags,
        *(SOURCES / f"{part}.c" for part in ("preload", "sampler", "origins", "origin_map")),
    )
    region = ROOT / "kernels" / "region"
    compiled(folder / "walk", f"-I{region}", Path(__file__).with_name("model_walk.c"), region / "marks.c")
    return folder
