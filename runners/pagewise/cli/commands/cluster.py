"""`pagewise cluster`: comparisons on the nodes of a cluster."""

from __future__ import annotations

from functools import partial
from typing import Any

import rich_click as click

from pagewise.cli import options as opt
from pagewise.cli.output import make_messages, print_json
from pagewise.cli.reporting import publish_cluster
from pagewise.cli.types import Duration

_SITE = opt.option(
    "--site",
    "Site that describes the scheduler (reframe.yaml, else site.yaml): a folder of envs/sites, or a "
    "path (default: PAGEWISE_SITE, else the scheduler detected here).",
)
_PARTITION = opt.option("--partition", "Partition (default: the site's; required if the site has several).")


@click.group(cls=opt.Group)
def command() -> None:
    """Compare the nodes of a cluster; ReFrame runs the jobs (docs/how-to/node-sweeps.md)."""


@opt.command("pagewise cluster configure mine", parent=command)
@click.argument("site")
def configure(site: str) -> None:
    """Create envs/sites/SITE/reframe.yaml from its site.yaml, or from what is detected here."""
    from pagewise.cluster.sites import site_folder, system_of, write_site
    from pagewise.stack.paths import needed_checkout, project_root

    root = project_root() if "/" in site else needed_checkout("a site by its name")
    folder = site_folder(root, site)
    assert folder is not None
    file = write_site(folder, system_of(folder), folder.name)
    click.echo(f"Created {file}. Check it, then run: pagewise cluster nodes")


@opt.command(
    "pagewise cluster nodes --partition batch", parent=command, nodes=(_SITE, _PARTITION), result=(opt.JSON,)
)
def nodes(site: str | None, partition: str | None, as_json: bool) -> None:
    """List the nodes of a partition and whether they are usable."""
    from pagewise.cluster.schedulers import nodes_of
    from pagewise.cluster.sites import located

    with located(site, partition) as files:
        chosen = _partition(files, partition)
    listed = nodes_of(chosen.scheduler, chosen.access)
    if as_json:
        rows = [vars(node) for node in listed]
        print_json({"schema": "pagewise.nodes/1", "partition": chosen.fullname, "nodes": rows})
        return
    usable = sum(node.usable for node in listed)
    click.echo(f"{chosen.fullname} ({chosen.scheduler}): {usable} of {len(listed)} usable")
    for node in listed:
        click.echo(f"  {node.name}  {node.state}" + (f": {node.reason}" if node.reason else ""))


class _Passing(click.RichCommand):
    """Passes the options that it does not have on to `pagewise compare`."""

    ignore_unknown_options = True

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        """Parses its own options. A short option of compare may have its value glued to it, as -kchase."""
        own = [option for option in self.get_params(context) if isinstance(option, click.Option)]
        names = {name for option in own for name in option.opts}
        valued = {name for option in own if not option.is_flag for name in option.opts}
        words = []
        for before, word in zip(["", *arguments], arguments, strict=False):
            glued = len(word) > 2 and word[0] == "-" != word[1] and word[:2] not in names
            # Otherwise the parser looks for own options among the letters: h is --help.
            words += [word[:2], word[2:]] if glued and before not in valued else [word]
        return super().parse_args(context, words)


@opt.command(
    "pagewise cluster run --nodes all --env quick -n 7",
    "pagewise cluster run --nodes 'n[1-4]' -k pointer_chase --time-limit 30m -J account=perf",
    parent=command,
    cls=_Passing,
    subject=(opt.ENVIRONMENT,),
    nodes=(
        _SITE,
        _PARTITION,
        opt.option(
            "--nodes wanted",
            "Nodes to measure: all of the partition, or a list as n[1-4],n7 (default: one that the "
            "scheduler chooses).",
            metavar="all|LIST",
        ),
        opt.option(
            "--time-limit", "Time limit of each job, as 30m or 1h30m.", type=Duration(60.0), default="1h"
        ),
        partial(opt.JOB_OPTION, help="Option of each job for the scheduler, as account=perf."),
    ),
    result=(opt.AT_LEAST, partial(opt.NAME, default="cluster"), opt.OUTPUT, *opt.MESSAGES, opt.JSON),
)
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="[COMPARE_OPTIONS]...")
def run(
    site: str | None,
    partition: str | None,
    wanted: str | None,
    at_least: float,
    *,
    as_json: bool,
    **chosen: Any,
) -> int:
    """Run `pagewise compare` on nodes, one job per node, and show which nodes deviate from the others.

    COMPARE_OPTIONS are those of compare: --kernels, --configurations, --rounds, --until, --threads, ... Each
    node runs a complete comparison. Nodes that fail and jobs that end early are reported; the rest is kept.
    Ctrl-C cancels the jobs. Exit code 1 if the result of a node is missing.
    """
    from pagewise.cluster import engine
    from pagewise.cluster.sites import located

    with located(site, partition) as files:
        chosen_partition = _partition(files, partition)
        request = engine.Request(
            partition=chosen_partition,
            nodes=_nodes(chosen_partition, wanted),
            configuration=tuple(files),
            **chosen,
        )
        folder, campaign = engine.begin(request)
        engine.run(request, folder, campaign, quiet=make_messages().quiet)
    return publish_cluster(folder, at_least, as_json)


def _partition(files: Any, named: str | None) -> Any:
    from pagewise.cluster.sites import choose, partitions_of

    return choose(partitions_of(files), named)


def _nodes(partition: Any, wanted: str | None) -> tuple[Any, ...]:
    """The nodes to measure, with the state that the scheduler reports."""
    from pagewise.cluster.schedulers import ClusterNode, expand, nodes_of
    from pagewise.core.errors import SelectionError, SetupError

    if wanted is None:
        return ()
    try:
        known = {node.name: node for node in nodes_of(partition.scheduler, partition.access)}
    except SetupError:
        if wanted == "all":
            raise
        known = {name: ClusterNode(name, "unknown", True) for name in expand(wanted)}
    names = list(known) if wanted == "all" else expand(wanted)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SelectionError(
            f"no such nodes in {partition.fullname}: {', '.join(unknown)}",
            where="--nodes",
            remedy="to list the nodes: pagewise cluster nodes",
        )
    return tuple(known[name] for name in names)
