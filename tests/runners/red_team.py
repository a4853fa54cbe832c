"""The deliberate faults, each injected into a comparison: the table of docs/explanation/trust.md."""

import re

from stage import ROOT

TABLE = (ROOT / "docs/explanation/trust.md").read_text()
_ROWS = re.findall(r"^\| `?([a-z_ ]+)`? \|.*\|(.*)\|$", TABLE, re.MULTILINE)
#: By fault the code with which its configuration or result is excluded; `inconclusive`: it is kept.
CODES = {name: code for code, names in _ROWS for name in re.findall(r"`([a-z-]+)`", names)}
