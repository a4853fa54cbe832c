"""`pagewise results rerun`."""

from __future__ import annotations

import importlib
import shlex
from pathlib import Path
from typing import Any

import rich_click as click

from pagewise.cli.consent import TRUST, confirm
from pagewise.cli.measured import begin_session, carry_out
from pagewise.cli.options import JSON, MODULES, PLAN, examples, make_messages, talkative
from pagewise.cli.shell import values
from pagewise.core.errors import SelectionError

_MEASURING = ("compare", "counters", "peers", "simulate")
_EXAMPLES = examples(
    "pagewise results rerun results/20261121T115458Z-default --plan",
    "pagewise results rerun results/20261121T115458Z-default --output again",
)


@click.command(epilog=_EXAMPLES)
@click.argument(
    "result",
    type=click.Path(path_type=Path, exists=True, file_okay=False, resolve_path=True),
    shell_complete=values.one_of(values.results),
)
@click.option("--anyway", is_flag=True, help="Continue even if modules, programs or kernels differ.")
@click.option(
    "--change-settings",
    is_flag=True,
    help="Allow it to change the machine settings that RESULT changed, and restore them.",
)
@MODULES
@click.option("--trust", is_flag=True, help=TRUST)
@click.option(
    "-o",
    "--output",
    "results",
    type=click.Path(path_type=Path, resolve_path=True),
    metavar="DIR",
    help="Parent folder of the new result's folder (default: that of RESULT).",
)
@PLAN
@talkative
@JSON
def command(
    result: Path,
    results: Path | None,
    modules: Path | None,
    *,
    anyway: bool,
    trust: bool,
    change_settings: bool,
    planning: bool,
    as_json: bool,
) -> int:
    """Measure RESULT again: same command, same modules, same order of runs.

    Modules and programs must have the same digests; otherwise the differences are listed, and nothing runs.
    Differences of the machine are listed and recorded in the new result. What a result from elsewhere would
    execute is shown, and needs your consent. To compare the two: pagewise results diff RESULT NEW.
    """
    from pagewise.store.rerun import (
        REMEDY,
        begun,
        changed_modules,
        check_changes,
        check_same,
        check_unchanged,
        choose_modules,
        same_choice,
    )

    modules = modules and modules.absolute()
    started = begun(result)
    manifest, name = started.manifest, started.name
    if name not in _MEASURING:
        raise SelectionError(
            f"`pagewise {name}` cannot be repeated by its result",
            where=result,
            remedy=f"give its command again: {shlex.join(manifest['command'])}",
        )
    file = importlib.import_module(f"pagewise.cli.commands.{name}")
    chosen = file.command.make_context(name, list(started.arguments)).params
    for beside in ("planning", "as_json"):
        chosen.pop(beside, None)
    chosen["resume"] = None
    if not started.is_own:
        confirm(result, name, chosen, trust)
    choose_modules(chosen, started, modules)
    if not anyway:
        check_unchanged(list(changed_modules(chosen, started)), started, REMEDY)
    chosen["results"] = results or result.parent
    same_choice(chosen, manifest)
    check_changes(chosen, change_settings, result)
    begin_session(chosen, planning)
    console = make_messages()
    comparison: Any = file.prepared(chosen, console)
    for line in check_same(started, comparison.manifest, anyway):
        console.print(f"different now: {line}", style="yellow", highlight=False, soft_wrap=True)
    return carry_out(comparison, planning, as_json)
