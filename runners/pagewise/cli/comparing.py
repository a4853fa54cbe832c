"""What the commands that compare have in common: options, and their default values."""

from __future__ import annotations

from pagewise.cli.chosen import Parameters
from pagewise.cli.options import rare_option
from pagewise.cli.types import Number
from pagewise.cli.vary import varies

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


def complete(parameters: Parameters, baseline: str) -> Parameters:
    """The parameters with the defaults of a comparison; an empty baseline is refused later."""
    defaults: dict[str, object] = {}
    if parameters["baseline"] is None:
        defaults["baseline"] = baseline
    if parameters["rounds"] is None:
        defaults |= {"rounds": _ROUNDS, "until": parameters["until"] or _WIDTH}
    return {**parameters, **defaults}
