"""Commands that go on with what they once began: `--resume RESULT` takes all else from the result."""

from __future__ import annotations

import os
from pathlib import Path

import click
from click.core import ParameterSource

from pagewise.cli.shell import values
from pagewise.errors import SelectionError

_BESIDE = ("resume", "as_json")


class Resumable(click.Command):
    """A command with --resume: its options are then those that the result was begun with."""

    def __init__(self, *arguments: object, **named: object) -> None:
        super().__init__(*arguments, **named)
        self.params.append(
            click.Option(
                ["--resume"],
                type=click.Path(path_type=Path, exists=True, file_okay=False, resolve_path=True),
                metavar="RESULT",
                shell_complete=values.one_of(values.broken_off),
                help="Go on with a comparison that was broken off, as it was begun and in its folder.",
            )
        )

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        """Parses what was typed or, with --resume, what was typed when the result was begun."""
        left = super().parse_args(context, arguments)
        folder = context.params["resume"]
        if folder is None or context.resilient_parsing:
            return left
        for name in context.params:
            given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
            if name not in _BESIDE and given:
                raise click.UsageError("--resume takes all other options from the result: give none", context)
        kept = {name: context.params[name] for name in _BESIDE if name in context.params}
        begun = _begun_by(folder, context)
        context.params.clear()
        left = super().parse_args(context, begun)
        context.params |= kept
        return left


def _begun_by(folder: Path, context: click.Context) -> list[str]:
    """The arguments that a result's comparison was begun with; they are read where it was begun."""
    from pagewise.result import read_manifest

    manifest = read_manifest(folder)
    _, command, *arguments = manifest["command"]
    if command != context.info_name:
        raise SelectionError(
            f"this result was begun by `pagewise {command}`",
            where=folder,
            remedy=f"pagewise {command} --resume {folder}",
        )
    if "started_in" in manifest:
        try:
            os.chdir(manifest["started_in"])
        except OSError as fault:
            raise SelectionError(
                f"the folder in which it was begun is gone: {fault.strerror}",
                where=manifest["started_in"],
                remedy="begin anew",
            ) from fault
    return arguments
