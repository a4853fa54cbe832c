"""Page policies for other tools: where the launcher stands in a line of shell, and what records show."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pagewise.cluster.page_runs import prefix_programs, read_pages
from scripts import called
from stage import RUNNERS

MIB = 1 << 20


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("app -n 1", "L app -n 1"),
        ("{mdrun} -v", "L {mdrun} -v"),
        ("A=1 B='x y' app", "A=1 B='x y' L app"),
        ("cd run && ./app | tee log; ./post", "cd run && L ./app | L tee log; L ./post"),
        ("export A=1", "export A=1"),
        (". setup.sh", ". setup.sh"),
        ("time ./app 2>&1", "time L ./app 2>&1"),
        ("for i in 1 2; do ./app $i; done", "for i in 1 2; do L ./app $i; done"),
        ("if ./check; then ( ./app ); fi", "if L ./check; then ( L ./app ); fi"),
        ("[[ -f a && -f b ]] || ./app", "[[ -f a && -f b ]] || L ./app"),
        ("./app 'a; b' \"c && d\" e\\;f", "L ./app 'a; b' \"c && d\" e\\;f"),
        ("# nothing", "# nothing"),
        ("", ""),
    ],
)
def test_the_launcher_precedes_programs_only(line: str, expected: str):
    assert prefix_programs(line, "L") == expected


def test_the_shell_reads_the_same_commands():
    """The line with a launcher that only starts the program does what it does without."""
    line = (
        "A='1 2' env | grep ^A=; cd / && pwd; for i in a b; do printf '%s;' $i; done; [[ a && b ]] && uname"
    )
    prefixed = prefix_programs(line, "env -- ")
    outputs = {called(["bash", "-c", text], check=True).stdout for text in (line, prefixed)}
    assert prefixed.count("env -- ") == 3 and len(outputs) == 1


def write(folder: Path, *processes: dict, host: str = "n1") -> None:
    base = {"schema": "pagewise.exec/1", "policy": "thp", "program": "/app", "host": host}
    base |= {"page_size_bytes": 2 * MIB, "met": True, "coverage": 1.0, "peak_bytes": 100 * MIB, "kinds": {}}
    text = "".join(json.dumps(base | process) + "\n" for process in processes)
    (folder / f"pagewise-pages.{host}.jsonl").write_text(text)


def kind(resident: int, huge: int) -> dict[str, int]:
    return {"resident_bytes": resident * MIB, "huge_bytes": huge * MIB, "eligible_bytes": resident * MIB}


def test_processes_of_all_hosts_are_summed_up(tmp_path: Path):
    write(tmp_path, {"kinds": {"heap": kind(30, 30), "text": kind(1, 0)}, "coverage": 0.95})
    write(tmp_path, {"kinds": {"heap": kind(10, 0)}, "peak_bytes": 300 * MIB}, {"met": None}, host="n2")
    pages = read_pages(tmp_path)
    assert pages.problem is None and pages.policy == "thp" and pages.processes == 3
    assert pages.peak_bytes == 300 * MIB and pages.coverage == 0.95 and pages.kinds == {"heap": 0.75}


@pytest.mark.parametrize(
    ("processes", "is_met"),
    [
        ([], False),
        ([{}, {"met": False, "coverage": 0.1}], False),
        ([{"met": None}, {"met": None}], False),
        ([{"met": None}, {}], True),
        ([{}, {"schema": "pagewise.exec/2"}], False),
    ],
)
def test_a_policy_counts_as_met_if_a_process_met_it_and_none_did_not(
    tmp_path: Path, processes: list[dict], is_met: bool
):
    write(tmp_path, *processes)
    assert (read_pages(tmp_path).problem is None) == is_met


def test_a_malformed_record_is_reported_with_its_line(tmp_path: Path):
    write(tmp_path, {}, {})
    file = tmp_path / "pagewise-pages.n1.jsonl"
    file.write_text(file.read_text()[:-40])
    problem = read_pages(tmp_path).problem
    assert problem is not None and f"{file}:2" in problem


def test_modules_for_other_tools_import_without_packages():
    modules = "pagewise.cluster.page_runs, pagewise.workloads.program.policy"
    statement = f"import sys; sys.path.append({str(RUNNERS)!r}); import {modules}"
    assert subprocess.run([sys.executable, "-I", "-S", "-c", statement]).returncode == 0
