"""Standard output and error: no control characters in them, and what fails there ends nothing else."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

from pagewise.cli.output import Output, PlainConsole, standard_streams
from pagewise.core.files import write_inside
from pagewise.core.text import json_text, printable
from pagewise.report.render.csv import text as csv_text
from scripts import called
from stage import Stage

EVIL = "a\x1b[31mb\x1b]0;title\x07c\x9b2Jd\u202ee\x7f\rf\u2028g"
PLAIN = "a[31mb]0;titlec2Jdefg"


def is_plain(text: str) -> bool:
    return printable(text) == text


def test_controls_are_removed_and_all_else_stays(tmp_path: Path):
    assert printable(EVIL) == PLAIN
    assert printable("µ ≤ ×\n\tтест 日本語 é") == "µ ≤ ×\n\tтест 日本語 é"
    assert printable("a\udce9b") == "a\ufffdb"
    assert write_inside(tmp_path, "one.md", f"| {EVIL} |\n").read_text() == f"| {PLAIN} |\n"
    assert is_plain(write_inside(tmp_path, "one.csv", csv_text(["a"], [[EVIL]])).read_text())


def test_json_keeps_its_input():
    data = {EVIL: [EVIL, "µ", "\udce9"]}
    assert json.loads(json_text(data)) == data
    assert is_plain(json_text(data)) and "µ" in json_text(data)
    with pytest.raises(ValueError):
        json_text([float("nan")])


def test_a_console_prints_styles_and_no_controls_of_others(monkeypatch: pytest.MonkeyPatch):
    stream = io.StringIO()
    monkeypatch.setattr("sys.stdout", Output(stream))
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    console = PlainConsole()
    table = Table(title=EVIL)
    table.add_column(EVIL)
    table.add_row(Text(EVIL, style="bold red"))
    for shown in (EVIL, Text(EVIL, style="bold red"), table, "[/][bold]x :bug:"):
        console.print(shown)
    written = stream.getvalue()
    assert "[/][bold]x :bug:" in re.sub(r"\x1b\[[0-9;]*m", "", written)
    assert "\x1b[1;31m" in written
    for one in ("\x1b[31mb", "\x1b]0", "\x07", "\x9b", "\u202e", "\x7f", "\r"):
        assert one not in written


def test_unwritable_output_is_dropped_and_reported_as_the_failure():
    with open("/dev/full", "w", encoding="utf-8") as full:  # noqa: PTH123
        output = Output(full)
        output.write("x")
        assert output.failure is None
        for _ in range(2):
            output.flush()
            output.write("y")
        assert isinstance(output.failure, OSError)


def test_streams_are_put_back(capsys: pytest.CaptureFixture[str]):
    with standard_streams() as ended:
        print(EVIL)
        assert [ended(code) for code in (0, 1, 2)] == [0, 1, 2]
    print("\x1b")
    assert capsys.readouterr().out == f"{PLAIN}\n\x1b\n"


@pytest.mark.long
@pytest.mark.parametrize("command", [["compare", "--help"], ["list"], ["results", "list", "--json"]])
@pytest.mark.parametrize("output", ["full", "closed", "read-only"])
def test_output_that_cannot_be_written_ends_with_4(small: Stage, output: str, command: list[str]):
    small.results.mkdir()
    redirected = {"full": ">/dev/full", "closed": ">&-", "read-only": "1</dev/null"}[output]
    done = called(
        ["/bin/sh", "-c", f'exec "$@" {redirected}', "sh", *small.command(*command)],
        env=small.variables(),
        cwd=small.folder,
    )
    assert done.returncode == 4 and done.stderr.startswith("pagewise: error:")
    assert "Traceback" not in done.stderr


@pytest.mark.long
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_results_go_to_stdout_and_messages_to_stderr(small: Stage, options: tuple[str, ...]):
    arguments = ("--rounds", "1", "--no-sweep", *options)
    done, quiet = small.compare(*arguments), small.compare(*arguments, "--quiet")
    assert (done.returncode, quiet.returncode, quiet.stderr) == (0, 0, "")
    assert "1/1" in done.stderr and "1/1" not in done.stdout
    if options:
        assert json.loads(done.stdout).keys() == json.loads(quiet.stdout).keys()


@pytest.mark.long
@pytest.mark.parametrize(("variables", "colors"), [({"FORCE_COLOR": "1"}, True), ({"NO_COLOR": "1"}, False)])
def test_no_color_is_respected(small: Stage, variables: dict[str, str], colors: bool):
    small.environment |= {"FORCE_COLOR": "1", **variables}
    printed = small.run("doctor", "--no-noise").stdout
    assert (re.search(r"\x1b\[(?:\d;)?3\d", printed) is not None) == colors
