"""The build of the kernels that a tracer can run, made by its own CMake preset."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from pagewise.core.errors import RefusedError, SelectionError, SetupError
from pagewise.core.text import choose_of, nearest
from pagewise.stack.setup import SetupFacts

#: CMake's targets: the simulator as a plug-in of the emulator, the library that reports allocations, and the
#: program that measures what base pages cost.
PLUGIN, PRELOAD, COSTS = "pagewise-model", "pagewise-preload", "pagewise-costs"
_FOLDERS = ("micro", "mini")
_TAIL = 15


@dataclass(frozen=True)
class TracedBuild:
    """A build folder of the preset <compiler>-model: programs that QEMU can run, and its plug-in."""

    root: Path
    compiler: str
    folder: Path

    @classmethod
    def of_checkout(cls, root: Path, compiler: str) -> TracedBuild:
        """The one that the preset makes."""
        return cls(root, compiler, root / ".pagewise" / "build" / f"{compiler}-model")

    @property
    def has_sources(self) -> bool:
        """Whether there is a checkout to build from."""
        return (self.root / "kernels" / "CMakePresets.json").is_file()

    @property
    def plugin(self) -> Path:
        """The simulator as a plug-in."""
        return self.folder / "model" / "libpagewise-model.so"

    @property
    def preload(self) -> Path:
        """The library that reports the allocations of a program. Raises SelectionError."""
        library = self.folder / "model" / "libpagewise-preload.so"
        if not library.is_file():
            raise SelectionError(
                "this build has no library that reports allocations",
                where=self.folder,
                remedy=f"build it there: ninja {PRELOAD}; or omit --build",
            )
        return library

    @property
    def costs(self) -> Path:
        """The program that measures what base pages cost."""
        return self.folder / "model" / COSTS

    def program(self, kernel: str) -> Path | None:
        """The program of a kernel or mini-app, if it is built."""
        files = (self.folder / folder / kernel / f"pw-{kernel}" for folder in _FOLDERS)
        return next((file for file in files if file.is_file()), None)

    def existing_program(self, folder: str) -> Path:
        """The program of a kernel's folder. Raises SelectionError."""
        built = self.program(folder)
        if built is None:
            raise SelectionError(
                f"this build has no program of {folder}",
                where=self.folder,
                remedy=f"build it there: ninja pw-{folder}; or omit --build",
            )
        return built

    def description(self, kernel: str) -> Path | None:
        """The kernel.yaml of a kernel, None for one that only the build has. Raises SelectionError."""
        known = descriptions(self.root)
        if kernel not in known and self.program(kernel) is None:
            near = ", ".join(nearest(kernel, known))
            raise SelectionError(
                f"no kernel is called {kernel}",
                where=self.root / "kernels",
                remedy=f"{f'nearest: {near}; ' if near else ''}give your program by its path",
            )
        return known.get(kernel)

    def check_sources(self) -> None:
        """Raises SetupError without a checkout."""
        if not self.has_sources:
            raise SetupError(
                "there is no checkout here to build the traceable programs from",
                where=self.root,
                remedy="run pagewise from a checkout, or name a folder with such a build: --build DIR",
            )

    def make(self, targets: list[str], facts: SetupFacts | None) -> None:
        """Builds targets; configures the folder first if needed. Raises SetupError, RefusedError."""
        self.check_sources()
        sources = self.root / "kernels"
        if not (self.folder / "build.ninja").is_file():
            _run(
                ["cmake", "--preset", f"{self.compiler}-model", *_compilers(facts, self.compiler)],
                sources,
                f"the preset {self.compiler}-model cannot be configured",
            )
        _run(
            ["cmake", "--build", str(self.folder), "--target", *targets, "--parallel"],
            sources,
            f"{', '.join(targets)} cannot be built for the tracer",
        )


def descriptions(root: Path) -> dict[str, Path]:
    """The descriptions of a checkout's kernels and mini-apps: `kernel.yaml` by its folder, others by name."""
    files = (file for folder in _FOLDERS for file in (root / "kernels" / folder).glob("*/*.yaml"))
    return {file.parent.name if file.stem == "kernel" else file.stem: file for file in sorted(files)}


def _compilers(facts: SetupFacts | None, name: str) -> list[str]:
    """The compiler's drivers as CMake options; none before the set-up: the preset then names them."""
    detected = facts.compilers if facts is not None else ()
    for compiler in detected:
        if compiler.name == name:
            return [f"-DCMAKE_C_COMPILER={compiler.c}", f"-DCMAKE_Fortran_COMPILER={compiler.fortran}"]
    if not detected:
        return []
    known = dict.fromkeys(compiler.name for compiler in detected)
    raise SelectionError(
        f"the set-up found no compiler {name}", where="--compiler", remedy=choose_of(name, known)
    )


def _run(command: list[str], folder: Path, message: str) -> None:
    try:
        process = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError as fault:
        raise SetupError(f"{command[0]} is missing", remedy=f"apt-get install {command[0]}") from fault
    if process.returncode != 0:
        tail = (process.stdout + process.stderr).strip().splitlines()[-_TAIL:]
        raise RefusedError(
            message + ":\n    " + "\n    ".join(tail),
            where=" ".join(command),
            remedy=f"correct the reported errors, and run the command again in {folder}",
        )
