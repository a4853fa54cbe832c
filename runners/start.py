"""Starts pagewise of this checkout in an isolated Python (-I): no variable of the caller adds code."""

import runpy
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
runpy.run_module("pagewise", run_name="__main__", alter_sys=True)
