"""What the documentation contains of each command: usage, texts, options, examples."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import click

from pagewise.cli.options import all_shown


@dataclass(frozen=True)
class Documented:
    """A command: its name after `pagewise`, the arguments of its usage line, paragraphs, examples.

    panels: the options by the title of their panel, each with its help text.
    """

    name: str
    usage: str
    paragraphs: tuple[str, ...]
    panels: dict[str, list[tuple[str, str]]]
    examples: tuple[str, ...]


def documented(root: click.Group) -> Iterator[Documented]:
    """All commands that are not hidden, groups before their commands."""
    yield from _below(root, root.make_context("pagewise", [], resilient_parsing=True), "")


def paragraphs(text: str) -> tuple[str, ...]:
    """A help text's paragraphs, each on one line."""
    return tuple(" ".join(part.split()) for part in re.split(r"\n\s*\n", text.strip()))


def _below(group: click.Group, parent: click.Context, before: str) -> Iterator[Documented]:
    for name in group.list_commands(parent):
        command = group.get_command(parent, name)
        if command is not None and not command.hidden:
            context = click.Context(command, parent=parent, info_name=name)
            yield _one(command, context, before + name)
            if isinstance(command, click.Group):
                yield from _below(command, context, f"{name} ")


def _one(command: click.Command, context: click.Context, name: str) -> Documented:
    panels: dict[str, list[tuple[str, str]]] = {}
    with all_shown(command):
        for option in command.get_params(context):
            if record := option.get_help_record(context):
                panels.setdefault(getattr(option, "panel", None) or "Options", []).append(record)
    lines = (command.epilog or "").replace("\b", "").split("\n\n")
    return Documented(
        name,
        " ".join(command.collect_usage_pieces(context)),
        paragraphs(command.help or ""),
        panels,
        tuple(line.strip() for line in lines if line.strip()),
    )
