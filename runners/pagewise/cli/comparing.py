"""What the commands that compare have in common: options, and their default values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pagewise.cli.options import rare_option
from pagewise.cli.types import Number
from pagewise.cli.vary import varies
from pagewise.core.errors import SelectionError
from pagewise.core.node_state import STATES

# docs/explanation/statistics.md: what these detect.
_ROUNDS, _WIDTH = 7, 0.03

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
BASELINE_OPTION = rare_option("--baseline", metavar="GLOB|POLICY")


def complete(chosen: dict[str, Any], baseline: str) -> dict[str, Any]:
    """Return the options with defaults; an empty baseline is refused later. Raises SelectionError."""
    _check_states(chosen["node_states"])
    chosen = {**chosen, "settings": _settings(chosen["settings"])}
    chosen["baseline"] = baseline if chosen["baseline"] is None else chosen["baseline"]
    if chosen["rounds"] is None:
        chosen |= {"rounds": _ROUNDS, "until": chosen["until"] or _WIDTH}
    return chosen


def _settings(given: Sequence[tuple[str, tuple[str, ...]]]) -> dict[str, tuple[str, ...]]:
    """The values by variable. Raises SelectionError for a variable that is given twice."""
    settings = dict(given)
    if len(settings) < len(given):
        raise SelectionError(
            "a variable is given twice", where="--vary", remedy="write its values with commas: NAME=a,b,c"
        )
    return settings


def _check_states(states: Sequence[str]) -> None:
    """Raises SelectionError for an unknown state, or one that is given twice."""
    if not set(states) <= set(STATES) or len(set(states)) < len(states):
        raise SelectionError(
            f"{', '.join(states)} are not different states of the node",
            where="--vary node-state",
            remedy=f"choose from {', '.join(STATES)}",
        )
