"""Run `pagewise` in forks of a process that has loaded its libraries, but no module of pagewise.

Loading the libraries takes most of the time of a short run. Programs that tests send signals to or start
from a shell are separate processes (Stage.command).
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing import get_context
from pathlib import Path

_LIBRARIES = (
    "jinja2",
    "jsonschema",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg",
    "matplotlib.figure",
    "numpy",
    "rich.console",
    "rich.table",
    "scipy.special",
    "yaml",
)
_forks = get_context("forkserver")
_forks.set_forkserver_preload(list(_LIBRARIES))


def run_module(
    module: str, arguments: Sequence[str], environment: Mapping[str, str], folder: Path, timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run `python -m module arguments` in that environment and folder, like subprocess.run.

    Raises subprocess.TimeoutExpired.
    """
    with tempfile.TemporaryDirectory() as kept:
        outputs = [Path(kept, name) for name in ("stdout", "stderr")]
        process = _forks.Process(target=_run, args=(module, arguments, dict(environment), folder, outputs))
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired([module, *arguments], timeout)
        texts = [file.read_text() for file in outputs]
        return subprocess.CompletedProcess([module, *arguments], process.exitcode, *texts)


def _run(
    module: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    outputs: Sequence[Path],
) -> None:
    for number, file in enumerate(outputs, start=1):
        opened = os.open(file, os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.pycache_prefix = environment.get("PYTHONPYCACHEPREFIX")
    sys.path[:0] = environment["PYTHONPATH"].split(os.pathsep)
    sys.argv = ["", *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
