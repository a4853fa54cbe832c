"""`pagewise peers`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rich_click as click

from pagewise.cli.options import (
    END_LEFTOVERS,
    ENVIRONMENT,
    JSON,
    MEMORY,
    MODULES,
    ORDERS,
    OUTPUT,
    RUNS,
    SEED,
    SMT,
    SUBJECT,
    TIMEOUT,
    examples,
    make_console,
    make_messages,
    print_json,
    split_commas,
    take_where,
    talkative,
)
from pagewise.cli.shell import values
from pagewise.core.errors import Interrupted

_INVALID = 1
_EXAMPLES = examples(
    "pagewise peers --quick  # first-level cache and memory, one core",
    "pagewise peers --peers stream,likwid-bench -k stream_triad",
)


@click.command(epilog=_EXAMPLES)
@ENVIRONMENT
@MODULES
@click.option(
    "-n",
    "--rounds",
    type=click.IntRange(1, 1000),
    metavar="N",
    default=None,
    panel=RUNS,
    help="Number of rounds (default: 9, with --quick 3).",
)
@click.option(
    "--peers",
    multiple=True,
    metavar="NAMES",
    shell_complete=values.list_of(values.peers),
    panel=SUBJECT,
    help="Peers by name; several with commas (default: all that are installed).",
)
@click.option(
    "-k",
    "--kernels",
    multiple=True,
    metavar="GLOBS",
    panel=SUBJECT,
    help="Kernels or comparisons by glob, as stream_triad or '*/L1/*'; several with commas.",
)
@click.option(
    "--quick",
    is_flag=True,
    panel=RUNS,
    help="Measure first-level cache and memory only, on one core, in 3 rounds.",
)
@click.option(
    "--peer-path",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    panel=SUBJECT,
    help="Folder with programs of peers, searched before PATH (also: PAGEWISE_PEERS, DIR:DIR).",
)
@ORDERS
@SMT
@MEMORY
@SEED
@OUTPUT
@TIMEOUT
@END_LEFTOVERS
@talkative
@JSON
def command(as_json: bool, **chosen: Any) -> int:
    """Compare the kernels with installed peer benchmarks, interleaved.

    Lists missing peers; docs/peers.md describes how to get them. Exit code 1 when something could not run as
    asked; a missed target is not a failure. Ctrl-C keeps and reports what was measured.
    """
    from pagewise.session.processes import left_text
    from pagewise.workloads.peers.report import print_rows, to_dict, write_files
    from pagewise.workloads.peers.run import Options, prepare

    console = make_console(as_json)
    for name in ("peers", "kernels"):
        chosen[name] = split_commas(chosen[name])
    chosen["where"] = take_where(chosen)
    messages = make_messages()
    comparison = prepare(Options(**chosen), messages)
    found = comparison.measure()
    # Written first: Ctrl-C may have ended the reader of our output as well.
    write_files(comparison.folder, found, comparison.to_dict())
    print_rows(console, found)
    if text := left_text(comparison.left):
        messages.print(text, style="yellow", highlight=False, soft_wrap=True)
    console.print(f"Result: {comparison.folder / 'peers.md'}", highlight=False, soft_wrap=True)
    if as_json:
        print_json(to_dict(comparison.folder, found, comparison.to_dict()))
    for fault in comparison.faults:
        click.echo(f"pagewise: could not run as asked: {fault}", err=True)
    if comparison.ending is None:
        return _INVALID if comparison.faults else 0
    stopped = isinstance(comparison.ending, Interrupted)
    text = "interrupted: the above is what was measured" if stopped else f"error: {comparison.ending}"
    click.echo(f"pagewise: {text}", err=True)
    return comparison.ending.exit_code
