"""`pagewise model`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from pagewise.cli.options import (
    JSON,
    LIMIT,
    RESULTS,
    make_console,
    print_json,
    split_commas,
)
from pagewise.cli.shell import values


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--geometry",
    default="a64fx",
    show_default=True,
    metavar="NAME|FILE",
    shell_complete=values.one_of(values.geometries),
    help="The machine that is modelled: a64fx, zen4, or a geometry file of your own (.yaml).",
)
@click.option(
    "--policies",
    multiple=True,
    metavar="NAMES",
    help="Page policies, the baseline first; several with commas. A kernel has none,thp by default. Assumed "
    "ones, for any program: fjmpg (heap, stack and static data on huge pages, as by Fujitsu's libmpg), huge "
    "and base (everything).",
)
@click.option("--compiler", default="gcc", show_default=True, help="Whose build is traced: gcc, llvm.")
@click.option(
    "--build",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="A build folder with traceable programs and the model, in place of one made by a preset.",
)
@click.option(
    "--functions",
    type=click.IntRange(0, 40),
    default=5,
    show_default=True,
    help="How many of the functions that miss the TLB are shown.",
)
@RESULTS
@LIMIT
@JSON
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def command(command: Sequence[str], results: Path, functions: int, as_json: bool, **chosen: Any) -> int:
    """Model TLBs and caches without counters: pagewise model KERNEL [ARGUMENTS], or -- PROGRAM [ARGUMENTS].

    The program runs in QEMU's user-mode emulation; its accesses feed a model of another machine's TLBs and
    caches. A kernel or mini-app is built for that, runs small unless arguments say otherwise, and once for
    each page policy. Any other program is named by a path and runs once. Figures are modelled, never
    measured: docs/model.md.
    """
    from datetime import datetime, timezone

    from pagewise.core.record import RecordWriter
    from pagewise.core.result import RECORDS, create_folder, write_checksum
    from pagewise.workloads.simulation.report import print_records, to_dict, write_csv
    from pagewise.workloads.simulation.run import Options, prepare
    from pagewise.workloads.simulation.run import model as run_model

    console = make_console(as_json)
    chosen["policies"] = split_commas(chosen["policies"])
    modelling = prepare(Options(**chosen), command[1:] if command[0] == "--" else command, console)
    records, missing = run_model(modelling, console)
    name = modelling.subject.name
    for policy, fault in missing.items():
        click.echo(f"pagewise: policy {policy} is left out: {fault}", err=True)
    if not records:
        return next(iter(missing.values())).exit_code
    folder = create_folder(results, f"model-{name}", datetime.now(timezone.utc))
    with RecordWriter(folder / RECORDS) as writer:
        for record in records.values():
            writer.append(record)
    write_checksum(folder, writer.digest)
    print_records(console, name, modelling.geometry, records, functions)
    console.print(f"Result: {write_csv(folder, records)}", highlight=False, soft_wrap=True)
    if as_json:
        print_json(to_dict(folder, name, modelling.geometry, records, missing))
    return 0
