"""For each code of exclusion: what the report excludes, queries show with that code, and never rank."""

from __future__ import annotations

import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from many_results import analysed
from pagewise.analysis.analysis import analyse_result
from pagewise.analysis.validity import Code
from pagewise.core.result import Result, read_result
from pagewise.store.query import ask
from stage import Stage, result_content, write_result

Change = Callable[[dict[str, Any], list[dict[str, Any]]], list[dict[str, Any]]]
LABEL = "thp/hardware-regular"
SEVERAL = 2  # times as many rounds as the template has


def each(part: str, **fields: Any) -> Change:
    """All runs with these fields in a part of their records."""
    return lambda manifest, runs: [run | {part: run.get(part, {}) | fields} for run in runs]


def last_half(change: Change) -> Change:
    return lambda manifest, runs: [*runs[: len(runs) // 2], *change(manifest, runs[len(runs) // 2 :])]


def failed(status: str) -> Change:
    kept = ("schema", "kernel", "started", "configuration", "run")
    failure = {"status": status, "failure": {"exit_code": 3, "message": "m", "remedy": "r"}}
    return lambda manifest, runs: [{name: run[name] for name in kept} | failure for run in runs]


def changed_file(manifest: dict[str, Any], runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    module = runs[0]["run"]["module"]
    manifest["changed_files"] = [{"module": module, "file": "bin/pw-triad", "round": 2}]
    return runs


#: One way to get each code, but for `records_altered`, which is of a whole result.
WAYS: dict[Code, Change] = {
    "failed": failed("failed"),
    "wrong_result": each("validation", passed=False),
    "pages_unavailable": failed("pages_unavailable"),
    "wrong_pages": each("pages", huge_coverage=0.5),
    "policy_not_kept": last_half(each("pages", huge_coverage=0.5)),
    "wrong_placement": each("placement", cpus=[4095]),
    "wrong_build": each("configuration", prefetch="software"),
    "wrong_work": each("traffic", bytes_stream=1),
    # The run's own clock contradicts these times.
    "wrong_times": each("seconds", repetitions=[100.0] * 5),
    "settings_differ": last_half(each("options", size=12345)),
    "disturbed": each("run", involuntary_switches=10**9, wall_seconds=10.0),
    "file_changed": changed_file,
    "incomplete": lambda manifest, runs: runs[: len(runs) // 2],
    "not_measured": lambda manifest, runs: [],
}


def result_with(template: Path, folder: Path, change: Change) -> Result:
    """The template with more rounds, and with the runs of one configuration of the first kernel changed."""
    manifest, lines = result_content(template)
    timed = [line for line in lines if line["run"]["series"] in ("compare", "aa")]
    rounds = max(line["run"]["round"] for line in timed)
    records = [
        line
        | {"run": line["run"] | {"round": line["run"]["round"] + again * rounds, "involuntary_switches": 0}}
        for again in range(SEVERAL)
        for line in timed
    ]
    kernel = records[0]["run"]["kernel"]
    mine = [one for one in records if one["run"]["kernel"] == kernel and one["run"]["module"].endswith(LABEL)]
    assert len(mine) == SEVERAL * rounds
    others = [one for one in records if one not in mine]
    return read_result(write_result(folder, manifest, [*others, *change(manifest, mine)]))


def values(folder: Path, sql: str) -> dict[tuple[str, str], Any]:
    """The third column by the first two."""
    return {(kernel, module): value for kernel, module, value in ask([folder], sql).rows}


def test_every_code_has_a_way():
    assert {*WAYS, "records_altered"} == set(typing.get_args(Code))


@pytest.mark.long
@pytest.mark.parametrize("code", WAYS)
def test_a_query_excludes_and_ranks_as_the_report(compared: tuple[Stage, Any], tmp_path: Path, code: Code):
    result = result_with(compared[0].result(), tmp_path / "result", WAYS[code])
    reported = {
        (one.benchmark.name, row.cell.measured.module): row
        for one in analyse_result(result)
        for group in one.groups
        for row in group.rows
    }
    assert {row.code for row in reported.values() if row.code} == {code}
    # Without the file of a report it is analysed.
    for folder in (result.folder, analysed(result.folder)):
        excluded = values(folder, "SELECT kernel, module, excluded FROM cells")
        ratios = values(folder, "SELECT kernel, module, time_ratio FROM ratios")
        verdicts = values(folder, "SELECT kernel, module, verdict FROM ratios")
        runs = values(folder, "SELECT kernel, module, count(*) FROM runs GROUP BY ALL")
        answer = ask([folder], f"SELECT count(*), count(*) FILTER (excluded = '{code}') FROM records")
        ((records, left),) = answer.rows
        assert (records, answer.skipped) == (len(result.records), {})
        assert excluded == {key: row.code for key, row in reported.items()}
        ranked = {key: row for key, row in reported.items() if row.time_ratio is not None}
        assert ranked and ratios == {key: row.time_ratio.median for key, row in ranked.items()}
        assert verdicts == {key: row.verdict for key, row in ranked.items()}
        assert runs.keys() == {key for key, row in reported.items() if row.code is None}
        assert (left > 0) == (code != "not_measured")
