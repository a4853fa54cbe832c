"""`pagewise manual`."""

from __future__ import annotations

import click

from pagewise.cli import options as opt


@opt.command(hidden=True)
def command() -> None:
    """Print the manual page: pagewise manual > pagewise.1; man ./pagewise.1.

    make man installs it for man pagewise, after setup/activate.sh.
    """
    from pagewise.cli import root
    from pagewise.cli.shell.manual import manual

    click.echo(manual(root), nl=False)
