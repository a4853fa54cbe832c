"""Noise that was recorded on real machines, and comparisons of a program with itself made from it."""

from __future__ import annotations

import csv
from functools import lru_cache
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).with_name("noise")


@lru_cache(maxsize=1)
def series() -> dict[str, np.ndarray]:
    """Log times of the runs of one program, one after the other, by what and when it was."""
    found: dict[str, list[float]] = {}
    for file in sorted(FOLDER.glob("*.csv")):
        with file.open() as stream:
            for line in csv.DictReader(stream):
                names = ("piece", "kernel", "pages", "threads", "order")
                name = "/".join((file.stem, *(line[part] for part in names)))
                found.setdefault(name, []).append(float(line["seconds"]))
    return {name: np.log(values) for name, values in found.items()}


def comparisons(
    logs: np.ndarray, labels: int, rounds: int, count: int, seed: int, *, blocks: bool = False
) -> np.ndarray:
    """Log times (count, labels, rounds): a stretch of the recorded runs, dealt to equal programs.

    As pagewise runs them, one of each a round in drawn order; or in blocks, all rounds of one program, then
    of the next.
    """
    generator = np.random.default_rng(seed)
    starts = generator.integers(0, len(logs) - labels * rounds + 1, size=count)
    stretches = logs[starts[:, None] + np.arange(labels * rounds)]
    if blocks:
        return stretches.reshape(count, labels, rounds)[:, generator.permutation(labels)]
    return np.swapaxes(generator.permuted(stretches.reshape(count, rounds, labels), axis=2), 1, 2)
