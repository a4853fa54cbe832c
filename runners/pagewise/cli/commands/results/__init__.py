"""`pagewise results`."""

from __future__ import annotations

import rich_click as click

from pagewise.cli.folder import Folder


@click.group(cls=Folder, package=__name__)
def command() -> None:
    """List, show, query, collect, diff and rerun results (docs/results.md)."""
