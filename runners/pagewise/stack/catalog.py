"""What there is to measure: reads the module tree into configurations, and their kernel.yaml into kernels."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pagewise.core.configuration import Configuration
from pagewise.core.errors import FormatError, SelectionError, SetupError
from pagewise.core.kernel import Kernel
from pagewise.core.reading import read_file
from pagewise.core.suggestions import nearest
from pagewise.stack.lmod import load_each


@dataclass(frozen=True)
class Broken:
    """A module of ours that could not be used, and why."""

    module: str
    reason: str


@dataclass(frozen=True)
class Entry:
    """A configuration with the environment that `module load` gave, and the kernels it brings."""

    configuration: Configuration
    environment: dict[str, str]
    kernels: dict[str, Kernel]

    def program(self, executable: str) -> str | None:
        """The program's absolute path as this module's PATH finds it, or None."""
        return shutil.which(executable, path=self.environment.get("PATH", ""))


@dataclass(frozen=True)
class Catalog:
    """The usable configurations of a module tree, the kernels among them, and the modules that are broken."""

    tree: Path
    entries: tuple[Entry, ...]
    kernels: dict[str, Kernel]
    broken: tuple[Broken, ...]

    def select_kernels(self, patterns: Sequence[str]) -> list[Kernel]:
        """The kernels that fit any of the names or globs; those of the default comparison without any.

        Raises SelectionError.
        """
        for text in patterns:
            if not any(kernel.matches(text) for kernel in self.kernels.values()):
                near = ", ".join(self._names_near(text))
                raise SelectionError(
                    f"no kernel fits {text}",
                    where=self.tree,
                    remedy=f"nearest: {near}; `pagewise list kernels` lists all",
                )
        if patterns:
            return [k for k in self.kernels.values() if any(k.matches(text) for text in patterns)]
        default = [kernel for kernel in self.kernels.values() if kernel.default]
        if self.kernels and not default:
            raise SelectionError(
                f"none of the {len(self.kernels)} kernels here is in the default comparison",
                where=self.tree,
                remedy="choose: --kernels NAMES, or --kernels '*'; `pagewise list kernels` lists them",
            )
        return default

    def _names_near(self, text: str) -> list[str]:
        """What may have been meant: names, whole groups, or else all groups."""
        groups = sorted({f"{kernel.group}/*" for kernel in self.kernels.values()})
        # A glob is near to what its letters are near to; without a slash it stands for names.
        letters = text.lower().translate(str.maketrans("", "", "*?[]")).strip("/")
        known = {name: name for name in groups}
        for kernel in self.kernels.values():
            known |= {kernel.name: kernel.name, kernel.path: kernel.name}
        known |= {name.removesuffix("/*"): name for name in groups}
        near = [name for word, name in known.items() if letters and letters in word]
        near += [known[word] for word in nearest(letters, known, 5)]
        return list(dict.fromkeys(near))[:8] or groups

    def _like(self, text: str) -> str:
        """Which configuration may have been meant, as the beginning of a remedy."""
        near = nearest(text, (f"{e.configuration.compiler}/{e.configuration.label}" for e in self.entries), 1)
        return f"did you mean {near[0]}? " if near else ""

    def select_entries(self, patterns: Sequence[str]) -> list[Entry]:
        """The configurations that fit any of the globs, all when there are none. Raises SelectionError."""
        for text in patterns:
            if not any(entry.configuration.matches(text) for entry in self.entries):
                raise SelectionError(
                    f"no configuration fits {text!r}",
                    where=self.tree,
                    remedy=f"{self._like(text)}`pagewise list` lists them; a glob is like 'gcc-*/thp/*'",
                )
        return [
            e for e in self.entries if not patterns or any(e.configuration.matches(text) for text in patterns)
        ]


def module_files(tree: Path) -> dict[str, Path]:
    """Module names of a tree with their files, sorted; hidden files are not modules."""
    found = {}
    for file in sorted(tree.rglob("*.lua")):
        inside = file.relative_to(tree)
        if file.is_file() and not any(part.startswith(".") for part in inside.parts):
            found[str(inside.with_suffix(""))] = file
    return found


def read_catalog(tree: Path, init: Path) -> Catalog:
    """Loads every module of the tree once and reads what it brings.

    A module that sets no PAGEWISE_PACKAGE is not ours and left aside; one of ours that does not load or tells
    too little is listed as broken. Raises SetupError when nothing is usable, FormatError for a bad
    kernel.yaml.
    """
    files = module_files(tree)
    entries: list[Entry] = []
    broken: list[Broken] = []
    read: dict[bytes, Kernel] = {}
    for loaded in load_each(init, tree, list(files)):
        if loaded.environment is None:
            broken.append(Broken(loaded.name, f"module load failed: {loaded.message}"))
            continue
        if "PAGEWISE_PACKAGE" not in loaded.environment:
            continue
        digest = hashlib.sha256(files[loaded.name].read_bytes()).hexdigest()
        try:
            configuration = Configuration.from_environment(loaded.name, loaded.environment, digest)
        except KeyError as missing:
            broken.append(Broken(loaded.name, f"the module does not set {missing.args[0]}"))
            continue
        entries.append(Entry(configuration, loaded.environment, _kernels_of(configuration, read)))
    if not entries:
        reasons = "".join(f"\n    {fault.module}: {fault.reason}" for fault in broken)
        raise SetupError(
            "no usable module is in this tree" + reasons,
            where=tree,
            remedy="build the environment (make compare), or name another tree with --modules",
        )
    entries.sort(key=lambda entry: entry.configuration.order())
    return Catalog(tree, tuple(entries), _agreed(entries), tuple(broken))


def _kernels_of(configuration: Configuration, read: dict[bytes, Kernel]) -> dict[str, Kernel]:
    """The kernels of an installation by name; equal files are parsed once."""
    kernels = {}
    for file in sorted((Path(configuration.prefix) / "share" / "pagewise" / "kernels").glob("*.yaml")):
        try:
            content = read_file(file)
        except OSError as fault:
            raise FormatError(
                f"this kernel.yaml cannot be read: {fault.strerror}",
                where=file,
                remedy="build the environment again",
            ) from fault
        if content not in read:
            read[content] = Kernel.from_file(file)
        kernels[read[content].name] = read[content]
    return kernels


def _agreed(entries: Sequence[Entry]) -> dict[str, Kernel]:
    """One description for each kernel. Two builds that describe a kernel differently must not be compared."""
    first: dict[str, tuple[Kernel, str]] = {}
    for entry in entries:
        for name, kernel in entry.kernels.items():
            known, module = first.setdefault(name, (kernel, entry.configuration.module))
            if known.data != kernel.data:
                raise FormatError(
                    f"two builds describe the kernel {name} differently",
                    where=f"{module} and {entry.configuration.module}",
                    remedy="build the environment again, so that all come from one source",
                )
    return {name: kernel for name, (kernel, _) in sorted(first.items())}
