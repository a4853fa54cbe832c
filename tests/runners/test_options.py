"""Options: what their values mean, which belong together, and what --help shows."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from pagewise.cli import root
from pagewise.cli.options import REPLACED
from pagewise.cli.types import Duration, Percent
from scripts import called
from stage import RUNNERS, Stage


def leaves(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    """The commands below a group, each with its name."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from leaves(command, f"{path}{name} ")
        else:
            yield path + name, command


COMMANDS = dict(leaves(root, ""))
#: The option that shows all options.
HELP = {
    name: "--help-all" if any("--help-all" in each.opts for each in command.params) else "--help"
    for name, command in COMMANDS.items()
}


@pytest.mark.parametrize("name", REPLACED)
def test_an_option_that_was_replaced_is_refused_with_the_new_one(name: str):
    for command in ("compare", "counters"):
        done = CliRunner().invoke(root, [command, name, "x=1,2", "--", "true"])
        assert done.exit_code == 2 and REPLACED[name].split()[0].rstrip(",") in done.stderr


@pytest.mark.parametrize(
    ("command", "given"),
    [
        *(("compare", [text]) for text in ("clocks", "variables=1,2", "LANG=C", "layout=a,b")),
        *(("compare", [text]) for text in ("A=1", "A", "1A=1,2", "GLIBC_TUNABLES=-,glibc.malloc.hugetlb=1")),
        *(("compare", [f"node-state={states}"]) for states in ("old", "fresh,old", "aged,aged")),
        ("compare", ["A=1,2", "A=3,4"]),
        *(("counters", [text]) for text in ("clocks=boost=on/off", "A=1,2")),
    ],
)
def test_options_that_a_command_cannot_vary_are_refused(command: str, given: list[str]):
    varied = [word for text in given for word in ("--vary", text)]
    done = CliRunner().invoke(root, [command, "--plan", *varied, "--", "true"])
    assert getattr(done.exception, "exit_code", done.exit_code) == 2


def test_rare_options_are_only_in_the_whole_help():
    command = COMMANDS["compare"]
    rare = {each.opts[-1] for each in command.params if isinstance(each, click.Option) and each.hidden}
    assert len([each for each in command.params if isinstance(each, click.Option)]) - len(rare) <= 28
    usual, whole = (
        CliRunner().invoke(root, ["compare", option]).output for option in ("--help", "--help-all")
    )
    listed = [set(re.findall(r"^ +(?:-\w +)?(--[a-z-]+)", text, re.M)) for text in (usual, whole)]
    assert {"--seed", "--timeout"} <= rare and not rare & listed[0] and rare <= listed[1]
    assert listed[0] < listed[1]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        *((Percent(), *each) for each in (("2%", 0.02), ("0.5 %", 0.005), (".5%", 0.005), (0.02, 0.02))),
        *((Percent(closed=True), *each) for each in (("0%", 0.0), ("100%", 1.0))),
        *(
            (Duration(), *each)
            for each in (("90s", 90), ("1.5h", 5400), ("1h30m", 5400), ("90", 90), (300.0, 300))
        ),
    ],
)
def test_quantities(kind: click.ParamType, text: str, value: float):
    assert kind.convert(text, None, None) == pytest.approx(value)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *((Percent(), text) for text in ("0%", "100%", "-1%", "nan%", "2", "0.02", "%", "", "1e1%")),
        *((Duration(), text) for text in ("soon", "", "-5m", "nan", "inf", "1e308h", "10x", "m", "1h 30m")),
        (Duration(0.1), "0s"),
    ],
)
def test_other_texts_are_refused(kind: click.ParamType, text: str):
    with pytest.raises(click.BadParameter):
        kind.convert(text, None, None)


@pytest.mark.parametrize(
    "arguments",
    [
        ("compare", "--kernels", "triad", "--", "true"),
        ("compare", "--no-sweep", "--suite", "stream"),
        ("compare", "--metric", "rate=(.*)"),
        ("compare", "--bind", "first-thread", "--", "true"),
        ("compare", "--sample-interval", "1s"),
        ("compare", "triad"),
        ("compare", "--"),
        ("counters", "--region", "hydro", "--", "true"),
        ("counters", "triad"),
        ("simulate",),
        ("simulate", "triad", "--", "true"),
        ("list", "kernels", "--", "true"),
        ("list", "--suite", "stream"),
        ("list", "nothing"),
    ],
)
def test_options_that_do_not_fit_the_subject_are_wrong_usage(stage: Stage, arguments: tuple[str, ...]):
    assert stage.run(*arguments).returncode == 2


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_every_option_and_examples_that_can_be_parsed(name: str):
    done = CliRunner().invoke(root, [*name.split(), HELP[name]], env={"COLUMNS": "110"})
    assert done.exit_code == 0
    command = COMMANDS[name]
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert max(parameter.opts, key=len) in done.stdout
    examples = (command.epilog or "Examples:").split("\n\n")[1:]
    assert examples
    for example in examples:
        words = shlex.split(example, comments=True)
        words = words[words.index("pagewise") + 1 :]
        assert words[: len(name.split())] == name.split()
        command.make_context(name, words[len(name.split()) :], resilient_parsing=True)


SLOW = {"numpy", "scipy", "matplotlib", "duckdb", "jinja2"}
SHOW_HELP = "from pagewise.cli import root; root.main([{}'--help'], standalone_mode=False)"
LIST = "import pagewise.cli.commands.list, pagewise.report.views.catalog, pagewise.report.render.terminal"


@pytest.mark.parametrize(
    ("script", "heavy"),
    [
        *((SHOW_HELP.format(words), {*SLOW, "yaml", "reframe"}) for words in ("", "'compare',")),
        # A small installation does not have these packages.
        (LIST, SLOW),
    ],
)
def test_help_and_lists_import_nothing_heavy(script: str, heavy: set[str]):
    code = f"import sys; sys.path.insert(0, {str(RUNNERS)!r})\n{script}\nprint(*sys.modules, file=sys.stderr)"
    done = called([sys.executable, "-c", code], check=True)
    assert heavy & set(done.stderr.split()) == set()
