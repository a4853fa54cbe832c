"""`--vary NAME=VALUES`: what a command compares in addition to configurations and page policies."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import click

from pagewise.cli import lists
from pagewise.cli.options import Option, option
from pagewise.cli.types import Setting
from pagewise.core.node_state import STATES

#: States and settings of the machine that can be varied.
_MACHINE = ("node-state", "prefetchers", "clocks")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*=.*", re.DOTALL)


def varies(machine: Collection[str], text: str, *, variables: bool = False) -> Option:
    """The option `--vary`: parameters `varied`, `settings`, `node_states`, `prefetchers` and `clocks`.

    machine: the states and settings of the machine that the command varies. text: the help. variables:
    whether it also varies environment variables.
    """

    def read(context: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> None:
        """Sort the texts by what they vary. Raises BadParameter."""
        of_machine: dict[str, list[str]] = {name: [] for name in machine}
        of_variables, of_kernels = [], []
        for each in texts:
            name, equals, values = each.partition("=")
            if name in of_machine and equals:
                of_machine[name].append(values)
            elif variables and _VARIABLE.fullmatch(each):
                of_variables.append(Setting().convert(each, parameter, context))
            elif name in _MACHINE or _VARIABLE.fullmatch(each):
                known = ", ".join((*machine, *(["a variable of the environment"] if variables else [])))
                raise click.BadParameter(
                    f"{each!r}: write NAME=VALUES, with an option of kernels or one of {known}.",
                    context,
                    parameter,
                )
            else:
                of_kernels.append(each)
        if len(dict(of_variables)) < len(of_variables):
            raise click.BadParameter(
                "a variable is given twice: write its values with commas, NAME=a,b,c.", context, parameter
            )
        states = lists.split_commas(of_machine.get("node-state", ()))
        if not set(states) <= set(STATES) or len(set(states)) < len(states):
            raise click.BadParameter(
                f"{', '.join(states)} are not different states of the node: choose from {', '.join(STATES)}.",
                context,
                parameter,
            )
        context.params |= {"varied": tuple(of_kernels), "settings": dict(of_variables)}
        context.params["node_states"] = states
        for name in ("prefetchers", "clocks"):
            context.params[name] = lists.several(context, parameter, of_machine.get(name, ()))

    return option("--vary", text, multiple=True, metavar="NAME=VALUES", callback=read, expose_value=False)
