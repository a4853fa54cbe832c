"""Draws all pictures of a result into files, those of several kernels at the same time."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from pagewise.analysis.analysis import KernelResult
from pagewise.report.figures import Drawn, pictures
from pagewise.report.matrix_figure import matrix_picture
from pagewise.report.policy_figure import policy_picture


def draw(
    folder: Path, kernels: Sequence[KernelResult], manifest: Mapping[str, Any]
) -> dict[str, list[Drawn]]:
    """The pictures of each kernel by name, those of all under an empty one; their files are in the result.

    Raises OSError.
    """
    draw_one = partial(_draw, folder=folder, manifest=manifest)
    processes = min(len(kernels), len(os.sched_getaffinity(0)))
    if processes > 1:
        # matplotlib is loaded and this process has one thread: a fork starts at once.
        with ProcessPoolExecutor(processes, get_context("fork"), initializer=_leave_interrupts) as pool:
            try:
                found = list(pool.map(draw_one, kernels))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
    else:
        found = [draw_one(one) for one in kernels]
    drawn = {one.kernel.name: those for one, those in zip(kernels, found, strict=True)}
    whole = matrix_picture(kernels)
    return drawn | {"": [] if whole is None else [whole.written(folder)]}


def _draw(one: KernelResult, folder: Path, manifest: Mapping[str, Any]) -> list[Drawn]:
    made = [*pictures([one], manifest)[one.kernel.name], policy_picture(one)]
    return [picture.written(folder) for picture in made if picture is not None]


def _leave_interrupts() -> None:
    """Ctrl-C reaches all processes of the terminal: the one that waits for the pictures acts on it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
