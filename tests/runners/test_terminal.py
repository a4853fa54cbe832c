"""What a terminal shows at the end: brief, in its width, and all of it with --verbose."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

import many_kernels
from many_kernels import all_kernels, result_of
from pagewise.core.result import Result
from pagewise.report.model import Report, Table
from pagewise.report.render import html, markdown, terminal
from pagewise.report.views import report_of

WIDTH = 100
LONG = ("gcc-12.2.0", "arm-compiler-for-linux-24.10.1-with-the-libraries-of-a-site")
#: What commands are indented by: they stay on one line, so that they can be copied.
COMMAND = "    "


def shown(report: Report, *, explained: bool = False, width: int = WIDTH) -> list[str]:
    text = io.StringIO()
    terminal.show(
        Console(file=text, width=width, force_terminal=True, color_system=None), report, explained=explained
    )
    return text.getvalue().splitlines()


def result(folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> Result:
    if kind == "long names":
        monkeypatch.setattr(many_kernels, "COMPILERS", LONG)
    few = kind == "one kernel"
    names = ("schoenauer_triad",) if few else ("schoenauer_triad", "pointer_chase", "gather", "stream_sum")
    kernels = [replace(one, sweeps=()) for one in all_kernels() if one.name in names]
    return result_of(folder, kernels, pool=kind == "a pool", wrong="" if few else "gather")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["one kernel", "kernels", "a pool", "long names"])
def test_the_end_fits_100_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str):
    report = report_of(result(tmp_path, monkeypatch, kind))
    lines = shown(report)
    assert max(len(line.rstrip()) for line in lines if not line.startswith(COMMAND)) <= WIDTH
    tables = [block for section in report.brief for block in getattr(section, "blocks", ())]
    assert len(tables) == len([one for one in report.data.kernels if one.best])
    for table in tables:
        assert isinstance(table, Table)
        times = sum("ms" in line or " s " in line for line in lines)
        assert times >= len(table.rows)


@pytest.mark.long
def test_all_is_shown_when_explained_with_commands_on_one_line_and_the_answer_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    report = report_of(result(tmp_path, monkeypatch, "long names"))
    whole, brief = (
        [line.strip() for line in shown(report, explained=explained, width=60)] for explained in (True, False)
    )
    commands = [command for one in report.recommendations for _, command in one.apply]
    assert len(commands) >= 10 and all(command in whole for command in commands)
    assert 1 <= sum(command in brief for command in commands) < len(commands)
    brief, whole = (shown(report, explained=explained, width=400) for explained in (False, True))
    assert len(brief) < len(whole) / 2
    for lines in (brief, whole):
        place = next(number for number, line in enumerate(lines) if line.startswith(report.headline))
        assert place > len(lines) / 2


def test_a_table_of_one_row_is_a_line(tmp_path: Path):
    kernels = [replace(one, sweeps=()) for one in all_kernels() if one.name == "peak_flops"]
    made = result_of(tmp_path, kernels, pool=False)
    (subject,) = made.subjects
    subject = replace(
        subject, cells=[one for one in subject.cells if one.compiler == many_kernels.COMPILERS[0]]
    )
    report = report_of(replace(made, subjects=[subject]))
    (section,) = [section for section in report.sections if section.anchor == "kernel-peak_flops"]
    (table,) = [block for block in section.blocks if isinstance(block, Table)]
    assert table.is_single
    text, page = markdown.render(report), html.render(report)
    assert "baseline" in table.as_text and markdown.escape(table.as_text) in text and table.as_text in page
    assert any(table.as_text in line for line in shown(report, explained=True, width=1000))
