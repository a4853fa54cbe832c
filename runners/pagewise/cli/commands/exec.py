"""`pagewise exec`."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path

import rich_click as click

from pagewise.cli import options as opt
from pagewise.cli.measuring import TakesProgram
from pagewise.cli.types import Folder


@opt.command(
    "pagewise exec thp -- ./my_app its arguments",
    "mpiexec -n 4 pagewise exec --record pages.jsonl reuse+thp -- ./my_app",
    "pagewise exec --where results/where-my_app -- ./my_app",
    "pagewise exec --install ~/pagewise  # ~/pagewise/bin/pagewise-exec, which needs no Python",
    cls=TakesProgram,
    options=(
        opt.flag("-q --quiet", "Report nothing on standard error at the end."),
        opt.option(
            "--record",
            "Append the report to this file as a line of JSON; %h is the host's name, %p the process.",
            metavar="FILE",
        ),
        opt.option(
            "--where selection",
            "Result of `pagewise where`, or selection file, for the policy where (the default then).",
            metavar="RESULT",
        ),
        opt.option(
            "--for started",
            "Apply the policy to this program, which PROGRAM starts: for a static launcher.",
            metavar="FILE",
        ),
        opt.option(
            "--install prefix",
            "Install the launcher pagewise-exec and the modules pagewise-pages here, and run nothing.",
            type=Folder(),
            metavar="FOLDER",
        ),
    ),
)
@opt.argument("policy", type=str, required=False)
def command(
    *,
    quiet: bool,
    record: str | None,
    selection: str | None,
    started: str | None,
    prefix: Path | None,
    policy: str | None,
    command: Sequence[str],
) -> int:
    """Become a program under a page policy, for production runs.

    POLICY is one of `pagewise list policies`, as thp, hugetlbfs:1g or reuse+malloc. The process becomes the
    program, with the same standard streams, process group and exit code. At its end it reports its peak
    memory and the share on huge pages. Exit codes if it cannot start: 2 wrong usage; 3 the policy is
    unavailable here; 126 not executable; 127 no such program.
    """
    from pagewise.workloads.program.production import find_launcher, install

    if prefix is not None:
        if policy or command:
            raise click.UsageError("--install runs nothing: name no policy and no program.")
        click.echo(install(prefix))
        return 0
    policy = policy or ("where" if selection is not None else None)
    if policy is None or not command:
        raise click.UsageError("Name a policy, and a program after --.")
    words = [str(find_launcher()), *(["--quiet"] if quiet else [])]
    words += [] if record is None else ["--record", record]
    words += [] if selection is None else ["--where", selection]
    words += [] if started is None else ["--for", started]
    # Python ignores these, and a program inherits what is ignored.
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    os.execv(words[0], [*words, policy, "--", *command])
