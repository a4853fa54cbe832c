"""`--vary NAME=VALUES`: what a command compares in addition to configurations and page policies."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import click

from pagewise.cli import lists
from pagewise.cli.options import Option, option
from pagewise.cli.types import Setting

#: States and settings of the machine that can be varied, with their parameters.
_MACHINE = {"node-state": "node_states", "prefetchers": "prefetchers", "clocks": "clocks"}
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*=.*", re.DOTALL)
#: Options that were replaced, with their new form.
REPLACED = {
    "--option": "--vary NAME=VALUES",
    "--setting": "--vary VARIABLE=VALUES",
    "--hardware-prefetchers": "--vary prefetchers=SETTING",
    "--node-state": "--vary node-state=STATES",
    "--clocks": "--vary clocks=SETTINGS",
}


def varies(machine: Collection[str], text: str, *, variables: bool = False) -> Option:
    """Return the option `--vary`, which sets the parameters `varied`, `settings` and those of _MACHINE.

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
        context.params |= {"varied": tuple(of_kernels), "prefetchers": ()}
        if variables:
            context.params["settings"] = tuple(of_variables)
        for name, given in of_machine.items():
            split = lists.split if name == "node-state" else lists.several
            context.params[_MACHINE[name]] = split(context, parameter, given)

    return option("--vary", text, multiple=True, metavar="NAME=VALUES", callback=read, expose_value=False)


def explain_replaced(name: str) -> str | None:
    """Return how an option that was replaced is written now; None for another one."""
    new = REPLACED.get(name)
    return None if new is None else f"{name} is now {new}."
