"""The manual page, made of the help texts of all commands."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import datetime, timezone

import click

from pagewise import __version__

_SYNOPSIS = "huge pages, prefetching, stores and compilers compared on this node"
_ENVIRONMENT = {
    "PAGEWISE_ENV": "Environment whose modules are used, as with --env.",
    "PAGEWISE_MODULES": "Module tree, instead of that of an environment.",
    "PAGEWISE_PEERS": "Folders with programs of peers, separated by colons.",
    "PAGEWISE_SITE": "Site of this machine: a folder of envs/sites, or a path.",
    "NO_COLOR": "Print without color, if set (https://no-color.org).",
    "LMOD_PKG": "Folder of Lmod, if it is in no usual place.",
    "CC": "C compiler of the libraries that are preloaded into a program (compare -- PROGRAM).",
    "XDG_CACHE_HOME": "Parent of the folder of compiled libraries outside a checkout (default: ~/.cache).",
    "XDG_STATE_HOME": "Parent of the folder of the key that marks your results (default: ~/.local/state).",
    "COLUMNS": "Width of tables if standard output is not a terminal, in characters (default: 120).",
}
_FILES = {
    "results/UTC-NAME/": "A result: manifest.json, records.jsonl, report.html, summary.md, summary.csv.",
    ".pagewise/modules/NAME": "The modules of the environment NAME.",
    "~/.local/state/pagewise/key": "Key that marks the results that you measured here (see rerun, --resume).",
}


def manual(root: click.Group) -> str:
    """The page in the macros of man(7)."""
    context = click.Context(root, info_name="pagewise")
    lines = [
        f'.TH PAGEWISE 1 "{_today()}" "pagewise {__version__}" "pagewise"',
        ".SH NAME",
        f"pagewise \\- {_SYNOPSIS}",
        ".SH SYNOPSIS",
        r".B pagewise",
        r".I COMMAND",
        r"[options] [arguments]",
        ".SH DESCRIPTION",
        *_paragraphs(root.help or ""),
        ".SH COMMANDS",
    ]
    for name in root.list_commands(context):
        command = root.get_command(context, name)
        if command is not None and not command.hidden:
            lines += _command(command, click.Context(command, parent=context, info_name=name))
    lines += [".SH ENVIRONMENT", *_tagged(_ENVIRONMENT), ".SH FILES", *_tagged(_FILES)]
    lines += [".SH SEE ALSO", r".BR module (1),", r".BR hyperfine (1);", "the folder docs of pagewise"]
    return "\n".join(lines) + "\n"


def _today() -> str:
    """The date; that of the sources if SOURCE_DATE_EPOCH is set (reproducible-builds.org)."""
    named = os.environ.get("SOURCE_DATE_EPOCH")
    moment = datetime.now(timezone.utc) if named is None else datetime.fromtimestamp(int(named), timezone.utc)
    return moment.strftime("%Y-%m-%d")


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f".SS {_text(context.info_name or '')}"
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"\\fBpagewise {_text(context.info_name or '')}\\fR {_text(usage)}"
    yield ".PP"
    yield from _paragraphs(command.help or "")
    if command.epilog:
        yield from (".PP", ".nf", *(_text(line) for line in command.epilog.split("\n\n")), ".fi")
    for option in command.get_params(context):
        record = option.get_help_record(context)
        if record is not None and record[1]:
            yield from (".TP", f"\\fB{_text(record[0])}\\fR", _text(record[1]))
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                name = f"{context.info_name} {name}"  # noqa: PLW2901
                yield from _command(inner, click.Context(inner, parent=context, info_name=name))


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(re.split(r"\n\s*\n", text.strip())):
        if number:
            yield ".PP"
        yield _text(" ".join(paragraph.split()))


def _tagged(entries: dict[str, str]) -> Iterator[str]:
    for name, text in entries.items():
        yield from (".TP", f"\\fB{_text(name)}\\fR", _text(text))


def _text(text: str) -> str:
    """Text without meaning to man: no control lines, dashes that can be searched for."""
    plain = text.replace("\\", r"\e").replace("-", r"\-").replace("\b", "")
    return f"\\&{plain}" if plain[:1] in (".", "'") else plain
