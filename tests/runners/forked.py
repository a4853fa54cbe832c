"""Run `pagewise` in forks of a process that has loaded its modules, except those of the command line.

Loading them takes most of the time of a short run. The command line is loaded again, because it measures the
time since it was loaded. Programs that tests send signals to or start from a shell are separate processes
(Stage.command).
"""

from __future__ import annotations

import os
import pkgutil
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from multiprocessing import forkserver, get_context
from pathlib import Path

# The package of this checkout, whichever the environment has installed.
sys.path.insert(0, str(Path(__file__).parents[2] / "runners"))

import pagewise

ROOT = Path(__file__).parents[2]
#: Of all runs. Compiled once for all tests, outside the sources, in a folder that no other user may write.
PYTHON = {
    "PYTHONPATH": str(ROOT / "runners"),
    "PYTHONPYCACHEPREFIX": str(ROOT / ".pagewise" / "tests-pycache"),
}
_LIBRARIES = ["duckdb", "jinja2", "scipy.stats", "yaml"]
_LIBRARIES += [f"matplotlib.{name}" for name in ("backends.backend_agg", "backends.backend_svg", "figure")]
_LIBRARIES += [f"rich.{name}" for name in ("_emoji_replace", "markup", "progress", "table")]
_NOT_LOADED = ("pagewise.__main__", "pagewise.cli", "pagewise.cluster.reframe_nodes")
_context = get_context("forkserver")


def run_module(
    module: str, arguments: Sequence[str], environment: Mapping[str, str], folder: Path, timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run `python -m module arguments` in that environment and folder, like subprocess.run.

    Raises subprocess.TimeoutExpired.
    """
    with tempfile.TemporaryDirectory() as scratch:
        outputs = [Path(scratch, name) for name in ("stdout", "stderr")]
        process = _context.Process(target=_run, args=(module, arguments, dict(environment), folder, outputs))
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired([module, *arguments], timeout)
        texts = [file.read_text() for file in outputs]
        return subprocess.CompletedProcess([module, *arguments], process.exitcode, *texts)


def start_server() -> None:
    """Start the process that loads the modules."""
    _context.set_forkserver_preload([*_LIBRARIES, *_modules()])
    before = dict(os.environ)
    os.environ.update(PYTHON)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    forkserver.ensure_running()
    os.environ.clear()
    os.environ.update(before)
    # It answers when it has loaded them.
    process = _context.Process(target=int)
    process.start()
    process.join()


def _modules() -> Iterable[str]:
    """The modules of pagewise that a command may load; ReFrame loads those of its tests."""
    for module in pkgutil.walk_packages(pagewise.__path__, "pagewise."):
        if not module.name.startswith(_NOT_LOADED):
            yield module.name


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
    if "PAGEWISE_TEST_KEPT_MODULES" in environment:
        from kept_modules import keep_modules

        keep_modules(Path(environment["PAGEWISE_TEST_KEPT_MODULES"]), environment["PAGEWISE_ROOT"])
    runpy.run_module(module, run_name="__main__", alter_sys=True)
