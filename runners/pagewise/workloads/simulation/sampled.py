"""Samples of a program's time by the origin of its memory, at its own speed: `pagewise where --fast`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pagewise.core.errors import RefusedError
from pagewise.core.manifest_parts import SAMPLES
from pagewise.core.reading import parse_json, read_file
from pagewise.core.structure import to_data
from pagewise.workloads.simulation.origins import name_origins
from pagewise.workloads.simulation.tracer import ProgramRun, native_seconds

_FILE = "samples"


def sample(run: ProgramRun, library: Path) -> dict[str, object]:
    """Runs the program once on base pages, with the library (kernels/model/sampler.c).

    Returns figures like those of the simulator, of all processes that it started. Raises RefusedError.
    """
    for file in run.scratch.glob(f"{_FILE}.*"):
        file.unlink()
    variables = {"PAGEWISE_SAMPLES": str(run.scratch / _FILE), "LD_PRELOAD": run.preloading(library)}
    _, seconds = native_seconds(replace(run, environment={**run.environment, **variables}))
    processes = [parse_json(read_file(file)) for file in sorted(run.scratch.glob(f"{_FILE}.*"))]
    total = sum(process["samples"] for process in processes)
    if total == 0:
        raise RefusedError(
            "no sample of the program's time was taken",
            where=run.program.file,
            remedy="it must use glibc as a shared library, end by itself, and compute for some time; or omit "
            "--fast",
        )
    seen = sum(process["seconds"] for process in processes)
    reported = [
        _in_common_time(origin, process["samples"], total)
        for process in processes
        for origin in process["origins"]
    ]
    return {
        "geometry": "none",
        "pages": "base",
        "whole": True,
        "counts": {SAMPLES: total},
        "regions": [],
        "origins": to_data(name_origins(reported)),
        "sites": True,
        "instructions": total,
        "sampled": {
            "processes": len(processes),
            "unseen": 1.0 - seen / max(seconds, seen),
            **{
                name: sum(process[name] for process in processes)
                for name in ("no_operand", "in_kernel", "of_library", "lost")
            },
        },
    }


def _in_common_time(origin: Mapping[str, Any], samples: int, total: int) -> dict[str, Any]:
    """The origin with the samples of its process from its begin to its end as a share of all samples."""
    ends = {name: origin[name] * total // max(1, samples) for name in ("begin", "end")}
    return {**origin, **ends}
