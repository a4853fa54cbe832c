"""`pagewise site`."""

from __future__ import annotations

import rich_click as click

from pagewise.cli import options as opt


@click.group(cls=opt.CommandGroup)
def command() -> None:
    """List and check sites, which describe what a machine provides (docs/how-to/new-site.md)."""


@opt.command("pagewise site list", parent=command, name="list")
def list_sites() -> None:
    """List the sites of this checkout."""
    from pagewise.stack.paths import needed_checkout
    from pagewise.stack.site import read_site, site_names

    needed_checkout("the list of sites")
    for name in site_names():
        site = read_site(name)
        target = site.data.target or "this machine's processor"
        click.echo(f"{name:<10} {site.data.summary} ({target})")


@opt.command(
    "pagewise site check mine --here",
    parent=command,
    options=(opt.flag("--here", "Also check that everything it names exists on this machine."),),
)
@click.argument("name")
def check(name: str, here: bool) -> None:
    """Check the schema, compilers and toolchains of a site, and report all errors at once."""
    from pagewise.stack.site import read_site

    site = read_site(name, here=here)
    click.echo(f"{site.name}: no errors" + (", and everything exists here" if here else ""))
