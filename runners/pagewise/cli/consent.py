"""Results that were not made here: what a repetition would execute, and the user's consent to it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from pagewise.core.errors import SelectionError

#: Options that choose what else is executed or read, by their title.
_OTHERS = {
    "suite": "suite",
    "service": "service",
    "load": "load",
    "ready": "ready",
    "setup": "setup",
    "fill": "fill",
    "kernel": "kernel",
    "argument": "arguments",
    "build": "build",
    "builds": "builds",
    "peers in": "peer_path",
    "check": "checks",
    "input": "inputs",
    "read": "reads",
}


def confirm(result: Path, name: str, chosen: Mapping[str, Any], trusted: bool) -> None:
    """Shows what repeating a result of others executes. Raises SelectionError without the user's consent.

    name: the command that began it. chosen: its options. trusted: whether consent was given by an option.
    """
    click.echo(f"pagewise: this result was not made by you on this machine: {_plain(str(result))}", err=True)
    for title, value in _executed(name, chosen):
        click.echo(f"  {title + ':':<9} {_plain(value)}", err=True)
    if trusted:
        return
    if sys.stdin.isatty() and click.confirm("Execute it?", err=True):
        return
    raise SelectionError(
        "a result from elsewhere would execute the above, and you have not agreed to it",
        where=result,
        remedy="if you trust all of it, add --trust",
    )


def _executed(name: str, chosen: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "command", f"pagewise {name}"
    yield "folder", str(Path.cwd())
    if words := chosen.get("command"):
        yield "program", shlex.join(words)
    for title, option in _OTHERS.items():
        value = chosen.get(option) or ()
        for each in value if isinstance(value, tuple) else (value,):
            yield title, str(each)


def _plain(text: str) -> str:
    """The text in one line, without control characters."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)
