"""`pagewise completion`."""

from __future__ import annotations

import click

from pagewise.cli import options as opt

_SHELLS = ("bash", "zsh", "fish")


@opt.command()
@click.argument("shell", type=click.Choice(_SHELLS))
def command(shell: str) -> None:
    """Print the completion script of a shell: eval "$(pagewise completion bash)".

    In fish: pagewise completion fish | source. setup/activate.sh loads it in bash and zsh. zsh and fish need
    pagewise on PATH; bash completes ./pagewise as well.
    """
    from pagewise.cli import COMPLETE, root
    from pagewise.cli.shell.complete import SHELLS

    click.echo(SHELLS[shell](root, {}, "pagewise", COMPLETE).source(), nl=False)
