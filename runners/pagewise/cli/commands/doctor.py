"""`pagewise doctor`."""

from __future__ import annotations

from pathlib import Path

import click

from pagewise.cli import options as opt
from pagewise.cli.output import make_console, print_json

_INVALID = 1


@opt.command(
    "pagewise doctor",
    "sudo pagewise doctor --restore  # undo what a killed session left changed",
    subject=(opt.ENVIRONMENT, opt.MODULES),
    machine=(
        opt.option(
            "--noise/--no-noise", "Measure for two seconds how much times vary on this machine.", default=True
        ),
        opt.flag(
            "--restore restoring", "First restore the settings that a killed session left changed (root)."
        ),
    ),
    result=(opt.JSON,),
)
def command(environment: str, modules: Path | None, noise: bool, restoring: bool, as_json: bool) -> int:
    """List what this node provides, what is missing, and how to fix it."""
    from pagewise.workloads.doctor import examine, print_findings

    if restoring:
        from pagewise.machine.settings.session import restore

        restore()
    examined = examine(_built_environment(environment), modules, noise)
    if as_json:
        print_json(examined)
    else:
        print_findings(make_console(), examined.findings)
    return 0 if examined.ready else _INVALID


def _built_environment(environment: str) -> str:
    """The named environment. Without a name the default one, or the first built one if that is not built."""
    from pagewise.stack.paths import built_environments, checkout

    source = click.get_current_context().get_parameter_source("environment")
    if source is not click.core.ParameterSource.DEFAULT or checkout() is None:
        return environment
    built = built_environments()
    return environment if environment in built or not built else built[0]
