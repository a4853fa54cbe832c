"""`pagewise completion`."""

from __future__ import annotations

import click

_SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
def command(shell: str) -> None:
    """Print what makes SHELL complete commands, options and values: eval "$(pagewise completion bash)".

    In fish: pagewise completion fish | source. setup/activate.sh does it for bash and zsh. zsh and fish want
    pagewise on PATH; bash completes ./pagewise too.
    """
    from pagewise.cli import COMPLETE, root
    from pagewise.cli.shell.complete import SHELLS

    click.echo(SHELLS[shell](root, {}, "pagewise", COMPLETE).source(), nl=False)
