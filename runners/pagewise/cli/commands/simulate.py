"""`pagewise simulate`."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import rich_click as click

from pagewise.cli import options as opt
from pagewise.cli.measured import publish
from pagewise.cli.program import TakesProgram
from pagewise.cli.shell import values

_EXAMPLES = opt.examples(
    "pagewise simulate ember  # on A64FX, policies none and thp",
    "pagewise simulate --geometry zen4 random_access --working-set 16MiB",
    "pagewise simulate --policies fjmpg -- ./my_app input.dat",
)


@click.command(
    cls=TakesProgram,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog=_EXAMPLES,
)
@click.option(
    "--geometry",
    default="a64fx",
    show_default=True,
    metavar="NAME|FILE",
    shell_complete=values.one_of(values.geometries),
    panel=opt.SUBJECT,
    help="Simulated machine: a64fx, zen4, or a geometry file (.yaml).",
)
@click.option(
    "--policies",
    multiple=True,
    metavar="NAMES",
    panel=opt.SUBJECT,
    help="Page policies, the baseline first; several with commas (default: none,thp for a kernel). Assumed "
    "policies, for any program: fjmpg (heap, stack and static data on huge pages, as Fujitsu's libmpg does), "
    "huge and base (all memory).",
)
@click.option(
    "--compiler",
    default="gcc",
    show_default=True,
    metavar="NAME",
    panel=opt.SUBJECT,
    help="Compiler of the traced build: gcc or llvm.",
)
@click.option(
    "--build",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    panel=opt.SUBJECT,
    help="Build folder with traceable programs and the simulator (default: built by a CMake preset).",
)
@click.option(
    "--functions",
    type=click.IntRange(0, 40),
    metavar="N",
    default=5,
    show_default=True,
    panel=opt.RESULT,
    help="Number of functions with TLB misses to show.",
)
@opt.OUTPUT
@opt.TIMEOUT
@opt.talkative
@opt.JSON
@click.argument("kernel", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(
    kernel: str | None,
    arguments: Sequence[str],
    command: Sequence[str],
    results: Path,
    *,
    functions: int,
    as_json: bool,
    **chosen: Any,
) -> int:
    """Simulate TLBs and caches, without counters: of KERNEL with its ARGUMENTS, or of a program after --.

    The program runs in QEMU's user-mode emulation; its accesses feed a simulator of another machine's TLBs
    and caches. A kernel or mini-app is built for that, runs small unless ARGUMENTS choose otherwise, and once
    per page policy. A program of yours runs once. All figures are simulated, never measured:
    docs/simulation.md.
    """
    from datetime import datetime, timezone

    from pagewise.core.record import RecordWriter
    from pagewise.core.result import RECORDS, create_folder, write_checksum
    from pagewise.report.views import simulation
    from pagewise.workloads.simulation.run import Options, prepare
    from pagewise.workloads.simulation.run import model as run_model

    if (kernel is None) == (not command):
        raise click.UsageError("Name either a kernel, or a program after --.")
    console, messages = opt.make_console(as_json), opt.make_messages()
    chosen["policies"] = opt.split_commas(chosen["policies"])
    subject = (_path(command[0]), *command[1:]) if kernel is None else (kernel, *arguments)
    modelling = prepare(Options(**chosen), subject, messages)
    records, missing = run_model(modelling, messages)
    name = modelling.subject.name
    for policy, fault in missing.items():
        click.echo(f"pagewise: policy {policy} is omitted: {fault}", err=True)
    if not records:
        return next(iter(missing.values())).exit_code
    folder = create_folder(results, f"simulate-{name}", datetime.now(timezone.utc))
    with RecordWriter(folder / RECORDS) as writer:
        for record in records.values():
            writer.append(record)
    write_checksum(folder, writer.digest)
    report = simulation.view(folder, name, modelling.geometry.name, records, missing, functions=functions)
    return publish(console, folder, report, as_json)


def _path(program: str) -> str:
    """The path of a program that may be named as in a shell."""
    return program if "/" in program else shutil.which(program) or f"./{program}"
