"""`pagewise site`."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

import rich_click as click

from pagewise.cli import options as opt
from pagewise.core.errors import SelectionError


@click.group(cls=opt.Group)
def command() -> None:
    """List, check and create sites, which describe what a machine provides (docs/how-to/new-site.md)."""


@opt.command("pagewise site list", parent=command, name="list")
def list_sites() -> None:
    """List the sites of this checkout."""
    from pagewise.stack.paths import needed_checkout
    from pagewise.stack.site.folder import read_site, site_names

    for name in site_names(needed_checkout("the list of sites")):
        site = read_site(name)
        target = site.data["target"] or "this machine's processor"
        click.echo(f"{name:<10} {site.data['summary']} ({target})")


@opt.command(
    "pagewise site check mine --here",
    parent=command,
    options=(opt.flag("--here", "Also check that everything it names exists on this machine."),),
)
@click.argument("name")
def check(name: str, here: bool) -> None:
    """Check the schema, compilers and toolchains of a site, and report all errors at once."""
    from pagewise.stack.site.folder import read_site

    site = read_site(name, here=here)
    click.echo(f"{site.name}: no errors" + (", and everything exists here" if here else ""))


@opt.command(
    "pagewise site new mine",
    "pagewise site new mine --yes --summary 'two-socket node' --target zen4",
    parent=command,
    options=(
        opt.option("--summary", "Description of the machine in one line.", metavar="TEXT"),
        opt.option(
            "--target",
            "Processor by its archspec name, or native: that of the building machine (default: native).",
        ),
        opt.option("--module modules", "Module to load before anything is built or run.", multiple=True),
        opt.flag("--yes", "Do not ask; use detected values for everything that is not given."),
    ),
)
@click.argument("name")
def new(name: str, *, modules: Sequence[str], yes: bool, **given: str | None) -> None:
    """Create the folder of a new site from what is detected here, and ask for the rest."""
    from pagewise.stack.site.new import detect, fault, new_folder, write

    if not re.fullmatch(r"[a-z][a-z0-9_-]*", name):
        raise SelectionError(
            f"{name!r} is not a valid site name",
            remedy="use lower-case letters, digits, - and _, and begin with a letter",
        )
    new_folder(name)
    asks = not yes and sys.stdin.isatty()
    if not asks and given["summary"] is None:
        raise SelectionError("the site has no summary", remedy="give --summary 'what the machine is'")
    detected = detect()

    def choose(option: str, default: str | None, question: str, *place: str) -> str:
        """The value of an option, else the answer to a question, or the default if nothing is asked."""
        value = given[option]
        if value is not None or not asks:
            return str(default) if value is None else value

        def checked(answer: str) -> str:
            if answer != default and (wrong := fault(place, answer)):
                raise click.BadParameter(wrong)
            return answer

        shown = bool(default)
        return str(click.prompt(question, default=default, value_proc=checked, show_default=shown, err=True))

    summary = choose("summary", None, "Description of the machine in one line", "summary")
    target = choose("target", "native", "Processor by its archspec name, or native", "target")
    target_named = None if target == "native" else target
    site = write(name, summary, detected, target=target_named, modules=modules)
    click.echo(f"Created {site.folder}. Next: make compare SITE={name}")
