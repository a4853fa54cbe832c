"""`studies/fill.py` as a module."""

import importlib.util

from stage import ROOT

STUDIES = ROOT / "studies"
_SPEC = importlib.util.spec_from_file_location("fill", STUDIES / "fill.py")
assert _SPEC is not None and _SPEC.loader is not None
fill = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(fill)
