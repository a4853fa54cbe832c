"""`pagewise doctor`."""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from pagewise.cli.options import (
    ENVIRONMENT,
    JSON,
    MODULES,
    examples,
    make_console,
    print_json,
)

_INVALID = 1
_EXAMPLES = examples(
    "pagewise doctor",
    "sudo pagewise doctor --restore  # undo what a killed session left changed",
)


@click.command(epilog=_EXAMPLES)
@ENVIRONMENT
@MODULES
@click.option(
    "--noise/--no-noise",
    default=True,
    help="Measure for two seconds how much times vary on this machine (default: yes).",
)
@click.option(
    "--restore",
    "restoring",
    is_flag=True,
    help="First restore the settings that a killed session left changed.",
)
@JSON
def command(environment: str, modules: Path | None, noise: bool, restoring: bool, as_json: bool) -> int:
    """List what this node provides, what is missing, and how to fix it."""
    from pagewise.workloads.doctor import examine, print_findings, to_dict

    if restoring:
        from pagewise.machine.settings.session import restore

        restore()
    findings = examine(environment, modules, noise)
    if as_json:
        print_json(to_dict(findings))
    else:
        print_findings(make_console(), findings)
    return _INVALID if any(finding.is_missing for finding in findings) else 0
