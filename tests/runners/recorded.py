"""Noise recorded on real machines, and comparisons of a program with itself made from it."""

from __future__ import annotations

import csv
from functools import lru_cache
from pathlib import Path

import numpy as np

from pagewise.analysis.comparison import CLEAR_P, correct_p
from pagewise.analysis.statistics import FEWEST_ROUNDS, estimate

FOLDER = Path(__file__).with_name("noise")


@lru_cache(maxsize=1)
def series() -> dict[str, np.ndarray]:
    """Log times of consecutive runs of one program, by file, piece, kernel, pages, threads and order."""
    times: dict[str, list[float]] = {}
    for file in sorted(FOLDER.glob("*.csv")):
        with file.open() as stream:
            for line in csv.DictReader(stream):
                names = ("piece", "kernel", "pages", "threads", "order")
                name = "/".join((file.stem, *(line[part] for part in names)))
                times.setdefault(name, []).append(float(line["seconds"]))
    return {name: np.log(values) for name, values in times.items()}


def comparisons(
    logs: np.ndarray, labels: int, rounds: int, count: int, seed: int, *, blocks: bool = False
) -> np.ndarray:
    """Log times (count, labels, rounds): a stretch of the recorded runs, distributed over equal programs.

    In pagewise's order, each program once per round in randomised order; or in blocks, all rounds of one
    program, then of the next.
    """
    generator = np.random.default_rng(seed)
    starts = generator.integers(0, len(logs) - labels * rounds + 1, size=count)
    stretches = logs[starts[:, None] + np.arange(labels * rounds)]
    if blocks:
        return stretches.reshape(count, labels, rounds)[:, generator.permutation(labels)]
    return np.swapaxes(generator.permuted(stretches.reshape(count, rounds, labels), axis=2), 1, 2)


def judged(times: np.ndarray, resamples: int = 150) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Judge many comparisons at once: verdicts and medians (count, variants), widths, and clear verdicts.

    times are log times (count, 2 + variants, rounds): the baseline, the baseline again, and the variants. The
    same as `ratio`, `noise_floor`, and `judge` do for one comparison, with fewer resamples.
    Widths (count, 1 + variants) begin with that of A/A.
    """
    first, again, variants = times[:, 0], times[:, 1], times[:, 2:]
    logs = np.stack([variants - first[:, None], variants - again[:, None]], axis=-2)
    centre, half, p = estimate(logs, 1, resamples)
    middle = np.median(logs, axis=-1).mean(axis=-1)
    low, high = np.minimum(centre - half, middle), np.maximum(centre + half, middle)
    of_aa, half_aa, _ = estimate((again - first)[:, None], 1, resamples)
    middle_aa = np.median(again - first, axis=-1)
    width_aa = np.maximum(of_aa + half_aa, middle_aa) - np.minimum(of_aa - half_aa, middle_aa)
    floor = np.maximum(np.abs(middle_aa), width_aa / 2)[:, None]
    together = np.array([correct_p(list(row)) for row in p])
    differs = ((low > 0) | (high < 0)) & (np.abs(middle) > floor) & (together <= 0.05)
    widths = np.expm1(np.concatenate([width_aa[:, None], high - low], axis=1))
    return differs, middle, widths, differs & (together <= CLEAR_P)


def until(times: np.ndarray, width: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Like `judged`, after the rounds that the default makes: verdicts, medians, rounds of the last variant.

    Each variant has its verdict and its median from its own last round.
    """
    count, labels, most = times.shape
    differs, middles = np.zeros((count, labels - 2), bool), np.zeros((count, labels - 2))
    left, rounds = np.ones((count, labels - 2), bool), np.full(count, most)
    for number in range(FEWEST_ROUNDS, most + 1):
        live = np.flatnonzero(left.any(axis=1))
        if not len(live):
            break
        live_differs, live_middle, live_width, clear = judged(times[live, :, :number], 100)
        narrow = live_width < width
        ends = left[live] & ((narrow[:, 1:] & narrow[:, :1]) | clear | (number == most))
        differs[live] = np.where(ends, live_differs, differs[live])
        middles[live] = np.where(ends, live_middle, middles[live])
        left[live] &= ~ends
        rounds[live] = number
    return differs, middles, rounds
