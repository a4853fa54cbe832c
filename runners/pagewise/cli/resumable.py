"""Commands with `--resume RESULT`, which takes all other options from the result."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click
from click.core import ParameterSource

from pagewise.cli.consent import TRUST, confirm
from pagewise.cli.options import RESULT
from pagewise.cli.shell import values
from pagewise.core.errors import SelectionError

if TYPE_CHECKING:
    from pagewise.store.rerun import Begun

_BESIDE = ("resume", "as_json")


class Resumable(click.RichCommand):
    """A command with --resume: all other options are then those of the result."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.params.append(
            click.RichOption(
                ["--resume"],
                type=click.Path(path_type=Path, exists=True, file_okay=False, resolve_path=True),
                metavar="RESULT",
                shell_complete=values.one_of(values.interrupted),
                panel=RESULT,
                help="Resume an interrupted RESULT with its own options and in its folder.",
            )
        )
        self.params.append(
            click.RichOption(["--trust"], is_flag=True, panel=RESULT, help=f"With --resume: {TRUST}")
        )

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        """Parses the arguments, or with --resume those of the result."""
        left = super().parse_args(context, arguments)
        trusted, folder = context.params.pop("trust"), context.params["resume"]
        if folder is None or context.resilient_parsing:
            return left
        from pagewise.core.structure import unstructured
        from pagewise.machine.host import read_host
        from pagewise.session.resume import machine_differences
        from pagewise.store.rerun import changed_modules, check_unchanged, choose_modules

        for name in context.params:
            given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
            if name not in _BESIDE and given:
                raise click.UsageError("--resume takes all options from the result: give no others", context)
        kept = {name: context.params[name] for name in _BESIDE if name in context.params}
        result = _begun_by(folder, context)
        context.params.clear()
        left = super().parse_args(context, list(result.arguments))
        del context.params["trust"]
        context.params |= kept
        if not result.is_own:
            confirm(folder, result.name, context.params, trusted)
        choose_modules(context.params, result)
        remedy = f"restore it, or measure again: {shlex.join(result.manifest['command'])}"
        changed = list(changed_modules(context.params, result))
        if changed:
            changed = [*machine_differences(result.manifest, {"host": unstructured(read_host())}), *changed]
        check_unchanged(changed, result, remedy)
        return left


def _begun_by(folder: Path, context: click.Context) -> Begun:
    """How a result was started; its arguments are parsed in its working folder."""
    from pagewise.store.rerun import begun

    started = begun(folder)
    if started.name != context.info_name:
        raise SelectionError(
            f"this is a result of `pagewise {started.name}`",
            where=folder,
            remedy=f"pagewise {started.name} --resume {folder}",
        )
    return started
