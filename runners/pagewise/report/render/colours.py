"""Colours of figures, and the names of their roles in the page."""

from __future__ import annotations

# The page replaces these colours by CSS variables of the same role, for its light and dark schemes.
INK, FAINT, PAPER, SHADE = "#1c2430", "#59636f", "#fdfefd", "#e1e5eb"
# All at least 4.5 : 1 on PAPER; blue and purple also differ in lightness from the grey of base pages for
# colour-blind readers, and every line is labelled.
_POLICY_COLOURS = {"none": "#6b7480", "thp": "#0072b2", "hugetlbfs": "#a23e8c"}
_MORE_COLOURS = ("#946300", "#5b4bb5", "#4a7a1e")
COLOUR_ROLES = {
    INK: "ink",
    FAINT: "faint",
    PAPER: "paper",
    SHADE: "shade",
    "#6b7480": "none",
    "#0072b2": "thp",
    "#a23e8c": "hugetlbfs",
    "#946300": "more-1",
    "#5b4bb5": "more-2",
    "#4a7a1e": "more-3",
}


def colour(policy: str) -> str:
    """The colour of a page policy, a key of COLOUR_ROLES."""
    if policy in _POLICY_COLOURS:
        return _POLICY_COLOURS[policy]
    return _MORE_COLOURS[sum(policy.encode()) % len(_MORE_COLOURS)]
