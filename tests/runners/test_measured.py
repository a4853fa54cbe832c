"""Which origins `where --measure` compares, and which it selects."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tracing import needs_tracer

from builders import configuration, kernel, origin, record, simulated, subject_of, varied
from own_program import Own, needs_thp
from pagewise.analysis.analysis import analyse
from pagewise.core.configuration import RunSettings
from pagewise.core.manifest_parts import Forecast, Origin
from pagewise.core.plan import with_settings
from pagewise.core.result import read_result
from pagewise.workloads.program.prepare import ORIGINS, without_equal
from pagewise.workloads.simulation.measured import SelectedOrigins, sets_of, smallest, worth_measuring

MIB = 1 << 20


def walked(name: str, mib: int, walks: int, saved: float | None = None) -> Origin:
    seconds = None if saved is None else (0.0, saved)
    return origin(name, bytes=mib * MIB, counts={"PAGE_WALKS": walks}, saved_seconds=seconds)


def test_origins_that_may_save_one_per_cent_are_measured_most_first() -> None:
    # Of 2 s: 0.5, 2, 40, 5, 3 and 4 %.
    every = [walked(str(i), 1, 1, saved) for i, saved in enumerate((0.01, 0.04, 0.8, 0.1, 0.06, 0.08))]
    assert worth_measuring(
        simulated(*every, forecast=Forecast((2.0, 4.0), (0.0, 1.0), (0.0, 1.0))), every
    ) == [3, 4, 6, 5]
    without = [walked("few", 1, 9), walked("most", 1, 900), walked("some", 1, 91)]
    assert worth_measuring(simulated(*without), without) == [2, 3]
    assert sets_of([3, 4, 6]) == ["3", "4", "6", "3+4", "3+4+6"] and sets_of([2]) == ["2"]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        # One of them has 19 of 20 parts of the gain.
        ({"thp": 0.8, "-": 0.8, "1": 0.98, "2": 0.81, "1+2": 0.8}, SelectedOrigins((2,), 0.81, 0.8)),
        # Both are needed, and all have more memory.
        ({"thp": 0.8, "-": 0.8, "1": 0.9, "2": 0.9, "1+2": 0.8}, SelectedOrigins((1, 2), 0.8, 0.8)),
        # The gain is elsewhere.
        ({"thp": 0.5, "-": 0.9, "1": 0.95, "2": 0.95, "1+2": 0.9}, None),
        ({"thp": 1.2, "-": 1.1, "1": 1.1, "2": 1.0, "1+2": 1.1}, None),
    ],
)
def test_the_smallest_set_with_most_of_the_gain_is_selected(
    times: dict[str, float], expected: SelectedOrigins | None
) -> None:
    origins = [walked("small", 1, 1), walked("large", 64, 1), walked("third", 8, 1)]
    base, thp, where = (
        configuration(label=(name, "hardware", "regular")) for name in ("none", "thp", "where")
    )
    values = [value for value in times if value != "thp"]
    settings = [RunSettings(environment={ORIGINS: value}) for value in values]
    subjects = without_equal(with_settings([subject_of(kernel(), base, thp, where)], settings))
    assert len(subjects[0].cells) == 2 + len(values)
    records = []
    for number in range(1, 8):
        scatter = 1.0 + 0.001 * (number % 3)
        for cell in subjects[0].cells:
            value = cell.settings.environment[ORIGINS]
            ratio = {"none": 1.0, "thp": times["thp"]}.get(cell.measured.hugepages, times[value])
            made = record(cell.measured, ratio * scatter, number=number)
            for series in ("compare", *(("aa",) if cell.is_baseline else ())):
                records.append(varied(made, "run", options=cell.settings.text, series=series))
    (result,) = analyse(subjects, records, 1)
    choice = smallest(result.ranked, origins)
    assert (choice and choice.numbers) == (expected and expected.numbers)
    if expected is not None:
        ratios = (expected.time_ratio, expected.full)
        assert (choice.time_ratio, choice.full) == pytest.approx(ratios, rel=0.01)


PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
static unsigned long small[1 << 12];
int main(void)
{
    const unsigned long count = 1ul << 23;
    unsigned long *table = malloc(count * sizeof *table), x = 1, sum = 0;
    unsigned long *other = malloc(1 << 20);
    for (unsigned long i = 0; i < count; i++) table[i] = i, other[i >> 6] = 1;
    for (int i = 0; i < 4000000; i++) {
        x = x * 6364136223846793005ul + 1442695040888963407ul;
        sum += table[x >> 41] + small[x >> 52];
    }
    printf("%lu %lu\\n", sum, other[7]);
    return 0;
}
"""


@needs_thp
@needs_tracer
@pytest.mark.long
def test_the_origin_that_misses_is_measured_and_selected(own: Own, build: Path) -> None:
    source, program = own.folder / "reads.c", own.folder / "reads"
    source.write_text(PROGRAM)
    subprocess.run(["cc", "-g", "-O1", "-o", program, source], check=True)
    words = ("--build", str(build), "--geometry", "zen4", "--measure", "--output", str(own.stage.results))
    own.stage.run("where", *words, "--", str(program), timeout=600, code=0)
    results = [read_result(folder) for folder in own.stage.results.iterdir()]
    located, compared = sorted(results, key=lambda result: result.manifest.kind != "simulation")
    assert (located.manifest.kind, compared.manifest.kind) == ("simulation", "programs")
    measured = {
        (each.configuration.hugepages, each.run.options.removeprefix(f"{ORIGINS}="))
        for each in compared.records
        if each.run.series == "compare" and each.status == "ok"
    }
    assert measured >= {("none", "-"), ("thp", "-"), ("where", "-"), ("where", "1")}
    assert {value for policy, value in measured if policy != "where"} == {"-"}
    every, selection = (
        (located.folder / name).read_text().splitlines() for name in ("origins.txt", "selection.txt")
    )
    assert sum("reads.c:8" in line for line in selection) == 1 and set(selection) <= set(every)
    own.stage.run("exec", "--where", str(located.folder), "--", str(program), code=0)
