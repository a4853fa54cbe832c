"""The manual page, made of the help texts of all commands."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from itertools import chain

import click

from pagewise import __version__
from pagewise.cli.shell.documented import Documented, documented, paragraphs

_SYNOPSIS = "huge pages, prefetching, stores and compilers compared on this node"
ENVIRONMENT = {
    "PAGEWISE_ENV": "Environment whose modules are used, as with --env.",
    "PAGEWISE_MODULES": "Module tree, instead of that of an environment.",
    "PAGEWISE_PEERS": "Folders with programs of peers, separated by colons.",
    "PAGEWISE_SITE": "Site of this machine: a folder of envs/sites, or a path.",
    "NO_COLOR": "Print without color, if set (https://no-color.org).",
    "MODULEPATH": "Without a checkout: folders whose modules of configurations are used.",
    "SPACK_ROOT": "Without a checkout: your Spack, whose packages are used (default: spack on PATH).",
    "LMOD_PKG": "Lmod's folder, if it is not in a usual place.",
    "CC": "C compiler for the libraries that are preloaded into a program (compare -- PROGRAM).",
    "XDG_CACHE_HOME": "Parent of the folder of compiled libraries outside a checkout (default: ~/.cache).",
    "COLUMNS": "Width of tables if standard output is not a terminal, in characters (default: 120).",
}
FILES = {
    "results/UTC-NAME/": "A result: manifest.json, records.jsonl, report.html, summary.md, summary.csv.",
    ".pagewise/modules/NAME": "The modules of the environment NAME.",
}


def manual(root: click.Group) -> str:
    """The page in the macros of man(7)."""
    lines = [
        f'.TH PAGEWISE 1 "{_today()}" "pagewise {__version__}" "pagewise"',
        *(".SH NAME", f"pagewise \\- {_SYNOPSIS}"),
        *(".SH SYNOPSIS", ".B pagewise", ".I COMMAND", "[options] [arguments]"),
        *(".SH DESCRIPTION", *_paragraphs(paragraphs(root.help or ""))),
        *(".SH COMMANDS", *chain.from_iterable(map(_command, documented(root)))),
        *(".SH ENVIRONMENT", *_tagged(ENVIRONMENT.items())),
        *(".SH FILES", *_tagged(FILES.items())),
        *(".SH SEE ALSO", ".BR module (1),", ".BR hyperfine (1);", "the folder docs of pagewise"),
    ]
    return "\n".join(lines) + "\n"


def _today() -> str:
    """The date; that of the sources if SOURCE_DATE_EPOCH is set (reproducible-builds.org)."""
    named = os.environ.get("SOURCE_DATE_EPOCH")
    moment = datetime.now(timezone.utc) if named is None else datetime.fromtimestamp(int(named), timezone.utc)
    return moment.strftime("%Y-%m-%d")


def _command(command: Documented) -> Iterator[str]:
    name = _text(command.name)
    yield from (f".SS {name}", f"\\fBpagewise {name}\\fR {_text(command.usage)}", ".PP")
    yield from _paragraphs(command.paragraphs)
    for panel, records in command.panels.items():
        yield from (".PP", f"\\fI{_text(panel)}\\fR", *_tagged(records))
    if command.examples:
        yield from (".PP", ".nf", *map(_text, command.examples), ".fi")


def _paragraphs(texts: Iterable[str]) -> Iterator[str]:
    for number, text in enumerate(texts):
        if number:
            yield ".PP"
        yield _text(text)


def _tagged(entries: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, text in entries:
        yield from (".TP", f"\\fB{_text(name)}\\fR", _text(text))


def _text(text: str) -> str:
    """Text without meaning to man: no control lines, dashes that can be searched for."""
    plain = text.replace("\\", r"\e").replace("-", r"\-").replace("\b", "")
    return f"\\&{plain}" if plain[:1] in (".", "'") else plain
