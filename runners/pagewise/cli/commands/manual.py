"""`pagewise manual`."""

from __future__ import annotations

import click


@click.command(hidden=True)
def command() -> None:
    """Print the manual page: pagewise manual > pagewise.1; man ./pagewise.1.

    make man writes it to where setup/activate.sh makes man find it: man pagewise.
    """
    from pagewise.cli import root
    from pagewise.cli.shell.manual import manual

    click.echo(manual(root), nl=False)
