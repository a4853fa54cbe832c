"""Commands that measure: from parsed options to a session, which is planned, resumed, or measured."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from pagewise.cli.chosen import Parameters, options_of
from pagewise.cli.options import Command
from pagewise.cli.output import make_messages
from pagewise.cli.reporting import publish_session, show

if TYPE_CHECKING:
    from pagewise.session.session import Session

    Prepare = Callable[[Parameters, Console], Session]


class Measuring(Command):
    """A command whose function prepares a session: `function(parameters, console)`.

    It takes the panels `SESSION_RUNS` and `SESSION_RESULT` of `options`.
    """

    def __init__(self, *arguments: Any, callback: Prepare, **named: Any) -> None:
        super().__init__(*arguments, callback=self._measure, **named)
        self._prepare = callback

    def _measure(self, *, planning: bool, as_json: bool, resume: Path | None, **parameters: object) -> int:
        from pagewise.report.views import plan
        from pagewise.session.options import MachineOptions
        from pagewise.session.resume import check_command

        if resume is not None:
            check_command(resume, sys.argv[1:])
        if not planning:
            _begin_session(options_of(MachineOptions, parameters).changes)
        prepared = self._prepare({**parameters, "resume": resume}, make_messages())
        if not planning:
            return publish_session(prepared, as_json)
        show(plan.view(prepared), as_json)
        return 0


def _begin_session(changes: bool) -> None:
    """If it changes settings of the machine, restores them when the command ends; call this first.

    What a killed session left changed is restored then, too, and otherwise reported. Raises RefusedError.
    """
    from pagewise.machine.settings.session import session, traces

    if changes:
        click.get_current_context().with_resource(session())
        return
    for trace in traces():
        if not trace.running:
            places = "; ".join(change.text for change in trace.changes)
            text = f"a killed session left settings of this machine changed; their original values: {places}"
            click.echo(f"pagewise: warning: {text}\n  remedy: as root: pagewise doctor --restore", err=True)
