"""Commands that measure: from parsed options to a session, which is planned, resumed, or measured."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from rich.console import Console
from rich_click import RichCommand

from pagewise.cli.chosen import take_where
from pagewise.cli.consent import confirm
from pagewise.cli.output import make_messages
from pagewise.cli.reporting import publish_session, show
from pagewise.core.errors import SelectionError

if TYPE_CHECKING:
    from pagewise.session.session import Session
    from pagewise.store.rerun import Begun

    Prepare = Callable[[dict[str, Any], Console], Session]

#: What --resume can be combined with.
_BESIDE = ("resume", "trust", "as_json")


class Measuring(RichCommand):
    """A command whose function prepares a session: `function(chosen, console)`.

    It takes the panels `SESSION_RUNS` and `SESSION_RESULT` of `options`. With --resume, all other options are
    those of the result. In a class with `TakesProgram`, it comes first.
    """

    def __init__(self, *arguments: Any, callback: Prepare, **named: Any) -> None:
        super().__init__(*arguments, callback=self._measure, **named)
        self._prepare = callback

    def prepare(self, chosen: dict[str, Any], console: Console) -> Session:
        """The session that these options ask for. Raises SelectionError, SetupError, RefusedError."""
        if "orders" in chosen:
            chosen["where"] = take_where(chosen)
        return self._prepare(chosen, console)

    def _measure(self, *, planning: bool, as_json: bool, **chosen: Any) -> int:
        begin_session(chosen, planning)
        return carry_out(self.prepare(chosen, make_messages()), planning, as_json)

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        """Parses the arguments, or with --resume those of the result."""
        left = super().parse_args(context, arguments)
        chosen = context.params
        trusted, folder = chosen.pop("trust"), chosen["resume"]
        if folder is None or context.resilient_parsing:
            return left
        for name in chosen:
            given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
            if name not in _BESIDE and given:
                raise click.UsageError(
                    "--resume takes all options from the result: remove the others", context
                )
        kept = {name: chosen[name] for name in _BESIDE if name in chosen}
        result = _begun_by(folder, context)
        chosen.clear()
        left = super().parse_args(context, list(result.arguments))
        del chosen["trust"]
        chosen |= kept
        check_origin(chosen, result, trusted=trusted)
        return left


def begin_session(chosen: Mapping[str, Any], planning: bool) -> None:
    """If options change settings of the machine, restores them when the command ends; call this first.

    What a killed session left changed is restored then, too, and otherwise reported. Raises RefusedError.
    """
    from pagewise.machine.settings.session import session, traces
    from pagewise.store.rerun import CHANGING

    if planning:
        return
    if any(chosen.get(name) for name in CHANGING):
        click.get_current_context().with_resource(session())
        return
    for trace in traces():
        if not trace.running:
            places = "; ".join(change.text for change in trace.changes)
            text = f"a killed session left settings of this machine changed; their original values: {places}"
            click.echo(f"pagewise: warning: {text}\n  remedy: as root: pagewise doctor --restore", err=True)


def carry_out(session: Session, planning: bool, as_json: bool) -> int:
    """Measures what was prepared, or shows its plan; the exit code."""
    from pagewise.report.views import plan

    if not planning:
        return publish_session(session, as_json)
    show(plan.view(session), as_json)
    return 0


def _begun_by(folder: Path, context: click.Context) -> Begun:
    """How a result was started; its arguments are parsed in its working folder."""
    from pagewise.store.rerun import begun

    started = begun(folder)
    if started.name != context.info_name:
        raise SelectionError(
            f"this is a result of `pagewise {started.name}`",
            where=folder,
            remedy=f"pagewise {started.name} --resume {shlex.quote(str(folder))}",
        )
    return started


def check_origin(
    chosen: dict[str, Any],
    result: Begun,
    *,
    trusted: bool,
    modules: Path | None = None,
    remedy: str | None = None,
    anyway: bool = False,
) -> None:
    """Asks for consent to a result from elsewhere, and chooses its modules, else those of the tree `modules`.

    Raises SelectionError without consent, and RefusedError when modules have changed, except `anyway`.
    """
    from pagewise.machine.host import read_host
    from pagewise.session.resume import machine_differences
    from pagewise.store.rerun import changed_modules, check_unchanged, choose_modules

    if not result.is_own:
        confirm(result.folder, result.name, chosen, trusted)
    choose_modules(chosen, result, modules)
    changed = [] if anyway else list(changed_modules(chosen, result))
    if changed:
        changed = [*machine_differences(result.manifest.host, read_host()), *changed]
    again = f"restore it, or measure again: {shlex.join(result.manifest.command)}"
    check_unchanged(changed, result, remedy or again)
