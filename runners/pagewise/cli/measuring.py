"""Commands that measure: from options to a session, which is planned, resumed, or measured."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

import rich_click as click
from click import get_current_context
from click.core import ParameterSource
from rich.console import Console

from pagewise.cli import BEGAN
from pagewise.cli.options import BUDGET, ROUNDS, UNTIL, Command, OptionMaker, option, rare_option
from pagewise.cli.output import make_messages
from pagewise.cli.reporting import publish_session, show
from pagewise.cli.types import Duration, Number, Percent, several, split_commas
from pagewise.core.node_state import STATES

#: The parameters of a command by name, as click parsed them.
Parameters = Mapping[str, object]
_Options = TypeVar("_Options")

if TYPE_CHECKING:
    from pagewise.session.session import Session as Session  # noqa: PLC0414 for commands
else:
    # Imported when it is used: it takes long.
    Session = Any

# docs/explanation/statistics.md: what these detect.
_ROUNDS, _WIDTH = 3, 0.03
#: States and settings of the machine that can be varied.
_MACHINE = ("node-state", "prefetchers", "clocks")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*=.*", re.DOTALL)


def options_of(kind: type[_Options], parameters: Parameters) -> _Options:
    """The options of a command: each field is the parameter of its name; options in it, alike."""
    values: dict[str, object] = {}
    hints = get_type_hints(kind)
    for item in fields(kind):  # type: ignore[arg-type]
        inner = hints[item.name]
        if isinstance(inner, type) and is_dataclass(inner):
            values[item.name] = options_of(inner, parameters)
        elif item.name in parameters:
            values[item.name] = parameters[item.name]
    make: Callable[..., _Options] = kind
    return make(**values)


def complete(parameters: Parameters, baseline: str) -> Parameters:
    """The parameters with the defaults of a comparison; an empty baseline is refused later."""
    defaults: dict[str, object] = {}
    if parameters["baseline"] is None:
        defaults["baseline"] = baseline
    if parameters["rounds"] is None:
        given = parameters["until"]
        defaults |= {"rounds": _ROUNDS, "until": given or _WIDTH, "clear_suffices": given is None}
    return {**parameters, **defaults}


def varies(machine: Collection[str], text: str, *, variables: bool = False) -> OptionMaker:
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
                of_variables.append((name, tuple(dict.fromkeys(values.split(",")))))
            elif name in _MACHINE or _VARIABLE.fullmatch(each):
                known = ", ".join((*machine, *(["a variable of the environment"] if variables else [])))
                raise click.BadParameter(
                    f"{each!r}: write NAME=VALUES, with an option of kernels or one of {known}."
                )
            else:
                of_kernels.append(each)
        if len(dict(of_variables)) < len(of_variables) or any(len(each) < 2 for _, each in of_variables):
            raise click.BadParameter("each variable is given once, with two values or more: NAME=a,b,c.")
        states = split_commas(of_machine.get("node-state", ()))
        if not set(states) <= set(STATES) or len(set(states)) < len(states):
            raise click.BadParameter(
                f"{', '.join(states)} are not different states of the node: choose from {', '.join(STATES)}."
            )
        context.params |= {"varied": tuple(of_kernels), "settings": dict(of_variables)}
        context.params["node_states"] = states
        for name in ("prefetchers", "clocks"):
            context.params[name] = several(of_machine.get(name, ()))

    return option("--vary", text, multiple=True, metavar="NAME=VALUES", callback=read, expose_value=False)


VARIED = varies(
    ("node-state", "prefetchers", "clocks"),
    "What else to compare, with its values, the baseline's first: an option of kernels, as layout, "
    "layout=studies,soa or all; an environment variable, as OMP_WAIT_POLICY=active,passive (-: unset); "
    "node-state=fresh,aged; prefetchers=off; clocks=boost=on/off (root). Repeat --vary for more "
    "(docs/how-to/compare.md).",
    variables=True,
)
AA = rare_option(
    "--aa", "Number of additional runs of each baseline per round (A/A).", type=Number(1, 10), default=1
)
#: The beginning of the panel `runs` of commands that compare.
COMPARED_RUNS = (ROUNDS, UNTIL, BUDGET, AA)
BASELINE_OPTION = rare_option("--baseline", metavar="GLOB|POLICY")
#: How the runs of a program are judged.
JUDGED = (
    option(
        "--check checks",
        "Pattern that the output must match; '! pattern' must not match; '| command' reads the "
        "output and must exit with 0.",
        multiple=True,
        metavar="PATTERN|COMMAND",
    ),
    rare_option(
        "--sample-interval interval",
        "Sampling interval of memory, as 0.05s (default: adaptive, at most 1 % of one CPU).",
        type=Duration(0.001),
    ),
    rare_option(
        "--enough-coverage enough",
        "Minimum share of a policy's memory that must be on the requested pages.",
        type=Percent(closed=True),
        default="80%",
    ),
)
#: Parameters for programs only that every command which measures programs has.
OF_PROGRAM = ("suite", "cases", "checks", "interval", "enough")


class TakesProgram(Command):
    """A command with `-- PROGRAM ARGS`: the parameter `command` is the program with its arguments, or ()."""

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        """Parses the options before `--`. An empty program is wrong usage."""
        place = arguments.index("--") if "--" in arguments else len(arguments)
        options, program = arguments[:place], tuple(arguments[place + 1 :])
        context.allow_extra_args = True
        extra = super().parse_args(context, options)
        if not context.resilient_parsing:
            if extra:
                hint = "name kernels with --kernels, and a program after --"
                context.fail(f"Unexpected argument {extra[0]!r}: {hint}.")
            if place < len(arguments) and not program:
                context.fail("There is no program after --.")
        context.params["command"] = program
        source = ParameterSource.COMMANDLINE if program else ParameterSource.DEFAULT
        context.set_parameter_source("command", source)
        return extra

    def collect_usage_pieces(self, context: click.Context) -> list[str]:
        """The words of the usage line."""
        return [*super().collect_usage_pieces(context), "[-- PROGRAM ARGS]"]


class Measuring(Command):
    """A command whose function prepares a session: `function(parameters, console)`.

    It takes the panels `SESSION_RUNS` and `SESSION_RESULT` of `options`.
    """

    def __init__(
        self, *arguments: Any, callback: Callable[[Parameters, Console], Session], **named: Any
    ) -> None:
        super().__init__(*arguments, callback=self._measure, **named)
        self._prepare = callback

    def _measure(self, *, planning: bool, as_json: bool, resume: Path | None, **parameters: object) -> int:
        from pagewise.report.views import plan
        from pagewise.session.options import MachineOptions
        from pagewise.session.resume import check_command

        if resume is not None:
            check_command(resume, sys.argv[1:])
        if not planning:
            _begin_session(options_of(MachineOptions, parameters).changes)
        prepared = self._prepare({**parameters, "resume": resume}, make_messages())
        prepared.began = BEGAN
        if not planning:
            return self.publish(prepared, as_json)
        show(plan.view(prepared), as_json)
        return 0

    def publish(self, prepared: Session, as_json: bool) -> int:
        """Measures what was prepared, and publishes it; the exit code."""
        return publish_session(prepared, as_json)


def _begin_session(changes: bool) -> None:
    """If it changes settings of the machine, restores them when the command ends; call this first.

    What a killed session left changed is restored then, too, and otherwise reported. Raises RefusedError.
    """
    from pagewise.machine.settings.session import session, traces

    if changes:
        get_current_context().with_resource(session())
        return
    for trace in traces():
        if not trace.is_running:
            places = "; ".join(change.text for change in trace.changes)
            text = f"a killed session left settings of this machine changed; their original values: {places}"
            click.echo(f"pagewise: warning: {text}\n  remedy: as root: pagewise doctor --restore", err=True)
