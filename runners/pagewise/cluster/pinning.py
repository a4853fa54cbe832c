"""How a job is told which node it is for, by scheduler."""

from __future__ import annotations

from typing import Any

from pagewise.core.errors import SetupError

# Options of the schedulers for which ReFrame has no list of nodes of its own: PBS Professional's chunks
# (qsub(1B), pbs_resources(7B)), LSF's bsub -m, Grid Engine's qsub -l, OAR's oarsub -p.
_OPTIONS = {
    "pbs": "host={node}",
    "pbspro": "host={node}",
    "lsf": "-m {node}",
    "sge": "-l hostname={node}",
    "oar": "-p \"host='{node}'\"",
}
_LISTED = ("slurm", "squeue", "ssh")


def pin(job: Any, partition: Any, node: str) -> None:
    """Has ReFrame's job run on this node alone. `extras: {pin: OPTION}` of the partition comes first.

    Raises SetupError for a scheduler that takes no node.
    """
    scheduler = partition.scheduler.registered_name
    option = partition.extras.get("pin") or _OPTIONS.get(scheduler)
    if option is not None:
        job.options = [*job.options, option.format(node=node)]
    elif scheduler in _LISTED:
        job.pin_nodes = [node]
    elif scheduler == "flux":
        # RFC 31: a constraint by host names.
        job.fluxjob.setattr("system.constraints", {"hostlist": [node]})
    else:
        raise SetupError(
            f"the scheduler {scheduler} has no way known here to ask for the node {node}",
            where=f"the partition {partition.fullname} of ReFrame's configuration",
            remedy="give the partition `extras: {pin: OPTION}`, with {node} for the node's name",
        )
